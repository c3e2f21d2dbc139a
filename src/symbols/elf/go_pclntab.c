/* go_pclntab.c - function names from Go's pclntab, which stripped programs keep */
/*
 * The Go runtime needs this table for its own stack traces, so it survives "-ldflags=-s -w" and
 * strip(1). It begins with a magic number that identifies its layout. P stands for a field with the
 * size of a pointer:
 *
 *	Go 1.2   fffffffb  P nfunc, then the function table
 *	Go 1.16  fffffffa  P nfunc nfile names cu files pc functions
 *	Go 1.18  fffffff0  P nfunc nfile text names cu files pc functions
 *	Go 1.20  fffffff1  as 1.18
 *
 * The function table has nfunc pairs (start of the function, offset of its _func record), then the
 * end of the last function. Its entries have P bytes up to Go 1.16 and 4 bytes later, when starts
 * are relative to "text". Offsets are relative to the function table, in Go 1.2 to the start of the
 * whole table. A _func record begins with the start again, then has the offset of the name in
 * "names", in Go 1.2 in the whole table.
 */
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "elf_image.h"
#include "go_pclntab.h"

#define MAGIC_2 0xfffffffbu
#define MAGIC_16 0xfffffffau
#define MAGIC_18 0xfffffff0u
#define MAGIC_20 0xfffffff1u

#define POINTER 8u		 /* bytes, on all supported machines */
#define FUNCTIONS_MAX (1u << 20) /* real programs have up to some hundred thousand */
#define NAME_BYTES_MAX 8192u	 /* all functions can have one name */
#define HEADER 8u /* magic number, two zeroes, size of an instruction, size of a pointer */
#define TEXT_AT (HEADER + 2 * POINTER) /* offset of the text start in the header, since 1.18 */

struct layout {
	const unsigned char *table;
	size_t bytes;
	size_t names;	  /* offsets in the table */
	size_t functions; /* offset of the function table */
	size_t base;	  /* base of the offsets in it */
	size_t field;	  /* size of a number in it */
	__u64 n;
	__u64 text;
};

static __u64 read_number(const unsigned char *at, size_t bytes)
{
	__u64 value = 0;

	memcpy(&value, at, bytes); /* all supported machines are little-endian */
	return value;
}

/* Number @i of the header. */
static __u64 header_number(const struct layout *l, size_t i)
{
	return read_number(l->table + HEADER + i * POINTER, POINTER);
}

static bool is_table(const unsigned char *at, size_t bytes)
{
	__u32 magic;

	if (bytes < HEADER + 8 * POINTER)
		return false;
	magic = (__u32)read_number(at, 4);
	return (magic == MAGIC_2 || magic == MAGIC_16 || magic == MAGIC_18 || magic == MAGIC_20) &&
	       !at[4] && !at[5] && (at[6] == 1 || at[6] == 2 || at[6] == 4) && at[7] == POINTER;
}

static int read_layout(struct layout *l, const unsigned char *table, size_t bytes, __u64 text)
{
	__u32 magic;
	size_t pair;

	*l = (struct layout){ .table = table, .bytes = bytes };
	if (!is_table(table, bytes))
		return -EINVAL;
	magic = (__u32)read_number(table, 4);
	l->n = header_number(l, 0);
	l->field = POINTER;
	if (magic == MAGIC_2) {
		l->functions = HEADER + POINTER;
	} else if (magic == MAGIC_16) {
		l->names = header_number(l, 2);
		l->functions = l->base = header_number(l, 6);
	} else {
		l->field = 4;
		l->text = header_number(l, 2) ? header_number(l, 2) : text;
		l->names = header_number(l, 3);
		l->functions = l->base = header_number(l, 7);
	}
	pair = 2 * l->field;
	if (l->n > FUNCTIONS_MAX || l->names > bytes || l->functions > bytes ||
	    bytes - l->functions < l->field || l->n > (bytes - l->functions - l->field) / pair)
		return -EINVAL;
	return 0;
}

/* The name of function @i, NUL-terminated inside of the table; NULL: none. */
static const char *name_of(const struct layout *l, size_t i)
{
	const unsigned char *pair = l->table + l->functions + 2 * i * l->field;
	__u64 at = l->base + read_number(pair + l->field, l->field);
	const char *name;
	size_t left;

	if (at > l->bytes || l->bytes - at < l->field + 4)
		return NULL;
	at = l->names + read_number(l->table + at + l->field, 4);
	if (at >= l->bytes)
		return NULL;
	name = (const char *)l->table + at;
	left = l->bytes - at;
	return *name && memchr(name, 0, left < NAME_BYTES_MAX ? left : NAME_BYTES_MAX) ? name
										       : NULL;
}

int go_pclntab_parse(struct go_functions *out, const unsigned char *table, size_t bytes, __u64 text)
{
	struct layout l;
	int err;

	*out = (struct go_functions){ 0 };
	err = read_layout(&l, table, bytes, text);
	if (err < 0)
		return err;
	out->function = calloc(l.n + 1, sizeof(*out->function));
	if (!out->function)
		return -ENOMEM;
	for (size_t i = 0; i < l.n; i++) {
		const unsigned char *pair = table + l.functions + 2 * i * l.field;
		struct go_function f = {
			.start = l.text + read_number(pair, l.field),
			.end = l.text + read_number(pair + 2 * l.field, l.field),
			.name = name_of(&l, i),
		};

		if (f.name && f.start < f.end)
			out->function[out->n++] = f;
	}
	return 0;
}

/* Real programs have up to some hundred thousand; sections of a sparse file any number. */
#define RELOCATIONS_MAX (16u << 20)

/* The value of the relocation at @vaddr in a position-independent file; 0: none. */
static __u64 relocated(Elf *elf, __u64 vaddr)
{
	size_t left = RELOCATIONS_MAX;
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA ||
		    !(sh.sh_flags & SHF_ALLOC) ||
		    sh.sh_entsize != gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT) ||
		    !(data = elf_getdata(scn, NULL)))
			continue;
		for (size_t i = 0; left && i < data->d_size / sh.sh_entsize; i++, left--) {
			GElf_Rela r;

			if (gelf_getrela(data, (int)i, &r) && r.r_offset == vaddr)
				return (__u64)r.r_addend;
		}
	}
	return 0;
}

/*
 * Searches a section for the table, which has no section of its own in position-independent
 * programs and is aligned to 32 bytes. Returns the offset; the size of the section if not found.
 */
static size_t find_table(const Elf_Data *data)
{
	size_t at = 0;

	while (at < data->d_size &&
	       !is_table((const unsigned char *)data->d_buf + at, data->d_size - at))
		at += 32;
	return at < data->d_size ? at : data->d_size;
}

static int read_section(struct go_functions *out, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh,
			__u64 text)
{
	Elf_Data *data = elf_rawdata(scn, NULL);
	size_t at;
	__u64 start;
	int err;

	if (!data || !data->d_buf)
		return -EINVAL;
	at = find_table(data);
	if (at >= data->d_size)
		return -EINVAL;
	start = relocated(elf, sh->sh_addr + at + TEXT_AT);
	err = go_pclntab_parse(out, (const unsigned char *)data->d_buf + at, data->d_size - at,
			       start ? start : text);
	if (err < 0)
		go_functions_fini(out);
	return err;
}

int go_functions_read(struct go_functions *out, Elf *elf)
{
	static const char *const sections[] = { ".gopclntab", ".data.rel.ro.gopclntab",
						".data.rel.ro" };
	GElf_Shdr sh;
	__u64 text;

	*out = (struct go_functions){ 0 };
	if (!elf_image_section(elf, ".go.buildinfo", &sh) &&
	    !elf_image_section(elf, ".gopclntab", &sh))
		return 0;
	text = elf_image_section(elf, ".text", &sh) ? sh.sh_addr : 0;
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		Elf_Scn *scn = elf_image_section(elf, sections[i], &sh);
		int err = -EINVAL;

		if (scn && sh.sh_type != SHT_NOBITS)
			err = read_section(out, elf, scn, &sh, text);
		if (err != -EINVAL)
			return err;
	}
	return 0;
}

void go_functions_fini(struct go_functions *f)
{
	free(f->function);
	*f = (struct go_functions){ 0 };
}
