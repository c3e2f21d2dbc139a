/* unpack_limit.c - small files that unpack to much are not unpacked */
#include <criterion/criterion.h>
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
#include "symbols/elf/debug_file.h"
#include "symbols/elf/elf_image.h"
#include "symbols/elf/unpack_limit.h"
#include "symbols/elf/unwind_table.h"

static void set_up(void)
{
	build_dir_open("int f(int n) { return n * 3; }\n", "store");
}

TestSuite(unpack_limit, .init = set_up, .fini = build_dir_close);

static int open_writable(void)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/a", build_dir);
	cr_assert_eq(chmod(path, 0666), 0); /* so that it is not trusted */
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
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
	cr_expect_not(file_is_trusted(fd));
	cr_expect_eq(unpack_limit_of(fd), UNPACK_FILE_BYTES);
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
	cr_expect_eq(unwind_table_open(&t, fd, -1), 0);
	cr_expect_gt(t.n, 0);
	unwind_table_fini(&t);
	close(fd);
}

Test(unpack_limit, counts_what_all_files_unpack_to)
{
	cr_expect(unpack_charge(UNPACK_ALL_BYTES));
	cr_expect_not(unpack_charge(1));
	unpack_discharge(1);
	cr_expect(unpack_charge(1));
	unpack_discharge(UNPACK_ALL_BYTES);
}
