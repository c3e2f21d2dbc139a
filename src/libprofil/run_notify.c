/* run_notify.c - messages to the profilctl that runs this process, if one does */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "core/run_proto.h"
#include "base/cleanup.h"
#include "core/wire.h"
#include "run_notify.h"

#define WAIT_S 10

/* The name and the key, or NULL. secure_getenv(): a set-id program must not trust its environment.
 */
static const char *runner(void)
{
	const char *run = secure_getenv(PROFIL_RUN_ENV);

	return run && strlen(run) == PROFIL_RUN_NAME + PROFIL_RUN_KEY ? run : NULL;
}

/* Errors are ignored: they mean that profilctl has ended. */
static void tell(const char *run, enum profil_run_type type, const int *fds, unsigned int nfds)
{
	__cleanup(closep) int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct timeval most = { .tv_sec = WAIT_S };
	struct profil_run_msg m;
	struct sockaddr_un address;
	socklen_t bytes = profil_run_address(&address, run);

	wire_header(&m.h, type, sizeof(m), 0, 0);
	memcpy(m.key, run + PROFIL_RUN_NAME, sizeof(m.key));
	if (sock < 0 || setsockopt(sock, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof(most)) < 0 ||
	    connect(sock, (struct sockaddr *)&address, bytes) < 0)
		return;
	wire_send(sock, &m.h, fds, nfds);
}

int run_begin(void)
{
	const char *run = runner();
	static int notified;

	if (!run)
		return 0;
	if (!notified)
		tell(run, PROFIL_RUN_IMAGE, NULL, 0);
	notified = 1;
	return 1;
}

void run_profile(void)
{
	const char *run = runner();
	static int notified;

	if (run && !notified)
		tell(run, PROFIL_RUN_PROFILE, NULL, 0);
	notified = 1;
}

void run_graph(int fd)
{
	const char *run = runner();

	if (run)
		tell(run, PROFIL_RUN_GRAPH, &fd, 1);
}

/* In a program that is linked with libprofil, run_begin() may have been called before this. */
__attribute__((__constructor__)) static void begin(void)
{
	int errno_before = errno;

	run_begin();
	errno = errno_before;
}
