/* frames.c - where functions start, as the unwind information of a stripped file still tells */
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "frames.h"

/* DW_EH_PE_*: what all linkers write. */
#define HDR_VERSION 1
#define ENC_UDATA4 0x03
#define ENC_PCREL_SDATA4 0x1b
#define ENC_DATAREL_SDATA4 0x3b

struct hdr {
	__u8 version;
	__u8 eh_frame_ptr_enc;
	__u8 fde_count_enc;
	__u8 table_enc;
	__s32 eh_frame_ptr;
	__u32 fde_count;
	struct {
		__s32 start; /* from the beginning of this header */
		__s32 fde;
	} row[];
};

static Elf_Data *find_hdr(Elf *elf, __u64 *vaddr)
{
	size_t n = 0;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_GNU_EH_FRAME)
			continue;
		*vaddr = ph.p_vaddr;
		return elf_getdata_rawchunk(elf, (__s64)ph.p_offset, ph.p_filesz, ELF_T_WORD);
	}
	return NULL;
}

static int by_address(const void *a, const void *b)
{
	const __u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

int frames_read(struct frames *f, Elf *elf)
{
	const struct hdr *h;
	Elf_Data *chunk;
	__u64 vaddr;
	size_t n;

	*f = (struct frames){ 0 };
	chunk = find_hdr(elf, &vaddr);
	if (!chunk || !chunk->d_buf || chunk->d_size < sizeof(*h))
		return 0;
	h = chunk->d_buf;
	n = h->fde_count;
	if (h->version != HDR_VERSION || h->eh_frame_ptr_enc != ENC_PCREL_SDATA4 ||
	    h->fde_count_enc != ENC_UDATA4 || h->table_enc != ENC_DATAREL_SDATA4 || !n ||
	    n > (chunk->d_size - sizeof(*h)) / sizeof(h->row[0]))
		return 0;

	f->start = calloc(n, sizeof(*f->start));
	if (!f->start)
		return -ENOMEM;
	for (f->n = 0; f->n < n; f->n++)
		f->start[f->n] = vaddr + (__u64)(__s64)h->row[f->n].start;
	qsort(f->start, n, sizeof(*f->start), by_address);
	return 0;
}

bool frames_find(const struct frames *f, __u64 vaddr, __u64 *start, __u64 *end)
{
	size_t lo = 0, hi = f->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->start[mid] <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	*start = f->start[lo - 1];
	*end = lo < f->n ? f->start[lo] : ~0ull;
	return true;
}

void frames_fini(struct frames *f)
{
	free(f->start);
	*f = (struct frames){ 0 };
}
