/* elf.c - fuzzes what reads a program's file: symbols, PLT, Go's table, unwind rows, DWARF lines */
#include <string.h>
#include <unistd.h>

#include "symbols/dwarf_lines.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/unwind_table.h"
#include "symbols/elf_symbols.h"
#include "fuzz.h"

#define LOOK_UPS 64

static void symbols(int fd)
{
	struct symbols *s = NULL;
	__u64 offset = 0;

	if (symbols_open(&s, fd, "/nonexistent"))
		return;
	for (int i = 0; i < LOOK_UPS; i++) {
		struct symbols_range r = { 0 };

		symbols_find(s, offset, &r);
		must(r.upto > offset && r.start <= offset);
		must(!r.name_len || memchr(r.name, 0, r.name_len) == NULL);
		if (r.upto == (__u64)-1)
			break;
		offset = r.upto;
	}
	symbols_close(s);
}

static void unwinding(int fd)
{
	struct unwind_table t = { 0 };

	if (unwind_table_open(&t, fd, -1, NULL))
		return;
	for (size_t i = 1; i < t.n; i++)
		must(t.row[i - 1].offset < t.row[i].offset);
	for (__u32 i = 0; i < LOOK_UPS; i++)
		unwind_table_find(&t, i * 0x101);
	unwind_table_fini(&t);
}

static void lines(int fd)
{
	struct object o = { .path = (char *)(unsigned long)"/nonexistent", .fd = fd };
	struct lines *l = NULL;
	const char *file, *names[8];
	int line;

	elf_file_layout(fd, &o.segments, &o.program);
	elf_file_build_id(fd, o.build_id, sizeof(o.build_id));
	if (lines_open(&l, &o) == 0) {
		for (__u64 offset = 0; offset < 0x3000; offset += 0xd1) {
			if (lines_find(l, offset, &file, &line))
				must(strlen(file) < 1 << 20);
			lines_inlines(l, offset, names, 8);
		}
		lines_close(l);
	}
	segments_fini(&o.segments);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	int fd = unlimited_file_of(bytes, n);

	symbols(fd);
	unwinding(fd);
	lines(fd);
	close(fd);
	return 0;
}
