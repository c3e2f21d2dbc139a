/* elf_symbols.c - finds the function at an offset of an ELF file, or of the kernel */
#include <ctype.h>
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "symbols/elf/debug_file.h"
#include "symbols/elf/eh_frame_hdr.h"
#include "symbols/elf/elf_image.h"
#include "symbols/elf/go_pclntab.h"
#include "cover.h"
#include "kallsyms.h"
#include "symbols/proc/proc_maps.h"
#include "perf_map.h"
#include "symbols/elf/plt.h"
#include "elf_symbols.h"

#define PAGE_BYTES 4096
#define KERNEL_FUNCTION_MAX (64u << 10)
#define COMPARED_MAX 256u /* of names of megabytes that many symbols share */
#define FOREIGN_NAME_MAX 4096
#define SYMBOLS_UNCHECKED 256
#define SYMBOLS_MAX (16 << 20) /* real files have up to a few million; a sparse one any number */

struct entry {
	__u64 start;
	__u64 end;
	const char *name;
	__u32 len;
	__u8 weak;
	__u8 local;
	__u8 unsized; /* has no size: ends with its section or at the next entry */
};

struct symbols {
	Elf *elf;
	struct debug_file *debug;
	struct segments segments;
	struct entry *entries; /* sorted by start, which is unique */
	size_t nentries;
	/* Entries by address: of several that contain it, the one that starts last. */
	struct claim *pieces;
	size_t npieces;
	struct frames frames;
	struct go_functions go;
	struct plt plt;
	struct perfmap perfmap;
	struct kallsyms kallsyms;
	struct interpreted *interpreted;
};

/* The end of the section of @sym; 0: not a section with code. */
static __u64 code_end(Elf *elf, const GElf_Sym *sym)
{
	Elf_Scn *scn = elf_getscn(elf, sym->st_shndx);
	GElf_Shdr sh;

	if (!scn || !gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR))
		return 0;
	return sh.sh_addr + sh.sh_size;
}

static bool is_code(Elf *elf, const GElf_Sym *sym, const char *name)
{
	int type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= SHN_LORESERVE || !name || !*name)
		return false;
	/* Arm's mapping symbols $x and $d, and the assembler's local labels, are not functions. */
	if (type == STT_NOTYPE)
		return *name != '$' && strncmp(name, ".L", 2) != 0 && code_end(elf, sym);
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* As GLIBC_2.34 or V1: an identifier with a number. */
static bool is_version(const char *s)
{
	bool numbered = false;

	for (const char *c = s; *c; c++) {
		if (!isalnum((unsigned char)*c) && *c != '_' && *c != '.')
			return false;
		numbered |= isdigit((unsigned char)*c) != 0;
	}
	return numbered;
}

/*
 * A name without its @VERSION or @@VERSION. Only identifiers have versions: Crystal, for example,
 * has other names in which the parts around '@' tell functions apart.
 */
static __u32 name_len(const char *name)
{
	size_t n = strcspn(name, "@");
	const char *version = name + n + strspn(name + n, "@");

	for (size_t i = 0; i < n; i++) {
		if (!isalnum((unsigned char)name[i]) && !strchr("_$.", name[i]))
			return (__u32)strlen(name);
	}
	return (__u32)(n && version - name - n <= 2 && is_version(version) ? n : strlen(name));
}

/* arm64's vdso: signal handlers return to this, and callers are looked up at return address - 1. */
static bool is_trampoline(const char *name)
{
	static const char trampoline[] = "__kernel_rt_sigreturn";

	return name_len(name) == strlen(trampoline) &&
	       !strncmp(name, trampoline, strlen(trampoline));
}

/* Symbol @i, if it is a function. */
static bool function_at(struct entry *out, struct debug_file *debug, int i)
{
	const char *name;
	GElf_Addr start;
	GElf_Sym sym;
	Elf *elf;

	name = debug_file_symbol(debug, i, &sym, &start, &elf);
	if (!name || !is_code(elf, &sym, name))
		return false;
	*out = (struct entry){
		.start = start,
		.end = start + (sym.st_size ? sym.st_size : code_end(elf, &sym) - sym.st_value),
		.unsized = !sym.st_size,
		.name = name,
		.len = name_len(name),
		.weak = GELF_ST_BIND(sym.st_info) == STB_WEAK,
		.local = GELF_ST_BIND(sym.st_info) == STB_LOCAL,
	};
	if (out->len > FOREIGN_NAME_MAX && !debug_file_is_trusted(debug))
		out->len = FOREIGN_NAME_MAX; /* any number of symbols can have the same text */
	if (is_trampoline(name))
		out->start -= 4; /* the instruction before it belongs to it */
	return true;
}

static int take_symbols(struct symbols *s)
{
	int n = debug_file_nsymbols(s->debug);

	if (n > SYMBOLS_MAX)
		return -EFBIG;
	s->entries = calloc(n > 0 ? (size_t)n + 1 : 1, sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	for (int i = 0; i < n; i++) {
		if (i % SYMBOLS_UNCHECKED == 0 && !debug_file_has_symbols_within(s->debug))
			return -EFBIG;
		s->nentries += function_at(&s->entries[s->nentries], s->debug, i);
	}
	return 0;
}

/* Makes room for @n more entries. Returns 0 or -ENOMEM. */
static int reserve(struct symbols *s, size_t n)
{
	struct entry *more = reallocarray(s->entries, s->nentries + n + 1, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->entries = more;
	return 0;
}

static int take_go_functions(struct symbols *s)
{
	int err = go_functions_read(&s->go, s->elf) ?: reserve(s, s->go.n);

	if (err < 0)
		return err;
	for (size_t i = 0; i < s->go.n; i++) {
		const struct go_function *f = &s->go.function[i];

		s->entries[s->nentries++] = (struct entry){ .start = f->start,
							    .end = f->end,
							    .name = f->name,
							    .len = (__u32)strlen(f->name) };
	}
	return 0;
}

static int take_plt(struct symbols *s)
{
	int err = plt_read(&s->plt, s->elf) ?: reserve(s, s->plt.n);

	if (err < 0)
		return err;
	for (size_t i = 0; i < s->plt.n; i++) {
		const struct plt_stub *stub = &s->plt.stub[i];

		s->entries[s->nentries++] = (struct entry){ .start = stub->start,
							    .end = stub->end,
							    .name = stub->name,
							    .len = (__u32)strlen(stub->name) };
	}
	return 0;
}

static unsigned int underscores(const struct entry *e)
{
	unsigned int n = 0;

	while (n < e->len && e->name[n] == '_')
		n++;
	return n;
}

/*
 * Among aliases for an address the one that perf prefers comes first, so that reports can be
 * compared.
 */
static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->unsized != y->unsized)
		return x->unsized - y->unsized;
	if (x->weak != y->weak)
		return x->weak - y->weak;
	if (x->local != y->local)
		return x->local - y->local;
	if (underscores(x) != underscores(y))
		return underscores(x) < underscores(y) ? -1 : 1;
	if (x->len != y->len)
		return x->len > y->len ? -1 : 1;
	return memcmp(x->name, y->name, x->len < COMPARED_MAX ? x->len : COMPARED_MAX);
}

/*
 * Keeps one entry for each address. Removes labels inside of functions, and extends others to the
 * next entry.
 */
static void settle(struct symbols *s)
{
	struct entry *e = s->entries;
	__u64 covered = 0;
	size_t n = 0;

	qsort(e, s->nentries, sizeof(*e), by_start);
	for (size_t i = 0; i < s->nentries; i++) {
		if (n && e[n - 1].start == e[i].start)
			continue;
		if (e[i].unsized && e[i].start < covered)
			continue;
		if (!e[i].unsized && e[i].end > covered)
			covered = e[i].end;
		if (n && e[n - 1].unsized && e[i].start < e[n - 1].end)
			e[n - 1].end = e[i].start;
		e[n++] = e[i];
	}
	s->nentries = n;
}

/* Call after the entries are complete. Returns 0 or -ENOMEM. */
static int make_pieces(struct symbols *s)
{
	struct claim *less;
	int err;

	s->pieces = calloc(2 * s->nentries + 1, sizeof(*s->pieces));
	if (!s->pieces)
		return -ENOMEM;
	for (size_t i = 0; i < s->nentries; i++)
		s->pieces[i] = (struct claim){ s->entries[i].start, s->entries[i].end, i, i };
	s->npieces = s->nentries;
	err = cover(s->pieces, &s->npieces);
	less = err ? NULL : realloc(s->pieces, (s->npieces + 1) * sizeof(*less));
	s->pieces = less ? less : s->pieces;
	return err;
}

/* A file without .symtab can be a Go program, whose runtime has a pclntab. */
static int read_entries(struct symbols *s)
{
	int err = take_symbols(s);
	GElf_Shdr sh;

	if (!err && !elf_image_section_of_type(s->elf, SHT_SYMTAB, &sh))
		err = take_go_functions(s);
	err = err ?: take_plt(s);
	if (!err && s->nentries)
		settle(s);
	return err ? err : make_pieces(s);
}

void symbols_close(struct symbols *s)
{
	if (!s)
		return;
	debug_file_close(s->debug);
	elf_end(s->elf);
	frames_fini(&s->frames);
	go_functions_fini(&s->go);
	plt_fini(&s->plt);
	perfmap_fini(&s->perfmap);
	kallsyms_fini(&s->kallsyms);
	segments_fini(&s->segments);
	interpreted_free(s->interpreted);
	free(s->entries);
	free(s->pieces);
	free(s);
}

static void symbols_closep(struct symbols **s)
{
	symbols_close(*s);
}

int symbols_open(struct symbols **out, int fd, const char *path)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	elf_version(EV_CURRENT);
	s->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(s->elf) != ELF_K_ELF)
		return -ENOEXEC;
	err = debug_file_open(&s->debug, fd, path);
	if (err < 0)
		return err;
	debug_file_begin_symbols(s->debug);
	err = elf_image_segments(&s->segments, s->elf)
		      ?: read_entries(s)
		      ?: frames_read(&s->frames, s->elf);
	if (!err && !debug_file_has_symbols_within(s->debug))
		err = -EFBIG;
	debug_file_pause(s->debug);
	if (err < 0)
		return err;
	*out = steal(s);
	return 0;
}

int symbols_open_vdso(struct symbols **out)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	__cleanup(closep) int fd = memfd_create("vdso", MFD_CLOEXEC);
	const struct mapping *m;
	struct maps maps;
	bool copied;

	if (!image || fd < 0 || maps_read(&maps, getpid()) < 0)
		return -ENOENT;
	m = maps_find(&maps, (__u64)(unsigned long)image);
	copied = m && write(fd, image, (size_t)(m->hi - m->lo)) == (ssize_t)(m->hi - m->lo);
	maps_fini(&maps);
	return copied ? symbols_open(out, fd, "[vdso]") : -ENOENT;
}

/* Makes room for @n entries without a file: all offsets are addresses. */
static int reserve_addresses(struct symbols *s, size_t n)
{
	int err = segments_add(&s->segments, &(struct segment){ .bytes = ~0ull });

	return err ? err : reserve(s, n);
}

static int take_perfmap(struct symbols *s)
{
	if (reserve_addresses(s, s->perfmap.n) < 0)
		return -ENOMEM;
	for (; s->nentries < s->perfmap.n; s->nentries++) {
		const struct perfmap_name *n = &s->perfmap.name[s->nentries];

		s->entries[s->nentries] = (struct entry){ .start = n->start,
							  .end = n->start + n->bytes,
							  .name = n->name,
							  .len = (__u32)strlen(n->name) };
	}
	return make_pieces(s);
}

int symbols_open_perfmap(struct symbols **out, int fd)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	err = perfmap_read(&s->perfmap, fd) ?: take_perfmap(s);
	if (err < 0)
		return err;
	*out = steal(s);
	return 0;
}

int symbols_open_interpreted(struct symbols **out, const struct interpreted *i)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->interpreted = interpreted_copy_names(i);
	if (!s->interpreted || reserve_addresses(s, i->n) < 0)
		return -ENOMEM;
	for (size_t k = 0; k < i->n; k++) {
		const struct interpreted_function *f = &s->interpreted->function[k];

		s->entries[s->nentries++] = (struct entry){ .start = f->start,
							    .end = (__u64)f->start + f->length + 1,
							    .name = f->name,
							    .len = (__u32)strlen(f->name) };
	}
	if (make_pieces(s) < 0)
		return -ENOMEM;
	*out = steal(s);
	return 0;
}

/* Sizes are unknown: each function extends to the next. */
static int take_kallsyms(struct symbols *s, __u64 text)
{
	if (reserve_addresses(s, s->kallsyms.n) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < s->kallsyms.n; i++) {
		const struct kernel_function *f = &s->kallsyms.function[i];
		__u64 start = f->address - text;

		s->entries[s->nentries++] = (struct entry){ .start = start,
							    .end = start + KERNEL_FUNCTION_MAX,
							    .unsized = true,
							    .name = f->name,
							    .len = (__u32)strlen(f->name),
							    .weak = f->weak,
							    .local = f->local };
	}
	settle(s);
	return make_pieces(s);
}

int symbols_open_kernel(struct symbols **out, __u64 text)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	__cleanup(fclosep) FILE *in = fopen("/proc/kallsyms", "re");
	int err;

	if (!s)
		return -ENOMEM;
	err = (in ? kallsyms_read(&s->kallsyms, in) : -errno) ?: take_kallsyms(s, text);
	if (err < 0)
		return err;
	*out = steal(s);
	return 0;
}

/* glibc's and musl's name of the code to which a signal's handler returns. */
#define RESTORER "__restore_rt"

/* Finds the function at @vaddr, cut to [lo, hi); all are virtual addresses. */
static void find_vaddr(const struct symbols *s, __u64 vaddr, __u64 lo, __u64 hi,
		       struct symbols_range *out)
{
	const __u64 first = lo, behind = hi; /* a forged symbol can reach beyond the segment */
	size_t upto = cover_upto(s->pieces, s->npieces, vaddr);
	const struct claim *below = upto ? &s->pieces[upto - 1] : NULL;

	if (upto < s->npieces && s->pieces[upto].start < hi)
		hi = s->pieces[upto].start;
	if (below && vaddr < below->end) {
		const struct entry *e = &s->entries[below->owner];

		*out = (struct symbols_range){ .kind = SYMBOLS_NAMED,
					       .name = e->name,
					       .name_len = e->len,
					       .start = e->start > first ? e->start : first,
					       .end = e->end < behind ? e->end : behind,
					       .upto = below->end < hi ? below->end : hi };
		return;
	}
	if (below && below->end > lo)
		lo = below->end;
	*out = (struct symbols_range){ .kind = SYMBOLS_FRAME };
	if (!frames_find(&s->frames, vaddr, &out->start, &out->end)) {
		__u64 page = vaddr / PAGE_BYTES * PAGE_BYTES;

		out->kind = SYMBOLS_PAGE;
		out->start = out->start > page ? out->start : page;
		out->end = out->end < page + PAGE_BYTES ? out->end : page + PAGE_BYTES;
	} else if (frames_returns_from_signal(&s->frames, out->start)) {
		/* Its unwind information starts a byte earlier than its symbol, if it has one. */
		out->kind = SYMBOLS_NAMED;
		out->name = RESTORER;
		out->name_len = strlen(RESTORER);
	}
	out->start = out->start > lo ? out->start : lo;
	out->end = out->end < hi ? out->end : hi;
	out->upto = out->end;
}

void symbols_find(struct symbols *s, __u64 offset, struct symbols_range *out)
{
	const struct segment *g = s ? segments_of_offset(&s->segments, offset) : NULL;
	__u64 start = offset / PAGE_BYTES * PAGE_BYTES, back;

	if (!g) {
		*out = (struct symbols_range){ .kind = SYMBOLS_PAGE,
					       .start = start,
					       .end = start + PAGE_BYTES,
					       .upto = start + PAGE_BYTES };
		return;
	}
	back = g->offset - g->vaddr;
	find_vaddr(s, offset - back, g->vaddr, g->vaddr + g->bytes, out);
	out->start += back;
	out->end += back;
	out->upto += back;
}

/* Searches @name in the symbol table, which has all aliases, unlike the entries. */
static bool find_named(const struct symbols *s, const char *name, __u64 *vaddr)
{
	size_t len = strlen(name);
	struct entry e;
	int n = s->debug ? debug_file_nsymbols(s->debug) : 0;

	for (int i = 0; i < n; i++) {
		if (function_at(&e, s->debug, i) && e.len == len && !memcmp(e.name, name, len)) {
			*vaddr = e.start;
			return true;
		}
	}
	return false;
}

bool symbols_named(const struct symbols *s, const char *name, __u64 *offset)
{
	__u64 vaddr;

	return find_named(s, name, &vaddr) && segments_offset(&s->segments, vaddr, offset);
}

/* Finds the named function of one of the @n offsets from *@at on, and moves *@at behind it. */
static bool next_named(struct symbols *s, const __u64 *offset, size_t n, size_t *at,
		       struct symbols_range *out)
{
	while (*at < n) {
		symbols_find(s, offset[*at], out);
		while (*at < n && offset[*at] < out->upto)
			++*at;
		if (out->kind == SYMBOLS_NAMED)
			return true;
	}
	return false;
}

int symbols_keep(struct symbols **out, struct symbols *from, const __u64 *offset, size_t n)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	size_t bytes = 0, functions = 0;
	struct symbols_range f;
	char *text;

	for (size_t at = 0; next_named(from, offset, n, &at, &f); functions++)
		bytes += f.name_len + 1;
	if (!s)
		return -ENOMEM;
	s->perfmap.name = calloc(functions + 1, sizeof(*s->perfmap.name));
	s->perfmap.text = text = calloc(bytes + 1, 1);
	if (!s->perfmap.name || !text)
		return -ENOMEM;
	for (size_t at = 0; next_named(from, offset, n, &at, &f); text += f.name_len + 1) {
		memcpy(text, f.name, f.name_len);
		s->perfmap.name[s->perfmap.n++] =
			(struct perfmap_name){ f.start, f.end - f.start, text };
	}
	if (take_perfmap(s) < 0)
		return -ENOMEM;
	*out = steal(s);
	return 0;
}
