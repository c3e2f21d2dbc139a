/* file_account.c - the files of one user do not use up what those of another may take */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "build_dir.h"
#include "symbols/elf/debug_file.h"
#include "symbols/proc/file_account.h"
#include "symbols/proc/mounts.h"

/* Two users without subordinate ids, and not of this process. */
enum { ONE = 4000000001u, OTHER = 4000000002u };

static void set_up(void)
{
	build_dir_open("int f(int n) { return n * 3; }\n", "store");
}

TestSuite(file_account, .init = set_up, .fini = build_dir_close);

/* Has a copy of the program in another mount namespace. Returns a descriptor of it. */
static int open_elsewhere(pid_t *pid)
{
	char command[512], path[160];
	int fd, pipes[2];
	char byte;

	cr_assert_eq(pipe(pipes), 0);
	*pid = fork();
	cr_assert_geq(*pid, 0);
	if (!*pid) {
		snprintf(command, sizeof(command),
			 "mkdir %s/m && mount -t tmpfs none %s/m && cp %s/a %s/m/", build_dir,
			 build_dir, build_dir, build_dir);
		if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    system(command) || write(pipes[1], "", 1) != 1)
			_exit(1);
		pause();
	}
	close(pipes[1]);
	cr_assert_eq(read(pipes[0], &byte, 1), 1);
	close(pipes[0]);
	snprintf(path, sizeof(path), "/proc/%d/root%s/m/a", (int)*pid, build_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

Test(file_account, has_no_limits_where_a_trusted_process_finds_the_file)
{
	pid_t pid;
	int fd;

	if (geteuid())
		cr_skip_test("needs root, to mount");
	build_dir_run("gcc -O2 -g -gz -shared -fPIC -o a a.c");
	fd = open_elsewhere(&pid);
	cr_expect_not_null(file_account_of(fd), "of a mount that this process does not see");
	mounts_trust(pid);
	cr_expect_null(file_account_of(fd));
	cr_assert_eq(fchown(fd, ONE, (gid_t)-1), 0);
	cr_expect_eq(file_account_of(fd), file_account_for(ONE), "of another user");
	close(fd);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Takes all that the account may have. */
static __u64 use_up(struct file_account *a)
{
	__u64 sum = 0;

	for (__u64 step = FILE_ACCOUNTS_BYTES; step; step /= 2) {
		if (file_account_take(a, step))
			sum += step;
	}
	cr_expect_not(file_account_take(a, 1));
	return sum;
}

Test(file_account, may_have_half_of_what_the_others_leave)
{
	struct file_account *one = file_account_for(ONE), *other = file_account_for(OTHER);

	cr_expect_eq(file_account_for(ONE), one);
	cr_expect_neq(one, other);
	cr_expect_eq(use_up(one), FILE_ACCOUNTS_BYTES / 2);
	cr_expect_eq(use_up(other), FILE_ACCOUNTS_BYTES / 4);
	file_account_give(one, FILE_ACCOUNTS_BYTES / 2);
	cr_expect_eq(use_up(other), FILE_ACCOUNTS_BYTES / 4, "then it has a half");
}

Test(file_account, may_use_half_of_the_time_that_the_others_leave)
{
	struct file_account *one = file_account_for(ONE), *other = file_account_for(OTHER);

	cr_expect_eq(file_account_time_left(one, FILE_TIME), FILE_ACCOUNTS_NS / 2);
	file_account_use_time(one, FILE_TIME, FILE_ACCOUNTS_NS / 2);
	cr_expect_eq(file_account_time_left(one, FILE_TIME), 0);
	cr_expect_eq(file_account_time_left(other, FILE_TIME), FILE_ACCOUNTS_NS / 4);
	file_account_use_time(one, FILE_TIME, FILE_ACCOUNTS_NS);
	cr_expect_eq(file_account_time_left(one, FILE_TIME), 0);
	cr_expect_eq(file_account_time_left(other, FILE_TIME), FILE_ACCOUNTS_NS / 4,
		     "that is owed");
	file_account_use_time(other, FILE_TIME, FILE_ACCOUNTS_NS / 4 - 1);
	cr_expect_eq(file_account_time_left(other, FILE_TIME), 1);
}

static int open_of(uid_t owner, mode_t mode)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/a", build_dir);
	cr_assert_eq(chown(path, owner, (gid_t)-1), 0);
	cr_assert_eq(chmod(path, mode), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static bool has_dwarf(int fd)
{
	struct debug_file *f;
	Dwarf_Addr bias;
	bool has;

	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	has = debug_file_dwarf(f, &bias);
	cr_expect_neq(has, debug_file_is_packed(f));
	debug_file_close(f);
	close(fd);
	return has;
}

Test(file_account, is_that_of_the_owner_of_a_file)
{
	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
	build_dir_run("gcc -O2 -g -gz -shared -fPIC -o a a.c");
	cr_expect(has_dwarf(open_of(ONE, 0755)));
	use_up(file_account_for(ONE));
	cr_expect_not(has_dwarf(open_of(ONE, 0755)));
	cr_expect(has_dwarf(open_of(OTHER, 0755)), "of another user");
	cr_expect(has_dwarf(open_of(OTHER, 0757)), "of any user");
	use_up(file_account_for(OTHER));
	cr_expect_not(has_dwarf(open_of(OTHER, 0755)));
	cr_expect(has_dwarf(open_of(0, 0755)), "of this user");
}

Test(file_account, of_any_maker_is_shared)
{
	int fd;

	build_dir_run("gcc -O2 -g -gz -shared -fPIC -o a a.c");
	fd = open_of(geteuid(), 0757);
	cr_expect_not_null(file_account_of(fd));
	cr_expect_neq(file_account_of(fd), file_account_for(geteuid()));
	use_up(file_account_of(fd));
	cr_expect_not(has_dwarf(fd));
	cr_expect(has_dwarf(open_of(geteuid(), 0755)), "of this user");
}
