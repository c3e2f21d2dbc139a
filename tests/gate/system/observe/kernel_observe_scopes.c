/* kernel_observe_scopes.c - attachments to the machine, a user, command or file, and their rights
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "symbols/proc/mounts.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"
#include "tests/lib/state.h"
#include "tests/lib/users.h"

#define ALICE 61001
#define BOB 61002

DAEMON_SUITE(kernel_observe_scopes, "--rate", TICKS_RATE, "--machine=199", "--user-rate", "10000");

/* Why a busy child may be hidden from its user. */
enum kind { PLAIN, NOT_DUMPABLE, ELEVATED };

/* Starts a process of user @uid, named @name, that uses CPU time until it is killed. */
static pid_t busy(uid_t uid, const char *name, enum kind kind)
{
	int fds[2];
	char byte;
	pid_t pid;

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	pid = fork();
	cr_assert(pid >= 0);
	if (!pid) {
		prctl(PR_SET_NAME, name);
		if (kind == ELEVATED) /* one of its ids differs, as in a set-id program */
			setresuid(uid, uid, 0);
		else if (uid)
			users_become(uid);
		prctl(PR_SET_DUMPABLE, kind != NOT_DUMPABLE);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(fds[1], "", 1) == 1)
			loop_for(0, 3600ull * 1000000000);
		_exit(0);
	}
	close(fds[1]);
	cr_assert(read(fds[0], &byte, 1) == 1);
	close(fds[0]);
	return pid;
}

/* A name of a command that no parallel run of this test uses. */
static const char *own_name(void)
{
	static char name[16];

	snprintf(name, sizeof(name), "own-%d", (int)getpid());
	return name;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Waits until the table of @o has @n samples. */
static void await_samples(const struct observer *o, uint64_t n)
{
	AWAIT(observer_sum(o) >= n);
}

static int is_of_group(const void *arg, uint64_t key)
{
	return !(key & (PROFIL_PLACE_FOLDED | PROFIL_PLACE_SUM)) &&
	       profil_place_group(key) == *(const uint32_t *)arg;
}

/* Samples of the processes named @command in a table with groups. */
static uint64_t count_command(const struct observer *o, const char *command)
{
	uint64_t n = 0;

	for (uint32_t i = 1; i <= o->table->groups; i++) {
		const struct profil_group *g = observer_group(o, i);

		if (g && g->ready && !strcmp(g->command, command))
			n += observer_count_by(o, is_of_group, &i);
	}
	return n;
}

/*
 * Waits until the processes named @command, which may wait for a CPU while others get any number of
 * samples, have @n.
 */
static void await_command(const struct observer *o, const char *command, uint64_t n)
{
	AWAIT(count_command(o, command) >= n);
}

static struct profil_msg_observe ask_grouped(enum profil_scope scope)
{
	struct profil_msg_observe ask = observer_ask(scope, TICKS_PERIOD_NS);

	ask.group_by = PROFIL_GROUP_PROCESS;
	return ask;
}

Test(kernel_observe_scopes, machine_counts_every_user)
{
	struct profil_msg_observe ask = ask_grouped(PROFIL_SCOPE_MACHINE);
	pid_t alice = busy(ALICE, "of-alice", PLAIN), hidden = busy(BOB, "hidden", NOT_DUMPABLE);
	struct observer o;

	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	await_command(&o, "of-alice", 1);
	await_command(&o, "hidden", 1);
	end(alice);
	end(hidden);
	observer_close(&o);
}

/* Runs as ALICE; returns 0, or the number of the check that failed. */
static int observe_own(unsigned int unused)
{
	struct profil_msg_observe ask = ask_grouped(PROFIL_SCOPE_USER);
	struct observer o;

	ask.uid = ALICE;
	if (observer_open(&o, &d, &ask))
		return 1;
	await_command(&o, "of-alice", 250);
	if (count_command(&o, "of-bob") || count_command(&o, "hidden") ||
	    count_command(&o, "elevated"))
		return 3;
	observer_close(&o);
	return 0;
}

Test(kernel_observe_scopes, user_sees_only_own_traceable_processes)
{
	pid_t alice = busy(ALICE, "of-alice", PLAIN), bob = busy(BOB, "of-bob", PLAIN);
	pid_t hidden = busy(ALICE, "hidden", NOT_DUMPABLE);
	pid_t elevated = busy(ALICE, "elevated", ELEVATED);

	users_expect_end(users_run(ALICE, observe_own, 0), 0, "the observer of its own processes");
	end(alice);
	end(bob);
	end(hidden);
	end(elevated);
}

static int ask_too_much(unsigned int unused)
{
	struct profil_msg_machine machine = { .ask = PROFIL_MACHINE_QUERY };
	struct profil_msg_observe ask = ask_grouped(PROFIL_SCOPE_MACHINE);
	struct profil_msg_hello hello;
	struct observer o;
	int sock;

	if (observer_open(&o, &d, &ask) != EACCES)
		return 1;
	ask = ask_grouped(PROFIL_SCOPE_USER);
	ask.uid = BOB;
	if (observer_open(&o, &d, &ask) != EACCES)
		return 2;
	sock = client_dial(&d, &hello);
	wire_header(&machine.h, PROFIL_MSG_MACHINE, sizeof(machine), 0, 0);
	return client_try(sock, &machine.h, NULL, 0) == EACCES ? 0 : 3;
}

Test(kernel_observe_scopes, refuses_machine_and_other_users_without_the_right)
{
	users_expect_end(users_run(ALICE, ask_too_much, 0), 0, "a user without the right");
}

static int is_kernel_address(const void *arg, uint64_t key)
{
	return profil_place_image(key) == *(const uint32_t *)arg && profil_place_offset(key);
}

/* Maps and unmaps memory, mostly in the kernel, until there is a sample there. */
static int observe_own_kernel(unsigned int unused)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;
	uint32_t kernel;

	if (observer_open(&o, &d, &ask) || observer_add(&o, getpid()))
		return 1;
	for (int i = 0; i < 1000 && !observer_find(&o, PROFIL_IMAGE_KERNEL, NULL); i++) {
		for (int k = 0; k < 100; k++)
			munmap(mmap(NULL, 1 << 20, PROT_READ,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0),
			       1 << 20);
	}
	kernel = observer_find(&o, PROFIL_IMAGE_KERNEL, NULL);
	if (!kernel || !observer_count(&o, kernel, 0))
		return 2;
	return observer_count_by(&o, is_kernel_address, &kernel) ? 3 : 0;
}

Test(kernel_observe_scopes, hides_kernel_addresses_from_users)
{
	users_expect_end(users_run(ALICE, observe_own_kernel, 0), 0, "the observer of itself");
}

Test(kernel_observe_scopes, command_and_exe_select_processes)
{
	struct profil_msg_observe ask = ask_grouped(PROFIL_SCOPE_COMMAND);
	const char *name = own_name();
	pid_t one = busy(0, name, PLAIN), two = busy(0, "number-two", PLAIN);
	struct observer by_command, by_exe, by_other;
	struct mounts_file self;

	strcpy(ask.command, name);
	cr_assert_eq(observer_open(&by_command, &d, &ask), 0);
	cr_assert_eq(mounts_file(&self, "/proc/self/exe"), 0);
	ask = ask_grouped(PROFIL_SCOPE_EXE);
	ask.ino = self.ino;
	ask.dev = self.dev;
	cr_assert_eq(observer_open(&by_exe, &d, &ask), 0);
	ask.ino = ~0ull; /* matches no file */
	cr_assert_eq(observer_open(&by_other, &d, &ask), 0);
	await_samples(&by_command, 100);
	await_command(&by_command, name, 1);
	await_command(&by_exe, "number-two", 1);
	end(one);
	end(two);
	cr_expect_eq(count_command(&by_command, name), observer_check(&by_command));
	cr_expect_eq(observer_check(&by_other), 0);
	observer_close(&by_command);
	observer_close(&by_exe);
	observer_close(&by_other);
}

Test(kernel_observe_scopes, counts_from_begin_on)
{
	struct profil_msg_observe ask = ask_grouped(PROFIL_SCOPE_COMMAND);
	const char *name = own_name();
	pid_t pid = busy(0, name, PLAIN);
	struct observer at_once, later;

	strcpy(ask.command, name);
	ask.flags |= PROFIL_OBSERVE_LATER;
	cr_assert_eq(observer_open(&later, &d, &ask), 0);
	ask.flags &= ~(__u32)PROFIL_OBSERVE_LATER;
	cr_assert_eq(observer_open(&at_once, &d, &ask), 0);
	await_samples(&at_once, 100);
	cr_expect_eq(observer_sum(&later), 0);
	cr_assert_eq(observer_begin(&later), 0);
	await_samples(&later, 100);
	end(pid);
	cr_expect_eq(count_command(&later, name), observer_check(&later));
	cr_expect_eq(observer_begin(&later), EINVAL, "a second time");
	cr_expect_eq(observer_begin(&at_once), EINVAL, "did not wait");
	observer_close(&later);
	observer_close(&at_once);
	ask = ask_grouped(PROFIL_SCOPE_PROCESSES);
	ask.flags |= PROFIL_OBSERVE_LATER;
	cr_expect_eq(observer_open(&later, &d, &ask), EINVAL, "ADD says when it counts");
}

/* Asks for the machine's table; returns the errno. */
static int query_machine(struct observer *o, enum profil_machine_ask what)
{
	struct profil_msg_machine m = { .ask = what };

	memset(o, 0, sizeof(*o));
	o->sock = client_open(&d, NULL);
	wire_header(&m.h, PROFIL_MSG_MACHINE, sizeof(m), 0, 0);
	return observer_take(o, &m.h);
}

Test(kernel_observe_scopes, machine_profile_survives_the_daemon)
{
	pid_t pid = busy(0, "long-lived", PLAIN);
	struct observer before, after;
	uint64_t n;

	ticks_need_bpffs();
	cr_assert_eq(query_machine(&before, PROFIL_MACHINE_QUERY), 0);
	cr_expect_eq(before.table->period_ns, 1000000000 / 199 + 1);
	await_samples(&before, 50);
	daemon_kill(&d);
	n = observer_sum(&before);
	await_samples(&before, n + 50); /* the kernel counts without the daemon */
	n = observer_sum(&before);
	daemon_restart(&d);
	cr_assert_eq(query_machine(&after, PROFIL_MACHINE_QUERY), 0);
	cr_expect_geq(observer_sum(&after), n, "the next daemon has another table");
	n = observer_sum(&after);
	await_samples(&after, n + 50);
	observer_close(&before);
	observer_close(&after);
	cr_expect_eq(query_machine(&after, PROFIL_MACHINE_OFF), 0);
	close(after.sock);
	cr_expect_eq(query_machine(&after, PROFIL_MACHINE_QUERY), ENOENT);
	close(after.sock);
	cr_expect_eq(query_machine(&after, PROFIL_MACHINE_ON), 0);
	await_samples(&after, 50);
	observer_close(&after);
	end(pid);
}
