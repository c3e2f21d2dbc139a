/* kernel_stop.c - a stopped buffer is never written, even when the stop cannot reach the daemon */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/profil.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "profil.h"
#include "tests/lib/users.h"

#define OTHER_USER 65534
#define MIRROR_MS "20"
#define SPELL_NS 400000000ull /* twenty drains, 400 ticks */

static struct daemon d;

static void start(void)
{
	static const char *args[] = { "--rate", TICKS_RATE, "--mirror-interval", MIRROR_MS, NULL };

	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_stop, .init = start, .fini = stop);

/* --- ways to lose the socket ------------------------------------------------------------------ */

static int lose_nothing(void)
{
	return 0;
}

static int lose_by_chroot(void)
{
	char dir[128];

	snprintf(dir, sizeof(dir), "%s/root", d.dir);
	return (mkdir(dir, 0755) && errno != EEXIST) || chroot(dir) || chdir("/");
}

static int lose_by_seccomp(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static int lose_by_clearenv(void)
{
	return clearenv();
}

static int lose_by_another_path(void)
{
	return setenv("PROFIL_SOCKET", "/nowhere/sock", 1);
}

static int own_mounts(void)
{
	return unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int lose_by_mount(void)
{
	return own_mounts() || mount("none", d.dir, "tmpfs", 0, NULL);
}

static int lose_by_pivot_root(void)
{
	return own_mounts() || mount("none", d.dir, "tmpfs", 0, NULL) || chdir(d.dir) ||
	       mkdir("old", 0755) || syscall(SYS_pivot_root, ".", "old") || chdir("/") ||
	       umount2("/old", MNT_DETACH);
}

static int lose_by_descriptor_limit(void)
{
	const struct rlimit none = { 0, 0 };

	return setrlimit(RLIMIT_NOFILE, &none);
}

static int lose_by_another_user(void)
{
	return chmod(d.dir, 0700) || users_become(OTHER_USER);
}

static int lose_by_removal(void)
{
	return unlink(d.socket);
}

/* Another daemon, which has no profile, answers on the new path. */
static struct daemon second;

static int lose_to_another_daemon(void)
{
	return setenv("PROFIL_SOCKET", second.socket, 1);
}

/* --- the process ------------------------------------------------------------------------------ */

static unsigned short buf[LOOPS];

static unsigned long counts(void)
{
	unsigned long sum = 0;

	for (unsigned int i = 0; i < LOOPS; i++)
		sum += ((volatile unsigned short *)buf)[i];
	return sum;
}

/* Starts a profile and waits until the daemon has written counts without a sync. */
static int begin(void)
{
	if (ticks_profile(buf))
		return -1;
	for (int i = 0; i < 1000 && !counts(); i++)
		loop_for(0, 10000000);
	return counts() ? 0 : -1;
}

/* <unistd.h> declares the buffer nonnull. */
static int turn_off(void)
{
	unsigned short *volatile none = NULL;

	return profil(none, 0, 0, 0);
}

/* Says whether the buffer stays unchanged while the process uses the CPU. */
static int stays(unsigned long before)
{
	loop_for(0, SPELL_NS);
	loop_for(1, SPELL_NS);
	return counts() == before;
}

/* Says whether the buffer changes, in 10 s of CPU time: the daemon may wait for its turn. */
static int changes(unsigned long before)
{
	for (int i = 0; i < 1000 && counts() == before; i++)
		loop_for(0, 10000000);
	return counts() != before;
}

enum end { UNCHANGED, NOT_STARTED, NOT_LOST, STOP_FAILED, CHANGED };

/* Loses the socket by @lose, stops, and returns what happened to the buffer. */
static enum end lose_and_stop(int (*lose)(void))
{
	unsigned long before;

	if (begin())
		return NOT_STARTED;
	if (lose())
		return NOT_LOST;
	if (turn_off())
		return STOP_FAILED;
	before = counts();
	return stays(before) ? UNCHANGED : CHANGED;
}

static void expect_end(pid_t pid, enum end want, const char *how)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == (int)want,
		  "%s: wait status 0x%x, not %d", how, status, want);
}

static void stops_after(int (*lose)(void), const char *how)
{
	pid_t pid = fork();

	cr_assert_geq(pid, 0);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(lose_and_stop(lose));
	}
	expect_end(pid, UNCHANGED, how);
}

/* The tests below can fail: without a stop the sum changes. */
Test(kernel_stop, a_buffer_that_is_not_stopped_changes)
{
	unsigned long before;

	cr_assert_eq(begin(), 0);
	before = counts();
	cr_expect(changes(before));
	stops_after(lose_nothing, "with the daemon");
}

Test(kernel_stop, in_a_chroot_ends_all_writes)
{
	stops_after(lose_by_chroot, "chroot");
}

Test(kernel_stop, under_a_filter_that_refuses_socket_ends_all_writes)
{
	stops_after(lose_by_seccomp, "seccomp");
}

Test(kernel_stop, without_an_environment_ends_all_writes)
{
	stops_after(lose_by_clearenv, "clearenv");
	stops_after(lose_by_another_path, "another PROFIL_SOCKET");
}

Test(kernel_stop, in_another_mount_namespace_ends_all_writes)
{
	stops_after(lose_by_mount, "mount");
	stops_after(lose_by_pivot_root, "pivot_root");
}

Test(kernel_stop, without_descriptors_ends_all_writes)
{
	stops_after(lose_by_descriptor_limit, "RLIMIT_NOFILE");
}

Test(kernel_stop, by_another_user_ends_all_writes)
{
	stops_after(lose_by_another_user, "setuid");
	chmod(d.dir, 0755);
}

Test(kernel_stop, after_the_socket_was_removed_ends_all_writes)
{
	stops_after(lose_by_removal, "unlink");
}

Test(kernel_stop, sent_to_another_daemon_ends_all_writes)
{
	static const char *args[] = { "--rate", TICKS_RATE, NULL };

	daemon_start(&second, NULL, args);
	setenv("PROFIL_SOCKET", d.socket, 1);
	stops_after(lose_to_another_daemon, "another daemon");
	daemon_stop(&second);
}

/* A fork child that stops ends its own profile. */
static enum end stop_in_child(void)
{
	int status;
	pid_t pid;

	if (begin())
		return NOT_STARTED;
	pid = fork();
	if (pid == 0) {
		loop_for(2, SPELL_NS / 4);
		if (lose_by_another_path() || turn_off())
			_exit(STOP_FAILED);
		_exit(stays(counts()) ? UNCHANGED : CHANGED);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		return WEXITSTATUS(status);
	return changes(counts()) ? UNCHANGED : STOP_FAILED; /* the parent still counts */
}

Test(kernel_stop, of_a_fork_child_leaves_its_parents_profile_on)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(stop_in_child());
	expect_end(pid, UNCHANGED, "a fork child");
}

/* --- a daemon that is dead or frozen ---------------------------------------------------------- */

static int gate[2], said[2];

/*
 * Starts a profile, waits for the parent's away(), stops, and waits for its back(). The sync ends
 * the write that begin() has seen: a daemon that goes away in a write leaves its busy mark set, and
 * the stop fails with ETIMEDOUT (profil.3).
 */
static enum end stop_between(void)
{
	unsigned long before;
	char byte = 0;

	if (begin() || profil_sync() || write(said[1], &byte, 1) != 1 ||
	    read(gate[0], &byte, 1) != 1)
		return NOT_STARTED;
	if (turn_off())
		return STOP_FAILED;
	before = counts();
	if (write(said[1], &byte, 1) != 1 || read(gate[0], &byte, 1) != 1)
		return NOT_LOST;
	return stays(before) ? UNCHANGED : CHANGED;
}

static void stops_between(void (*away)(void), void (*back)(void), const char *how)
{
	char byte = 0;
	pid_t pid;

	cr_assert(pipe(gate) == 0 && pipe(said) == 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		_exit(stop_between());
	}
	cr_assert_eq(read(said[0], &byte, 1), 1);
	away();
	cr_assert_eq(write(gate[1], &byte, 1), 1);
	cr_assert_eq(read(said[0], &byte, 1), 1);
	back();
	cr_assert_eq(write(gate[1], &byte, 1), 1);
	expect_end(pid, UNCHANGED, how);
}

static void kill_it(void)
{
	ticks_need_bpffs();
	daemon_kill(&d);
}

static void begin_again(void)
{
	daemon_restart(&d);
}

static void kill_and_hide(void)
{
	kill_it();
	begin_again();
	cr_assert_eq(unlink(d.socket), 0);
}

static void freeze(void)
{
	kill(d.pid, SIGSTOP);
}

static void thaw(void)
{
	kill(d.pid, SIGCONT);
}

static void nothing(void)
{
}

Test(kernel_stop, while_the_daemon_is_dead_ends_all_writes)
{
	stops_between(kill_it, begin_again, "a killed daemon");
}

Test(kernel_stop, after_a_restart_ends_all_writes)
{
	stops_between(kill_and_hide, nothing, "a restarted daemon");
}

Test(kernel_stop, while_the_daemon_is_frozen_ends_all_writes)
{
	stops_between(freeze, thaw, "a frozen daemon");
}
