/* separate_debug.c - unwind rules from the .debug_frame of separate debug files */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/arch.h"
#include "build_dir.h"
#include "base/cleanup.h"
#include "profile/profile.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/separate_debug.h"
#include "symbols/elf/unwind_cache.h"

/* A function with a frame, and with its rules in .debug_frame only. */
static const char source[] = "int helper(int *, int);\n"
			     "int helper(int *a, int n) { return a[n]; }\n"
			     "int main(void) { volatile int a[400]; a[3] = 1; return a[3]; }\n";

static void set_up(void)
{
	build_dir_open(source, "store");
	setenv("XDG_CACHE_HOME", build_dir, 1);
}

TestSuite(separate_debug, .init = set_up, .fini = build_dir_close);

/* Builds "a" with its debug file "a.debug"; @id is an option for the linker. */
static void build(const char *id)
{
	char command[512];

	snprintf(command, sizeof(command),
		 "gcc -O0 -g -fno-asynchronous-unwind-tables -fno-unwind-tables -Wl,--build-id=%s "
		 "-o a a.c && objcopy --only-keep-debug a a.debug && "
		 "objcopy --strip-debug --add-gnu-debuglink=a.debug a",
		 id);
	build_dir_run(command);
}

static int open_a(char *build_id)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/a", build_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	elf_file_build_id(fd, build_id, PROFILE_BUILD_ID_MAX);
	return fd;
}

/* Whether a debug file of "a" is found. */
static bool found(void)
{
	char build_id[PROFILE_BUILD_ID_MAX];
	__cleanup(closep) int fd = open_a(build_id);
	__cleanup(closep) int debug = separate_debug_open(fd, build_id);

	cr_expect(debug >= 0 || debug == -ENOENT);
	return debug >= 0;
}

/*
 * Rows with which a frame of main() can be left, by the cache in @dir: those with a frame pointer,
 * of which the compiler's start-up code for x86-64 has one.
 */
static size_t rows(void)
{
	char build_id[PROFILE_BUILD_ID_MAX];
	__cleanup(closep) int fd = open_a(build_id), cache = unwind_cache_open();
	struct unwind_table t;
	size_t n = 0;

	cr_assert_geq(cache, 0);
	cr_assert_eq(unwind_cache_table(&t, cache, fd, build_id, NULL), 0);
	for (size_t i = 0; i < t.n; i++)
		n += (t.row[i].rule & PROFIL_UNWIND_KIND) == PROFIL_UNWIND_FP;
	unwind_table_fini(&t);
	return n - ARCH_RA_ON_STACK;
}

Test(separate_debug, is_found_by_build_id)
{
	build("0x0123456789abcdef");
	build_dir_run("mkdir -p store/.build-id/01 && mv a.debug "
		      "store/.build-id/01/23456789abcdef.debug");
	cr_expect(found());
	cr_expect_geq(rows(), 2, "main() and helper() have frames");
}

Test(separate_debug, is_found_by_debuglink_beside_the_file_or_in_a_folder)
{
	build("0x0123456789abcdef");
	cr_expect(found(), "beside the file");
	build_dir_run("mkdir .debug && mv a.debug .debug");
	cr_expect(found(), "in .debug");
	build_dir_run("mkdir -p store/$PWD && mv .debug/a.debug store/$PWD");
	cr_expect(found(), "in the store");
	build_dir_run("rm -r store");
	cr_expect_not(found());
}

Test(separate_debug, is_refused_with_another_build_id)
{
	build("0x0123456789abcdef");
	build_dir_run("mv a.debug of-another.debug");
	build("0xfedcba9876543210");
	build_dir_run("mv of-another.debug a.debug");
	cr_expect_not(found());
	build_dir_run("mkdir -p store/.build-id/fe && mv a.debug "
		      "store/.build-id/fe/dcba9876543210.debug");
	cr_expect_not(found());
	cr_expect_eq(rows(), 0);
}

Test(separate_debug, is_refused_with_another_checksum)
{
	build("none");
	cr_expect(found());
	cr_expect_geq(rows(), 2);
	build_dir_run("printf x >>a.debug");
	cr_expect_not(found());
	cr_expect_eq(rows(), 0);
}

Test(separate_debug, is_used_although_a_table_without_it_is_cached)
{
	build("0x0123456789abcdef");
	build_dir_run("mv a.debug later");
	cr_expect_eq(rows(), 0);
	build_dir_run("ls profil/0123456789abcdef.rows >/dev/null && mv later a.debug");
	cr_expect_geq(rows(), 2);
	cr_expect_geq(rows(), 2, "from the cache");
}

Test(separate_debug, is_no_pipe_that_a_program_names)
{
	build("0x0123456789abcdef");
	build_dir_run("rm a.debug && mkfifo a.debug");
	cr_expect_not(found());
}
