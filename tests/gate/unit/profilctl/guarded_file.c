/* guarded_file.c - files that other users' file systems may hold up */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/proc/file_account.h"
#include "symbols/proc/guarded_file.h"

static char dir[] = "/tmp/profil-guarded-XXXXXX", path[128];

static void start(void)
{
	FILE *f;

	cr_assert(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/file", dir);
	f = fopen(path, "w");
	cr_assert(f && fputs("text", f) >= 0 && fclose(f) == 0);
}

static void stop(void)
{
	unlink(path);
	rmdir(dir);
}

TestSuite(guarded_file, .init = start, .fini = stop);

static void expect_text(int fd, const char *text)
{
	char got[16] = { 0 };

	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_expect_eq(pread(fd, got, sizeof(got) - 1, 0), (ssize_t)strlen(text));
	cr_expect_str_eq(got, text);
	close(fd);
}

Test(guarded_file, opens_a_local_file)
{
	struct stat want, got;

	cr_assert_eq(stat(path, &want), 0);
	expect_text(guarded_file_open(path, &got), "text");
	cr_expect_eq(got.st_ino, want.st_ino);
	cr_expect_eq(got.st_dev, want.st_dev);
}

Test(guarded_file, rejects_what_is_no_regular_file)
{
	char fifo[160];

	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	cr_assert_eq(mkfifo(fifo, 0600), 0);
	cr_expect_eq(guarded_file_open(fifo, NULL), -EINVAL);
	cr_expect_eq(guarded_file_open_below(dir, "fifo", NULL), -EINVAL);
	cr_expect_eq(guarded_file_open("/dev/null", NULL), -EINVAL);
	cr_expect_eq(guarded_file_open("/nonexistent/x", NULL), -ENOENT);
	cr_expect_lt(guarded_file_open("", NULL), 0);
	unlink(fifo);
}

Test(guarded_file, below_a_root_no_link_leads_out)
{
	char link[160];

	expect_text(guarded_file_open_below(dir, "file", NULL), "text");
	snprintf(link, sizeof(link), "%s/out", dir);
	cr_assert_eq(symlink("..", link), 0);
	cr_expect_eq(guarded_file_open_below(dir, "out/passwd", NULL), -ENOENT);
	expect_text(guarded_file_open_below(dir, "out/file", NULL), "text");
	unlink(link);
	cr_assert_eq(symlink("file", link), 0);
	cr_expect_lt(guarded_file_open_below(dir, "out", NULL), 0, "the last part");
	unlink(link);
}

/*
 * A process of user @owner with a file system of its own, which holds a file; -1: the machine does
 * not let it.
 */
static pid_t stranger(int *hold, uid_t owner)
{
	int begun[2], end[2];
	char ok = 0;
	pid_t pid;

	cr_assert(pipe(begun) == 0 && pipe(end) == 0);
	pid = fork();
	if (pid == 0) {
		int fd;

		close(end[1]);
		ok = unshare(geteuid() ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) == 0 &&
		     mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
		     mount("none", dir, "tmpfs", 0, "") == 0;
		fd = ok ? open(path, O_WRONLY | O_CREAT, 0644) : -1;
		ok = fd >= 0 && write(fd, "their", 5) == 5 && setuid(owner) == 0;
		if (write(begun[1], &ok, 1) == 1 && read(end[0], &ok, 1) >= 0)
			_exit(0);
		_exit(1);
	}
	close(end[0]);
	close(begun[1]);
	cr_assert_eq(read(begun[0], &ok, 1), 1);
	close(begun[0]);
	*hold = end[1];
	return ok ? pid : -1;
}

Test(guarded_file, copies_a_file_of_another_mount_namespace)
{
	char theirs[256];
	struct stat st, copy;
	int hold, fd;
	pid_t pid = stranger(&hold, geteuid());

	if (pid < 0)
		cr_skip_test("no mount namespace");
	snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", (int)pid, path);
	fd = guarded_file_open(theirs, &st);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_assert_eq(fstat(fd, &copy), 0);
	cr_expect_neq(copy.st_dev, st.st_dev, "a copy, but the file's own numbers");
	expect_text(fd, "their");
	expect_text(guarded_file_open(path, NULL), "text");
	close(hold);
	waitpid(pid, NULL, 0);
}

/* Opens the file of process @pid, which has a file system of its own. */
static int open_theirs(pid_t pid)
{
	char theirs[256];

	snprintf(theirs, sizeof(theirs), "/proc/%d/root%s", (int)pid, path);
	return guarded_file_open(theirs, NULL);
}

static void use_up_bytes(struct file_account *a)
{
	cr_assert(file_account_take(a, file_account_bytes_left(a)));
}

Test(guarded_file, charges_a_copy_to_the_user_of_the_process)
{
	enum { ONE = 4000000001u, OTHER = 4000000002u };
	struct file_account *one = file_account_for(ONE), *other = file_account_for(OTHER);
	__u64 before = file_account_bytes_left(one);
	pid_t first, second;
	int hold[2], fd;

	if (geteuid())
		cr_skip_test("needs root, to run processes of other users");
	first = stranger(&hold[0], ONE);
	second = stranger(&hold[1], OTHER);
	if (first < 0 || second < 0)
		cr_skip_test("no mount namespace");
	fd = open_theirs(first);
	cr_assert_geq(fd, 0, "%s", strerror(-fd));
	cr_expect_eq(file_account_of(fd), one, "what the copy unpacks to is that user's, too");
	cr_expect_lt(file_account_bytes_left(one), before);
	close(fd);
	use_up_bytes(one);
	fd = open_theirs(first);
	cr_expect_geq(fd, 0, "the room of the closed copy was given back: %s", strerror(-fd));
	cr_expect_eq(open_theirs(first), -EFBIG);
	expect_text(open_theirs(second), "their");
	file_account_use_time(other, FILE_TIME, file_account_time_left(other, FILE_TIME));
	cr_expect_eq(open_theirs(second), -ETIMEDOUT, "its user's time is used up");
	expect_text(guarded_file_open(path, NULL), "text");
	close(hold[0]);
	close(hold[1]);
	waitpid(first, NULL, 0);
	waitpid(second, NULL, 0);
}
