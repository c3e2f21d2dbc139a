/* kernel_children.c - one user cannot fill the process table or the rings for another */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "base/cleanup.h"
#include "core/resource.h"
#include "core/wire.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/state.h"
#include "tests/lib/users.h"

#define USER 60001
#define CHILDREN_MAX 64
#define CHILDREN 100

long pcsample_solaris(uintptr_t samples[], long n);

static struct daemon d;
static unsigned short buf[LOOPS];

static void start(void)
{
	static const char *args[] = {
		"--rate", "9999",	 "--clock", "cpu-clock", "--user-children",
		"64",	  "--user-rate", "20000",   NULL
	};

	ticks_need_bpffs();
	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_children, .init = start, .fini = stop);

static struct profil_tables *tables(void)
{
	__cleanup(closep) int fd = bpf_obj_get(ticks_stored(&d, "tables"));
	struct profil_tables *t;

	cr_assert(fd >= 0, "%s: %s", ticks_stored(&d, "tables"), strerror(errno));
	t = mmap(NULL, sizeof(*t), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(t, MAP_FAILED, "tables: %s", strerror(errno));
	return t;
}

static const struct profil_user *user_of(const struct profil_tables *t, uid_t uid)
{
	for (int i = 0; i < PROFIL_MAX_TARGETS; i++) {
		if (t->user[i].targets && t->user[i].uid == uid)
			return &t->user[i];
	}
	cr_assert_fail("user %u has no target", uid);
	return NULL;
}

/* The first target of @uid. */
static const struct profil_target *target_of(const struct profil_tables *t, uid_t uid)
{
	uint32_t slot = (uint32_t)(user_of(t, uid) - t->user);

	for (int i = 0; i < PROFIL_MAX_TARGETS; i++) {
		if (t->target[i].members && t->target[i].user == slot)
			return &t->target[i];
	}
	cr_assert_fail("user %u has no target", uid);
	return NULL;
}

/* The child reports on here and waits for a byte on on. */
static int here[2], on[2];

static void report_and_wait(void)
{
	char byte;

	(void)!write(here[1], "", 1);
	(void)!read(on[0], &byte, 1);
}

static void await_report(void)
{
	char byte;

	cr_assert_eq(read(here[0], &byte, 1), 1);
}

/* Uses clone() itself: libprofil's fork handler would wait for the stopped daemon. */
static int fork_sleepers(unsigned int n)
{
	pid_t child[CHILDREN];

	if (ticks_profile(buf))
		return 1;
	report_and_wait();
	for (unsigned int i = 0; i < n; i++) {
		child[i] = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
		if (child[i] == 0) {
			pause();
			_exit(0);
		}
	}
	report_and_wait();
	for (unsigned int i = 0; i < n; i++) {
		kill(child[i], SIGKILL);
		waitpid(child[i], NULL, 0);
	}
	report_and_wait();
	return 0;
}

/* The number of children that STATUS reports for @uid, or the limit of that number. */
static unsigned long long status_children(uid_t uid, bool limit)
{
	static union {
		struct profil_msg_status status;
		char space[PROFIL_MSG_MAX];
	} m;
	__cleanup(closep) int sock = client_open(&d, NULL);
	struct profil_header ask;

	wire_header(&ask, PROFIL_MSG_STATUS, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)));
	cr_assert_geq(client_recv(sock, &m, sizeof(m)), sizeof(m.status));
	for (unsigned int i = 0; i < m.status.h.count; i++) {
		const struct profil_msg_user *u = &m.status.user[i];

		if (u->uid == uid)
			return limit ? u->limit[RES_CHILDREN] : u->used[RES_CHILDREN];
	}
	cr_assert_fail("STATUS knows no user %u", uid);
	return 0;
}

/* Repeats while the daemon gives children with a sample targets of their own. */
static void expect_status(const struct profil_tables *t)
{
	const volatile struct profil_user *user = user_of(t, USER);
	unsigned long long said;
	unsigned int n;

	do {
		n = user->children;
		said = status_children(USER, false);
	} while (n != user->children);
	cr_expect_eq(said, n, "%llu children, not %u", said, n);
}

/* The daemon is stopped, so that it gives no child a target of its own. */
Test(kernel_children, children_beyond_the_limit_are_counted_as_unfollowed)
{
	const struct profil_tables *t = tables();
	const struct profil_target *target;
	pid_t pid;

	cr_assert_eq(pipe(here) + pipe(on), 0);
	pid = users_run(USER, fork_sleepers, CHILDREN);
	await_report();
	kill(d.pid, SIGSTOP);
	cr_assert_eq(write(on[1], "", 1), 1);
	await_report();
	target = target_of(t, USER);
	cr_expect_leq(user_of(t, USER)->children, CHILDREN_MAX);
	cr_expect_eq(target->members + target->unfollowed, CHILDREN + 1);
	cr_expect_eq(target->members, CHILDREN_MAX / 2,
		     "%u members: one target may have half of the limit", target->members);
	kill(d.pid, SIGCONT);
	expect_status(t);
	cr_expect_eq(status_children(USER, true), CHILDREN_MAX);
	cr_expect_eq(ticks_profile(buf), 0, "another user: %s", strerror(errno));
	cr_expect_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_assert_eq(write(on[1], "", 1), 1);
	await_report();
	cr_expect_eq(t->children, 0, "%u children are still charged", t->children);
	cr_expect_eq(target->members, 1);
	cr_assert_eq(write(on[1], "", 1), 1);
	users_expect_end(pid, 0, "the process that forked");
}

#define RESERVE 1024
#define FEW 8

/* The table has no room left but root's reserve. */
Test(kernel_children, room_for_children_is_reserved_for_root)
{
	struct profil_tables *t = tables();
	const struct profil_target *target;
	uint32_t used = t->children_max - RESERVE;
	pid_t pid;

	cr_assert_eq(pipe(here) + pipe(on), 0);
	__atomic_fetch_add(&t->children, used, __ATOMIC_SEQ_CST);
	for (int root = 0; root < 2; root++) {
		pid = root ? fork() : users_run(USER, fork_sleepers, FEW);
		if (!pid)
			_exit(fork_sleepers(FEW));
		await_report();
		cr_assert_eq(write(on[1], "", 1), 1);
		await_report();
		target = target_of(t, root ? 0 : USER);
		cr_expect_eq(target->unfollowed, root ? 0 : FEW, "%s: %u of %u are not followed",
			     root ? "root" : "a user", target->unfollowed, FEW);
		cr_assert_eq(write(on[1], "", 1), 1);
		await_report();
		cr_assert_eq(write(on[1], "", 1), 1);
		users_expect_end(pid, 0, "the process that forked");
	}
	__atomic_fetch_sub(&t->children, used, __ATOMIC_SEQ_CST);
}

static uint32_t bucket_seed(void)
{
	__cleanup(closep) int fd = bpf_obj_get(ticks_stored(&d, "state"));
	struct profil_state state = { 0 };
	uint32_t key = 0;

	cr_assert_eq(bpf_map_lookup_elem(fd, &key, &state), 0);
	return state.bucket_seed;
}

Test(kernel_children, a_process_is_profiled_though_its_bucket_is_full)
{
	struct profil_tables *t = tables();
	struct profil_bucket *first =
		&t->bucket[profil_bucket_of((uint32_t)getpid(), bucket_seed(), 0)];
	pid_t child;

	for (uint32_t i = 0; i < PROFIL_BUCKET_ENTRIES; i++)
		first->entry[i] = profil_entry(0x7fffff00u + i, PROFIL_MAX_TARGETS - 1);
	cr_assert_eq(ticks_profile(buf), 0, "profil: %s", strerror(errno));
	cr_expect_eq(t->displaced, 1);
	TICKS_SPIN(5, TICKS_SYNCED(buf[5]));
	child = fork();
	if (child == 0)
		_exit(0);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_assert_eq(profil_sync(), 0);
	ticks_conserved(&d, buf[5]);
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
	cr_expect_eq(t->displaced, 0);
	memset(first, 0, sizeof(*first));
}

static int profile_and_wait(unsigned int unused)
{
	if (ticks_profile(buf))
		return 1;
	report_and_wait();
	return 0;
}

/* A vfork child may exec a set-id program, whose entry address must stay hidden from the user. */
Test(kernel_children, a_users_own_profile_is_unprivileged_and_roots_is_not)
{
	const struct profil_tables *t = tables();
	pid_t pid;

	cr_assert_eq(pipe(here) + pipe(on), 0);
	pid = users_run(USER, profile_and_wait, 0);
	await_report();
	cr_expect(target_of(t, USER)->flags & PROFIL_TARGET_UNPRIVILEGED);
	cr_assert_eq(write(on[1], "", 1), 1);
	users_expect_end(pid, 0, "the user's process");
	cr_assert_eq(ticks_profile(buf), 0);
	cr_expect(!(target_of(t, 0)->flags & PROFIL_TARGET_UNPRIVILEGED));
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}

#define PCS 100

/* Works in loop 3 until it is told to end. */
static int sample_pcs(unsigned int unused)
{
	static uintptr_t pcs[100000];
	char byte;

	if (pcsample_solaris(pcs, 100000))
		return 1;
	report_and_wait();
	while (recv(on[0], &byte, 1, MSG_DONTWAIT) != 1)
		loop_for(3, 1000000);
	return pcsample_solaris(pcs, 0) > 0 ? 0 : 1;
}

/* While the daemon is stopped, the user makes more pcs than it may have in the ring, and this
 * process some. */
Test(kernel_children, raw_samples_of_one_user_displace_none_of_another)
{
	static uintptr_t pcs[100000];
	const struct profil_tables *t = tables();
	const volatile struct profil_user *user;
	const volatile struct profil_target *other;
	pid_t pid;

	cr_assert_eq(pipe(here) + socketpair(AF_UNIX, SOCK_STREAM, 0, on), 0);
	pid = users_run(USER, sample_pcs, 0);
	await_report();
	cr_assert_eq(pcsample_solaris(pcs, 100000), 0, "pcsample: %s", strerror(errno));
	kill(d.pid, SIGSTOP);
	cr_assert_eq(write(on[1], "", 1), 1);
	user = user_of(t, USER);
	other = target_of(t, USER);
	AWAIT(other->lost > 0);
	TICKS_SPIN(7, target_of(t, 0)->raw >= PCS);
	cr_expect_eq(user->raw_sent - user->raw_taken, PROFIL_RAW_IN_FLIGHT, "%u pcs in the ring",
		     user->raw_sent - user->raw_taken);
	cr_expect_eq(target_of(t, 0)->lost, 0);
	kill(d.pid, SIGCONT);
	cr_expect_geq(pcsample_solaris(pcs, 0), PCS);
	cr_assert_eq(write(on[1], "", 1), 1);
	users_expect_end(pid, 0, "the user's process");
}
