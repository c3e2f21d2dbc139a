/* plt.c - names for PLT stubs, through which a file calls functions of others */
/*
 * On x86-64 a stub jumps through its slot, "jmp *disp(%rip)", or loads it into r11 first, where the
 * linker avoids indirect jumps (retpolines). With IBT, the stubs of .plt have only the index of
 * their relocation, for the dynamic loader. On arm64 a stub is "adrp x16; ldr x17, [x16]". So every
 * such instruction in a section of stubs is decoded; one that refers to a slot with a relocation is
 * a stub's, which begins with the instructions before it that only stubs have.
 */
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "core/arch.h"

#include "plt.h"

/* Real files have some thousand; a sparse file can have any number. */
#define STUBS_MAX (1u << 18)
#define SLOTS_MAX (1u << 20)
#define STUB_BYTES_MAX 64
/* All stubs of a file can have one name, of any length. */
#define NAME_MAX_BYTES 65536
#define NAMES_BYTES_MAX (16u << 20)
#define SECTION_BYTES_MAX (STUBS_MAX * 16)

#if ARCH_DWARF_RA == 16
#define IRELATIVE R_X86_64_IRELATIVE
#else
#define IRELATIVE R_AARCH64_IRELATIVE
#endif

/* A relocated word. */
struct slot {
	__u64 address;
	const char *name; /* "": of an indirect function, whose relocation has no symbol */
};

struct slots {
	struct slot *slot; /* sorted by address */
	size_t n;
	const char *
		*by_index; /* names in the order of .rela.plt, which stubs can have an index of */
	size_t nindices;
};

static int by_address(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return x->address < y->address ? -1 : x->address > y->address;
}

static const char *symbol_name(Elf *elf, size_t symtab, size_t index)
{
	Elf_Scn *scn = elf_getscn(elf, symtab);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	const char *name;
	GElf_Shdr sh;
	GElf_Sym sym;

	if (!index || !data || !gelf_getshdr(scn, &sh) || !gelf_getsym(data, (int)index, &sym))
		return "";
	name = elf_strptr(elf, sh.sh_link, sym.st_name);
	return name ? name : "";
}

/* Adds the slots of a section of relocations. @plt: it is .rela.plt. Returns 0 or -ENOMEM. */
static int add_relocations(struct slots *s, Elf *elf, Elf_Scn *scn, const GElf_Shdr *sh, bool plt)
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && sh->sh_entsize ? data->d_size / sh->sh_entsize : 0;

	for (size_t i = 0; i < n && s->n < SLOTS_MAX; i++) {
		const char **name;
		struct slot *slot;
		GElf_Rela r;

		if (!gelf_getrela(data, (int)i, &r))
			break;
		if (!GELF_R_SYM(r.r_info) && GELF_R_TYPE(r.r_info) != IRELATIVE)
			continue;
		slot = grow(s->slot, s->n, sizeof(*slot));
		if (!slot)
			return -ENOMEM;
		s->slot = slot;
		slot += s->n++;
		*slot = (struct slot){ r.r_offset,
				       symbol_name(elf, sh->sh_link, GELF_R_SYM(r.r_info)) };
		if (!plt)
			continue;
		name = grow(s->by_index, s->nindices, sizeof(*name));
		if (!name)
			return -ENOMEM;
		s->by_index = name;
		name[s->nindices++] = slot->name;
	}
	return 0;
}

static int read_slots(struct slots *s, Elf *elf, size_t names)
{
	Elf_Scn *scn = NULL;
	int err = 0;

	while (!err && (scn = elf_nextscn(elf, scn))) {
		const char *name;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_RELA ||
		    !(sh.sh_flags & SHF_ALLOC) ||
		    sh.sh_entsize != gelf_fsize(elf, ELF_T_RELA, 1, EV_CURRENT))
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		err = add_relocations(s, elf, scn, &sh, name && !strcmp(name, ".rela.plt"));
	}
	if (s->n)
		qsort(s->slot, s->n, sizeof(*s->slot), by_address);
	return err;
}

static const char *name_of_slot(const struct slots *s, __u64 address)
{
	const struct slot key = { .address = address };
	const struct slot *found =
		s->n ? bsearch(&key, s->slot, s->n, sizeof(key), by_address) : NULL;

	return found ? found->name : NULL;
}

struct code {
	const unsigned char *bytes;
	size_t n;
	__u64 vaddr;
};

static __u32 read_32(const unsigned char *at)
{
	__u32 word;

	memcpy(&word, at, sizeof(word)); /* all supported machines are little-endian */
	return word;
}

static bool ends_with(const struct code *c, size_t at, const void *bytes, size_t n)
{
	return at >= n && !memcmp(c->bytes + at - n, bytes, n);
}

#if ARCH_DWARF_RA == 16
#define STEP 1
static const unsigned char endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };

/* The name of the stub whose slot, or index, the instruction at @at has; NULL: it is none. */
static const char *decode(const struct code *c, size_t at, const struct slots *s)
{
	const unsigned char *b = c->bytes + at;
	size_t left = c->n - at;

	if (left >= 6 && b[0] == 0xff && b[1] == 0x25) /* jmp *disp(%rip) */
		return name_of_slot(s, c->vaddr + at + 6 + (__u64)(__s64)(__s32)read_32(b + 2));
	if (left >= 7 && b[0] == 0x4c && b[1] == 0x8b && b[2] == 0x1d) /* mov disp(%rip), %r11 */
		return name_of_slot(s, c->vaddr + at + 7 + (__u64)(__s64)(__s32)read_32(b + 3));
	if (left >= 6 && b[0] == 0x68 && ends_with(c, at, endbr, sizeof(endbr)) &&
	    read_32(b + 1) < s->nindices) /* push $index */
		return s->by_index[read_32(b + 1)];
	return NULL;
}

/* The first instruction of the stub that has the one at @at. */
static size_t start_of(const struct code *c, size_t at)
{
	at -= ends_with(c, at, "\xf2", 1); /* bnd */
	if (at >= 6 && c->bytes[at - 6] == 0x41 && c->bytes[at - 5] == 0xbb)
		at -= 6; /* mov $index, %r11d */
	if (ends_with(c, at, endbr, sizeof(endbr)))
		at -= sizeof(endbr);
	return at;
}
#else
#define STEP 4
static const char *decode(const struct code *c, size_t at, const struct slots *s)
{
	__u32 adrp, ldr;
	__u64 page;

	if (c->n - at < 8)
		return NULL;
	adrp = read_32(c->bytes + at);
	ldr = read_32(c->bytes + at + 4);
	/* adrp x16, PAGE; ldr x17, [x16, #OFFSET] */
	if ((adrp & 0x9f00001f) != 0x90000010 || (ldr & 0xffc003ff) != 0xf9400211)
		return NULL;
	page = (__u64)(adrp >> 29 & 3) | (__u64)(adrp >> 5 & 0x7ffff) << 2;
	page = (page ^ 1u << 20) - (1u << 20); /* 21 bits, signed */
	return name_of_slot(s,
			    ((c->vaddr + at) & ~0xfffull) + (page << 12) + (ldr >> 10 & 0xfff) * 8);
}

static size_t start_of(const struct code *c, size_t at)
{
	return at - (ends_with(c, at, "\x5f\x24\x03\xd5", 4) ? 4 : 0); /* bti c */
}
#endif

static int add_stub(struct plt *plt, __u64 start, const char *name)
{
	struct plt_stub *more = grow(plt->stub, plt->n, sizeof(*more));
	int bytes;

	if (!more)
		return -ENOMEM;
	plt->stub = more;
	more += plt->n;
	more->start = start;
	bytes = asprintf(&more->name, "%.*s@plt", NAME_MAX_BYTES, *name ? name : "*");
	if (bytes < 0)
		return -ENOMEM;
	plt->name_bytes += (size_t)bytes;
	plt->n++;
	return 0;
}

/* A stub ends where the next one of its section begins, or with it. */
static int read_section(struct plt *plt, const struct code *c, const struct slots *s)
{
	size_t first = plt->n;
	int err = 0;

	for (size_t at = 0; at < c->n && plt->n < STUBS_MAX && !err; at += STEP) {
		const char *name = decode(c, at, s);

		if (name && plt->name_bytes < NAMES_BYTES_MAX)
			err = add_stub(plt, c->vaddr + start_of(c, at), name);
	}
	for (size_t i = first; i < plt->n; i++) {
		__u64 end = i + 1 < plt->n ? plt->stub[i + 1].start : c->vaddr + c->n;
		__u64 most = plt->stub[i].start + STUB_BYTES_MAX;

		plt->stub[i].end = end < most ? end : most;
	}
	return err;
}

int plt_read(struct plt *out, Elf *elf)
{
	struct slots slots = { 0 };
	Elf_Scn *scn = NULL;
	size_t names;
	int err;

	*out = (struct plt){ 0 };
	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	err = read_slots(&slots, elf, names);
	while (!err && (scn = elf_nextscn(elf, scn))) {
		struct code code;
		const char *name;
		Elf_Data *data;
		GElf_Shdr sh;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		name = elf_strptr(elf, names, sh.sh_name);
		if (!name || (strncmp(name, ".plt", 4) != 0 && strcmp(name, ".iplt") != 0))
			continue;
		data = elf_rawdata(scn, NULL);
		if (!data || !data->d_buf)
			continue;
		code = (struct code){ data->d_buf, data->d_size, sh.sh_addr };
		if (code.n > SECTION_BYTES_MAX)
			code.n = SECTION_BYTES_MAX;
		err = read_section(out, &code, &slots);
	}
	free(slots.slot);
	free(slots.by_index);
	return err;
}

void plt_fini(struct plt *plt)
{
	for (size_t i = 0; i < plt->n; i++)
		free(plt->stub[i].name);
	free(plt->stub);
	*plt = (struct plt){ 0 };
}
