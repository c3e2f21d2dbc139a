/* special_files.c - devices and pipes that other users name are not opened */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_dir.h"
#include "base/cleanup.h"
#include "table/image_file.h"
#include "symbols/dwarf_lines.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/separate_debug.h"
#include "base/regular_file.h"

/*
 * The device is a terminal, whose other side says whether it was ever opened: once it is closed
 * again, it hangs up.
 */
static int terminal = -1;
static char device[64];

static void set_up(void)
{
	const char *name;

	build_dir_open("static inline int twice(int n) { return 2 * n; }\n"
		       "int main(int n, char **v) { (void)v; return twice(n); }\n",
		       "store");
	terminal = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (terminal < 0 || grantpt(terminal) < 0 || unlockpt(terminal) < 0 ||
	    !(name = ptsname(terminal)))
		cr_skip_test("no terminals here");
	snprintf(device, sizeof(device), "%s", name);
}

static void tear_down(void)
{
	closep(&terminal);
	build_dir_close();
}

TestSuite(special_files, .init = set_up, .fini = tear_down);

static bool device_was_opened(void)
{
	struct pollfd at = { .fd = terminal };

	return poll(&at, 1, 0) > 0 && at.revents & POLLHUP;
}

/* The path of @name in the directory. */
static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	return path;
}

static void link_to_device(const char *name)
{
	cr_assert_eq(symlink(device, path_of(name)), 0);
}

Test(special_files, are_seen_to_be_opened)
{
	__cleanup(closep) int fd = open(device, O_RDWR | O_NOCTTY | O_CLOEXEC);

	cr_assert_geq(fd, 0);
	closep(&fd);
	fd = -1;
	cr_assert(device_was_opened(), "this test does not see an open");
}

Test(special_files, are_refused)
{
	__cleanup(closep) int fd = -1;

	link_to_device("device");
	build_dir_run("mkfifo pipe && truncate -s 4294967296 most && truncate -s 4294967297 more");
	cr_expect_eq(regular_file_open(path_of("device")), -EINVAL);
	cr_expect_eq(regular_file_open(path_of("pipe")), -EINVAL);
	cr_expect_eq(regular_file_open(build_dir), -EINVAL);
	cr_expect_eq(regular_file_open(path_of("none")), -ENOENT);
	cr_expect_eq(regular_file_open(path_of("more")), -EFBIG, "a sparse file");
	cr_expect_not(device_was_opened());
	fd = regular_file_open(path_of("most"));
	cr_expect_geq(fd, 0);
}

/* Builds "a" without DWARF, whose debug file is the device. */
static int open_linked(void)
{
	build_dir_run("gcc -O2 -g -Wl,--build-id=none -o a a.c && "
		      "objcopy --only-keep-debug a a.debug && strip a && "
		      "objcopy --add-gnu-debuglink=a.debug a && rm a.debug");
	link_to_device("a.debug");
	return open(path_of("a"), O_RDONLY | O_CLOEXEC);
}

Test(special_files, are_no_separate_debug_files)
{
	__cleanup(closep) int fd = open_linked();

	cr_expect_eq(separate_debug_open(fd, ""), -ENOENT);
	cr_expect_not(device_was_opened());
}

Test(special_files, are_no_debug_files_of_libdwfl)
{
	__cleanup(closep) int fd = open_linked();
	struct debug_file *f;
	Dwarf_Addr bias;

	setenv("DEBUGINFOD_URLS", "file:///none", 1);
	setenv("DEBUGINFOD_CACHE_PATH", path_of("cache"), 1);
	cr_assert_eq(debug_file_open(&f, fd, path_of("a")), 0);
	debug_file_nsymbols(f);
	cr_expect_null(debug_file_dwarf(f, &bias));
	debug_file_close(f);
	cr_expect_not(device_was_opened());
}

/* Opens "a", whose DWARF refers to the supplementary file @name. */
static struct debug_file *open_supplemented(const char *name)
{
	char command[512];
	struct debug_file *f;
	int fd;

	snprintf(command, sizeof(command),
		 "gcc -O2 -g -Wl,--build-id=0x0123456789abcdef -o a a.c && cp a other && "
		 "{ printf '%s\\0'; printf '\\001\\043\\105\\147\\211\\253\\315\\357'; } >link && "
		 "objcopy --add-section .gnu_debugaltlink=link a",
		 name);
	build_dir_run(command);
	fd = open(path_of("a"), O_RDONLY | O_CLOEXEC);
	cr_assert_eq(debug_file_open(&f, fd, path_of("a")), 0);
	close(fd);
	return f;
}

Test(special_files, are_no_supplementary_files)
{
	struct debug_file *f = open_supplemented(device);
	Dwarf_Addr bias;
	Dwarf *dwarf = debug_file_dwarf(f, &bias);

	cr_assert_not_null(dwarf);
	cr_expect_null(dwarf_getalt(dwarf));
	debug_file_close(f);
	cr_expect_not(device_was_opened());
}

Test(special_files, differ_from_supplementary_files)
{
	struct debug_file *f = open_supplemented("other");
	Dwarf_Addr bias;
	Dwarf *dwarf = debug_file_dwarf(f, &bias);

	cr_assert_not_null(dwarf);
	cr_expect_not_null(dwarf_getalt(dwarf));
	debug_file_close(f);
}

Test(special_files, are_no_files_of_split_dwarf)
{
	struct object o = { .fd = -1 };
	const char *text;
	struct lines *l;
	int line;

	build_dir_run("gcc -O2 -gdwarf-5 -gsplit-dwarf -o a a.c && rm -f *.dwo");
	link_to_device("a-a.dwo");
	link_to_device("a.dwo");
	o.path = (char *)path_of("a");
	o.fd = open(o.path, O_RDONLY | O_CLOEXEC);
	elf_file_layout(o.fd, &o.segments, &o.program);
	if (!lines_open(&l, &o)) {
		for (__u64 at = 0; at < 0x4000; at++) {
			lines_find(l, at, &text, &line);
			lines_inlines(l, at, &text, 1);
		}
		lines_close(l);
	}
	closep(&o.fd);
	segments_fini(&o.segments);
	cr_expect_not(device_was_opened());
}

Test(special_files, are_no_files_of_objects)
{
	struct object o = { .path = device, .build_id = "0123456789abcdef", .fd = -1 };
	char pipe[128];

	cr_expect_eq(elf_file_open(&o), -ENOENT);
	build_dir_run("mkfifo pipe");
	snprintf(pipe, sizeof(pipe), "%s", path_of("pipe"));
	o.path = pipe;
	cr_expect_eq(elf_file_open(&o), -ENOENT);
	cr_expect_not(device_was_opened());
}

Test(special_files, are_no_files_of_images)
{
	struct profil_image image = { .tgid = (__u32)getpid(), .build_id_bytes = 8 };

	link_to_device("device");
	cr_expect_eq(image_file_open(&image, path_of("device")), -ENOENT);
	cr_expect_not(device_was_opened());
}
