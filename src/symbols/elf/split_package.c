/* split_package.c - units of a .dwp file, each as a .dwo file in memory, which any libdw reads
 *
 * A .dwp file holds the sections of all .dwo files of a program, one after the other, and an index:
 * where the contributions of each unit are. libdw finds the .dwo file of a unit by the path in its
 * skeleton, and makes the two one. So a unit is written to a .dwo file in memory, and a skeleton to
 * another, with the path of the first and the addresses of the program's own skeleton.
 */
#include <dwarf.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"

#include "elf_image.h"
#include "split_package.h"

enum part { INFO, ABBREV, STR_OFFSETS, RNGLISTS, STR, PARTS };

static const struct {
	const char *name;
	__u32 column; /* in the index; 0: all units share it */
} parts[PARTS] = {
	[INFO] = { ".debug_info.dwo", 1 },
	[ABBREV] = { ".debug_abbrev.dwo", 3 },
	[STR_OFFSETS] = { ".debug_str_offsets.dwo", 6 },
	[RNGLISTS] = { ".debug_rnglists.dwo", 8 },
	[STR] = { ".debug_str.dwo", 0 },
};

/* A word of the index, which linkers do not align. */
typedef __u32 __attribute__((aligned(1))) word;

struct bytes {
	const char *name; /* of the section */
	const char *at;
	size_t n;
};

struct split_package {
	Elf *elf;
	const __u32
		*index; /* header, ids, rows, and two tables: offsets below columns, and sizes */
	__u32 columns, units, slots;
	Dwarf **unit; /* those that were asked for */
	size_t nunits;
};

struct split_package *split_package_close(struct split_package *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->nunits; i++)
		dwarf_end(p->unit[i]);
	free(p->unit);
	elf_end(p->elf);
	free(p);
	return NULL;
}

static void packagep(struct split_package **p)
{
	split_package_close(*p);
}

static struct bytes section(Elf *elf, const char *name)
{
	GElf_Shdr sh;
	Elf_Data *data = elf_image_bytes(elf, name, &sh);

	if (!data || sh.sh_flags & SHF_COMPRESSED)
		return (struct bytes){ name, NULL, 0 };
	return (struct bytes){ name, data->d_buf, data->d_size };
}

#define INDEX_WORDS 4 /* of its header */
#define COLUMNS_MAX 8

struct split_package *split_package_open(int fd)
{
	__cleanup(packagep) struct split_package *p = calloc(1, sizeof(*p));
	struct bytes index;

	elf_version(EV_CURRENT);
	if (p)
		p->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (!p || !p->elf)
		return NULL;
	index = section(p->elf, ".debug_cu_index");
	if (index.n < INDEX_WORDS * sizeof(*p->index))
		return NULL;
	p->index = (const void *)index.at;
	p->columns = p->index[1];
	p->units = p->index[2];
	p->slots = p->index[3];
	if ((p->index[0] != 2 && (p->index[0] & 0xffff) != 5) || p->columns > COLUMNS_MAX ||
	    INDEX_WORDS + 3ull * p->slots + (1 + 2ull * p->units) * p->columns >
		    index.n / sizeof(*p->index))
		return NULL;
	elf_cntl(p->elf, ELF_C_FDREAD);
	return steal(p);
}

/* The row of the unit @id in the index, from 1 on; 0: none. */
static __u32 row_of(const struct split_package *p, __u64 id)
{
	const word *ids = p->index + INDEX_WORDS, *rows = ids + 2ul * p->slots;

	for (size_t i = 0; i < p->slots; i++) {
		if (ids[2 * i] == (__u32)id && ids[2 * i + 1] == id >> 32 && rows[i])
			return rows[i] <= p->units ? rows[i] : 0;
	}
	return 0;
}

/* What unit @row has of @part. */
static struct bytes contribution(const struct split_package *p, __u32 row, enum part part)
{
	const word *column = p->index + INDEX_WORDS + 3ul * p->slots;
	const word *offset = column + (size_t)row * p->columns;
	const word *size = offset + (size_t)p->units * p->columns;
	struct bytes b = section(p->elf, parts[part].name);

	for (__u32 i = 0; b.at && i < p->columns; i++) {
		if (column[i] == parts[part].column && offset[i] <= b.n &&
		    size[i] <= b.n - offset[i])
			return (struct bytes){ b.name, b.at + offset[i], size[i] };
	}
	return (struct bytes){ b.name, NULL, 0 };
}

#define NAME_BYTES 32

/* An ELF file in memory with these sections, at most PARTS; negative: out of memory. */
static int file_of(const struct bytes *b, Elf64_Half n)
{
	char names[PARTS + 1][NAME_BYTES] = { 0 };
	Elf64_Shdr sh[PARTS + 2] = { 0 };
	Elf64_Ehdr head = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_REL,
		.e_version = EV_CURRENT,
		.e_shoff = sizeof(head) + sizeof(names),
		.e_ehsize = sizeof(head),
		.e_shentsize = sizeof(*sh),
		.e_shnum = n + 2,
		.e_shstrndx = n + 1,
	};
	struct iovec v[PARTS + 3] = { { &head, sizeof(head) },
				      { names, sizeof(names) },
				      { sh, sizeof(sh) } };
	size_t bytes = sizeof(head) + sizeof(names) + sizeof(sh);
	__cleanup(closep) int fd = memfd_create("unit", MFD_CLOEXEC);

	for (Elf64_Half i = 0; i < n; i++) {
		memcpy(names[i], b[i].name, strlen(b[i].name));
		sh[i + 1] = (Elf64_Shdr){ .sh_name = i * NAME_BYTES,
					  .sh_type = SHT_PROGBITS,
					  .sh_offset = bytes,
					  .sh_size = b[i].n,
					  .sh_addralign = 1 };
		v[i + 3] = (struct iovec){ (void *)(uintptr_t)b[i].at, b[i].n };
		bytes += b[i].n;
	}
	sh[n + 1] = (Elf64_Shdr){ .sh_name = n * NAME_BYTES,
				  .sh_type = SHT_STRTAB,
				  .sh_offset = sizeof(head),
				  .sh_size = sizeof(names),
				  .sh_addralign = 1 };
	return fd >= 0 && writev(fd, v, n + 3) == (ssize_t)bytes ? steal_fd(fd) : -1;
}

#define STRINGS_MAX (256u << 20) /* of a unit, which can name a string any number of times */

/* Copies what a unit names of @all strings to *@own, and makes its @n offsets those of the copy. */
static bool own_strings(struct bytes *all, char **own, __u32 *offset, size_t n)
{
	__cleanup(fclosep) FILE *f = NULL;
	size_t bytes = 0, size;

	if (!all->n || all->at[all->n - 1])
		return false; /* the last one does not end */
	f = open_memstream(own, &size);
	if (!f)
		return false;
	for (size_t i = 0; i < n; i++) {
		const char *text = offset[i] < all->n ? all->at + offset[i] : "";
		size_t length = strlen(text) + 1;

		if (bytes + length > STRINGS_MAX || fwrite(text, length, 1, f) != 1)
			return false;
		offset[i] = (__u32)bytes;
		bytes += length;
	}
	if (fflush(f))
		return false;
	all->at = *own;
	all->n = bytes;
	return true;
}

/* The .dwo file of unit @row, of DWARF 4 if it is @old. */
static int dwo_of(const struct split_package *p, __u32 row, bool old)
{
	__cleanup(freep) __u32 *offsets = NULL;
	__cleanup(freep) char *strings = NULL;
	size_t head = old ? 0 : 2; /* words */
	struct bytes b[PARTS];
	size_t words;

	for (enum part i = 0; i < STR; i++)
		b[i] = contribution(p, row, i);
	b[STR] = section(p->elf, parts[STR].name);
	words = b[STR_OFFSETS].n / sizeof(*offsets);
	offsets = malloc(b[STR_OFFSETS].n);
	if (!b[STR_OFFSETS].at || words < head || !offsets)
		return -1;
	memcpy(offsets, b[STR_OFFSETS].at, b[STR_OFFSETS].n);
	b[STR_OFFSETS].at = (const char *)offsets;
	return own_strings(&b[STR], &strings, offsets + head, words - head) ? file_of(b, PARTS)
									    : -1;
}

/* Of DWARF 4, as GNU has it; DWARF 5 has the same by other names. */
#define AT_GNU_RANGES_BASE 0x2132
#define AT_GNU_ADDR_BASE 0x2133

/* What a unit gets of a section, as DWARF 4 does not say where its part ends. */
#define SHARE_MAX (4u << 20)

/* The bytes of section @name from where attribute @base of @skeleton says. */
static struct bytes share(Dwarf *program, Dwarf_Die *skeleton, const char *name, unsigned int base)
{
	struct bytes b = section(dwarf_getelf(program), name);
	Dwarf_Attribute attr;
	Dwarf_Word from;

	if (dwarf_formudata(dwarf_attr(skeleton, base, &attr), &from))
		from = 0;
	if (!b.at || from >= b.n)
		return (struct bytes){ name, NULL, 0 };
	return (struct bytes){ name, b.at + from, b.n - from < SHARE_MAX ? b.n - from : SHARE_MAX };
}

struct __attribute__((packed)) skeleton4 {
	__u32 bytes;
	__u16 version;
	__u32 abbreviations;
	__u8 address_bytes, abbreviation;
	__u64 low, id;
	char path[32];
};
#define ABBREVIATION4 "\1\x11\0\x11\1\xb1\x42\7\xb0\x42\x8\0\0" /* low_pc, GNU_dwo_id and _name */

struct __attribute__((packed)) skeleton5 {
	__u32 bytes;
	__u16 version;
	__u8 type, address_bytes;
	__u32 abbreviations;
	__u64 id;
	__u8 abbreviation;
	__u64 low;
	char path[32];
};
#define ABBREVIATION5 "\1\x4a\0\x11\1\x76\x8\0\0" /* low_pc, dwo_name */

/* A file with a skeleton like @skeleton, of the unit @id, whose .dwo file is the descriptor @dwo. */
static int skeleton_of(Dwarf *program, Dwarf_Die *skeleton, __u64 id, bool old, int dwo)
{
	struct skeleton4 four = { sizeof(four) - 4, 4, 0, 8, 1, 0, id, "" };
	struct skeleton5 five = { sizeof(five) - 4, 5, DW_UT_skeleton, 8, 0, id, 1, 0, "" };
	const struct bytes b[] = {
		{ ".debug_info", old ? (char *)&four : (char *)&five,
		  old ? sizeof(four) : sizeof(five) },
		{ ".debug_abbrev", old ? ABBREVIATION4 : ABBREVIATION5,
		  old ? sizeof(ABBREVIATION4) : sizeof(ABBREVIATION5) },
		share(program, skeleton, ".debug_addr", old ? AT_GNU_ADDR_BASE : DW_AT_addr_base),
		share(program, skeleton, ".debug_ranges", AT_GNU_RANGES_BASE),
	};
	Dwarf_Addr low;

	if (!dwarf_lowpc(skeleton, &low))
		four.low = five.low = low;
	snprintf(four.path, sizeof(four.path), "/proc/self/fd/%d", dwo);
	memcpy(five.path, four.path, sizeof(five.path));
	return file_of(b, sizeof(b) / sizeof(*b));
}

bool split_package_unit(struct split_package *p, Dwarf *program, Dwarf_Die *skeleton,
			Dwarf_Die *out)
{
	Dwarf **units = grow(p->unit, p->nunits, sizeof(*units));
	__cleanup(closep) int dwo = -1, fd = -1;
	uint8_t address_bytes;
	Dwarf_CU *cu = NULL;
	Dwarf_Half version;
	Dwarf_Die unit;
	uint64_t id;
	__u32 row;

	if (!units)
		return false;
	p->unit = units;
	if (dwarf_cu_info(skeleton->cu, &version, NULL, NULL, NULL, &id, &address_bytes, NULL) ||
	    address_bytes != sizeof(Dwarf_Addr))
		return false;
	row = row_of(p, id);
	dwo = row ? dwo_of(p, row, version < 5) : -1;
	fd = dwo < 0 ? -1 : skeleton_of(program, skeleton, id, version < 5, dwo);
	units[p->nunits] = fd < 0 ? NULL : dwarf_begin(fd, DWARF_C_READ);
	if (!units[p->nunits])
		return false;
	elf_cntl(dwarf_getelf(units[p->nunits]), ELF_C_FDREAD);
	return !dwarf_get_units(units[p->nunits++], cu, &cu, NULL, NULL, &unit, out) && out->addr;
}
