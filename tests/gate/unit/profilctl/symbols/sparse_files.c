/* sparse_files.c - files whose sections are huge, but take no room on disk */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "build_dir.h"
#include "core/arch.h"
#include "symbols/elf/plt.h"
#include "symbols/elf_symbols.h"

static int fd;
static char *bytes;
static size_t size;

static void set_up(void)
{
	char path[128];
	struct stat st;

	build_dir_open("int one(void); int f(void) { return one() + one(); }\n", "");
	build_dir_run("gcc -O2 -shared -fPIC -o a.so a.c");
	snprintf(path, sizeof(path), "%s/a.so", build_dir);
	fd = open(path, O_RDWR | O_CLOEXEC);
	cr_assert(fd >= 0 && fstat(fd, &st) == 0);
	size = (size_t)st.st_size;
	bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	cr_assert_neq(bytes, MAP_FAILED);
}

static void tear_down(void)
{
	munmap(bytes, size);
	close(fd);
	build_dir_close();
}

TestSuite(sparse_files, .init = set_up, .fini = tear_down);

static Elf64_Shdr *section(const char *name)
{
	Elf64_Ehdr *e = (void *)bytes;
	Elf64_Shdr *sh = (void *)(bytes + e->e_shoff);
	const char *names = bytes + sh[e->e_shstrndx].sh_offset;

	for (int i = 0; i < e->e_shnum; i++) {
		if (!strcmp(names + sh[i].sh_name, name))
			return &sh[i];
	}
	return NULL;
}

/* Moves the section behind the file's end, and makes it @n bytes long. */
static void extend(Elf64_Shdr *sh, size_t n)
{
	cr_assert_not_null(sh);
	sh->sh_offset = (size + 4095) & ~4095ull;
	sh->sh_size = n;
	cr_assert_eq(ftruncate(fd, (off_t)(sh->sh_offset + n)), 0);
}

static size_t stubs(void)
{
	struct plt plt;
	Elf *elf;
	size_t n;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cr_expect_eq(plt_read(&plt, elf), 0);
	n = plt.n;
	plt_fini(&plt);
	elf_end(elf);
	return n;
}

static void extend_plt(size_t n, size_t relocation_bytes)
{
	extend(section(".rela.plt"), n * relocation_bytes);
	section(".rela.plt")->sh_entsize = relocation_bytes;
}

Test(sparse_files, have_no_relocations_of_another_size)
{
	size_t before;

	if (!section(".rela.plt"))
		cr_skip_test("no PLT here");
	before = stubs(); /* one of .plt, and those of .plt.got */
	extend_plt(1 << 12, 1);
	cr_expect_eq(stubs(), before - 1);
}

/* Zeroes are no stubs, however many. */
Test(sparse_files, have_no_plt_stubs_of_zeroes)
{
	Elf64_Shdr *plt = section(".plt.sec") ? section(".plt.sec") : section(".plt");
	size_t before;

	if (!plt || !section(".rela.plt"))
		cr_skip_test("no PLT here");
	before = stubs();
	extend_plt(1 << 22, sizeof(Elf64_Rela));
	extend(plt, 1ull << 30);
	cr_expect_eq(stubs(), before - 1);
}

Test(sparse_files, have_no_more_symbols_than_real_files)
{
	struct symbols *s;

	extend(section(".symtab"), ((16ull << 20) + 1) * sizeof(Elf64_Sym));
	cr_expect_eq(symbols_open(&s, fd, "a.so"), -EFBIG);
}
