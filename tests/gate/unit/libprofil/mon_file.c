/* mon_file.c - in a set-id program monitor() truncates no file that its user links to */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "libprofil/gprof/mon_file.h"

static char dir[] = "/tmp/profil-mon.XXXXXX";

static void set_up(void)
{
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chdir(dir), 0);
	cr_assert_eq(system("echo text >file"), 0);
}

static void tear_down(void)
{
	cr_assert_eq(system("rm -r \"$PWD\""), 0);
}

TestSuite(mon_file, .init = set_up, .fini = tear_down);

static off_t size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) < 0 ? -errno : st.st_size;
}

Test(mon_file, follows_links_of_its_user)
{
	__cleanup(closep) int fd = -1;

	cr_assert_eq(symlink("file", "mon.out"), 0);
	fd = mon_file_create("mon.out", false);
	cr_expect_geq(fd, 0);
	cr_expect_eq(size_of("file"), 0);
}

Test(mon_file, is_no_link_in_a_set_id_program)
{
	cr_assert_eq(symlink("file", "mon.out"), 0);
	cr_expect_eq(mon_file_create("mon.out", true), -ELOOP);
	cr_assert_eq(unlink("mon.out"), 0);
	cr_assert_eq(symlink("new", "mon.out"), 0);
	cr_expect_eq(mon_file_create("mon.out", true), -ELOOP);
	cr_expect_eq(size_of("new"), -ENOENT);
	cr_assert_eq(unlink("mon.out"), 0);
	cr_assert_eq(link("file", "mon.out"), 0);
	cr_expect_eq(mon_file_create("mon.out", true), -EPERM);
	cr_expect_eq(size_of("file"), 5);
	cr_assert_eq(unlink("mon.out"), 0);
	cr_assert_eq(mkfifo("mon.out", 0600), 0);
	cr_expect_eq(mon_file_create("mon.out", true), -ENXIO);
}

Test(mon_file, is_truncated_in_a_set_id_program)
{
	__cleanup(closep) int fd = mon_file_create("file", true);
	__cleanup(closep) int new = mon_file_create("new", true);

	cr_expect_geq(fd, 0);
	cr_expect_geq(new, 0);
	cr_expect_eq(size_of("file"), 0);
}
