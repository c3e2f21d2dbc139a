/* dialect_request.c - libprofil's side of a request, against a scripted daemon */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/wire.h"
#include "libprofil/entry.h"
#include "libprofil/daemon_call.h"
#include "libprofil/dialects/sprofil.h"
#include "fake_daemon.h"

int profil_sync(void);
int profil_aix(void *buffer, unsigned int bytes, unsigned long offset, unsigned int scale);
int profil_irix(unsigned short *buf, unsigned int bytes, unsigned long offset, unsigned int scale);
int profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int add_profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale);
long pcsample_solaris(uintptr_t samples[], long nsamples);
int profil_v7(void *buf, unsigned int bytes, unsigned long offset, unsigned int scale);
int sprofil(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

static unsigned short buf[8];

TestSuite(request, .init = fake_setup, .fini = fake_clean);

static int turn_on(void)
{
	return profil_solaris(buf, sizeof(buf), 0x1000, 0x8000);
}

static int turn_off(void)
{
	return profil_solaris(NULL, 0, 0, 0);
}

#define EXPECT_ERRNO(call, error)                                                      \
	do {                                                                           \
		errno = 0;                                                             \
		cr_expect((call) == -1 && errno == (error), #call ": %s, not " #error, \
			  strerror(errno));                                            \
	} while (0)

/* A missing socket, a socket without a listener, and an invalid path. */
static void check_no_daemon_answers(void)
{
	struct prof off = { buf, sizeof(buf), 0x1000, 0 };
	char end[32] = "";

	EXPECT_ERRNO(turn_on(), ENOSYS);
	EXPECT_ERRNO(profil_aix(buf, sizeof(buf), 0x1000, 0x8000), ENOSYS);
	EXPECT_ERRNO(profil_darwin((char *)buf, sizeof(buf), 0x1000, 0x8000), ENOSYS);
	EXPECT_ERRNO(profil_v7(buf, sizeof(buf), 0x1000, 0x8000), ENOSYS);
	EXPECT_ERRNO(profil_irix(buf, sizeof(buf), 0x1000, 0x8000), ENOSYS);
	EXPECT_ERRNO(pcsample_solaris((uintptr_t *)buf, 2), ENOSYS);
	EXPECT_ERRNO(profil_sync(), ENOSYS);
	errno = 77;
	cr_expect_eq(0, turn_off());
	cr_expect_eq(0, profil_aix(NULL, 0, 0, 0));
	cr_expect_eq(0, profil_aix(end, (unsigned int)-1, 0, 0));
	cr_expect_eq(0, profil_darwin(NULL, 0, 0, 0));
	cr_expect_eq(0, add_profil_darwin((char *)buf, sizeof(buf), 0x1000, 0x8000));
	cr_expect_eq(0, profil_irix(buf, sizeof(buf), 0x1000, 0));
	cr_expect_eq(0, profil_v7(buf, sizeof(buf), 0x1000, 0));
	cr_expect_eq(0, sprofil(NULL, 0, NULL, 0));
	cr_expect_eq(0, sprofil(&off, 1, NULL, 0));
	cr_expect_eq(0, pcsample_solaris(NULL, 0));
	cr_expect_eq(77, errno);
}

Test(request, start_fails_without_a_daemon_and_stop_succeeds)
{
	char endless[200];
	int sock;
	struct sockaddr_un address;

	check_no_daemon_answers();
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = 0;
	setenv("PROFIL_SOCKET", endless, 1);
	check_no_daemon_answers();

	setenv("PROFIL_SOCKET", fake_path, 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	cr_assert(wire_address(&address, fake_path) == 0);
	cr_assert(bind(sock, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(sock);
	check_no_daemon_answers();
}

Test(request, is_repeated_when_the_daemon_closes_the_connection)
{
	fake_listen(HANGS_UP, HANGS_UP, ANSWERS);
	cr_expect_eq(0, turn_on());
	cr_expect_eq(3, fake.connections);
	cr_expect_eq(REQUEST_ON, request_mode());
}

Test(request, is_repeated_a_limited_number_of_times)
{
	fake_listen(HANGS_UP, HANGS_UP, HANGS_UP);
	EXPECT_ERRNO(turn_on(), ECONNRESET);
	cr_expect_leq(fake.connections, 8);
	cr_expect_eq(REQUEST_OFF, request_mode());
}

Test(request, times_out_when_the_daemon_is_silent)
{
	fake_listen(NEVER_ANSWERS, NEVER_ANSWERS, NEVER_ANSWERS);
	EXPECT_ERRNO(turn_on(), ETIMEDOUT);
}

Test(request, returns_the_daemons_errno)
{
	fake_listen(REFUSES, RAVES, ANSWERS);
	EXPECT_ERRNO(turn_on(), EACCES);
	EXPECT_ERRNO(turn_on(), ENOSYS);
	cr_expect_eq(REQUEST_OFF, request_mode());
	cr_expect_eq(0, turn_on());
}

/* Later requests leave the running profile's cookie in place until the stop. */
Test(request, keeps_the_cookie_of_the_running_profile)
{
	unsigned char cookie[PROFIL_COOKIE_BYTES];
	const void *running;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	cr_assert_eq(0, turn_on());
	running = (const void *)fake.start.cookie_addr;
	memcpy(cookie, fake.cookie, sizeof(cookie));
	cr_expect(!memcmp(running, cookie, sizeof(cookie)));
	cr_expect_eq(0, profil_sync());
	cr_expect_eq(0, profil_sync());
	cr_expect_neq((const void *)fake.start.cookie_addr, running);
	cr_expect(!memcmp(running, cookie, sizeof(cookie)));
	cr_expect(!memcmp((const void *)fake.start.cookie_addr, fake.cookie, sizeof(cookie)));

	cr_expect_eq(0, turn_on());
	cr_expect_neq((const void *)fake.start.cookie_addr, running);
	running = (const void *)fake.start.cookie_addr;
	memcpy(cookie, fake.cookie, sizeof(cookie));
	fake.manner[fake.connections] = REFUSES;
	EXPECT_ERRNO(turn_on(), EACCES);
	cr_expect(!memcmp(running, cookie, sizeof(cookie)), "a refusal took the cookie away");

	/* The cookie is cleared even when the daemon cannot be reached. */
	unlink(fake_path);
	cr_expect_eq(0, turn_off());
	cr_expect(memcmp(running, cookie, sizeof(cookie)), "a stop left the cookie");
}

Test(request, of_many_regions_is_sent_in_several_messages)
{
	struct prof *p = calloc(4096, sizeof(*p));
	struct timeval tick;

	for (size_t i = 0; i < 4096; i++)
		p[i] = (struct prof){ buf, 2, 16 * (4096 - i), 0x10000 };
	fake_listen(HANGS_UP, ANSWERS, ANSWERS);
	cr_expect_eq(0, sprofil(p, 4096, &tick, 0));
	cr_expect_eq(4, fake.messages);
	cr_expect_eq(4096, fake.regions);
	cr_expect_eq(0, fake.disorder);
	cr_expect_eq(0, tick.tv_sec);
	cr_expect_eq(1235, tick.tv_usec, "1.234567 ms became %ld us", (long)tick.tv_usec);
	free(p);
}

static unsigned int open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	cr_assert(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

Test(request, leaves_no_descriptor_open)
{
	unsigned int before;

	fake_listen(ANSWERS, REFUSES, HANGS_UP);
	before = open_files();
	cr_expect_eq(0, turn_on());
	EXPECT_ERRNO(turn_on(), EACCES);
	while (__atomic_load_n(&fake.closed, __ATOMIC_ACQUIRE) < 2)
		sched_yield(); /* the daemon's ends are in this process, too */
	cr_expect_eq(before, open_files());
}

static volatile int handled = -2;

static void call_in_handler(int number)
{
	handled = profil_sync();
}

Test(request, in_a_signal_handler_waits_for_the_interrupted_one)
{
	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	signal(SIGUSR1, call_in_handler);
	fake.client = pthread_self();
	cr_expect_eq(0, turn_on());
	cr_expect_eq(0, handled);
	cr_expect_eq(PROFIL_MSG_SYNC, fake.type);
}

static void *turn_on_thread(void *unused)
{
	return (void *)(intptr_t)turn_on();
}

/* The child has a copy of the lock, held by a thread that it does not have. */
Test(request, in_a_fork_child_does_not_wait_for_a_thread_of_the_parent)
{
	pthread_t thread;
	void *ret = NULL;
	int status;
	pid_t pid;

	fake_listen(STALLS, ANSWERS, ANSWERS);
	cr_assert(pthread_create(&thread, NULL, turn_on_thread, NULL) == 0);
	while (!__atomic_load_n(&fake.messages, __ATOMIC_ACQUIRE))
		sched_yield();
	pid = fork();
	if (pid == 0)
		_exit(turn_on() != 0);
	cr_expect(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
	cr_assert(write(fake.go[1], "", 1) == 1);
	cr_expect(pthread_join(thread, &ret) == 0 && !ret);
}

static void *turn_on_and_off(void *unused)
{
	for (int i = 0; i < 200; i++) {
		if (turn_on() || profil_sync() || turn_off())
			return (void *)1;
	}
	return unused;
}

Test(request, requests_of_several_threads_are_serialized)
{
	pthread_t thread[4];
	void *ret;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	for (int i = 0; i < 4; i++)
		cr_assert(pthread_create(&thread[i], NULL, turn_on_and_off, NULL) == 0);
	for (int i = 0; i < 4; i++)
		cr_expect(pthread_join(thread[i], &ret) == 0 && !ret);
	cr_expect_eq(4 * 200 * 3, fake.connections);
}
