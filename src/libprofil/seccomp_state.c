/* seccomp_state.c - detects seccomp filters added since the profile was started */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "seccomp_state.h"

#define FIELD "\nSeccomp_filters:\t"

/*
 * In a container every process has a filter, so the number of filters is compared. Cheap checks
 * come first; each also avoids a further system call under a new filter, which might kill the
 * process. No filter in use is known to kill a process for prctl() at fork().
 */
struct filters {
	int known;
	int mode;	  /* 0: there is no filter */
	int no_new_privs; /* set, for good, by any unprivileged process before its first filter */
	long number;
};
static struct filters noted;

/* The number of the calling thread's filters; -1: unknown. */
static long count_filters(void)
{
	static char text[8192]; /* not on a signal handler's small stack */
	__cleanup(closep) int fd = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	const char *at;

	text[n > 0 ? n : 0] = '\0';
	at = strstr(text, FIELD);
	return at ? atol(at + sizeof(FIELD) - 1) : -1;
}

void seccomp_note(void)
{
	if (noted.known)
		return;
	noted.mode = prctl(PR_GET_SECCOMP);
	noted.no_new_privs = prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
	noted.number = noted.mode ? count_filters() : 0;
	noted.known = 1;
}

int seccomp_changed(void)
{
	int mode = prctl(PR_GET_SECCOMP);

	if (!noted.known || mode != noted.mode)
		return 1;
	if (!mode)
		return 0;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != noted.no_new_privs || noted.number < 0)
		return 1;
	return count_filters() != noted.number;
}
