/* run.c - what this process tells the profilctl that runs it, if one does */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "core/run.h"
#include "core/scope.h"
#include "core/wire.h"
#include "run.h"

#define WAIT_S 10

/* The address and the key, one behind the other; a set-id program takes none from its caller. */
static const char *runner(void)
{
	const char *run = secure_getenv(PROFIL_RUN_ENV);

	return run && strlen(run) == PROFIL_RUN_NAME + PROFIL_RUN_KEY ? run : NULL;
}

/* Where nobody hears any more, nobody misses it. */
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
	static int told;

	if (!run)
		return 0;
	if (!told)
		tell(run, PROFIL_RUN_IMAGE, NULL, 0);
	told = 1;
	return 1;
}

void run_graph(int fd)
{
	const char *run = runner();

	if (run)
		tell(run, PROFIL_RUN_GRAPH, &fd, 1);
}

/* A program that is linked with us may have called run_begin() before this. */
__attribute__((__constructor__)) static void begin(void)
{
	int errno_before = errno;

	run_begin();
	errno = errno_before;
}
