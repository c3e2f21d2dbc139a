/* binary.c - symbols, code and words of an interpreter's ELF file */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/arch.h"
#include "symbols/elf/eh_frame_hdr.h"

#include "binary.h"

/* The dynamic symbols, and the header of their section; NULL: there are none. */
static Elf_Data *dynamic_symbols(Elf *elf, GElf_Shdr *header)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		if (gelf_getshdr(section, header) && header->sh_type == SHT_DYNSYM)
			return elf_getdata(section, NULL);
	}
	return NULL;
}

bool binary_symbol(struct binary_symbol *out, Elf *elf, const char *name)
{
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Data *data = dynamic_symbols(elf, &header);

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *is = elf_strptr(elf, header.sh_link, symbol.st_name);

		if (symbol.st_shndx == SHN_UNDEF || !is || strcmp(is, name) != 0)
			continue;
		*out = (struct binary_symbol){ symbol.st_value, symbol.st_size };
		return true;
	}
	return false;
}

/* The segment that has @n bytes of the file at @vaddr, with all of @flags. */
static bool segment_of(GElf_Phdr *ph, Elf *elf, __u64 vaddr, size_t n, GElf_Word flags)
{
	size_t segments = 0;

	if (elf_getphdrnum(elf, &segments) < 0)
		return false;
	for (size_t i = 0; i < segments; i++) {
		if (gelf_getphdr(elf, (int)i, ph) && ph->p_type == PT_LOAD &&
		    (ph->p_flags & flags) == flags && vaddr >= ph->p_vaddr &&
		    vaddr - ph->p_vaddr < ph->p_filesz && n <= ph->p_filesz - (vaddr - ph->p_vaddr))
			return true;
	}
	return false;
}

bool binary_bytes(Elf *elf, __u64 vaddr, void *out, size_t n)
{
	GElf_Phdr ph;
	size_t size;
	const char *raw = elf_rawfile(elf, &size);
	__u64 at;

	if (!raw || !segment_of(&ph, elf, vaddr, n, 0))
		return false;
	at = vaddr - ph.p_vaddr + ph.p_offset;
	if (at > size || n > size - at)
		return false;
	memcpy(out, raw + at, n);
	return true;
}

bool binary_delta(Elf *elf, __u64 vaddr, __u64 *delta)
{
	GElf_Phdr ph;

	if (!segment_of(&ph, elf, vaddr, 1, PF_X))
		return false;
	*delta = ph.p_vaddr - ph.p_offset;
	return true;
}

__s16 binary_specific_offset(void)
{
	const __u32 *told = dlsym(RTLD_DEFAULT, "_thread_db_pthread_specific");
	const __u32 *bytes = dlsym(RTLD_DEFAULT, "_thread_db_sizeof_pthread");
	__u32 before = ARCH_THREAD_IS_BEFORE_POINTER && bytes ? *bytes : 0;

	return (__s16)((told ? told[2] : 0x510) - before);
}

/* --- cold parts ------------------------------------------------------------------------------- */

#define COLD_JUMPS_MIN 8 /* bytes that look like a jump rarely agree on one function */
#define COLD_BYTES_MAX (1u << 20)

struct cold {
	__u64 start;
	__u64 end;
	unsigned int jumps;
};

/*
 * The target of the jump at @code, whose address is @vaddr: x86-64's conditional and unconditional
 * near jumps. Bytes inside of other instructions can look like one.
 */
static bool jump_target(const unsigned char *code, size_t left, __u64 vaddr, __u64 *target)
{
	size_t at = left >= 6 && code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2
		    : left >= 5 && code[0] == 0xe9			     ? 1
									     : 0;
	__s32 distance;

	if (!at)
		return false;
	memcpy(&distance, code + at, sizeof(distance));
	*target = vaddr + at + sizeof(distance) + (__u64)(__s64)distance;
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct cold *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* Takes the jumps of those functions that a symbol names. */
static void forget_named(struct cold *cold, size_t n, Elf *elf)
{
	GElf_Shdr header;
	GElf_Sym symbol;
	Elf_Data *data = dynamic_symbols(elf, &header);

	qsort(cold, n, sizeof(*cold), by_start);
	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		struct cold like = { .start = symbol.st_value };
		struct cold *found = bsearch(&like, cold, n, sizeof(*cold), by_start);

		if (found && symbol.st_shndx != SHN_UNDEF)
			found->jumps = 0;
	}
}

static void count_jump(struct cold *cold, size_t *n, size_t room, const struct frames *frames,
		       __u64 target)
{
	__u64 start, end;

	for (size_t i = 0; i < *n; i++) {
		if (target - cold[i].start < cold[i].end - cold[i].start) {
			cold[i].jumps++;
			return;
		}
	}
	if (*n < room && frames_find(frames, target, &start, &end) && end - start <= COLD_BYTES_MAX)
		cold[(*n)++] = (struct cold){ start, end, 1 };
}

#define COLDS_MAX 1024

/* Finds the functions that jumps of @loop enter. Returns their number. */
static size_t find_cold(struct cold *cold, Elf *elf, const struct binary_symbol *loop)
{
	__cleanup(freep) unsigned char *code = malloc(loop->bytes + 1);
	struct frames frames;
	size_t n = 0;

	if (!code || !binary_bytes(elf, loop->vaddr, code, loop->bytes) ||
	    frames_read(&frames, elf))
		return 0;
	for (size_t i = 0; i < loop->bytes; i++) {
		__u64 target;

		if (jump_target(code + i, loop->bytes - i, loop->vaddr + i, &target) &&
		    target - loop->vaddr >= loop->bytes)
			count_jump(cold, &n, COLDS_MAX, &frames, target);
	}
	frames_fini(&frames);
	return n;
}

static bool add_loop(struct profil_interpreter *d, size_t *n, Elf *elf, __u64 start, __u64 end)
{
	__u64 delta;

	if (*n == PROFIL_INTERPRETER_LOOPS || !binary_delta(elf, start, &delta) ||
	    end - delta > UINT32_MAX)
		return false;
	d->loop[(*n)++] =
		(struct profil_interpreter_loop){ (__u32)(start - delta), (__u32)(end - delta) };
	return true;
}

bool binary_loops(struct profil_interpreter *d, Elf *elf, const struct binary_symbol *loop)
{
	__cleanup(freep) struct cold *cold = calloc(COLDS_MAX, sizeof(*cold));
	size_t n = 0, ncold;

	if (!cold || !loop->bytes || loop->bytes > COLD_BYTES_MAX ||
	    !add_loop(d, &n, elf, loop->vaddr, loop->vaddr + loop->bytes))
		return false;
	ncold = find_cold(cold, elf, loop);
	forget_named(cold, ncold, elf);
	for (size_t i = 0; i < ncold; i++) {
		if (cold[i].jumps >= COLD_JUMPS_MIN)
			add_loop(d, &n, elf, cold[i].start, cold[i].end);
	}
	return true;
}

/* --- arrays of pointers ------------------------------------------------------------------------
 */

/* Relocations of position-independent programs, by an addend or a symbol. */
static void relocate(__u64 *out, size_t n, __u64 vaddr, const GElf_Rela *r, Elf_Data *symbols)
{
	__u64 at = (r->r_offset - vaddr) / sizeof(*out);
	GElf_Sym symbol = { 0 };

	if (r->r_offset < vaddr || at >= n)
		return;
	if (GELF_R_SYM(r->r_info) && symbols)
		gelf_getsym(symbols, (int)GELF_R_SYM(r->r_info), &symbol);
	out[at] = symbol.st_value + (__u64)r->r_addend;
}

bool binary_pointers(Elf *elf, __u64 vaddr, __u64 *out, size_t n)
{
	Elf_Scn *section = NULL;
	GElf_Shdr header;
	GElf_Rela rela;

	if (!binary_bytes(elf, vaddr, out, n * sizeof(*out)))
		return false;
	while ((section = elf_nextscn(elf, section))) {
		Elf_Data *data, *symbols;

		if (!gelf_getshdr(section, &header) || header.sh_type != SHT_RELA)
			continue;
		data = elf_getdata(section, NULL);
		symbols = elf_getdata(elf_getscn(elf, header.sh_link), NULL);
		for (int i = 0; data && gelf_getrela(data, i, &rela); i++)
			relocate(out, n, vaddr, &rela, symbols);
	}
	return true;
}

/* --- operations ------------------------------------------------------------------------------- */

#define GAP_MAX (64u << 10)

static int by_size(const void *a, const void *b)
{
	const struct cold *x = a, *y = b;
	__u64 of_x = x->end - x->start, of_y = y->end - y->start;

	return of_x > of_y ? -1 : of_x < of_y;
}

/* Replaces the functions, in order, by ranges of those that lie side by side; returns how many. */
static size_t join(struct cold *f, size_t n)
{
	size_t ranges = 0;

	qsort(f, n, sizeof(*f), by_start);
	for (size_t i = 0; i < n; i++) {
		struct cold *last = ranges ? &f[ranges - 1] : NULL;

		if (last && f[i].start <= last->end + GAP_MAX)
			last->end = f[i].end > last->end ? f[i].end : last->end;
		else
			f[ranges++] = f[i];
	}
	qsort(f, ranges, sizeof(*f), by_size);
	return ranges;
}

void binary_add_operations(struct profil_interpreter *d, Elf *elf, const __u64 *start, size_t n)
{
	__cleanup(freep) struct cold *f = calloc(n + 1, sizeof(*f));
	size_t found = 0, loops = 0, ranges;
	struct frames frames;

	if (!f || frames_read(&frames, elf))
		return;
	for (size_t i = 0; i < n; i++) {
		if (frames_find(&frames, start[i], &f[found].start, &f[found].end))
			found++;
	}
	frames_fini(&frames);
	ranges = join(f, found);
	while (loops < PROFIL_INTERPRETER_LOOPS && d->loop[loops].end)
		loops++;
	for (size_t i = 0; i < ranges; i++) {
		size_t at = loops;

		if (add_loop(d, &loops, elf, f[i].start, f[i].end))
			d->operations |= 1u << at;
	}
}

/* --- code without unwind information ---------------------------------------------------------- */

#define GAP_MIN (256u << 10)

bool binary_largest_gap(struct profil_interpreter *d, Elf *elf)
{
	struct frames frames;
	__u64 most = 0, from = 0, start, end;
	size_t n = 0;

	if (frames_read(&frames, elf))
		return false;
	for (size_t i = 0; i + 1 < frames.n; i++) {
		if (!frames_find(&frames, frames.row[i].start, &start, &end))
			continue;
		if (frames.row[i + 1].start > end && frames.row[i + 1].start - end > most) {
			most = frames.row[i + 1].start - end;
			from = end;
		}
	}
	frames_fini(&frames);
	return most >= GAP_MIN && add_loop(d, &n, elf, from, from + most);
}

/* --- a function that only its caller names ---------------------------------------------------- */

bool binary_largest_callee(struct binary_symbol *out, Elf *elf, const struct binary_symbol *caller)
{
	__cleanup(freep) unsigned char *code = malloc(caller->bytes + 1);
	struct frames frames;
	__u64 start, end;

	*out = (struct binary_symbol){ 0 };
	if (!code || caller->bytes > COLD_BYTES_MAX ||
	    !binary_bytes(elf, caller->vaddr, code, caller->bytes) || frames_read(&frames, elf))
		return false;
	for (size_t i = 0; i + 5 <= caller->bytes; i++) {
		__s32 distance;
		__u64 target;

		if (code[i] != 0xe8 && code[i] != 0xe9)
			continue;
		memcpy(&distance, code + i + 1, sizeof(distance));
		target = caller->vaddr + i + 5 + (__u64)(__s64)distance;
		if (target - caller->vaddr >= caller->bytes &&
		    frames_find(&frames, target, &start, &end) && start == target &&
		    end - start > out->bytes)
			*out = (struct binary_symbol){ start, end - start };
	}
	frames_fini(&frames);
	return out->bytes;
}
