/* symbols.c - which function stands at an offset of an ELF file */
#include <errno.h>
#include <gelf.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <elfutils/libdwelf.h>

#include "core/scope.h"

#include "debugfile.h"
#include "frames.h"
#include "maps.h"
#include "perfmap.h"
#include "plt.h"
#include "symbols.h"

#define PAGE_BYTES 4096
#define GO_BUILD_ID_BYTES 20

struct segment {
	__u64 offset;
	__u64 bytes;
	__u64 vaddr;
};

struct entry {
	__u64 start;
	__u64 end;
	const char *name;
	__u32 len;
	__u8 weak;
	__u8 local;
	__u8 unsized; /* it ends with its section, or where the next one starts */
};

struct symbols {
	Elf *elf;
	Elf *debug;
	int debug_fd;
	struct segment *segments; /* the executable ones */
	size_t nsegments;
	struct entry *entries; /* sorted by start, one for each */
	size_t nentries;
	struct frames frames;
	struct plt plt;
	struct perfmap perfmap;
};

static int read_segments(struct symbols *s)
{
	size_t n;

	if (elf_getphdrnum(s->elf, &n) < 0)
		return -ENOEXEC;
	s->segments = calloc(n + 1, sizeof(*s->segments));
	if (!s->segments)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(s->elf, (int)i, &ph) || ph.p_type != PT_LOAD ||
		    !(ph.p_flags & PF_X))
			continue;
		s->segments[s->nsegments++] =
			(struct segment){ ph.p_offset, ph.p_filesz, ph.p_vaddr };
	}
	return 0;
}

static __u64 lowest_vaddr(Elf *elf)
{
	__u64 lowest = ~0ull;
	size_t n = 0;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_LOAD && ph.p_vaddr < lowest)
			lowest = ph.p_vaddr;
	}
	return lowest;
}

/* Where the code of the section that holds @sym ends; 0: it holds no code. */
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
	/* Arm's $x and $d, and what the assembler keeps for itself, are no functions. */
	if (type == STT_NOTYPE)
		return *name != '$' && strncmp(name, ".L", 2) != 0 && code_end(elf, sym);
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* A name without its @VERSION. */
static __u32 name_len(const char *name)
{
	const char *at = strchr(name + 1, '@');

	return (__u32)(at ? (size_t)(at - name) : strlen(name));
}

/* Takes the functions of @scn; @bias is what the addresses of @elf lack. */
static int take_symbols(struct symbols *s, Elf *elf, Elf_Scn *scn, __u64 bias)
{
	Elf_Data *table = elf_getdata(scn, NULL);
	GElf_Shdr sh;
	size_t n;

	if (!table || !gelf_getshdr(scn, &sh) || !sh.sh_entsize)
		return 0;
	n = sh.sh_size / sh.sh_entsize;
	s->entries = calloc(n + 1, sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const char *name;
		GElf_Sym sym;

		if (!gelf_getsym(table, (int)i, &sym))
			break;
		name = elf_strptr(elf, sh.sh_link, sym.st_name);
		if (!is_code(elf, &sym, name))
			continue;
		s->entries[s->nentries++] = (struct entry){
			.start = sym.st_value + bias,
			.end = (sym.st_size ? sym.st_value + sym.st_size : code_end(elf, &sym)) +
			       bias,
			.unsized = !sym.st_size,
			.name = name,
			.len = name_len(name),
			.weak = GELF_ST_BIND(sym.st_info) == STB_WEAK,
			.local = GELF_ST_BIND(sym.st_info) == STB_LOCAL,
		};
	}
	return 0;
}

static int take_plt(struct symbols *s)
{
	struct entry *more;
	int err = plt_read(&s->plt, s->elf);

	if (err < 0 || !s->plt.n)
		return err;
	more = reallocarray(s->entries, s->nentries + s->plt.n, sizeof(*more));
	if (!more)
		return -ENOMEM;
	s->entries = more;
	for (size_t i = 0; i < s->plt.n; i++) {
		__u64 start = s->plt.start + i * s->plt.stub_bytes;

		s->entries[s->nentries++] = (struct entry){ .start = start,
							    .end = start + s->plt.stub_bytes,
							    .name = s->plt.names[i],
							    .len = (__u32)strlen(s->plt.names[i]) };
	}
	return 0;
}

static Elf_Scn *find_section(Elf *elf, GElf_Word type)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			return scn;
	}
	return NULL;
}

static unsigned int underscores(const struct entry *e)
{
	unsigned int n = 0;

	while (n < e->len && e->name[n] == '_')
		n++;
	return n;
}

/*
 * Of several names for one address, the one that people know comes first: the same that perf
 * prefers, so that the two reports can be compared.
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
	return memcmp(x->name, y->name, x->len);
}

/* One entry for each address; labels inside a function go, those outside reach to the next. */
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

/* The file's own symbols, else those that were split off it, else its dynamic ones. */
static int read_entries(struct symbols *s, const char *path)
{
	Elf_Scn *scn = find_section(s->elf, SHT_SYMTAB);
	int err = 0;

	if (!scn && path) {
		s->debug_fd = debugfile_open(s->elf, path);
		if (s->debug_fd >= 0)
			s->debug = elf_begin(s->debug_fd, ELF_C_READ_MMAP, NULL);
	}
	if (scn)
		err = take_symbols(s, s->elf, scn, 0);
	else if (s->debug && (scn = find_section(s->debug, SHT_SYMTAB)))
		/* prelink(8) moves a file, but not what was split off it before. */
		err = take_symbols(s, s->debug, scn, lowest_vaddr(s->elf) - lowest_vaddr(s->debug));
	else if ((scn = find_section(s->elf, SHT_DYNSYM)))
		err = take_symbols(s, s->elf, scn, 0);
	if (!err)
		err = take_plt(s);
	if (!err && s->nentries)
		settle(s);
	return err;
}

void symbols_close(struct symbols *s)
{
	if (!s)
		return;
	elf_end(s->debug);
	elf_end(s->elf);
	closep(&s->debug_fd);
	frames_fini(&s->frames);
	plt_fini(&s->plt);
	perfmap_fini(&s->perfmap);
	free(s->segments);
	free(s->entries);
	free(s);
}

static void symbols_closep(struct symbols **s)
{
	symbols_close(*s);
}

/* Takes over @elf, also when it fails. */
static int open_elf(struct symbols **out, Elf *elf, const char *path)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		elf_end(elf);
		return -ENOMEM;
	}
	s->elf = elf;
	s->debug_fd = -1;
	if (elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	err = read_segments(s);
	if (!err)
		err = read_entries(s, path);
	if (!err)
		err = frames_read(&s->frames, elf);
	if (err < 0)
		return err;
	*out = steal(s);
	return 0;
}

int symbols_open(struct symbols **out, int fd, const char *path)
{
	elf_version(EV_CURRENT);
	return open_elf(out, elf_begin(fd, ELF_C_READ_MMAP, NULL), path);
}

int symbols_open_vdso(struct symbols **out)
{
	char *image = (char *)getauxval(AT_SYSINFO_EHDR);
	const struct mapping *m;
	struct maps maps;
	int err;

	if (!image || maps_read(&maps, getpid()) < 0)
		return -ENOENT;
	elf_version(EV_CURRENT);
	m = maps_find(&maps, (__u64)(unsigned long)image);
	err = m ? open_elf(out, elf_memory(image, (size_t)(m->hi - m->lo)), NULL) : -ENOENT;
	maps_fini(&maps);
	return err;
}

static int take_perfmap(struct symbols *s)
{
	s->entries = calloc(s->perfmap.n + 1, sizeof(*s->entries));
	s->segments = calloc(1, sizeof(*s->segments));
	if (!s->entries || !s->segments)
		return -ENOMEM;
	s->segments[0].bytes = ~0ull;
	s->nsegments = 1;
	for (; s->nentries < s->perfmap.n; s->nentries++) {
		const struct perfmap_name *n = &s->perfmap.name[s->nentries];

		s->entries[s->nentries] = (struct entry){ .start = n->start,
							  .end = n->start + n->bytes,
							  .name = n->name,
							  .len = (__u32)strlen(n->name) };
	}
	return 0;
}

int symbols_open_perfmap(struct symbols **out, int fd)
{
	__cleanup(symbols_closep) struct symbols *s = calloc(1, sizeof(*s));
	int err;

	if (!s)
		return -ENOMEM;
	s->debug_fd = -1;
	err = perfmap_read(&s->perfmap, fd);
	if (!err)
		err = take_perfmap(s);
	if (err < 0)
		return err;
	*out = steal(s);
	return 0;
}

/* The last entry that starts at or below @vaddr; SIZE_MAX: none. */
static size_t last_below(const struct symbols *s, __u64 vaddr)
{
	size_t lo = 0, hi = s->nentries;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->entries[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo - 1;
}

/* The innermost entry that holds @vaddr; functions rarely lie in each other, and never deep. */
static const struct entry *covering(const struct symbols *s, size_t last, __u64 vaddr)
{
	for (size_t i = last; i != SIZE_MAX && i + 8 > last; i--) {
		if (vaddr < s->entries[i].end)
			return &s->entries[i];
	}
	return NULL;
}

/* What stands at @vaddr, in virtual addresses, inside [lo, hi). */
static void find_vaddr(const struct symbols *s, __u64 vaddr, __u64 lo, __u64 hi,
		       struct symbols_range *out)
{
	size_t last = last_below(s, vaddr);
	const struct entry *e = covering(s, last, vaddr);

	if (last != SIZE_MAX && s->entries[last].end > lo && !e)
		lo = s->entries[last].end;
	if (last + 1 < s->nentries && s->entries[last + 1].start < hi)
		hi = s->entries[last + 1].start;
	if (e) {
		*out = (struct symbols_range){ .kind = SYMBOLS_NAMED,
					       .name = e->name,
					       .name_len = e->len,
					       .start = e->start,
					       .end = e->end,
					       .upto = e->end < hi ? e->end : hi };
		return;
	}
	*out = (struct symbols_range){ .kind = SYMBOLS_FRAME };
	if (!frames_find(&s->frames, vaddr, &out->start, &out->end)) {
		out->kind = SYMBOLS_PAGE;
		out->start = vaddr / PAGE_BYTES * PAGE_BYTES;
		out->end = out->start + PAGE_BYTES;
	}
	out->start = out->start > lo ? out->start : lo;
	out->end = out->end < hi ? out->end : hi;
	out->upto = out->end;
}

void symbols_find(struct symbols *s, __u64 offset, struct symbols_range *out)
{
	__u64 start = offset / PAGE_BYTES * PAGE_BYTES;

	for (size_t i = 0; s && i < s->nsegments; i++) {
		const struct segment *g = &s->segments[i];
		__u64 back = g->offset - g->vaddr;

		if (offset - g->offset >= g->bytes)
			continue;
		find_vaddr(s, offset - back, g->vaddr, g->vaddr + g->bytes, out);
		out->start += back;
		out->end += back;
		out->upto += back;
		return;
	}
	*out = (struct symbols_range){ .kind = SYMBOLS_PAGE,
				       .start = start,
				       .end = start + PAGE_BYTES,
				       .upto = start + PAGE_BYTES };
}

static bool is_static(Elf *elf)
{
	GElf_Ehdr eh;

	return gelf_getehdr(elf, &eh) && eh.e_type == ET_EXEC;
}

void symbols_layout(int fd, __u64 *vaddr, bool *program)
{
	size_t n = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	*vaddr = 0;
	*program = false;
	elf_getphdrnum(elf, &n);
	for (size_t i = n; i-- > 0;) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph))
			continue;
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			*vaddr = ph.p_vaddr - ph.p_offset;
		/* A static program has no interpreter, and libc's library has one. */
		*program |= ph.p_type == PT_INTERP;
	}
	*program = (*program && !find_section(elf, SHT_GNU_verdef)) || is_static(elf);
	elf_end(elf);
}

/*
 * The identity that Go's linker gives a file, which has no other. The text is long; its last part
 * is the hash of what the file holds. Returns its length; 0: none.
 */
static size_t go_build_id(Elf *elf, const unsigned char **id)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *note = elf_getdata(scn, NULL);
		size_t name_at, text_at;
		const char *name;
		GElf_Shdr sh;
		GElf_Nhdr nh;

		name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || strcmp(name, ".note.go.buildid") != 0 || !note ||
		    !gelf_getnote(note, 0, &nh, &name_at, &text_at))
			continue;
		*id = (const unsigned char *)note->d_buf + text_at;
		*id += nh.n_descsz > GO_BUILD_ID_BYTES ? nh.n_descsz - GO_BUILD_ID_BYTES : 0;
		return nh.n_descsz < GO_BUILD_ID_BYTES ? nh.n_descsz : GO_BUILD_ID_BYTES;
	}
	return 0;
}

void symbols_build_id(int fd, char *out, size_t bytes)
{
	const unsigned char *id;
	const void *raw = NULL;
	ssize_t len;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	len = dwelf_elf_gnu_build_id(elf, &raw);
	id = raw;
	if (len <= 0)
		len = (ssize_t)go_build_id(elf, &id);
	*out = '\0';
	for (ssize_t i = 0; i < len && 2 * (size_t)i + 3 <= bytes; i++)
		snprintf(out + 2 * i, bytes - 2 * (size_t)i, "%02x", id[i]);
	elf_end(elf);
}
