/* kernel_list.c - what the daemon says of one process's profile */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "core/scope.h"
#include "core/wire.h"
#include "kernel_list.h"

int kernel_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out)
{
	static union {
		struct profil_msg_list m;
		char space[PROFIL_MSG_MAX];
	} answer;
	__cleanup(closep) int sock = client_open(d, NULL);
	struct profil_header ask;

	wire_header(&ask, PROFIL_MSG_LIST, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)), "LIST: %s", strerror(errno));
	cr_assert(client_recv(sock, &answer, sizeof(answer)) >= sizeof(answer.m) &&
			  answer.m.h.type == PROFIL_MSG_LIST,
		  "no answer to LIST");
	for (__u32 i = 0; i < answer.m.h.count; i++) {
		*out = answer.m.profile[i];
		if (out->tgid == (__u32)pid && !out->reader)
			return 1;
	}
	return 0;
}
