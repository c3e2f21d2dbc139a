/* unwind_table.c - an ELF file's unwind rules as rows for the kernel's stack walk */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "core/arch.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/grow.h"

#include "eh_frame_hdr.h"
#include "elf_image.h"
#include "unwind_table.h"

/*
 * libdw executes the call frame instructions; this file converts the state at each address into a
 * row, if it fits one. .eh_frame_hdr lists the functions of .eh_frame; those of .debug_frame are
 * found by reading the whole section, whose addresses are plain words.
 */
struct function {
	__u64 start;
	Dwarf_CFI *cfi; /* section with its rules */
};

struct reader {
	struct unwind_table *out;
	Elf *elf;
	Elf *debug; /* where .debug_frame is: @elf, or its separate debug file */
	struct function *function;
	size_t nfunctions;
	struct segments segments;
	__u64 entry;  /* the program's entry point */
	bool failed;  /* out of memory */
	bool late;    /* the file took CPU_NS_MAX */
	__u64 cpu_ns; /* the thread's CPU time when it began */
	__u64 lookups;
};

/*
 * Each look-up executes the instructions of its function from the start, so the time for a function
 * grows with the square of its rows, and a crafted file could take hours. Real functions have up to
 * a few thousand rows, and files with a million rows take a third of a second.
 */
#define FUNCTION_ROWS_MAX 16384
#define CPU_NS_MAX 3000000000ull

/* A row can begin at the very end of a segment. */
static bool to_offset(const struct reader *r, __u64 vaddr, __u64 *offset)
{
	if (segments_offset(&r->segments, vaddr, offset))
		return true;
	if (!segments_offset(&r->segments, vaddr - 1, offset))
		return false;
	++*offset;
	return true;
}

static void add_row(struct reader *r, __u64 vaddr, struct profil_unwind_row row)
{
	struct unwind_table *t = r->out;
	struct profil_unwind_row *last = t->n ? &t->row[t->n - 1] : NULL;
	void *grown;
	__u64 offset;

	if (!to_offset(r, vaddr, &offset) || offset > UINT32_MAX)
		return;
	row.offset = (__u32)offset;
	if (last && last->offset == row.offset) {
		*last = row;
		return;
	}
	if (last && last->cfa == row.cfa && last->saved == row.saved && last->rule == row.rule)
		return;
	grown = grow(t->row, t->n, sizeof(row));
	if (!grown) {
		r->failed = true;
		return;
	}
	t->row = grown;
	t->row[t->n++] = row;
	t->beyond += (row.rule & PROFIL_UNWIND_KIND) == PROFIL_UNWIND_BEYOND;
}

#define SAVED_WORDS_MOST 65535

/* Says whether it is an offset from the CFA, below it. */
static bool saved_below(const Dwarf_Op *ops, size_t nops, __u32 *words)
{
	__s64 at;

	if (nops == 1 && ops[0].atom == DW_OP_call_frame_cfa)
		at = 0;
	else if (nops == 2 && ops[0].atom == DW_OP_call_frame_cfa &&
		 ops[1].atom == DW_OP_plus_uconst)
		at = (__s64)ops[1].number;
	else
		return false;
	if (at >= 0 || at % 8 || at < -8 * SAVED_WORDS_MOST)
		return false;
	*words = (__u32)(-at / 8);
	return true;
}

/*
 * The lazy PLT of x86-64: all linkers write sp + 8 + ((pc & 15) >= N) * 8, where N depends on how
 * the entry pushes its index.
 */
static bool is_plt(const Dwarf_Op *ops, size_t nops, __u16 *from)
{
	static const __u8 rest[] = { DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
				     DW_OP_ge,	   DW_OP_lit3,	DW_OP_shl, DW_OP_plus };

	if (nops != 1 + sizeof(rest) || ops[0].atom != DW_OP_breg7 || ops[0].number != 8)
		return false;
	for (size_t i = 0; i < sizeof(rest); i++) {
		if (rest[i] && ops[1 + i].atom != rest[i])
			return false;
	}
	if (ops[4].atom < DW_OP_lit0 || ops[4].atom > DW_OP_lit15)
		return false;
	*from = (__u16)(ops[4].atom - DW_OP_lit0);
	return true;
}

/* *(sp + N) + 8: OpenSSL's assembly, which aligns the stack. */
static bool is_word(const Dwarf_Op *ops, size_t nops, __u16 *words)
{
	__s64 at;

	if (nops != 3 || ops[0].atom != DW_OP_breg0 + ARCH_DWARF_SP || ops[1].atom != DW_OP_deref ||
	    ops[2].atom != DW_OP_plus_uconst || ops[2].number != 8)
		return false;
	at = (__s64)ops[0].number;
	*words = (__u16)(__s16)(at / 8);
	return at % 8 == 0 && at / 8 >= INT16_MIN && at / 8 <= INT16_MAX;
}

/* The CFA as a register and a number of words. */
static __u8 cfa_rule(Dwarf_Frame *frame, __u16 *words)
{
	Dwarf_Op *ops;
	size_t nops;
	__s64 at;
	int reg;

	if (dwarf_frame_cfa(frame, &ops, &nops) < 0 || !nops)
		return PROFIL_UNWIND_BEYOND;
	if (is_plt(ops, nops, words))
		return PROFIL_UNWIND_PLT;
	if (is_word(ops, nops, words))
		return PROFIL_UNWIND_SP_WORD;
	if (nops == 1 && ops[0].atom == DW_OP_bregx) {
		reg = (int)ops[0].number;
		at = (__s64)ops[0].number2;
	} else if (nops == 1 && ops[0].atom >= DW_OP_breg0 && ops[0].atom <= DW_OP_breg31) {
		reg = ops[0].atom - DW_OP_breg0;
		at = (__s64)ops[0].number;
	} else {
		return PROFIL_UNWIND_BEYOND;
	}
	if (at < 0 || at % 8 || at / 8 > UINT16_MAX)
		return PROFIL_UNWIND_BEYOND;
	*words = (__u16)(at / 8);
	if (reg == ARCH_DWARF_SP)
		return PROFIL_UNWIND_SP;
	return reg == ARCH_DWARF_FP ? PROFIL_UNWIND_FP : PROFIL_UNWIND_BEYOND;
}

enum saved { SAVED_NOT, SAVED_BELOW, SAVED_UNDEFINED, SAVED_BEYOND };

/* The location of the caller's register @reg; if saved, *@words words below the CFA. */
static enum saved saved_rule(Dwarf_Frame *frame, int reg, __u32 *words)
{
	Dwarf_Op mem[3], *ops;
	size_t nops;

	if (dwarf_frame_register(frame, reg, mem, &ops, &nops) < 0)
		return SAVED_BEYOND;
	if (!nops)
		return ops ? SAVED_UNDEFINED : SAVED_NOT;
	return saved_below(ops, nops, words) ? SAVED_BELOW : SAVED_BEYOND;
}

/*
 * Where registers are saved: at most 255 words below the CFA, or above the register that it is
 * relative to, as in large frames of arm64.
 */
static bool put_saved(struct profil_unwind_row *row, __u32 words)
{
	unsigned int kind = row->rule & PROFIL_UNWIND_KIND;

	if (words <= UINT8_MAX) {
		row->saved = (__u8)words;
		return true;
	}
	if ((kind != PROFIL_UNWIND_SP && kind != PROFIL_UNWIND_FP) || words > row->cfa ||
	    row->cfa - words > UINT8_MAX)
		return false;
	row->saved = (__u8)(row->cfa - words);
	row->rule |= PROFIL_UNWIND_SAVED_ABOVE;
	return true;
}

/* The return address: on x86-64 a call has pushed it; on arm64 it is saved beside the frame
 * pointer. */
static bool ra_fits(enum saved ra, __u32 ra_words, enum saved fp, __u32 fp_words,
		    struct profil_unwind_row *row)
{
	if (ARCH_DWARF_RA == 16)
		return ra == SAVED_BELOW && ra_words == 1;
	if (ra == SAVED_NOT)
		return true;
	if (ra != SAVED_BELOW || (fp == SAVED_BELOW && ra_words + 1 != fp_words))
		return false;
	row->rule |= PROFIL_UNWIND_RA_SAVED;
	return fp == SAVED_BELOW || put_saved(row, ra_words);
}

static struct profil_unwind_row row_of(Dwarf_Frame *frame, bool signal)
{
	const struct profil_unwind_row beyond = { .rule = PROFIL_UNWIND_BEYOND };
	struct profil_unwind_row row = { 0 };
	enum saved ra, fp;
	__u32 ra_words = 0, fp_words = 0;

	if (signal)
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_SIGNAL };
	ra = saved_rule(frame, ARCH_DWARF_RA, &ra_words);
	if (ra == SAVED_UNDEFINED)
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_END };
	row.rule = cfa_rule(frame, &row.cfa);
	if (row.rule == PROFIL_UNWIND_BEYOND)
		return beyond;
	fp = saved_rule(frame, ARCH_DWARF_FP, &fp_words);
	if (fp == SAVED_BELOW) {
		row.rule |= PROFIL_UNWIND_FP_SAVED;
		if (!put_saved(&row, fp_words))
			return beyond;
	}
	if (fp == SAVED_BEYOND || !ra_fits(ra, ra_words, fp, fp_words, &row))
		return beyond;
	return row;
}

/* Padding between functions up to this size is never executed and gets no row. */
#define PADDING_MAX 64

/*
 * The entry point has no caller. The dynamic loader marks this by having no rules there: the range
 * from it to the next function with rules becomes one function.
 */
static void add_entry(struct reader *r, __u64 from, __u64 limit)
{
	if (r->entry && r->entry >= from && r->entry < limit)
		add_row(r, r->entry, (struct profil_unwind_row){ .rule = PROFIL_UNWIND_END });
}

/* Is called before each look-up. */
static bool is_late(struct reader *r)
{
	if (r->lookups++ % 64 == 0)
		r->late |= clock_ns(CLOCK_THREAD_CPUTIME_ID) - r->cpu_ns > CPU_NS_MAX;
	return r->late;
}

/* Adds the rows of @f, which ends before @limit. */
static void read_function(struct reader *r, const struct function *f, __u64 limit)
{
	const struct profil_unwind_row none = { .rule = PROFIL_UNWIND_NONE };
	__u64 at = f->start;

	for (int i = 0; at < limit && !r->failed && i < FUNCTION_ROWS_MAX; i++) {
		__cleanup(freep) Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to;
		bool signal;

		if (is_late(r) || dwarf_cfi_addrframe(f->cfi, at, &frame) < 0 ||
		    dwarf_frame_info(frame, &from, &to, &signal) < 0 || to <= at)
			break;
		add_row(r, at, row_of(frame, signal));
		at = to;
	}
	if (at < limit && limit - at > PADDING_MAX)
		add_row(r, at, none);
	add_entry(r, at, limit);
}

static int add_function(struct reader *r, __u64 start, Dwarf_CFI *cfi)
{
	struct function *grown = grow(r->function, r->nfunctions, sizeof(*grown));

	if (!grown)
		return -ENOMEM;
	r->function = grown;
	r->function[r->nfunctions++] = (struct function){ start, cfi };
	return 0;
}

static int find_eh_frame(struct reader *r, const struct frames *frames, Dwarf_CFI *cfi)
{
	int err = 0;

	for (size_t i = 0; cfi && !err && i < frames->n; i++)
		err = add_function(r, frames->row[i].start, cfi);
	return err;
}

/* Finds functions of .debug_frame that .eh_frame lacks, as all Go functions. */
static int find_debug_frame(struct reader *r, const struct frames *frames, Dwarf_CFI *cfi)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(r->debug, NULL);
	GElf_Shdr sh;
	Elf_Data *data = cfi ? elf_image_bytes(r->debug, ".debug_frame", &sh) : NULL;
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry entry;
	int err = 0, status;

	for (; data && !err; offset = next) {
		__u64 start, from, to;

		status = dwarf_next_cfi(ident, data, false, offset, &next, &entry);
		if (status > 0 || next <= offset || next == (Dwarf_Off)-1)
			break;
		if (status < 0 || dwarf_cfi_cie_p(&entry) ||
		    entry.fde.end - entry.fde.start < (ptrdiff_t)sizeof(start))
			continue;
		memcpy(&start, entry.fde.start, sizeof(start));
		if (!frames_find(frames, start, &from, &to))
			err = add_function(r, start, cfi);
	}
	return err;
}

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static void read_functions(struct reader *r)
{
	if (!r->nfunctions)
		return;
	qsort(r->function, r->nfunctions, sizeof(*r->function), by_start);
	add_entry(r, 0, r->function[0].start);
	for (size_t i = 0; i < r->nfunctions && !r->late; i++) {
		__u64 limit = i + 1 < r->nfunctions ? r->function[i + 1].start : ~0ull;

		read_function(r, &r->function[i], limit);
	}
}

/* Reads both sections; the rows are sorted, as the functions are. */
static int read_sections(struct reader *r)
{
	Dwarf_CFI *eh_frame = dwarf_getcfi_elf(r->elf);
	Dwarf *dwarf = dwarf_begin_elf(r->debug, DWARF_C_READ, NULL); /* decompresses */
	struct frames frames;
	int err = frames_read(&frames, r->elf);

	if (!err)
		err = find_eh_frame(r, &frames, eh_frame);
	if (!err)
		err = find_debug_frame(r, &frames, dwarf ? dwarf_getcfi(dwarf) : NULL);
	if (!err)
		read_functions(r);
	frames_fini(&frames);
	dwarf_end(dwarf);
	dwarf_cfi_end(eh_frame);
	return err;
}

/*
 * arm64's vdso has no unwind rules (Linux drops them), but code to which signal handlers return.
 * The instruction before it belongs to it: callers are looked up at their return address - 1.
 */
static void add_trampoline(struct reader *r)
{
	const struct profil_unwind_row none = { .rule = PROFIL_UNWIND_NONE };
	const struct profil_unwind_row signal = { .rule = PROFIL_UNWIND_SIGNAL };
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Sym symbol;

	while ((section = elf_nextscn(r->elf, section))) {
		Elf_Data *data = elf_getdata(section, NULL);

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_DYNSYM)
			continue;
		for (int i = 0; gelf_getsym(data, i, &symbol); i++) {
			const char *name = elf_strptr(r->elf, header.sh_link, symbol.st_name);

			if (name && !strcmp(name, "__kernel_rt_sigreturn")) {
				add_row(r, symbol.st_value - 4, signal);
				add_row(r, symbol.st_value + symbol.st_size, none);
				return;
			}
		}
	}
}

static bool fits_machine(Elf *elf, GElf_Ehdr *header)
{
	return gelf_getehdr(elf, header) && header->e_machine == ARCH_ELF_MACHINE;
}

int unwind_table_read(struct unwind_table *t, Elf *elf, Elf *debug)
{
	struct reader r = { .out = t, .elf = elf, .debug = elf };
	GElf_Ehdr header;
	GElf_Shdr sh;
	int err;

	*t = (struct unwind_table){ 0 };
	if (fits_machine(debug, &header) && !elf_image_bytes(elf, ".debug_frame", &sh))
		r.debug = debug;
	if (!fits_machine(elf, &header))
		return -ENOEXEC;
	r.entry = header.e_entry;
	r.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	err = elf_image_segments(&r.segments, elf);
	if (!err)
		err = read_sections(&r);
	if (!err && !r.nfunctions)
		add_trampoline(&r);
	free(r.function);
	segments_fini(&r.segments);
	if (r.failed)
		err = -ENOMEM;
	if (err)
		unwind_table_fini(t);
	return err;
}

int unwind_table_open(struct unwind_table *t, int fd, int debug_fd)
{
	Elf *elf, *debug;
	int err;

	*t = (struct unwind_table){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	debug = debug_fd < 0 ? NULL : elf_begin(debug_fd, ELF_C_READ_MMAP, NULL);
	err = elf ? unwind_table_read(t, elf, debug) : -ENOEXEC;
	elf_end(debug);
	elf_end(elf);
	return err;
}

/* The size of the vdso, a page or two: its section headers are at the end. */
static size_t vdso_bytes(const Elf64_Ehdr *header)
{
	return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

int unwind_table_open_vdso(struct unwind_table *t)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	Elf *elf;
	int err;

	*t = (struct unwind_table){ 0 };
	if (!image)
		return -ENOENT;
	elf_version(EV_CURRENT);
	elf = elf_memory(image, vdso_bytes((const Elf64_Ehdr *)image));
	err = elf ? unwind_table_read(t, elf, NULL) : -ENOEXEC;
	elf_end(elf);
	return err;
}

const struct profil_unwind_row *unwind_table_find(const struct unwind_table *t, __u32 offset)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (t->row[mid].offset <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &t->row[lo - 1] : NULL;
}

void unwind_table_fini(struct unwind_table *t)
{
	free(t->row);
	*t = (struct unwind_table){ 0 };
}
