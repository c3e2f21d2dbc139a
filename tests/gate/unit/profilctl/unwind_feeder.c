/* unwind_feeder.c - unwind rules for the stacks of all users' programs */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/unwind_maps.h"
#include "symbols/build_dir.h"
#include "table/unwind_feeder.h"

/* Two users without subordinate ids, and not of this process. */
enum { ONE = 4000000001u, OTHER = 4000000002u };

enum { ROW_PAGES = 64 };

static struct unwind_feeder feeder;

static void start(void)
{
	struct profil_table head = { .images = 1, .stack_mode = PROFIL_STACK_AUTO };
	struct table t = { .head = &head };
	int fd = memfd_create("unwind", MFD_CLOEXEC);

	build_dir_open("int f(int n) { return n * 3; }\n", "feeder");
	setenv("XDG_CACHE_HOME", build_dir, 1);
	build_dir_run("gcc -O2 -shared -fPIC -o a a.c");
	head.unwind_pages = PROFIL_UNWIND_IMAGE_PAGE + 1 + ROW_PAGES;
	cr_assert_eq(ftruncate(fd, (off_t)head.unwind_pages * PROFIL_UNWIND_PAGE), 0);
	cr_assert_eq(unwind_feeder_open(&feeder, fd, &t), 0);
	feeder.shared = true;
	close(fd);
}

static void stop(void)
{
	unwind_feeder_close(&feeder);
	build_dir_close();
}

TestSuite(unwind_feeder, .init = start, .fini = stop);

/* Says whether one more file of @owner gets rows. */
static bool feed_file(uid_t owner)
{
	static int number;
	size_t used = feeder.used;
	char path[128], command[256];
	int fd;

	snprintf(path, sizeof(path), "%s/copy-%d", build_dir, number++);
	snprintf(command, sizeof(command), "cp a %s", path);
	build_dir_run(command);
	cr_assert_eq(chown(path, owner, (gid_t)-1), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	unwind_feeder_expect(&feeder, fd, path);
	close(fd);
	return feeder.used > used;
}

Test(unwind_feeder, gives_one_users_files_half_of_what_others_leave)
{
	size_t before = feeder.used;

	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
	while (feed_file(ONE))
		cr_assert_leq(feeder.used, feeder.pages);
	cr_expect_gt(feeder.used, before);
	cr_expect(feed_file(OTHER), "of another user");
	cr_expect(feed_file(0), "of root");
	cr_expect_not(feed_file(ONE));
	unwind_feeder_clear(&feeder);
	cr_expect(feed_file(ONE), "all were removed");
}
