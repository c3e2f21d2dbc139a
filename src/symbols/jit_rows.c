/* jit_rows.c - unwind rules of code of a JIT compiler, from its jitdump */
#include <elf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/arch.h"

#include "jit_codes.h"
#include "jit_rows.h"
#include "symbols/elf/unwind_row.h"

/* Of one function. Each look-up executes its instructions from the start. */
#define FRAMES_BYTES_MAX (8u << 10)
#define FUNCTION_ROWS_MAX 256

static const char names[] = "\0.eh_frame\0.shstrtab";
#define NAME_EH_FRAME 1
#define NAME_SHSTRTAB 11
enum section { SECTION_NONE, SECTION_EH_FRAME, SECTION_NAMES, SECTIONS };

/* libdw reads .eh_frame from an ELF file only: this one has nothing else. */
struct frame_file {
	Elf64_Ehdr head;
	Elf64_Shdr section[SECTIONS];
	char names[sizeof(names)];
	_Alignas(8) unsigned char frames[FRAMES_BYTES_MAX + 4]; /* 4 zero bytes end them */
};

struct rows {
	struct unwind_table *out;
	struct jit_codes *codes;
	__u64 base;
	struct frame_file file;
	bool failed; /* out of memory */
};

static void frame_file_init(struct frame_file *f)
{
	memcpy(f->head.e_ident, ELFMAG, SELFMAG);
	f->head.e_ident[EI_CLASS] = ELFCLASS64;
	f->head.e_ident[EI_DATA] = ELFDATA2LSB;
	f->head.e_ident[EI_VERSION] = EV_CURRENT;
	f->head.e_type = ET_DYN;
	f->head.e_machine = ARCH_ELF_MACHINE;
	f->head.e_version = EV_CURRENT;
	f->head.e_ehsize = sizeof(f->head);
	f->head.e_shoff = offsetof(struct frame_file, section);
	f->head.e_shentsize = sizeof(f->section[0]);
	f->head.e_shnum = SECTIONS;
	f->head.e_shstrndx = SECTION_NAMES;
	f->section[SECTION_EH_FRAME] =
		(Elf64_Shdr){ .sh_name = NAME_EH_FRAME,
			      .sh_type = SHT_PROGBITS,
			      .sh_flags = SHF_ALLOC,
			      .sh_offset = offsetof(struct frame_file, frames),
			      .sh_addralign = 8 };
	f->section[SECTION_NAMES] = (Elf64_Shdr){ .sh_name = NAME_SHSTRTAB,
						  .sh_type = SHT_STRTAB,
						  .sh_offset = offsetof(struct frame_file, names),
						  .sh_size = sizeof(names),
						  .sh_addralign = 1 };
	memcpy(f->names, names, sizeof(names));
}

/* Adds @row, whose code begins at @address. */
static void add_row(struct rows *r, __u64 address, struct profil_unwind_row row)
{
	row.offset = (__u32)(address - r->base);
	r->failed |= unwind_table_add(r->out, row) != 0;
}

/* Adds the rows of @cfi in piece @p of code that has moved by @by. Returns where they end. */
static __u64 add_rules(struct rows *r, const struct jit_piece *p, Dwarf_CFI *cfi, __u64 by)
{
	__u64 at = p->start;

	for (int i = 0; cfi && at < p->end && !r->failed && i < FUNCTION_ROWS_MAX; i++) {
		__cleanup(freep) Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to;
		bool signal;

		if (dwarf_cfi_addrframe(cfi, at - by, &frame) < 0 ||
		    dwarf_frame_info(frame, &from, &to, &signal) < 0 || to <= at - by)
			break;
		add_row(r, at, unwind_row(frame, signal));
		at = to + by;
	}
	return at < p->end ? at : p->end;
}

/* Adds the rows of piece @p, and one without a rule where they end. */
static void add_piece(struct rows *r, const struct jit_piece *p)
{
	const struct jitdump_code *code = p->code;
	size_t n = jit_codes_frames(r->codes, code, r->file.frames, FRAMES_BYTES_MAX);
	Elf64_Shdr *section = &r->file.section[SECTION_EH_FRAME];
	Dwarf_CFI *cfi;
	__u64 end;
	Elf *elf;

	memset(r->file.frames + n, 0, 4);
	section->sh_size = n + 4;
	section->sh_addr = code->first + ((code->bytes + 7) & ~7ull);
	elf = n ? elf_memory((char *)&r->file, sizeof(r->file)) : NULL;
	cfi = elf ? dwarf_getcfi_elf(elf) : NULL;
	end = add_rules(r, p, cfi, code->start - code->first);
	dwarf_cfi_end(cfi);
	elf_end(elf);
	add_row(r, end, (struct profil_unwind_row){ .rule = PROFIL_UNWIND_NONE });
}

static int add_pieces(struct rows *r)
{
	struct jit_piece p;

	for (size_t i = 0; jit_codes_piece(r->codes, i, &p) && !r->failed; i++) {
		if (p.start >= r->base && (p.end - 1 - r->base) >> 32 == 0)
			add_piece(r, &p);
	}
	return r->failed ? -ENOMEM : 0;
}

static bool has_rules(const struct unwind_table *t)
{
	return t->n > 1 || (t->n && t->row[0].rule);
}

int jit_rows_read(struct unwind_table *t, const struct object *o, __u64 base)
{
	const struct object now = { .kind = OBJECT_ANON, .fd = o->fd };
	struct rows *r = calloc(1, sizeof(*r));
	int err = r ? 0 : -ENOMEM;

	*t = (struct unwind_table){ 0 };
	elf_version(EV_CURRENT);
	if (!err && now.fd >= 0 && !jit_codes_open(&r->codes, &now)) {
		r->out = t;
		r->base = base;
		frame_file_init(&r->file);
		if (jit_codes_machine(r->codes) == ARCH_ELF_MACHINE)
			err = add_pieces(r);
		jit_codes_close(r->codes);
	}
	free(r);
	if (err || !has_rules(t))
		unwind_table_fini(t);
	return err;
}
