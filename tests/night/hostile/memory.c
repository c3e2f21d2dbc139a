/* memory.c - address spaces that take long to inspect
 *
 * usage: memory lock [GIB]  mprotect() over so many GiB of zero pages holds mmap_lock
 *        memory threads    12,000 dead threads of a traced process are in its task directory
 *        memory mappings   a START of a process with 16,384 mappings
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define GIB (1ul << 30)
#define LOCK_GIB 48
#define THREADS 12000
#define MAPPINGS 16384
#define PAGE 4096
#define STACK 16384

static struct profil_cookie_area cookie;
static unsigned short buf[64];
static unsigned long lock_bytes;

/* Sends STARTs in a loop, one at a time, as the daemon allows per user. */
static void start_on_and_on(void)
{
	long long asked = 0, granted = 0;

	attack_under_way();
	for (; !attack_over(); asked++) {
		struct profil_msg_hello hello;
		__cleanup(closep) int sock = peer_dial(&hello);

		if (sock < 0)
			continue;
		peer_send_start(sock, &hello, &cookie, buf, 1, 64);
		granted += peer_reply(sock, NULL) == 0;
	}
	attack_result("asked", asked);
	attack_result("granted", granted);
}

/* Fills every page table entry with the zero page, so that mprotect() visits each. */
static void *hold_lock(void *area)
{
	for (bool on = false;; on = !on)
		mprotect(area, lock_bytes, on ? PROT_READ : PROT_READ | PROT_WRITE);
	return NULL;
}

static void lock(unsigned long gib)
{
	unsigned char *area = mmap(NULL, lock_bytes = gib * GIB, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	unsigned long populated = 0;
	pthread_t t;

	if (area == MAP_FAILED)
		attack_skip("no %lu GiB of addresses: %s", gib, strerror(errno));
	madvise(area, lock_bytes, MADV_NOHUGEPAGE);
	for (; populated < gib && !attack_over(); populated++) {
		if (madvise(area + populated * GIB, GIB, MADV_POPULATE_READ) < 0)
			break;
	}
	attack_result("gib", (long long)populated);
	if (pthread_create(&t, NULL, hold_lock, area))
		attack_fail("pthread_create");
	start_on_and_on();
}

static int begin_thread(void *unused)
{
	syscall(SYS_exit, 0);
	return 0;
}

/* A traced thread stays in the task directory after its end, until its tracer reaps it. */
static void make_dead_threads(unsigned int count)
{
	static char stack[STACK];
	unsigned int n = 0;

	raise(SIGSTOP);
	for (; n < count; n++) {
		if (clone(begin_thread, stack + STACK,
			  CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
				  CLONE_SYSVSEM,
			  NULL) < 0)
			break;
	}
	attack_result("threads", n);
}

/* Lets each new thread run, and reaps none of them. */
static void trace(pid_t pid)
{
	siginfo_t info;
	int status;

	if (waitpid(pid, &status, __WALL) != pid)
		attack_fail("waitpid");
	if (ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACECLONE | PTRACE_O_EXITKILL) < 0)
		attack_skip("ptrace: %s", strerror(errno));
	ptrace(PTRACE_CONT, pid, 0, 0);
	while (!attack_over()) {
		info.si_pid = 0;
		if (waitid(P_ALL, 0, &info, WSTOPPED | __WALL | WNOHANG) < 0)
			break;
		if (info.si_pid)
			ptrace(PTRACE_CONT, info.si_pid, 0,
			       info.si_status >> 8 || info.si_status == SIGTRAP ||
					       info.si_status == SIGSTOP
				       ? 0
				       : info.si_status);
		else
			usleep(1000);
	}
	kill(pid, SIGKILL);
	while (waitpid(-1, &status, __WALL) > 0)
		;
}

static void *run_last(void *unused)
{
	start_on_and_on();
	_exit(0);
	return unused;
}

/* The first thread has ended, too: only the last entry of the directory has the memory. */
static void threads(void)
{
	pid_t pid = attack_fork();
	pthread_t t;

	if (pid < 0)
		attack_fail("fork");
	if (pid)
		return trace(pid);
	ptrace(PTRACE_TRACEME, 0, 0, 0);
	raise_limit(RLIMIT_NPROC);
	make_dead_threads(THREADS);
	if (pthread_create(&t, NULL, run_last, NULL))
		attack_fail("pthread_create");
	syscall(SYS_exit, 0);
}

/* Neighbouring pages with different rights are mappings of their own. */
static void mappings(void)
{
	unsigned char *area = mmap(NULL, (size_t)MAPPINGS * PAGE, PROT_READ,
				   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	long long n = 0;

	for (int i = 0; area != MAP_FAILED && i < MAPPINGS; i += 2)
		n += 2 * (mprotect(area + (size_t)i * PAGE, PAGE, PROT_READ | PROT_WRITE) == 0);
	attack_result("mappings", n);
	start_on_and_on();
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (strcmp(what, "lock") == 0)
		lock(argc > 2 ? strtoul(argv[2], NULL, 10) : LOCK_GIB);
	else if (strcmp(what, "threads") == 0)
		threads();
	else if (strcmp(what, "mappings") == 0)
		mappings();
	else
		return 2;
	return 0;
}
