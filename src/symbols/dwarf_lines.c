/* dwarf_lines.c - source lines and inlined functions by offset in an ELF file, from DWARF */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <limits.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "symbols/elf/debug_file.h"
#include "demangle.h"
#include "die_ranges.h"
#include "dwarf_lines.h"
#include "jit_codes.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf/elf_image.h"
#include "symbols/elf/line_program.h"
#include "symbols/elf/split_unit.h"

/* Of an inlined function: the discriminator of its call. */
#define AT_GNU_DISCRIMINATOR 0x2136

/* Limit of nested scopes; deeper ones are ignored. */
#define DEPTH_MAX 200

/* Of the lines of a unit; real units have up to some hundred thousand. */
#define ROWS_MAX (4u << 20)
#define FOREIGN_ROWS_MAX (512u << 10)

struct lines {
	const struct interpreted *interpreted; /* of an interpreted language: it has no DWARF */
	struct jit_codes *jit;		       /* of a JIT compiler: the same */
	struct debug_file *file;
	Dwarf *dwarf;
	struct split_package *package; /* of split units; NULL: not opened */
	Dwarf_Die unit;		       /* of the last look-up */
	struct die_ranges units;
	struct segments segments;
	struct segments code; /* the sections with code, at the addresses of @dwarf */
	Dwarf_Addr bias;
	/* Search trees by pointer. */
	void *paths;   /* struct text: absolute paths by relative ones */
	void *inlined; /* struct text: names of functions */
	void *scopes;  /* struct scopes */
	__u64 scopes_bytes;
	/*
	 * The texts of the first two, by contents: each unit has its own entry for a function or a
	 * file, but equal texts are the same pointer.
	 */
	void *texts;
};

struct text {
	const void *about;
	const char *text;
};

/* The functions of a unit, those inlined into them, and its lines. */
struct scopes {
	const void *unit;
	struct die_ranges ranges;
	struct line_rows lines;
};

/* Each element begins with its key, a pointer. */
static int by_pointer(const void *a, const void *b)
{
	const char *x = *(const void *const *)a, *y = *(const void *const *)b;

	return x < y ? -1 : x > y;
}

static void *find_pointer(void **tree, const void *pointer)
{
	void ***found = tfind(&pointer, tree, by_pointer);

	return found ? *found : NULL;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void free_scopes(void *node)
{
	struct scopes *s = node;

	die_ranges_fini(&s->ranges);
	line_rows_fini(&s->lines);
	free(s);
}

void lines_close(struct lines *l)
{
	if (!l)
		return;
	tdestroy(l->paths, free);
	tdestroy(l->inlined, free);
	tdestroy(l->texts, free);
	tdestroy(l->scopes, free_scopes);
	die_ranges_fini(&l->units);
	segments_fini(&l->segments);
	segments_fini(&l->code);
	split_package_close(l->package);
	debug_file_close(l->file);
	jit_codes_close(l->jit);
	free(l);
}

static void lines_closep(struct lines **l)
{
	lines_close(*l);
}

/* Adds unit @unit by its functions: some compilers do not write the ranges of units. */
static int add_by_functions(struct die_ranges *units, Dwarf_Die *unit)
{
	Dwarf_Die child;
	int err = 0;

	if (dwarf_child(unit, &child) != 0)
		return 0;
	do {
		if (dwarf_tag(&child) == DW_TAG_subprogram)
			err = die_ranges_add(units, &child, unit);
	} while (!err && dwarf_siblingof(&child, &child) == 0);
	return err;
}

/* A range takes 56 bytes, and one of the ranges that a unit can have any number of takes 16. */
#define FOREIGN_RANGES_MAX (256u << 10)

static size_t range_limit(const struct lines *l)
{
	return debug_file_is_trusted(l->file) ? (size_t)-1 : FOREIGN_RANGES_MAX;
}

/*
 * .debug_aranges is not used: not all compilers write it, and linkers leave the entries of removed
 * code in it.
 */
static int read_units(struct lines *l)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	int err = 0;

	l->units.code = &l->code;
	l->units.most = range_limit(l);
	while (!err && debug_file_is_within(l->file) &&
	       dwarf_get_units(l->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0) {
		size_t n = l->units.n;
		Dwarf_Addr base, low, high;

		err = die_ranges_add(&l->units, &unit, &unit);
		if (!err && n == l->units.n && dwarf_ranges(&unit, 0, &base, &low, &high) <= 0)
			err = add_by_functions(&l->units, &unit);
	}
	if (!err && debug_file_is_packed(l->file))
		err = -EFBIG;
	die_ranges_sort(&l->units);
	return err;
}

static int read_layout(struct lines *l, int fd)
{
	Elf *elf;
	int err;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	err = elf_image_segments(&l->segments, elf) ?: elf_image_code(&l->code, elf, l->bias);
	elf_end(elf);
	return err;
}

int lines_open(struct lines **out, const struct object *o)
{
	__cleanup(lines_closep) struct lines *l = calloc(1, sizeof(*l));
	__cleanup(closep) int fd = o->kind == OBJECT_FILE ? elf_file_open(o) : -1;
	int err;

	if (!l)
		return -ENOMEM;
	l->interpreted = o->interpreted;
	if (o->interpreted || (o->kind == OBJECT_ANON && !jit_codes_open(&l->jit, o))) {
		*out = steal(l);
		return 0;
	}
	if (fd < 0 || debug_file_open(&l->file, fd, o->path) < 0)
		return -ENOENT;
	l->dwarf = debug_file_dwarf(l->file, &l->bias);
	if (!l->dwarf)
		return -ENOENT;
	err = read_layout(l, fd);
	debug_file_resume(l->file);
	err = err ?: read_units(l);
	debug_file_pause(l->file);
	if (err < 0)
		return err;
	*out = steal(l);
	return 0;
}

#define UNIT_BYTES 2048 /* libdw's, with some of its abbreviations */

__u64 lines_bytes(const struct lines *l)
{
	if (!l->file || !debug_file_is_trusted(l->file))
		return 0;
	return sizeof(*l) + debug_file_unpacked_bytes(l->file) + l->scopes_bytes +
	       l->units.n * (sizeof(*l->units.range) + UNIT_BYTES);
}

static bool find_unit(struct lines *l, Dwarf_Addr addr)
{
	Dwarf_Die *unit = die_ranges_find(&l->units, addr);

	if (unit)
		l->unit = *unit;
	return unit;
}

/*
 * Stores @text for key @about; takes ownership of @text. Returns the text in l->texts, or NULL if
 * out of memory.
 */
static const char *keep(struct lines *l, void **tree, const void *about, char *text)
{
	char *const *known = text ? tsearch(text, &l->texts, by_text) : NULL;
	struct text *node = known ? malloc(sizeof(*node)) : NULL;

	if (!known || *known != text)
		free(text);
	if (node) {
		*node = (struct text){ about, *known };
		if (!tsearch(node, tree, by_pointer))
			free(node);
	}
	return known ? *known : NULL;
}

/*
 * A relative path is relative to the compilation directory; if that is unknown, it stays relative.
 */
static const char *full_path(struct lines *l, const char *relative)
{
	const struct text *known = find_pointer(&l->paths, relative);
	char *full = NULL;
	Dwarf_Attribute attr;
	const char *dir;

	if (known)
		return known->text;
	dir = dwarf_formstring(dwarf_attr(&l->unit, DW_AT_comp_dir, &attr));
	if (!dir || asprintf(&full, "%s/%s", dir, relative) < 0)
		return relative;
	dir = keep(l, &l->paths, relative, full);
	return dir ? dir : relative;
}

static const char *linkage_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name;

	name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	return name ?: dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));
}

/* The function's demangled name. */
static char *name_of(Dwarf_Die *die)
{
	const char *name = linkage_name(die);

	return name ? demangle(name, strlen(name)) : NULL;
}

/* The abstract origin, which all copies of an inlined function share. */
static const void *origin_of(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin;

	if (dwarf_formref_die(dwarf_attr(die, DW_AT_abstract_origin, &attr), &origin))
		return origin.addr;
	return die->addr;
}

struct walk {
	struct debug_file *file;
	struct die_ranges *ranges;
	unsigned int entries;
};

#define ENTRIES_UNCHECKED 64

/*
 * Adds the functions below @die, and those inlined into them. Returns 0, -ENOMEM, or -EFBIG if they
 * take more than the file may.
 */
static int add_scopes(struct walk *w, Dwarf_Die *die, int depth)
{
	Dwarf_Die child;
	int err = 0;

	if (depth == DEPTH_MAX || dwarf_child(die, &child) != 0)
		return 0;
	do {
		if (w->entries++ % ENTRIES_UNCHECKED == 0 && !debug_file_is_within(w->file))
			return -EFBIG;
		switch (dwarf_tag(&child)) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
			err = die_ranges_add(w->ranges, &child, &child);
			if (err < 0)
				return err;
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			break;
		default:
			continue;
		}
		err = add_scopes(w, &child, depth + 1);
	} while (!err && dwarf_siblingof(&child, &child) == 0);
	return err;
}

/* Reads the line program of l->unit. Without one that can be read, there are no lines. */
static int read_lines(struct lines *l, struct line_rows *out)
{
	Elf *elf = dwarf_getelf(l->dwarf);
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	Elf_Data *data;
	GElf_Shdr sh;
	int err;

	data = elf_image_bytes(elf, ".debug_line", &sh)
		       ?: elf_image_bytes(elf, ".zdebug_line", &sh);
	if (!data || dwarf_formudata(dwarf_attr(&l->unit, DW_AT_stmt_list, &attr), &offset) != 0)
		return 0;
	err = line_rows_read(out, data->d_buf, data->d_size, offset, &l->code,
			     debug_file_is_trusted(l->file) ? ROWS_MAX : FOREIGN_ROWS_MAX);
	return err == -ENOMEM || err == -EFBIG ? err : 0;
}

/* Reads the scopes and lines of l->unit. NULL: out of memory, or too many. */
static struct scopes *read_scopes(struct lines *l)
{
	struct scopes *s = calloc(1, sizeof(*s));
	struct walk walk = { .file = l->file };
	Dwarf_Die unit;

	if (!s)
		return NULL;
	s->unit = l->unit.addr;
	s->ranges.code = &l->code;
	s->ranges.most = range_limit(l);
	walk.ranges = &s->ranges;
	if (!split_unit(&l->package, l->file, l->dwarf, &l->unit, &unit))
		unit = l->unit;
	if (add_scopes(&walk, &unit, 0) < 0 || read_lines(l, &s->lines) < 0 ||
	    !tsearch(s, &l->scopes, by_pointer)) {
		free_scopes(s);
		return NULL;
	}
	die_ranges_sort(&s->ranges);
	return s;
}

static struct scopes *scopes_of(struct lines *l)
{
	struct scopes *s = find_pointer(&l->scopes, l->unit.addr);

	if (s)
		return s;
	debug_file_resume(l->file);
	s = read_scopes(l);
	debug_file_pause(l->file);
	if (s)
		l->scopes_bytes +=
			s->ranges.n * sizeof(*s->ranges.range) + s->lines.n * sizeof(*s->lines.row);
	return s;
}

/* The address of @offset in the DWARF, if a unit covers it, which is l->unit then. */
static bool find_address(struct lines *l, __u64 offset, Dwarf_Addr *addr)
{
	__u64 vaddr;

	if (!l || !segments_address(&l->segments, offset, &vaddr) || debug_file_is_packed(l->file))
		return false;
	*addr = vaddr - l->bias;
	return find_unit(l, *addr);
}

static bool find_interpreted(const struct lines *l, __u64 offset, const char **file, int *line)
{
	const struct interpreted_function *f = interpreted_find(l->interpreted, offset);

	if (!f || !f->file)
		return false;
	*file = f->file;
	*line = interpreted_line(f, offset);
	return *line > 0;
}

static bool find_generated(struct lines *l, __u64 offset, const char **file, int *line)
{
	char *const *known;
	char path[PATH_MAX];
	char *text;

	*line = jit_codes_line(l->jit, offset, path, sizeof(path));
	text = *line ? strdup(path) : NULL;
	known = text ? tsearch(text, &l->texts, by_text) : NULL;
	if (!known || *known != text)
		free(text);
	*file = known ? *known : NULL;
	return *file;
}

bool lines_find(struct lines *l, __u64 offset, const char **file, int *line)
{
	const struct line_row *row;
	const struct scopes *s;
	Dwarf_Files *files;
	Dwarf_Addr addr;
	size_t n;

	if (l && l->interpreted)
		return find_interpreted(l, offset, file, line);
	if (l && l->jit)
		return find_generated(l, offset, file, line);
	if (!find_address(l, offset, &addr))
		return false;
	s = scopes_of(l);
	row = s ? line_rows_find(&s->lines, addr) : NULL;
	if (!row || !row->line || row->line > INT_MAX ||
	    dwarf_getsrcfiles(&l->unit, &files, &n) != 0)
		return false;
	*file = dwarf_filesrc(files, row->file, NULL, NULL);
	if (!*file)
		return false;
	*line = (int)row->line;
	if (**file != '/')
		*file = full_path(l, *file);
	return true;
}

size_t lines_inlines(struct lines *l, __u64 offset, const char **name, size_t max)
{
	const struct text *known;
	struct scopes *s;
	Dwarf_Addr addr;
	Dwarf_Die *die;
	size_t n = 0;

	if (!find_address(l, offset, &addr))
		return 0;
	s = scopes_of(l);
	die = s ? die_ranges_find(&s->ranges, addr) : NULL;
	while (n < max && die && dwarf_tag(die) == DW_TAG_inlined_subroutine) {
		known = find_pointer(&l->inlined, origin_of(die));
		name[n] = known ? known->text : keep(l, &l->inlined, origin_of(die), name_of(die));
		n += name[n] != NULL;
		die = die_ranges_outer(&s->ranges, die);
	}
	return n;
}

const char *lines_inlined(struct lines *l, __u64 offset)
{
	const char *name;

	return lines_inlines(l, offset, &name, 1) ? name : NULL;
}

/* Reads a number that says where @die, an inlined function, is called; 0: none. */
static __u32 call_number(Dwarf_Die *die, unsigned int name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr(die, name, &attr), &value) ? 0 : (__u32)value;
}

size_t lines_sites(struct lines *l, __u64 offset, struct source_site *site, size_t max,
		   __u64 *entry)
{
	const struct line_row *row;
	__u32 line, discriminator;
	struct scopes *s;
	Dwarf_Addr addr;
	Dwarf_Die *die;
	int first;

	if (!find_address(l, offset, &addr))
		return 0;
	s = scopes_of(l);
	row = s ? line_rows_find(&s->lines, addr) : NULL;
	die = row && row->line ? die_ranges_find(&s->ranges, addr) : NULL;
	line = die ? row->line : 0;
	discriminator = die ? row->discriminator : 0;
	for (size_t n = 0; n < max && die; die = die_ranges_outer(&s->ranges, die)) {
		site[n].function = linkage_name(die);
		if (!line || !site[n].function || dwarf_decl_line(die, &first) != 0)
			return 0;
		site[n].line = line - (__u32)first;
		site[n++].discriminator = discriminator;
		if (dwarf_tag(die) == DW_TAG_subprogram)
			return !dwarf_entrypc(die, &addr) &&
					       segments_offset(&l->segments, addr + l->bias, entry)
				       ? n
				       : 0;
		line = call_number(die, DW_AT_call_line);
		discriminator = call_number(die, AT_GNU_DISCRIMINATOR);
	}
	return 0;
}
