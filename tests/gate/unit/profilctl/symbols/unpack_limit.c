/* unpack_limit.c - small files that unpack to much are not unpacked */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "build_dir.h"
#include "symbols/dwarf_lines.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf/elf_image.h"
#include "symbols/proc/file_account.h"
#include "symbols/elf/unpack_limit.h"
#include "symbols/elf/unwind_table.h"

static void set_up(void)
{
	build_dir_open("int f(int n) { return n * 3; }\n", "store");
}

TestSuite(unpack_limit, .init = set_up, .fini = build_dir_close);

static int open_at(const char *name)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	cr_assert_eq(chmod(path, 0666), 0); /* so that it is not trusted */
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static int open_writable(void)
{
	return open_at("a");
}

/* The symbols that debug_file finds in @fd. */
static int symbols_in(int fd)
{
	struct debug_file *f;
	int n;

	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	n = debug_file_nsymbols(f);
	debug_file_close(f);
	return n;
}

static bool is_within(int fd, __u64 most)
{
	bool within;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	within = unpack_symbols_within(elf, most);
	elf_end(elf);
	return within;
}

Test(unpack_limit, leaves_out_mini_debug_information_of_gigabytes)
{
	int fd;

	if (system("command -v xz >/dev/null") != 0)
		cr_skip_test("no xz here");
	build_dir_run("gcc -O2 -shared -fPIC -o a a.c && cp a b && strip a && "
		      "{ head -c 64 b; head -c 80000000 /dev/zero; } | xz -c > mini && "
		      "objcopy --add-section .gnu_debugdata=mini a");
	fd = open_writable();
	cr_expect_not_null(file_account_of(fd));
	cr_expect_not(is_within(fd, UNPACK_FILE_BYTES));
	cr_expect(is_within(fd, 80000064));
	cr_expect_gt(symbols_in(fd), 0, "dynamic symbols remain");
	close(fd);
}

Test(unpack_limit, reads_mini_debug_information)
{
	int fd, before;

	if (system("command -v xz >/dev/null") != 0)
		cr_skip_test("no xz here");
	build_dir_run("gcc -O2 -shared -fPIC -o a a.c && cp a b && strip a");
	fd = open_writable();
	before = symbols_in(fd);
	close(fd);
	build_dir_run("xz -c b > mini && objcopy --add-section .gnu_debugdata=mini a");
	fd = open_writable();
	cr_expect_gt(symbols_in(fd), before);
	close(fd);
}

/* Sets the size in the header of a compressed section. */
static void inflate_header(int fd, const char *name, __u64 bytes)
{
	struct stat st;
	GElf_Shdr sh;
	char *image;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cr_assert_not_null(elf_image_section(elf, name, &sh));
	elf_end(elf);
	cr_assert_eq(fstat(fd, &st), 0);
	image = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(image, MAP_FAILED);
	((Elf64_Chdr *)(image + sh.sh_offset))->ch_size = bytes;
	munmap(image, (size_t)st.st_size);
}

Test(unpack_limit, leaves_out_debug_information_of_gigabytes)
{
	struct unwind_table t;
	struct debug_file *f;
	Dwarf_Addr bias;
	int fd;

	build_dir_run("gcc -O2 -g -gz -shared -fPIC -o a a.c");
	fd = open_writable();
	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	cr_expect_not(debug_file_is_packed(f));
	cr_expect_not_null(debug_file_dwarf(f, &bias));
	debug_file_close(f);
	inflate_header(fd, ".debug_info", 1ull << 30);
	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	cr_expect(debug_file_is_packed(f));
	cr_expect_null(debug_file_dwarf(f, &bias));
	cr_expect_gt(debug_file_nsymbols(f), 0);
	debug_file_close(f);
	cr_expect_eq(unwind_table_open(&t, fd, -1, NULL), 0);
	cr_expect_gt(t.n, 0);
	unwind_table_fini(&t);
	close(fd);
}

/*
 * "a" names "b", which has its build id, as the file with what dwz(1) has moved out of it. libdw
 * would unpack all of it, and open it if another user's file named it.
 */
Test(unpack_limit, leaves_out_supplementary_files_of_gigabytes)
{
	struct debug_file *f;
	Dwarf_Addr bias;
	int fd, b;

	build_dir_run(
		"gcc -O2 -g -gz -shared -fPIC -Wl,--build-id=0x0123456789abcdef -o b a.c && cp b a "
		"&& "
		"{ printf 'b\\0'; printf '\\001\\043\\105\\147\\211\\253\\315\\357'; } >link && "
		"objcopy --add-section .gnu_debugaltlink=link a");
	fd = open_writable();
	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	cr_expect_not_null(debug_file_dwarf(f, &bias));
	cr_expect_not(debug_file_is_packed(f));
	debug_file_close(f);
	b = open_at("b");
	inflate_header(b, ".debug_info", 1ull << 30);
	cr_assert_eq(debug_file_open(&f, fd, "a"), 0);
	cr_expect_null(debug_file_dwarf(f, &bias));
	cr_expect(debug_file_is_packed(f));
	debug_file_close(f);
	close(b);
	close(fd);
}

#define UNITS 100000 /* libdw makes a kilobyte of each */

/* A file with many units of 12 bytes, none of which has code. */
static int open_with_units(mode_t mode)
{
	static const char abbreviations[] = "\4\21\0\0";
	static const unsigned char unit[] = { 8, 0, 0, 0, 4, 0, 0, 0, 0, 0, 8, 4 };
	char path[128];
	FILE *f;
	int fd;

	build_dir_run("gcc -shared -fPIC -o a a.c");
	snprintf(path, sizeof(path), "%s/abbreviations", build_dir);
	f = fopen(path, "w");
	cr_assert(f && fwrite(abbreviations, sizeof(abbreviations), 1, f) == 1 && !fclose(f));
	snprintf(path, sizeof(path), "%s/units", build_dir);
	f = fopen(path, "w");
	for (int i = 0; f && i < UNITS; i++)
		cr_assert_eq(fwrite(unit, sizeof(unit), 1, f), 1);
	cr_assert(f && !fclose(f));
	build_dir_run("objcopy --add-section .debug_abbrev=abbreviations "
		      "--add-section .debug_info=units a");
	snprintf(path, sizeof(path), "%s/a", build_dir);
	cr_assert_eq(chmod(path, mode), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static int read_lines(int fd)
{
	char path[] = "a";
	struct object o = { .path = path, .fd = fd };
	struct lines *l = NULL;
	int err = lines_open(&l, &o);

	if (!err)
		lines_close(l);
	close(fd);
	return err;
}

Test(unpack_limit, leaves_out_units_of_which_libdw_makes_a_hundred_times_as_much)
{
	cr_expect_eq(read_lines(open_with_units(0666)), -EFBIG);
	cr_expect_eq(read_lines(open_with_units(0644)), 0, "of this user's own file");
}

Test(unpack_limit, leaves_out_a_symbol_table_that_takes_a_hundred_megabytes)
{
	int fd;

	build_dir_run(
		"seq 530000 | sed 's/.*/s&: .byte 0/' >s.s && gcc -shared -nostdlib -o a s.s");
	fd = open_writable();
	cr_expect_leq(symbols_in(fd), 0);
	cr_assert_eq(fchmod(fd, 0644), 0);
	cr_expect_gt(symbols_in(fd), 530000, "of this user's own file");
	close(fd);
}
