/* unwind_table.c - an ELF file's unwind rules as rows for the kernel's stack walk */
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/count_while.h"
#include "core/arch.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/grow.h"

#include "eh_frame_hdr.h"
#include "elf_image.h"
#include "go_pclntab.h"
#include "go_stack_switch.h"
#include "read_budget.h"
#include "startup_rows.h"
#include "symbols/proc/file_account.h"
#include "unpack_limit.h"
#include "unwind_row.h"
#include "unwind_table.h"

/*
 * libdw executes the call frame instructions; this file converts the state at each address into a
 * row, if it fits one. .eh_frame_hdr lists the functions of .eh_frame; those of .debug_frame are
 * found by reading the whole section, whose addresses are plain words.
 */
struct function {
	__u64 start;
	Dwarf_CFI *cfi;		      /* section with its rules; NULL: none */
	const struct go_function *go; /* NULL: not a function of Go */
};

struct reader {
	struct unwind_table *out;
	Elf *elf;
	Elf *debug;  /* where .debug_frame is: @elf, or its separate debug file */
	__u64 limit; /* what @debug may unpack to */
	struct function *function;
	size_t nfunctions;
	struct segments segments;
	struct segments code;
	const char *raw; /* the file's bytes */
	size_t raw_bytes;
	struct go_functions go;
	__u64 entry; /* the program's entry point */
	struct read_budget budget;
	bool failed; /* out of memory */
	bool late;   /* the file took CPU_NS_MAX, or the budget, or it was stopped */
	bool stopped;
	const struct unwind_stop *stop; /* NULL: never */
	__u64 cpu_ns;			/* the thread's CPU time when it began */
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

int unwind_table_add(struct unwind_table *t, struct profil_unwind_row row)
{
	struct profil_unwind_row *last = t->n ? &t->row[t->n - 1] : NULL;
	void *grown;

	if (last && last->offset > row.offset)
		return 0; /* code that was recognised is in the order of a linker that we know */
	if (last && last->offset == row.offset) {
		*last = row;
		return 0;
	}
	if (last && last->cfa == row.cfa && last->saved == row.saved && last->rule == row.rule)
		return 0;
	grown = grow(t->row, t->n, sizeof(row));
	if (!grown)
		return -ENOMEM;
	t->row = grown;
	t->row[t->n++] = row;
	t->beyond += (row.rule & PROFIL_UNWIND_KIND) == PROFIL_UNWIND_BEYOND;
	return 0;
}

static void add_row(struct reader *r, __u64 vaddr, struct profil_unwind_row row)
{
	__u64 offset;

	if (!to_offset(r, vaddr, &offset) || offset > UINT32_MAX)
		return;
	row.offset = (__u32)offset;
	r->failed |= unwind_table_add(r->out, row) != 0;
}

#define STARTUP_BYTES 1024 /* in which crtstuff.c's functions begin: behind _start(), or first */

/* What has been recognised of the code from @from on, which has no rules. */
static void add_startup(struct reader *r, __u64 from, __u64 limit)
{
	struct startup_rows s;
	__u64 offset, n;

	if (!r->raw || !segments_offset(&r->segments, from, &offset) || offset >= r->raw_bytes)
		return;
	n = r->raw_bytes - offset < limit - from ? r->raw_bytes - offset : limit - from;
	n = n < STARTUP_BYTES ? n : STARTUP_BYTES;
	startup_crt_rows(&s, (const unsigned char *)r->raw + offset, n, from);
	for (unsigned int i = 0; i < s.n && s.at[i] < limit; i++)
		add_row(r, s.at[i], s.row[i]);
}

/* .init or .fini, which is _init() or _fini(), if it is in that range. */
static void add_startup_section(struct reader *r, const char *name, __u64 from, __u64 limit)
{
	struct startup_rows s;
	GElf_Shdr sh;
	Elf_Data *data = elf_image_bytes(r->elf, name, &sh);

	if (!data || !data->d_buf || sh.sh_addr < from || sh.sh_addr + data->d_size > limit)
		return;
	startup_init_rows(&s, data->d_buf, data->d_size, sh.sh_addr);
	for (unsigned int i = 0; i < s.n; i++)
		add_row(r, s.at[i], s.row[i]);
}

/* What is between functions up to this size is padding, or assembly that is part of one. */
#define PADDING_MAX 64

/* Whether a function without rules that sets up a frame pointer begins at @vaddr. */
static bool begins_frame(const struct reader *r, __u64 vaddr)
{
	const unsigned char *code = (const unsigned char *)r->raw;
	__u64 at;

	if (!code || !segments_offset(&r->segments, vaddr, &at) || at + 12 > r->raw_bytes)
		return false;
	code += at;
	if (!ARCH_RA_ON_STACK) /* stp x29, x30, [sp, -N]!; mov x29, sp */
		return !memcmp(code, "\xfd\x7b", 2) && !memcmp(code + 3, "\xa9\xfd\x03\0\x91", 5);
	if (!memcmp(code, "\xf3\x0f\x1e\xfa", 4)) /* endbr64 */
		code += 4;
	return !memcmp(code, "\x55\x48\x89\xe5", 4); /* push %rbp; mov %rsp, %rbp */
}

/*
 * The entry point has no caller. The dynamic loader marks this by having no rules there: the range
 * from it to the next function with rules becomes one function.
 */
static void add_entry(struct reader *r, __u64 from, __u64 limit)
{
	if (r->entry && r->entry >= from && r->entry < limit)
		add_row(r, r->entry, (struct profil_unwind_row){ .rule = PROFIL_UNWIND_END });
}

/* Is called before each look-up, and for each function that is found. */
static bool is_late(struct reader *r)
{
	if (r->lookups++ % 64 == 0) {
		r->stopped |= r->stop && r->stop->is_due(r->stop->arg);
		r->late |= r->stopped || !read_budget_left(&r->budget) ||
			   clock_ns(CLOCK_THREAD_CPUTIME_ID) - r->cpu_ns > CPU_NS_MAX;
	}
	return r->late;
}

/*
 * Go's rules do not say where frames save the frame pointer: on x86-64 always at the top. A switch
 * of stacks is unwound by it, since it holds on both; on arm64 it does not give Go's CFA, and the
 * walk ends.
 */
static struct profil_unwind_row go_row(struct profil_unwind_row row, enum go_switch go)
{
	static const struct profil_unwind_row by_fp = {
		.cfa = 2, .saved = 2, .rule = PROFIL_UNWIND_SWITCH | PROFIL_UNWIND_FP_SAVED
	};
	bool framed = row.rule == PROFIL_UNWIND_SP && row.cfa > 1 && ARCH_RA_ON_STACK;

	if (framed) {
		row.rule |= PROFIL_UNWIND_FP_SAVED;
		row.saved = 2;
	}
	switch (go) {
	case GO_SWITCH_TOP:
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_END };
	case GO_SWITCH_SIGNAL:
		return (struct profil_unwind_row){ .rule = PROFIL_UNWIND_SIGNAL };
	case GO_SWITCH_KEPT:
		break;
	case GO_SWITCH_FRAMED:
		if (framed)
			break;
		return row;
	case GO_SWITCH_NONE:
		return row;
	}
	return ARCH_RA_ON_STACK ? by_fp
				: (struct profil_unwind_row){ .rule = PROFIL_UNWIND_BEYOND };
}

/*
 * Adds the row of a function that has the same rule everywhere. A return address that is the start
 * of sigreturn is looked up one byte earlier.
 */
static void add_go_function(struct reader *r, const struct go_function *f, enum go_switch go,
			    __u64 limit)
{
	const struct profil_unwind_row none = { .rule = PROFIL_UNWIND_NONE };

	add_row(r, f->start - (go == GO_SWITCH_SIGNAL), go_row(none, go));
	if (f->end < limit)
		add_row(r, f->end, none);
}

static int by_start(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Where the function that begins at @vaddr saves rbx, once it does. 0: not known. */
static __u8 rbx_saved_by(struct reader *r, __u64 vaddr)
{
	const struct function key = { .start = vaddr };
	const struct function *f = bsearch(&key, r->function, r->nfunctions, sizeof(key), by_start);
	__u64 limit = f && f + 1 < r->function + r->nfunctions ? f[1].start : ~0ull;
	__u8 saved = 0;

	for (__u64 at = vaddr; f && f->cfi && at < limit && !saved && !is_late(r);) {
		__cleanup(freep) Dwarf_Frame *frame = NULL;
		Dwarf_Addr from, to;
		bool signal;

		if (dwarf_cfi_addrframe(f->cfi, at, &frame) < 0 ||
		    dwarf_frame_info(frame, &from, &to, &signal) < 0 || to <= at)
			break;
		saved = unwind_rbx_saved(frame);
		at = to;
	}
	return saved;
}

#define CALL_BYTES 5

/*
 * In code whose CFA depends on rbx, gives each call the row with the place where its callee has saved
 * the register. What only looks like a call is no return address of any frame.
 */
static void add_rbx_calls(struct reader *r, __u64 from, __u64 to, struct profil_unwind_row row)
{
	__u64 offset;
	__s32 distance;

	if (!r->raw || !segments_offset(&r->segments, from, &offset))
		return;
	for (; from + CALL_BYTES <= to && offset + CALL_BYTES <= r->raw_bytes; from++, offset++) {
		if ((unsigned char)r->raw[offset] != 0xe8)
			continue;
		memcpy(&distance, r->raw + offset + 1, sizeof(distance));
		row.saved = rbx_saved_by(r, from + CALL_BYTES + (__u64)distance);
		if (!row.saved)
			continue;
		add_row(r, from, row);
		row.saved = 0;
		add_row(r, from + CALL_BYTES, row);
	}
}

/* Adds the rows of @f, which ends before @limit. */
static void read_function(struct reader *r, const struct function *f, __u64 limit)
{
	const struct profil_unwind_row none = { .rule = PROFIL_UNWIND_NONE };
	enum go_switch go = f->go ? go_switch_of(f->go->name) : GO_SWITCH_NONE;
	__u64 at = f->start;

	if (go && go != GO_SWITCH_FRAMED) {
		add_go_function(r, f->go, go, limit);
		return;
	}
	for (int i = 0; at < limit && !r->failed && i < FUNCTION_ROWS_MAX; i++) {
		__cleanup(freep) Dwarf_Frame *frame = NULL;
		struct profil_unwind_row row;
		Dwarf_Addr from, to;
		int base;
		bool signal;

		if (is_late(r) || dwarf_cfi_addrframe(f->cfi, at, &frame) < 0 ||
		    dwarf_frame_info(frame, &from, &to, &signal) < 0 || to <= at)
			break;
		row = unwind_row(frame, signal);
		add_row(r, at, f->go ? go_row(row, go) : row);
		base = row.cfa >> PROFIL_UNWIND_REGISTER_SHIFT;
		if (row.rule == PROFIL_UNWIND_REGISTER && base == ARCH_DWARF_RBX)
			add_rbx_calls(r, at, to, row);
		at = to;
	}
	if (at < limit && (limit - at > PADDING_MAX || begins_frame(r, at))) {
		add_row(r, at, none);
		add_entry(r, at, limit);
		add_startup(r, at, limit);
		return;
	}
	add_entry(r, at, limit);
}

/* Linkers leave rules of code that they removed, at address 0. */
static int add_function(struct reader *r, const struct function *f)
{
	struct function *grown;

	if (!segments_of_address(&r->code, f->start))
		return 0;
	grown = grow(r->function, r->nfunctions, sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	r->function = grown;
	r->function[r->nfunctions++] = *f;
	return 0;
}

static int find_eh_frame(struct reader *r, const struct frames *frames, Dwarf_CFI *cfi)
{
	int err = 0;

	for (size_t i = 0; cfi && !err && i < frames->n && !is_late(r); i++)
		err = add_function(r,
				   &(struct function){ .start = frames->row[i].start, .cfi = cfi });
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

	for (; data && !err && !is_late(r); offset = next) {
		__u64 start, from, to;

		status = dwarf_next_cfi(ident, data, false, offset, &next, &entry);
		if (status > 0 || next <= offset || next == (Dwarf_Off)-1)
			break;
		if (status < 0 || dwarf_cfi_cie_p(&entry) ||
		    entry.fde.end - entry.fde.start < (ptrdiff_t)sizeof(start))
			continue;
		memcpy(&start, entry.fde.start, sizeof(start));
		if (!frames_find(frames, start, &from, &to))
			err = add_function(r, &(struct function){ .start = start, .cfi = cfi });
	}
	return err;
}

static int by_go_start(const void *a, const void *b)
{
	const struct go_function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/*
 * Marks Go's functions, and adds those that switch stacks if they have no rules. Sorts the
 * functions. Returns 0 or -ENOMEM.
 */
static int find_go_functions(struct reader *r)
{
	size_t n = r->nfunctions;
	int err = go_functions_read(&r->go, r->elf);

	if (n)
		qsort(r->function, n, sizeof(*r->function), by_start);
	for (size_t i = 0; i < n && !err && r->go.n; i++) {
		const struct go_function key = { .start = r->function[i].start };

		r->function[i].go =
			bsearch(&key, r->go.function, r->go.n, sizeof(key), by_go_start);
	}
	for (size_t i = 0; i < r->go.n && !err; i++) {
		const struct go_function *go = &r->go.function[i];
		struct function own = { .start = go->start, .go = go };
		enum go_switch kind = go_switch_of(go->name);

		if (kind && kind != GO_SWITCH_FRAMED &&
		    !(n && bsearch(&own, r->function, n, sizeof(own), by_start)))
			err = add_function(r, &own);
	}
	if (!n)
		r->entry = 0; /* no function has rules: that it has none says nothing */
	else if (r->nfunctions > n)
		qsort(r->function, r->nfunctions, sizeof(*r->function), by_start);
	return err;
}

static void read_functions(struct reader *r)
{
	__u64 first, last;
	GElf_Shdr text;

	if (!r->nfunctions)
		return;
	first = r->function[0].start;
	last = r->function[r->nfunctions - 1].start;
	add_startup_section(r, ".init", 0, first);
	add_entry(r, 0, first);
	if (elf_image_section(r->elf, ".text", &text) && text.sh_addr < first)
		add_startup(r, text.sh_addr, first);
	for (size_t i = 0; i < r->nfunctions && !r->late; i++) {
		__u64 limit = i + 1 < r->nfunctions ? r->function[i + 1].start : ~0ull;

		read_function(r, &r->function[i], limit);
	}
	add_startup_section(r, ".fini", last, ~0ull);
}

static bool has_debug_frame(Elf *elf)
{
	GElf_Shdr sh;

	return elf_image_section(elf, ".debug_frame", &sh) ||
	       elf_image_section(elf, ".zdebug_frame", &sh);
}

/* Reads both sections; the rows are sorted, as the functions are. */
static int read_sections(struct reader *r)
{
	Dwarf_CFI *eh_frame = dwarf_getcfi_elf(r->elf);
	/* Unpacks all sections, not only this one. */
	Dwarf *dwarf = has_debug_frame(r->debug) && unpack_dwarf_bytes(r->debug) <= r->limit
			       ? dwarf_begin_elf(r->debug, DWARF_C_READ, NULL)
			       : NULL;
	struct frames frames;
	int err = frames_read(&frames, r->elf)
			  ?: find_eh_frame(r, &frames, eh_frame)
			  ?: find_debug_frame(r, &frames, dwarf ? dwarf_getcfi(dwarf) : NULL)
			  ?: find_go_functions(r);

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

static int read_within(struct unwind_table *t, Elf *elf, Elf *debug, struct file_account *account,
		       const struct unwind_stop *stop)
{
	struct reader r = { .out = t, .elf = elf, .debug = elf, .stop = stop };
	GElf_Ehdr header;
	GElf_Shdr sh;
	int err;

	*t = (struct unwind_table){ 0 };
	if (fits_machine(debug, &header) && !elf_image_bytes(elf, ".debug_frame", &sh))
		r.debug = debug;
	if (!fits_machine(elf, &header))
		return -ENOEXEC;
	r.limit = account ? UNPACK_FILE_BYTES : UNPACK_TRUSTED_BYTES;
	r.entry = header.e_entry;
	r.raw = elf_rawfile(elf, &r.raw_bytes);
	r.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	read_budget_begin(&r.budget, account, FILE_TIME);
	r.budget.credit_ns = CPU_NS_MAX;
	err = elf_image_segments(&r.segments, elf);
	if (!err)
		err = elf_image_code(&r.code, elf, 0);
	if (!err)
		err = read_sections(&r);
	if (!err && !r.nfunctions)
		add_trampoline(&r);
	free(r.function);
	segments_fini(&r.segments);
	segments_fini(&r.code);
	go_functions_fini(&r.go);
	read_budget_end(&r.budget);
	if (r.failed || r.stopped)
		err = r.failed ? -ENOMEM : -EINTR;
	if (err)
		unwind_table_fini(t);
	return err;
}

int unwind_table_read(struct unwind_table *t, Elf *elf, Elf *debug)
{
	return read_within(t, elf, debug, NULL, NULL);
}

int unwind_table_open(struct unwind_table *t, int fd, int debug_fd, const struct unwind_stop *stop)
{
	struct file_account *account = file_account_of(fd);
	Elf *elf, *debug;
	int err;

	*t = (struct unwind_table){ 0 };
	if (!account && debug_fd >= 0)
		account = file_account_of(debug_fd);
	if (account && !file_account_time_left(account, FILE_TIME))
		return -EAGAIN;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	debug = debug_fd < 0 ? NULL : elf_begin(debug_fd, ELF_C_READ_MMAP, NULL);
	err = elf ? read_within(t, elf, debug, account, stop) : -ENOEXEC;
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
	size_t lo = COUNT_WHILE(t->n, i, t->row[i].offset <= offset);

	return lo ? &t->row[lo - 1] : NULL;
}

void unwind_table_fini(struct unwind_table *t)
{
	free(t->row);
	*t = (struct unwind_table){ 0 };
}
