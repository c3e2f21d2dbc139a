/* unwind_feeder.c - unwind rules for the stacks of all users' programs */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/unwind_maps.h"
#include "profile/profile.h"
#include "symbols/build_dir.h"
#include "symbols/proc/file_account.h"
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

/* A table with one image, of the file @fd. */
static void make_reader(struct table_reader *r, int fd)
{
	static _Alignas(PROFIL_UNWIND_PAGE) char bytes[2 * PROFIL_UNWIND_PAGE];
	static __u32 object[] = { 0, 1 };
	struct profil_table *head = (void *)bytes;
	struct profil_image *image = (void *)(bytes + PROFIL_UNWIND_PAGE);
	__u32 index;

	*head = (struct profil_table){ .images = 1, .used_images = 1, .image_page = 1 };
	*image = (struct profil_image){ .kind = PROFIL_IMAGE_FILE, .ready = 1, .ino = 1 };
	*r = (struct table_reader){
		.table.head = head, .profile = profile_new(), .object = object, .images = 1
	};
	cr_assert_not_null(r->profile);
	cr_assert_eq(profile_add_object(r->profile, "a", 0, 1, fd, &index), 0);
}

Test(unwind_feeder, feeds_a_file_later_whose_user_has_no_time_left)
{
	struct table_reader r;
	char path[128];
	int fd;

	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
	build_dir_run("chown 4000000001 a");
	snprintf(path, sizeof(path), "%s/a", build_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	make_reader(&r, fd);
	file_account_use_time(file_account_for(ONE), FILE_TIME, FILE_ACCOUNTS_NS);
	unwind_feeder_update(&feeder, &r);
	cr_expect_eq(feeder.waiting, 1);
	unwind_feeder_image(&feeder, &r, 1);
	cr_expect_eq(feeder.waiting, 1, "it has none yet");
	build_dir_run("chown 4000000002 a");
	unwind_feeder_image(&feeder, &r, 1);
	cr_expect_eq(feeder.waiting, 0);
	cr_expect_eq(feeder.fed[1], UNWIND_FED);
	profile_free(r.profile);
}

/* Reads the rules of libc as a file of user ONE, with @ns of its time left. Returns the number of rows. */
static size_t rows_within(__u64 ns)
{
	struct file_account *one = file_account_for(ONE);
	struct unwind_table t;
	char path[128];
	size_t rows;
	int fd;

	snprintf(path, sizeof(path), "%s/libc", build_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	file_account_use_time(one, FILE_TIME, file_account_time_left(one, FILE_TIME) - ns);
	cr_expect_eq(unwind_table_open(&t, fd, -1, NULL), 0);
	close(fd);
	rows = t.n;
	unwind_table_fini(&t);
	return rows;
}

Test(unwind_feeder, reads_a_file_to_the_end_for_which_there_is_any_time)
{
	size_t all;

	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
	build_dir_run(
		"cp $(ldd /bin/sh | awk '$1 ~ /^libc/ { print $3 }') libc && chown 4000000001 libc");
	all = rows_within(file_account_time_left(file_account_for(ONE), FILE_TIME));
	cr_expect_gt(all, 5000);
	cr_expect_eq(rows_within(1), all);
	cr_expect_eq(file_account_time_left(file_account_for(ONE), FILE_TIME), 0);
}
