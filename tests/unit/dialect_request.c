/* dialect_request.c - libprofil's half of a call, against a daemon that does what it is told */
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
#include "libprofil/call.h"
#include "libprofil/request.h"
#include "libprofil/sprofil.h"

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
static char dir[] = "/tmp/profil-request.XXXXXX";
static char path[64];

/* What the daemon does with one connection, one after the other; the last one for all that follow.
 */
enum manner { ANSWERS, REFUSES, HANGS_UP, RAVES, NEVER_ANSWERS, STALLS };

static struct {
	enum manner manner[8];
	int listener;
	unsigned int connections;
	unsigned int closed; /* ... of them, by the daemon */
	pthread_t client;    /* gets one SIGUSR1 before its answer, if it is set */
	int go[2];	     /* STALLS: until a byte comes */

	/* What was said. */
	struct profil_msg_start start;
	unsigned int type;
	unsigned int messages;
	unsigned int regions;
	unsigned int disorder;
	unsigned char cookie[PROFIL_COOKIE_BYTES]; /* given with the last HELLO */
} fake;

static void take_regions(const struct profil_msg_region *r, unsigned int n)
{
	static __u64 last;

	for (unsigned int i = 0; i < n; i++) {
		if (fake.regions++ && r[i].lo < last)
			fake.disorder++;
		last = r[i].lo;
	}
}

/* Hears one request out. */
static int hear(int sock)
{
	static __thread union {
		struct profil_header h;
		struct profil_msg_start start;
		struct profil_msg_regions regions;
		char space[PROFIL_MSG_MAX];
	} m;

	fake.messages = fake.regions = fake.disorder = 0;
	do {
		if (wire_recv(sock, &m, sizeof(m), NULL, NULL))
			return -1;
		fake.messages++;
		if (m.h.type == PROFIL_MSG_REGIONS) {
			take_regions(m.regions.region, m.h.count);
			continue;
		}
		fake.type = m.h.type;
		memcpy(&fake.start, &m.start, sizeof(fake.start));
		if (m.h.type == PROFIL_MSG_START || m.h.type == PROFIL_MSG_EXTEND)
			take_regions(m.start.region, m.h.count);
		else
			fake.start.nregions = 0;
	} while (fake.regions < fake.start.nregions);
	return 0;
}

static void answer(int sock, enum manner manner)
{
	struct profil_msg_reply reply = { .error = manner == REFUSES ? EACCES : 0,
					  .tick_ns = 1234567 };

	wire_header(&reply.h, manner == RAVES ? 4711 : PROFIL_MSG_REPLY, sizeof(reply), 1, 0);
	if (fake.client)
		pthread_kill(fake.client, SIGUSR1);
	fake.client = 0;
	wire_send(sock, &reply.h, NULL, 0);
}

static void serve(int sock, enum manner manner)
{
	struct profil_msg_hello hello;
	char byte;

	memset(fake.cookie, (int)fake.connections, sizeof(fake.cookie));
	memcpy(hello.cookie, fake.cookie, sizeof(hello.cookie));
	wire_header(&hello.h, PROFIL_MSG_HELLO, sizeof(hello), 1, 0);
	wire_send(sock, &hello.h, NULL, 0);
	if (hear(sock))
		return;
	if (manner == STALLS && read(fake.go[0], &byte, 1) != 1)
		return;
	if (manner == NEVER_ANSWERS)
		pause();
	if (manner != HANGS_UP)
		answer(sock, manner);
}

static void *be_a_daemon(void *unused)
{
	int sock;

	while ((sock = accept(fake.listener, NULL, NULL)) >= 0) {
		unsigned int n = __atomic_fetch_add(&fake.connections, 1, __ATOMIC_RELAXED);

		serve(sock, fake.manner[n < 8 ? n : 7]);
		close(sock);
		__atomic_fetch_add(&fake.closed, 1, __ATOMIC_RELEASE);
	}
	return unused;
}

static void *each_connection(void *unused)
{
	pthread_t thread;

	(void)unused;
	pthread_create(&thread, NULL, be_a_daemon, NULL);
	return be_a_daemon(NULL);
}

static void setup(void)
{
	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/sock", dir);
	setenv("PROFIL_SOCKET", path, 1);
}

static void clean(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(request, .init = setup, .fini = clean);

/* Two connections can be open at a time. */
static void listen_as(enum manner first, enum manner second, enum manner rest)
{
	struct sockaddr_un address;
	pthread_t thread;

	fake.manner[0] = first;
	fake.manner[1] = second;
	for (int i = 2; i < 8; i++)
		fake.manner[i] = rest;
	cr_assert(pipe(fake.go) == 0);
	fake.listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	cr_assert(fake.listener >= 0 && wire_address(&address, path) == 0);
	cr_assert(bind(fake.listener, (struct sockaddr *)&address, sizeof(address)) == 0);
	cr_assert(listen(fake.listener, 8) == 0);
	cr_assert(pthread_create(&thread, NULL, each_connection, NULL) == 0);
}

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

/* Nothing there, a file that nobody listens on, and a path that cannot be. */
static void check_nobody_answers(void)
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

Test(request, without_a_daemon_starting_fails_and_stopping_does_not)
{
	char endless[200];
	int sock;
	struct sockaddr_un address;

	check_nobody_answers();
	memset(endless, 'x', sizeof(endless) - 1);
	endless[sizeof(endless) - 1] = 0;
	setenv("PROFIL_SOCKET", endless, 1);
	check_nobody_answers();

	setenv("PROFIL_SOCKET", path, 1);
	sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);
	cr_assert(wire_address(&address, path) == 0);
	cr_assert(bind(sock, (struct sockaddr *)&address, sizeof(address)) == 0);
	close(sock);
	check_nobody_answers();
}

Test(request, is_put_again_when_the_daemon_goes_away)
{
	listen_as(HANGS_UP, HANGS_UP, ANSWERS);
	cr_expect_eq(0, turn_on());
	cr_expect_eq(3, fake.connections);
	cr_expect_eq(REQUEST_ON, request_mode());
}

Test(request, is_not_put_for_ever)
{
	listen_as(HANGS_UP, HANGS_UP, HANGS_UP);
	EXPECT_ERRNO(turn_on(), ECONNRESET);
	cr_expect_leq(fake.connections, 8);
	cr_expect_eq(REQUEST_OFF, request_mode());
}

Test(request, does_not_wait_for_ever)
{
	listen_as(NEVER_ANSWERS, NEVER_ANSWERS, NEVER_ANSWERS);
	EXPECT_ERRNO(turn_on(), ETIMEDOUT);
}

Test(request, passes_on_what_the_daemon_says)
{
	listen_as(REFUSES, RAVES, ANSWERS);
	EXPECT_ERRNO(turn_on(), EACCES);
	EXPECT_ERRNO(turn_on(), EPROTO);
	cr_expect_eq(REQUEST_OFF, request_mode());
	cr_expect_eq(0, turn_on());
}

/* The running profile's cookie stays, whatever is asked later, until it is stopped. */
Test(request, keeps_the_cookie_of_what_is_on)
{
	unsigned char cookie[PROFIL_COOKIE_BYTES];
	const void *running;

	listen_as(ANSWERS, ANSWERS, ANSWERS);
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

	/* A daemon that is away now must not find it when it comes back. */
	unlink(path);
	cr_expect_eq(0, turn_off());
	cr_expect(memcmp(running, cookie, sizeof(cookie)), "a stop left the cookie");
}

Test(request, of_many_regions_goes_in_several_messages)
{
	struct prof *p = calloc(4096, sizeof(*p));
	struct timeval tick;

	for (size_t i = 0; i < 4096; i++)
		p[i] = (struct prof){ buf, 2, 16 * (4096 - i), 0x10000 };
	listen_as(HANGS_UP, ANSWERS, ANSWERS);
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

	listen_as(ANSWERS, REFUSES, HANGS_UP);
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
	(void)number;
	handled = profil_sync();
}

Test(request, in_a_signal_handler_waits_for_the_one_it_interrupts)
{
	listen_as(ANSWERS, ANSWERS, ANSWERS);
	signal(SIGUSR1, call_in_handler);
	fake.client = pthread_self();
	cr_expect_eq(0, turn_on());
	cr_expect_eq(0, handled);
	cr_expect_eq(PROFIL_MSG_SYNC, fake.type);
}

static void *turn_on_thread(void *unused)
{
	(void)unused;
	return (void *)(intptr_t)turn_on();
}

/* The child has a copy of a lock that nobody in it holds. */
Test(request, in_a_fork_child_does_not_wait_for_a_thread_that_is_not_there)
{
	pthread_t thread;
	void *ret = NULL;
	int status;
	pid_t pid;

	listen_as(STALLS, ANSWERS, ANSWERS);
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

Test(request, of_several_threads_come_one_after_the_other)
{
	pthread_t thread[4];
	void *ret;

	listen_as(ANSWERS, ANSWERS, ANSWERS);
	for (int i = 0; i < 4; i++)
		cr_assert(pthread_create(&thread[i], NULL, turn_on_and_off, NULL) == 0);
	for (int i = 0; i < 4; i++)
		cr_expect(pthread_join(thread[i], &ret) == 0 && !ret);
	cr_expect_eq(4 * 200 * 3, fake.connections);
}
