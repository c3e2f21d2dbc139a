/* unwind_cache.c - stored unwind tables are returned unchanged, or refused */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "symbols/elf/unwind_cache.h"

#define BUILD_ID "0123456789abcdef"
#define NAME "profil/" BUILD_ID ".rows"

static char home[64];

static void make_home(void)
{
	strcpy(home, "/tmp/unwind-cache.XXXXXX");
	cr_assert_not_null(mkdtemp(home));
	setenv("XDG_CACHE_HOME", home, 1);
}

static void remove_home(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", home);
	cr_assert_eq(system(command), 0);
}

TestSuite(unwind_cache, .init = make_home, .fini = remove_home);

/* The table of @path by the cache, under BUILD_ID; the number of its rows. */
static size_t rows_of(const char *path)
{
	__cleanup(closep) int dir = unwind_cache_open();
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct unwind_table t;
	size_t n;

	cr_assert_geq(dir, 0);
	if (unwind_cache_table(&t, dir, fd, BUILD_ID, NULL))
		return 0;
	n = t.n;
	unwind_table_fini(&t);
	return n;
}

static int open_cached(int flags)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/" NAME, home);
	fd = open(path, flags | O_CLOEXEC);
	cr_assert_geq(fd, 0, "%s: %s", path, strerror(errno));
	return fd;
}

Test(unwind_cache, returns_the_stored_rows)
{
	size_t n = rows_of("/proc/self/exe");
	struct stat st;
	int fd;

	cr_assert_gt(n, 2);
	cr_assert_eq(rows_of("/dev/null"), n, "the build id names the table, not the file");
	fd = open_cached(O_RDONLY);
	cr_assert_eq(fstat(fd, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0600);
	cr_expect_eq((size_t)st.st_size % 8, 0);
	close(fd);
}

Test(unwind_cache, makes_a_directory_that_others_cannot_read)
{
	int dir = unwind_cache_open();
	struct stat st;

	cr_assert_eq(fstat(dir, &st), 0);
	cr_expect_eq(st.st_mode & 0777, 0700);
	cr_assert_eq(fchmod(dir, 0770), 0);
	cr_expect_eq(unwind_cache_open(), -EPERM, "others can write there");
	close(dir);
}

/* A copy of this program that another user can have made is read, but its rows are not stored. */
Test(unwind_cache, stores_no_rows_of_files_of_others)
{
	char command[512], path[128];

	snprintf(path, sizeof(path), "%s/copy", home);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod 0666 %s", (int)getpid(),
		 path, path);
	cr_assert_eq(system(command), 0);
	cr_expect_gt(rows_of(path), 2);
	cr_expect_eq(rows_of("/dev/null"), 0, "all can write it");
	cr_assert_eq(chmod(path, 0644), 0);
	if (!geteuid()) {
		cr_assert_eq(chown(path, 65534, 65534), 0);
		cr_expect_gt(rows_of(path), 2);
		cr_expect_eq(rows_of("/dev/null"), 0, "it belongs to another user");
		cr_assert_eq(chown(path, 0, 0), 0);
	}
	cr_expect_gt(rows_of(path), 2);
	cr_expect_gt(rows_of("/dev/null"), 2);
}

/* After another file is mounted over it, the file is in no place of this mount namespace. */
Test(unwind_cache, stores_no_rows_of_files_of_other_mount_namespaces)
{
	__cleanup(closep) int dir = unwind_cache_open();
	__cleanup(closep) int fd = -1;
	char command[512], path[128], other[128];
	struct unwind_table t;

	snprintf(path, sizeof(path), "%s/copy", home);
	snprintf(other, sizeof(other), "%s/other", home);
	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && cp %s %s", (int)getpid(), path,
		 path, other);
	cr_assert_eq(system(command), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(other, path, NULL, MS_BIND, NULL) < 0)
		cr_skip_test("needs root");
	cr_assert_eq(unwind_cache_table(&t, dir, fd, BUILD_ID, NULL), 0);
	cr_expect_gt(t.n, 2);
	unwind_table_fini(&t);
	cr_expect_eq(rows_of("/dev/null"), 0);
	umount(path);
}

/* After each of these the table must be made again, here from /dev/null, which has no rows. */
Test(unwind_cache, refuses_a_file_with_a_changed_bit)
{
	char byte;
	int fd;

	cr_assert_gt(rows_of("/proc/self/exe"), 2);
	fd = open_cached(O_RDWR);
	cr_assert_eq(pread(fd, &byte, 1, 100), 1);
	byte ^= 1;
	cr_assert_eq(pwrite(fd, &byte, 1, 100), 1);
	close(fd);
	cr_expect_eq(rows_of("/dev/null"), 0);
}

Test(unwind_cache, refuses_a_truncated_file)
{
	int fd;

	cr_assert_gt(rows_of("/proc/self/exe"), 2);
	fd = open_cached(O_RDWR);
	cr_assert_eq(ftruncate(fd, 8 * 20), 0);
	close(fd);
	cr_expect_eq(rows_of("/dev/null"), 0);
	cr_expect_gt(rows_of("/proc/self/exe"), 2);
}

Test(unwind_cache, removes_the_least_recently_used_when_full)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	char path[128];
	int fd;

	close(unwind_cache_open());
	snprintf(path, sizeof(path), "%s/profil/old.rows", home);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, UNWIND_CACHE_BYTES), 0);
	cr_assert_eq(futimens(fd, old), 0);
	close(fd);
	cr_assert_gt(rows_of("/proc/self/exe"), 2);
	cr_expect_lt(access(path, F_OK), 0);
	close(open_cached(O_RDONLY));
}

/* Sets the age of the stored table, uses the table, and returns its age. */
static time_t age_after_use(time_t seconds)
{
	__cleanup(closep) int fd = open_cached(O_RDONLY);
	const struct timespec then[2] = { { .tv_nsec = UTIME_OMIT },
					  { .tv_sec = time(NULL) - seconds } };
	struct stat st;

	cr_assert_eq(futimens(fd, then), 0);
	cr_assert_gt(rows_of("/dev/null"), 2);
	cr_assert_eq(fstat(fd, &st), 0);
	return time(NULL) - st.st_mtime;
}

Test(unwind_cache, marks_a_file_as_used_once_an_hour)
{
	cr_assert_gt(rows_of("/proc/self/exe"), 2);
	cr_expect_geq(age_after_use(1800), 1800, "a mark is a write to the disk");
	cr_expect_lt(age_after_use(7200), 1800);
}
