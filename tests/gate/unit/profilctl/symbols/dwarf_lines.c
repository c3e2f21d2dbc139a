/* dwarf_lines.c - lines and inlined functions of what each compiler and linker leaves in a file */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "build_dir.h"
#include "profile/profile.h"
#include "symbols/dwarf_lines.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf_symbols.h"
#include "symbols/lines_store.h"

/*
 * With -DPART=1 a function without debug information, which is at the start of the text; 2: a large
 * function that nothing calls, which inlines one; 3: the program.
 */
static const char source[] =
	"extern volatile int s;\n"
	"void first(int), live(int), far(int);\n"
	"#if PART == 1\n"
	"volatile int s;\n"
	"void first(int n) { s = n; }\n"
	"#elif PART == 2\n"
	"static inline __attribute__((always_inline)) void removed_inline(void)\n"
	"{ __asm__ volatile(\".fill 0x4000, 1, 0xcc\"); s = 9; }\n"
	"void removed(void) { removed_inline(); }\n"
	"void removed_too(void) { s = 8; }\n"
	"#else\n"
	"static inline __attribute__((always_inline)) void live_inline(int n)\n"
	"{ s = n * 3; }\n"
	"void removed_here(void) { __asm__ volatile(\".fill 0x4000, 1, 0xcc\"); s = 7; }\n"
	"__attribute__((noinline)) void live(int n)\n"
	"{ live_inline(n); } /* line 16 */\n"
	"__attribute__((noinline, section(\".text_far\"))) void far(int n)\n"
	"{ live_inline(n); } /* line 18 */\n"
	"int main(void) { first(2); live(2); far(2); return 0; }\n"
	"#endif\n";

static void set_up(void)
{
	build_dir_open(source, "store");
}

TestSuite(dwarf_lines, .init = set_up, .fini = build_dir_close);

struct opened {
	struct profile *profile;
	struct symbols *symbols;
	struct lines *lines;
};

static void open_file(struct opened *f, const char *name)
{
	char path[128];
	struct object *o;
	__u32 index;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", build_dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	f->profile = profile_new();
	cr_assert_eq(profile_add_object(f->profile, path, 0, 0, fd, &index), 0);
	o = &f->profile->objects[index];
	elf_file_layout(fd, &o->segments, &o->program);
	elf_file_build_id(fd, o->build_id, sizeof(o->build_id));
	cr_assert_eq(symbols_open(&f->symbols, fd, path), 0);
	cr_assert_eq(lines_open(&f->lines, o), 0, "%s has no lines", path);
}

static void close_file(struct opened *f)
{
	lines_close(f->lines);
	symbols_close(f->symbols);
	profile_free(f->profile);
}

/* The line of function @name, and what is inlined at its start. */
static void expect_at(const struct opened *f, const char *name, int line, const char *inlined)
{
	const char *file = "?", *is;
	int number = 0;
	struct symbols_range r;
	bool found = false;
	__u64 at;

	cr_assert(symbols_named(f->symbols, name, &at), "no symbol %s", name);
	symbols_find(f->symbols, at, &r);
	for (__u64 i = at; i < r.end; i++)
		found |= lines_find(f->lines, i, &file, &number) && number == line;
	cr_expect(line ? found : !number, "%s is at %s:%d, not at line %d", name, file, number,
		  line);
	is = lines_inlined(f->lines, at + 4);
	cr_expect(inlined ? is && !strcmp(is, inlined) : !is, "%s inlines %s", name, is);
}

static bool has(const char *tool)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	return system(command) == 0;
}

/*
 * Linkers leave the debug information of functions that they remove, at address 0. In a small
 * program it seems to cover the start of the text.
 */
static void without_removed_code(const char *compiler, const char *linker, int version,
				 const char *more)
{
	char command[1024];
	struct opened f;

	snprintf(command, sizeof(command),
		 "CC='%s -O1 -ffunction-sections %s'; $CC -DPART=1 -c -o 1.o a.c && "
		 "for p in 2 3; do $CC -gdwarf-%d -DPART=$p -c -o $p.o a.c || exit; done && "
		 "%s 1.o 2.o 3.o -Wl,--gc-sections %s %s -o a",
		 compiler, more, version, compiler, linker, more);
	build_dir_run(command);
	open_file(&f, "a");
	expect_at(&f, "first", 0, NULL); /* before others, so that no state of it is left */
	expect_at(&f, "live", 13, "live_inline");
	expect_at(&f, "first", 0, NULL);
	expect_at(&f, "far", 13, "live_inline");
	close_file(&f);
}

/* Without separate code, text is in the segment of the ELF header, which begins at 0. */
static void with_all_linkers(const char *compiler, int version)
{
	static const struct {
		const char *tool;
		const char *option;
	} linkers[] = { { "ld.bfd", "-fuse-ld=bfd" },
			{ "ld.bfd", "-fuse-ld=bfd -Wl,-z,noseparate-code" },
			{ "ld.gold", "-fuse-ld=gold" },
			{ "ld.lld", "-fuse-ld=lld" },
			{ "ld.lld", "-fuse-ld=lld -Wl,-z,noseparate-code" },
			{ "mold", "-fuse-ld=mold" } };

	for (size_t i = 0; i < sizeof(linkers) / sizeof(*linkers); i++) {
		if (has(linkers[i].tool))
			without_removed_code(compiler, linkers[i].option, version, "");
	}
}

Test(dwarf_lines, ignores_functions_that_each_linker_removed_dwarf_4)
{
	with_all_linkers("gcc", 4);
}

Test(dwarf_lines, ignores_functions_that_each_linker_removed_dwarf_5)
{
	with_all_linkers("gcc", 5);
}

Test(dwarf_lines, ignores_functions_that_each_linker_removed_clang)
{
	if (!has("clang"))
		cr_skip_test("no clang here");
	with_all_linkers("clang", 4);
	with_all_linkers("clang", 5);
}

Test(dwarf_lines, ignores_removed_functions_of_a_library)
{
	without_removed_code("gcc", "-shared -fPIC -Wl,-u,main", 5, "-fPIC");
}

Test(dwarf_lines, reads_compressed_sections)
{
	without_removed_code("gcc", "", 5, "-gz");
	without_removed_code("gcc", "", 4, "-gz=zlib-gnu");
}

/* A kept profile identifies such a file by its size and time of change. */
Test(dwarf_lines, finds_a_file_without_a_build_id_again)
{
	struct object *o;
	struct opened f;
	struct lines *l;

	build_dir_run("gcc -O1 -g -DPART=1 -c -o 1.o a.c && gcc -O1 -g -DPART=3 -c -o 3.o a.c && "
		      "gcc -Wl,--build-id=none 1.o 3.o -o a");
	open_file(&f, "a");
	o = &f.profile->objects[0];
	elf_file_identify(o, o->fd);
	cr_assert_str_empty(o->build_id);
	close(o->fd);
	o->fd = -1; /* as in a profile that was read */
	cr_assert_eq(lines_open(&l, o), 0);
	lines_close(l);
	build_dir_run("touch -d 2001-01-01 a");
	cr_expect_eq(lines_open(&l, o), -ENOENT, "another file is at the path");
	close_file(&f);
}

/* BOLT and linker scripts make two segments with different distances of address and offset. */
Test(dwarf_lines, finds_lines_in_each_segment)
{
	struct opened f;

	build_dir_run("CC='gcc -O1 -g -no-pie -fno-pie' && $CC -DPART=1 -c -o 1.o a.c && "
		      "$CC -DPART=3 -c -o 3.o a.c && "
		      "gcc -no-pie 1.o 3.o -Wl,--section-start=.text_far=0x10000000 -o a");
	open_file(&f, "a");
	cr_assert_eq(f.profile->objects[0].segments.n, 2);
	expect_at(&f, "far", 13, "live_inline");
	expect_at(&f, "live", 13, "live_inline");
	close_file(&f);
}

/* Writers of many profiles open a file's debug information once. */
Test(dwarf_lines, stay_open_for_the_next_profile_with_the_same_file)
{
	struct lines_store store = { 0 };
	struct lines *first;
	struct opened f;

	build_dir_run(
		"gcc -O1 -g -DPART=1 -c -o 1.o a.c && "
		"gcc -O1 -g -DPART=3 -c -o 3.o a.c && gcc -Wl,--build-id=0x0102030405060708 1.o 3.o -o a");
	open_file(&f, "a");
	store.profile = f.profile;
	first = lines_store_find(&store, 0);
	cr_assert_not_null(first);
	cr_expect_eq(lines_store_find(&store, 0), first);
	lines_store_end(&store);
	close_file(&f);

	open_file(&f, "a"); /* of the next profile */
	store.profile = f.profile;
	cr_expect_eq(lines_store_find(&store, 0), first, "they were opened again");
	lines_store_end(&store);
	cr_expect_eq(store.nkept, 1);
	close_file(&f);

	build_dir_run("gcc -Wl,--build-id=0x0203040506070809 1.o 3.o -o a");
	open_file(&f, "a"); /* another program at the same path */
	store.profile = f.profile;
	cr_expect_not_null(lines_store_find(&store, 0));
	cr_expect_eq(store.nkept, 1);
	cr_expect_eq(store.kept[0].lines, first, "they are not of this file");
	lines_store_fini(&store);
	close_file(&f);
}
