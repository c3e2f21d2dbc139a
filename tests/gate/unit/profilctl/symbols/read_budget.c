/* read_budget.c - each reader gives up a file for which its maker's account has nothing left */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "build_dir.h"
#include "core/observe_maps.h"
#include "symbols/elf/plt.h"
#include "symbols/elf/separate_debug.h"
#include "symbols/elf_symbols.h"
#include "symbols/interpreters/interpreter.h"
#include "symbols/jit_codes.h"
#include "symbols/proc/file_account.h"

/* Two users without subordinate ids, and not of this process. */
enum { ONE = 4000000001u, OTHER = 4000000002u };

static void set_up(void)
{
	build_dir_open("int f(int n) { return n * 3; }\n", "store");
	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
}

TestSuite(read_budget, .init = set_up, .fini = build_dir_close);

static int open_of(const char *name, uid_t owner)
{
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	cr_assert_eq(chown(path, owner, (gid_t)-1), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	return fd;
}

static void use_up_time(enum file_time kind)
{
	struct file_account *one = file_account_for(ONE);

	file_account_use_time(one, kind, file_account_time_left(one, kind));
}

static int read_symbols(uid_t owner)
{
	__cleanup(closep) int fd = open_of("a", owner);
	struct symbols *s = NULL;
	int err = symbols_open(&s, fd, "a");

	symbols_close(s);
	return err;
}

Test(read_budget, symbols_take_time_of_their_own)
{
	build_dir_run("gcc -O2 -shared -fPIC -o a a.c");
	use_up_time(FILE_TIME);
	cr_expect_eq(read_symbols(ONE), 0, "rows and lines have used it");
	use_up_time(FILE_TIME_SYMBOLS);
	cr_expect_eq(read_symbols(ONE), -EFBIG);
	cr_expect_eq(read_symbols(OTHER), 0);
	cr_expect_eq(read_symbols(0), 0);
}

Test(read_budget, symbols_take_memory_while_they_are_open)
{
	struct file_account *one = file_account_for(ONE);
	__cleanup(closep) int fd = -1;
	struct symbols *s;
	__u64 before = file_account_bytes_left(one);

	build_dir_run("seq 20000 | sed 's/.*/.globl f&\\nf&: nop/' >b.s &&"
		      " gcc -shared -nostdlib -o a b.s");
	fd = open_of("a", ONE);
	cr_assert_eq(symbols_open(&s, fd, "a"), 0);
	cr_expect_lt(file_account_bytes_left(one), before);
	symbols_close(s);
	cr_expect_eq(file_account_bytes_left(one), before);
}

Test(read_budget, code_of_a_jitdump_takes_time)
{
	__u32 head[] = { 0x4a695444u, 1, 40, 62, 0, 1, 0, 0, 0, 0 };
	struct object o = { .kind = OBJECT_ANON };
	struct jit_codes *c;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/dump", build_dir);
	f = fopen(path, "w");
	cr_assert_eq(fwrite(head, sizeof(head), 1, f), 1);
	fclose(f);
	o.fd = open_of("dump", ONE);
	cr_assert_eq(jit_codes_open(&c, &o), 0);
	jit_codes_close(c);
	use_up_time(FILE_TIME);
	cr_expect_eq(jit_codes_open(&c, &o), -EFBIG);
	close(o.fd);
}

static int find_debug_file(uid_t owner)
{
	__cleanup(closep) int fd = open_of("a", owner);
	__cleanup(closep) int found = separate_debug_open(fd, "");

	return found < 0 ? found : 0;
}

/* The program's maker pays for the checksum of the file that it names, whose ever that is. */
Test(read_budget, checksum_of_a_debug_file_takes_time)
{
	build_dir_run("gcc -O2 -g -shared -fPIC -Wl,--build-id=none -o a a.c &&"
		      " objcopy --only-keep-debug a a.debug &&"
		      " objcopy --strip-debug --add-gnu-debuglink=a.debug a");
	cr_expect_eq(find_debug_file(ONE), 0);
	use_up_time(FILE_TIME_SYMBOLS);
	cr_expect_eq(find_debug_file(ONE), -ENOENT);
	cr_expect_eq(find_debug_file(OTHER), 0);
}

Test(read_budget, description_of_an_interpreter_takes_time)
{
	struct profil_interpreter d;
	int fd;

	build_dir_run("cp -L /usr/bin/python3 python3 || :");
	if (interpreter_open(&d, fd = open_of("python3", OTHER), "python3"))
		cr_skip_test("there is no /usr/bin/python3 that is described");
	close(fd);
	use_up_time(FILE_TIME_SYMBOLS);
	cr_expect_neq(interpreter_open(&d, fd = open_of("python3", ONE), "python3"), 0);
	close(fd);
}

/* Any number of stubs can have the name of one symbol. */
Test(read_budget, names_of_stubs_are_cut)
{
	struct plt plt;
	Elf *elf;
	int fd;

	build_dir_run("name=$(head -c 100000 /dev/zero | tr '\\0' f) &&"
		      " echo \"void $name(void); void g(void) { $name(); }\" >b.c &&"
		      " gcc -O1 -shared -fPIC -Wl,-z,lazy -o b b.c");
	fd = open_of("b", ONE);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cr_assert_eq(plt_read(&plt, elf), 0);
	cr_expect_gt(plt.name_bytes, 1000);
	for (size_t i = 0; i < plt.n; i++)
		cr_expect_leq(strlen(plt.stub[i].name), 65536 + strlen("@plt"));
	plt_fini(&plt);
	elf_end(elf);
	close(fd);
}
