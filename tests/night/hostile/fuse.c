/* fuse.c - memory and files whose accesses wait for a FUSE server that never answers
 *
 * usage: fuse start    the cookie of a START lies in such a page
 *        fuse cookie   the cookie's page becomes one after the START
 *        fuse buffer   the buffer becomes one after the START
 *        fuse lock     another thread holds mmap_lock while it waits for such a page
 *        fuse files    descriptors of such files in place of a pidfd and a maps file
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "tests/lib/fuse.h"
#include "tests/lib/hostile.h"

#define PROCESSES 6
#define PAGE 4096
#define ANONYMOUS (MAP_PRIVATE | MAP_ANONYMOUS)

extern char __executable_start[], etext[];

static int file;
static int begun[2];

static unsigned char *map(void *at, size_t bytes, int flags, int fd)
{
	void *p = mmap(at, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);

	if (p == MAP_FAILED)
		attack_fail("mmap");
	return p;
}

static void say_begun(void)
{
	if (write(begun[1], "", 1) != 1)
		_exit(1);
}

static void burn(void)
{
	for (;;)
		;
}

/* All of the text in one region. */
static int start(int sock, const unsigned char *cookie, unsigned short *buf, uint32_t nbins)
{
	struct {
		struct profil_msg_start m;
		struct profil_msg_region region[1];
	} s = { .m = { .cookie_addr = (unsigned long)cookie,
		       .width = 2,
		       .cap = 65535,
		       .nregions = 1 } };
	uint64_t lo = (unsigned long)__executable_start;
	uint64_t span = (unsigned long)(etext - __executable_start);

	if (span > 2 * (uint64_t)nbins)
		span = 2 * (uint64_t)nbins;
	s.region[0] = (struct profil_msg_region){
		.lo = lo,
		.x = { .base = lo, .span = span, .mul = 1, .nbins = nbins },
		.addr = (unsigned long)buf
	};
	wire_header(&s.m.h, PROFIL_MSG_START, sizeof(s.m), sizeof(s.region[0]), 1);
	return peer_ask(sock, &s.m.h, NULL, 0, NULL);
}

static void hang_start(void)
{
	unsigned char *page = map(NULL, PAGE, MAP_SHARED, file);
	static unsigned short buf[64];

	say_begun();
	for (;;) {
		__cleanup(closep) int sock = peer_dial(NULL);

		if (sock >= 0)
			start(sock, page, buf, 64);
	}
}

/* A valid profile, until access to its cookie or its buffer waits for the server. */
static void hang_pass(bool cookie)
{
	uint32_t nbins = 256 * PAGE / 2;
	unsigned char *page = map(NULL, PAGE, ANONYMOUS, -1);
	unsigned char *buf = map(NULL, 256 * PAGE, ANONYMOUS, -1);
	struct profil_msg_hello hello;
	int sock = peer_dial(&hello);
	int err = PEER_CLOSED;

	if (sock >= 0) {
		memcpy(page, &hello.area, sizeof(hello.area));
		err = start(sock, page, (unsigned short *)(void *)buf, nbins);
	}
	if (err)
		fprintf(stderr, "START: error %d\n", err);
	closep(&sock);
	if (cookie)
		map(page, PAGE, MAP_SHARED | MAP_FIXED, file);
	else
		map(buf, 256 * PAGE, MAP_PRIVATE | MAP_FIXED, file);
	say_begun();
	burn();
}

static unsigned char *lock_page;

/* A read of /proc/self/mem holds mmap_lock for reading until it ends. */
static void *hold_lock(void *unused)
{
	int mem = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	char byte;

	if (pread(mem, &byte, 1, (off_t)(unsigned long)lock_page) < 0)
		return NULL;
	return NULL;
}

/* A waiting writer blocks later readers. */
static void *want_lock(void *unused)
{
	for (;;) {
		usleep(100000);
		map(NULL, PAGE, ANONYMOUS, -1);
	}
	return NULL;
}

static void hang_lock(void)
{
	static struct profil_cookie_area cookie;
	struct profil_msg_hello hello;
	pthread_t t;
	int sock;

	lock_page = map(NULL, PAGE, MAP_SHARED, file);
	/* In this order, because the thread's stack needs mmap_lock for writing. */
	if (pthread_create(&t, NULL, want_lock, NULL) || pthread_create(&t, NULL, hold_lock, NULL))
		attack_fail("pthread_create");
	usleep(300000);
	say_begun();
	for (;;) {
		struct profil_msg_start m = { .cookie_addr = (unsigned long)&cookie, .width = 2 };

		sock = peer_dial(&hello);
		if (sock >= 0) {
			wire_header(&m.h, PROFIL_MSG_START, sizeof(m), 0, 0);
			wire_send(sock, &m.h, NULL, 0);
			peer_reply(sock, NULL);
			close(sock);
		}
	}
}

/* The daemon's close of each may send the server a FLUSH. */
static void hang_files(void)
{
	int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);

	say_begun();
	for (;;) {
		__cleanup(closep) int sock = peer_dial(NULL);

		if (sock < 0)
			continue;
		peer_observe(sock, fuse_open(), fuse_open(), 0, false);
		peer_observe(sock, fuse_open(), maps, 0, false);
		if (getpid() % 2)
			pause();
	}
}

static void hang(const char *what)
{
	if (strcmp(what, "start") == 0)
		hang_start();
	else if (strcmp(what, "cookie") == 0)
		hang_pass(true);
	else if (strcmp(what, "buffer") == 0)
		hang_pass(false);
	else if (strcmp(what, "lock") == 0)
		hang_lock();
	else if (strcmp(what, "files") == 0)
		hang_files();
	_exit(2);
}

int main(int argc, char **argv)
{
	pid_t pid[PROCESSES];
	char byte;

	if (argc < 2 || pipe2(begun, O_CLOEXEC) < 0)
		return 2;
	raise_limit(RLIMIT_NOFILE);
	file = fuse_start(getuid() ? getuid() : ATTACKER);
	if (file < 0)
		attack_fail("open of the FUSE file");
	for (int i = 0; i < PROCESSES; i++) {
		pid[i] = attack_fork();
		if (pid[i] == 0)
			hang(argv[1]);
	}
	for (int i = 0; i < PROCESSES; i++) {
		if (read(begun[0], &byte, 1) != 1)
			attack_fail("read");
	}
	attack_under_way();
	attack_wait(-1);
	for (int i = 0; i < PROCESSES; i++)
		kill(pid[i], SIGKILL);
	fuse_end();
	while (wait(NULL) > 0)
		;
	return 0;
}
