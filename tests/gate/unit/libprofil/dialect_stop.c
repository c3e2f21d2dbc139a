/* dialect_stop.c - the end of the daemon's writes: cookie areas, busy marks, forks, shared memory
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fake_daemon.h"
#include "libprofil/daemon_call.h"
#include "libprofil/process_area.h"

int profil_sync(void);
int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale);
long pcsample_solaris(uintptr_t samples[], long nsamples);
int profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int add_profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);

static unsigned short buf[8];

TestSuite(stop, .init = fake_setup, .fini = fake_clean);

static int turn_on(void)
{
	return profil_solaris(buf, sizeof(buf), 0x1000, 0x8000);
}

static int turn_off(void)
{
	return profil_solaris(NULL, 0, 0, 0);
}

/* The area that the last START named. */
static struct profil_cookie_area *area(void)
{
	return (struct profil_cookie_area *)(uintptr_t)fake.start.cookie_addr;
}

static int holds_cookie(const struct profil_cookie_area *a)
{
	static const unsigned char none[PROFIL_COOKIE_BYTES];

	return memcmp(a->cookie, none, sizeof(none)) != 0;
}

static struct profil_cookie_area *started(void)
{
	cr_assert_eq(turn_on(), 0, "profil: %s", strerror(errno));
	cr_assert(holds_cookie(area()), "the area has no cookie after a START");
	cr_assert_eq(fake.start.cookie_addr % 8, 0);
	return area();
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void expect_stop(const struct profil_cookie_area *a)
{
	errno = 77;
	cr_expect_eq(turn_off(), 0, "a stop failed: %s", strerror(errno));
	cr_expect_eq(errno, 77);
	cr_expect(!holds_cookie(a), "a stop left the cookie");
	cr_expect_eq(request_mode(), REQUEST_OFF);
}

Test(stop, clears_the_cookie_whatever_the_daemon_answers)
{
	static const enum manner manners[] = { ANSWERS, REFUSES, RAVES, HANGS_UP };
	const struct profil_cookie_area *a;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	for (unsigned int i = 0; i < sizeof(manners) / sizeof(manners[0]); i++) {
		fake.manner[7] = ANSWERS;
		for (unsigned int k = fake.connections; k < 8; k++)
			fake.manner[k] = ANSWERS;
		a = started();
		for (unsigned int k = 0; k < 8; k++)
			fake.manner[k] = manners[i];
		expect_stop(a);
	}
}

Test(stop, clears_the_cookie_without_a_free_descriptor)
{
	const struct rlimit none = { 0, 4096 }, some = { 1024, 4096 };
	const struct profil_cookie_area *a;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	a = started();
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
	expect_stop(a);
	cr_assert_eq(setrlimit(RLIMIT_NOFILE, &some), 0);
}

Test(stop, clears_the_cookie_when_the_daemon_is_frozen)
{
	const struct profil_cookie_area *a;

	fake_listen(ANSWERS, STALLS, STALLS);
	a = started();
	expect_stop(a);
	cr_expect(write(fake.go[1], "..", 2) == 2);
}

Test(stop, by_a_new_profile_closes_the_old_area_alone)
{
	const struct profil_cookie_area *first, *second;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	first = started();
	second = started();
	cr_expect_neq(first, second);
	cr_expect(!holds_cookie(first), "the profile that was replaced has its cookie still");
	for (int i = 0; i < 8; i++)
		fake.manner[i] = REFUSES;
	cr_expect_eq(turn_on(), -1);
	cr_expect(holds_cookie(second), "a START that failed ended the profile before it");
	cr_expect(!holds_cookie(first), "a START that failed left its own cookie");
	expect_stop(second);
}

Test(stop, of_darwin_by_an_unwritable_buffer_closes_the_area)
{
	const struct profil_cookie_area *a;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	cr_assert_eq(profil_darwin((char *)buf, sizeof(buf), 0x1000, 0x8000), 0);
	a = area();
	fake.reply.error = EFAULT;
	cr_expect_eq(add_profil_darwin((char *)buf, sizeof(buf), 0x1000, 0x8000), -1);
	cr_expect_eq(errno, EFAULT);
	cr_expect(!holds_cookie(a));
}

/* --- the busy mark ---------------------------------------------------------------------------- */

static void *write_for_a_while(void *at)
{
	__u32 *busy = at;

	usleep(100000);
	__atomic_store_n(busy, 0, __ATOMIC_RELEASE);
	return NULL;
}

Test(stop, waits_for_a_write_in_progress)
{
	struct profil_cookie_area *a;
	pthread_t thread;
	double began;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	a = started();
	a->busy = 1;
	cr_assert_eq(pthread_create(&thread, NULL, write_for_a_while, &a->busy), 0);
	began = now_s();
	expect_stop(a);
	cr_expect_geq(now_s() - began, 0.09, "it did not wait");
	cr_expect_eq(a->busy, 0);
	pthread_join(thread, NULL);
}

Test(stop, fails_when_the_write_does_not_end)
{
	struct profil_cookie_area *a;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	a = started();
	a->busy = 1;
	errno = 0;
	cr_expect_eq(turn_off(), -1);
	cr_expect_eq(errno, ETIMEDOUT);
	cr_expect(!holds_cookie(a));
	cr_expect_eq(request_mode(), REQUEST_OFF);
	/* The next profile in that area has its own mark. */
	started();
	expect_stop(started());
}

static void end_in_child(int (*fn)(void))
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		alarm(20);
		_exit(fn());
	}
	cr_assert(pid > 0 && waitpid(pid, &status, 0) == pid);
	cr_expect_eq(status, 0, "the child ended with wait status 0x%x", status);
}

static struct profil_cookie_area *inherited;

static int stop_at_once(void)
{
	double began = now_s();

	if (!holds_cookie(inherited))
		return 1; /* the daemon could not follow the child */
	if (inherited->busy || turn_off() || holds_cookie(inherited))
		return 2;
	return now_s() - began < 1 ? 0 : 3;
}

/* The daemon clears the busy mark in the parent only: it would stay set in the child's copy. */
Test(stop, of_a_fork_child_does_not_wait_for_a_write_to_its_parent)
{
	struct profil_cookie_area *a;

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	for (int i = 0; i < 2; i++) { /* both areas */
		a = inherited = started();
		a->busy = 1;
		end_in_child(stop_at_once);
		cr_expect_eq(a->busy, 1);
		cr_expect(holds_cookie(a), "a child's stop ended its parent's profile");
		a->busy = 0;
	}
}

/* --- processes that share their memory -------------------------------------------------------- */

static char stack[65536] __attribute__((__aligned__(16)));
static int sharer_done;

static int sync_and_say(void *unused)
{
	if (profil_sync())
		return 1;
	__atomic_store_n(&sharer_done, 1, __ATOMIC_RELEASE);
	return 0;
}

static void *turn_on_thread(void *unused)
{
	return (void *)(intptr_t)turn_on();
}

Test(stop, excludes_a_process_in_the_same_memory)
{
	pthread_t thread;
	void *ret = NULL;
	int status;
	pid_t pid;

	fake_listen(STALLS, ANSWERS, ANSWERS);
	cr_assert_eq(pthread_create(&thread, NULL, turn_on_thread, NULL), 0);
	while (!__atomic_load_n(&fake.messages, __ATOMIC_ACQUIRE))
		sched_yield();
	pid = clone(sync_and_say, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);
	cr_assert_gt(pid, 0);
	usleep(200000);
	cr_expect_eq(__atomic_load_n(&sharer_done, __ATOMIC_ACQUIRE), 0,
		     "two calls were inside at once");
	cr_expect_eq(fake.connections, 1);
	cr_assert_eq(write(fake.go[1], "", 1), 1);
	cr_expect(waitpid(pid, &status, 0) == pid && status == 0);
	cr_expect(pthread_join(thread, &ret) == 0 && !ret);
	cr_expect_eq(sharer_done, 1);
}

/* --- impossible replies ----------------------------------------------------------------------- */

#define EXPECT_NO_DAEMON(call)                                              \
	do {                                                                \
		errno = 0;                                                  \
		cr_expect_eq(call, -1);                                     \
		cr_expect_eq(errno, ENOSYS, #call ": %s", strerror(errno)); \
	} while (0)

Test(stop, rejects_impossible_replies)
{
	uintptr_t pcs[4];

	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	fake.reply.tick_ns = 0;
	EXPECT_NO_DAEMON(turn_on());
	fake.reply.tick_ns = UINT64_MAX;
	EXPECT_NO_DAEMON(turn_on());
	fake.reply.tick_ns = 1234567;
	fake.reply.error = UINT32_MAX;
	EXPECT_NO_DAEMON(turn_on());
	EXPECT_NO_DAEMON(profil_sync());
	fake.reply.error = 0;
	cr_assert_eq(pcsample_solaris(pcs, 4), 0);
	fake.reply.stored = UINT64_MAX;
	cr_expect_eq(pcsample_solaris(pcs, 4), 4);
	fake.reply.stored = 3;
	cr_expect_eq(pcsample_solaris(pcs, 0), 3);
	cr_expect_eq(pcsample_solaris(pcs, 0), 0);
}

/* --- system call filters ---------------------------------------------------------------------- */

/* Allows every system call except socket(), which gets @action. */
static int filter_socket(unsigned int action)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, action),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int fork_filtered(void)
{
	int status;
	pid_t pid;

	if (turn_on() || filter_socket(SECCOMP_RET_KILL_PROCESS))
		return 1;
	pid = fork();
	if (pid == 0)
		_exit(7);
	return pid < 0 || waitpid(pid, &status, 0) != pid || status != 7 << 8;
}

Test(stop, fork_survives_a_filter_that_kills_at_socket)
{
	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	end_in_child(fork_filtered);
}

static int stop_filtered(void)
{
	struct profil_cookie_area *a;

	if (turn_on())
		return 1;
	/* The fake daemon is in the parent, so area() does not work here. */
	a = holds_cookie(process_area(0)) ? process_area(0) : process_area(1);
	if (!holds_cookie(a) || filter_socket(SECCOMP_RET_ERRNO | EPERM))
		return 2;
	return turn_off() || holds_cookie(a);
}

Test(stop, clears_the_cookie_under_a_filter_that_refuses_socket)
{
	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	end_in_child(stop_filtered);
}

/* --- small stacks ----------------------------------------------------------------------------- */

/* What the library may use of a signal stack, in addition to the kernel's signal frame. */
#define STACK_OWN 2048

static volatile int handled;

static void call_all(int number)
{
	handled = turn_on() || profil_sync() || turn_off();
}

/* Runs call_all() on a signal stack of @bytes above an unmapped page. */
static void call_on_stack(size_t bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), room = (bytes + page - 1) & ~(page - 1);
	char *at =
		mmap(NULL, page + room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	stack_t alternate = { .ss_sp = at + page, .ss_size = bytes };
	struct sigaction action = { .sa_handler = call_all, .sa_flags = SA_ONSTACK };

	cr_assert(at != MAP_FAILED && mprotect(at, page, PROT_NONE) == 0);
	cr_assert_eq(sigaltstack(&alternate, NULL), 0, "%zu bytes: %s", bytes, strerror(errno));
	cr_assert_eq(sigaction(SIGUSR2, &action, NULL), 0);
	handled = -1;
	raise(SIGUSR2);
	cr_expect_eq(handled, 0, "on a stack of %zu bytes", bytes);
}

/*
 * Not under sanitizers, which use more. The signal frame with the vector registers is large on some
 * machines: the second stack has 2 KiB in addition to it.
 */
Test(stop, handlers_on_small_stacks_may_call_the_library)
{
#ifdef __SANITIZE_ADDRESS__
	cr_skip_test("a sanitizer needs a larger stack");
#endif
	fake_listen(ANSWERS, ANSWERS, ANSWERS);
	call_all(0); /* what a first call binds and allocates is not counted */
	call_on_stack(8192);
	call_on_stack(getauxval(AT_MINSIGSTKSZ) + STACK_OWN);
}
