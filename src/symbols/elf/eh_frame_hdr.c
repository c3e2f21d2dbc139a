/* eh_frame_hdr.c - the bounds of functions in a stripped file, from .eh_frame_hdr or .eh_frame */
#include <elfutils/libdw.h>
#include <errno.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/grow.h"

#include "eh_frame_hdr.h"
#include "elf_image.h"

#define HDR_VERSION 1
#define ROWS_MAX (1536u << 10) /* real programs have up to a million; a crafted one any number */

/* DW_EH_PE_*: the encodings that all linkers use in the header. */
#define ENC_UDATA4 0x03
#define ENC_PCREL_SDATA4 0x1b
#define ENC_DATAREL_SDATA4 0x3b
/* The bits of an encoding for the size of a value. */
#define ENC_FORMAT 0x07
#define ENC_FORMAT_ABSPTR 0x00
#define ENC_FORMAT_DATA2 0x02
#define ENC_FORMAT_DATA4 0x03
#define ENC_FORMAT_DATA8 0x04
#define ENC_SIGNED 0x08
/* What a value is relative to. */
#define ENC_RELATIVE 0x70
#define ENC_PCREL 0x10

struct hdr {
	__u8 version;
	__u8 eh_frame_ptr_enc;
	__u8 fde_count_enc;
	__u8 table_enc;
	__s32 eh_frame_ptr;
	__u32 fde_count;
	struct {
		__s32 start; /* relative to this header */
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

static int by_start(const void *a, const void *b)
{
	const struct frame_row *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

/* The size of a value in @encoding; 0: variable. */
static size_t encoded_bytes(__u8 encoding)
{
	switch (encoding & ENC_FORMAT) {
	case ENC_FORMAT_ABSPTR:
	case ENC_FORMAT_DATA8:
		return 8;
	case ENC_FORMAT_DATA4:
		return 4;
	case ENC_FORMAT_DATA2:
		return 2;
	}
	return 0;
}

/*
 * The encoding of addresses in the CIE's FDEs. Returns 0, or -EINVAL for an unknown augmentation.
 */
static int address_encoding(__u8 *out, const Dwarf_CIE *cie)
{
	const __u8 *at = cie->augmentation_data, *end;

	*out = ENC_FORMAT_ABSPTR;
	if (*cie->augmentation != 'z')
		return *cie->augmentation ? -EINVAL : 0;
	end = at + cie->augmentation_data_size;
	for (const char *c = cie->augmentation + 1; *c; c++) {
		if (*c == 'S' || *c == 'B') /* signal frame; signed return addresses */
			continue;
		if (at >= end)
			return -EINVAL;
		if (*c == 'R') {
			*out = *at;
			return 0;
		}
		if (*c != 'L' && *c != 'P')
			return -EINVAL;
		/* An encoding byte; after P, also a pointer in that encoding. */
		at += 1 + (*c == 'P' ? encoded_bytes(*at) : 0);
	}
	return 0;
}

/* Reads the FDE at @vaddr and its CIE. Returns 0 or -EINVAL. */
static int read_fde(Dwarf_CFI_Entry *fde, Dwarf_CFI_Entry *cie, const struct frames *f, __u64 vaddr)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(f->elf, NULL);
	Dwarf_Off next;

	if (!ident || vaddr - f->eh_frame_vaddr >= f->eh_frame->d_size)
		return -EINVAL;
	if (dwarf_next_cfi(ident, f->eh_frame, true, vaddr - f->eh_frame_vaddr, &next, fde) != 0 ||
	    dwarf_cfi_cie_p(fde))
		return -EINVAL;
	if (fde->fde.CIE_pointer >= f->eh_frame->d_size ||
	    dwarf_next_cfi(ident, f->eh_frame, true, fde->fde.CIE_pointer, &next, cie) != 0 ||
	    !dwarf_cfi_cie_p(cie))
		return -EINVAL;
	return 0;
}

/* Reads the number of bytes of code that the FDE at @vaddr covers. Returns 0 or -EINVAL. */
static int fde_range(__u64 *out, const struct frames *f, __u64 vaddr)
{
	Dwarf_CFI_Entry fde, cie;
	size_t bytes;
	__u8 encoding;

	if (read_fde(&fde, &cie, f, vaddr) < 0 || address_encoding(&encoding, &cie.cie) < 0)
		return -EINVAL;
	bytes = encoded_bytes(encoding);
	if (!bytes || (size_t)(fde.fde.end - fde.fde.start) < 2 * bytes)
		return -EINVAL;
	*out = 0;
	memcpy(out, fde.fde.start + bytes, bytes);
	return 0;
}

/* The start of the FDE's code. Returns 0 or -EINVAL. */
static int fde_start(__u64 *out, const struct frames *f, const Dwarf_CFI_Entry *fde,
		     const Dwarf_CFI_Entry *cie)
{
	size_t bytes;
	__u8 encoding;

	if (address_encoding(&encoding, &cie->cie) < 0)
		return -EINVAL;
	bytes = encoded_bytes(encoding);
	if (!bytes || (size_t)(fde->fde.end - fde->fde.start) < 2 * bytes)
		return -EINVAL;
	*out = 0;
	memcpy(out, fde->fde.start, bytes);
	if (encoding & ENC_SIGNED && bytes < 8 && *out >> (8 * bytes - 1))
		*out |= ~0ull << (8 * bytes);
	if ((encoding & ENC_RELATIVE) == ENC_PCREL)
		*out += f->eh_frame_vaddr +
			(__u64)(fde->fde.start - (const __u8 *)f->eh_frame->d_buf);
	else if (encoding & ENC_RELATIVE)
		return -EINVAL;
	return 0;
}

/* Linkers write no search table into static programs: reads the whole section. */
static int read_section(struct frames *f)
{
	const unsigned char *ident = (const unsigned char *)elf_getident(f->elf, NULL);
	Dwarf_Off offset = 0, next;
	Dwarf_CFI_Entry fde, cie;
	GElf_Shdr sh;

	f->eh_frame = elf_image_bytes(f->elf, ".eh_frame", &sh);
	f->eh_frame_vaddr = f->eh_frame ? sh.sh_addr : 0;
	for (; ident && f->eh_frame && f->n < ROWS_MAX; offset = next) {
		int status = dwarf_next_cfi(ident, f->eh_frame, true, offset, &next, &fde);
		struct frame_row *grown, row = { .fde = f->eh_frame_vaddr + offset };

		if (status > 0 || next <= offset || next == (Dwarf_Off)-1)
			break;
		if (status < 0 || dwarf_cfi_cie_p(&fde) || read_fde(&fde, &cie, f, row.fde) < 0 ||
		    fde_start(&row.start, f, &fde, &cie) < 0)
			continue;
		grown = grow(f->row, f->n, sizeof(row));
		if (!grown)
			return -ENOMEM;
		f->row = grown;
		f->row[f->n++] = row;
	}
	return 0;
}

/* Reads the table; without one that can be read, @f is empty. */
static int read_table(struct frames *f, Elf *elf)
{
	const struct hdr *h;
	Elf_Data *chunk;
	__u64 vaddr;
	size_t n;

	chunk = find_hdr(elf, &vaddr);
	if (!chunk || !chunk->d_buf || chunk->d_size < sizeof(*h))
		return 0;
	h = chunk->d_buf;
	n = h->fde_count;
	if (n > ROWS_MAX || h->version != HDR_VERSION || h->eh_frame_ptr_enc != ENC_PCREL_SDATA4 ||
	    h->fde_count_enc != ENC_UDATA4 || h->table_enc != ENC_DATAREL_SDATA4 || !n ||
	    n > (chunk->d_size - sizeof(*h)) / sizeof(h->row[0]))
		return 0;
	f->eh_frame_vaddr =
		vaddr + offsetof(struct hdr, eh_frame_ptr) + (__u64)(__s64)h->eh_frame_ptr;
	f->eh_frame = elf_image_bytes_at(elf, f->eh_frame_vaddr); /* has a terminator */
	if (!f->eh_frame)
		return 0;

	f->row = calloc(n, sizeof(*f->row));
	if (!f->row)
		return -ENOMEM;
	for (f->n = 0; f->n < n; f->n++)
		f->row[f->n] = (struct frame_row){
			.start = vaddr + (__u64)(__s64)h->row[f->n].start,
			.fde = vaddr + (__u64)(__s64)h->row[f->n].fde,
		};
	return 0;
}

int frames_read(struct frames *f, Elf *elf)
{
	int err;

	*f = (struct frames){ .elf = elf };
	err = read_table(f, elf);
	if (!err && !f->n)
		err = read_section(f);
	if (err)
		frames_fini(f);
	else if (f->n)
		qsort(f->row, f->n, sizeof(*f->row), by_start);
	return err;
}

/* The end of the code of row @i; its start if the FDE cannot be read. */
static __u64 row_end(const struct frames *f, size_t i)
{
	const struct frame_row *row = &f->row[i];
	__u64 bytes, limit = i + 1 < f->n ? f->row[i + 1].start : ~0ull;

	if (fde_range(&bytes, f, row->fde) < 0)
		return row->start;
	return bytes < limit - row->start ? row->start + bytes : limit;
}

/* How many rows start at or before @vaddr. */
static size_t rows_upto(const struct frames *f, __u64 vaddr)
{
	return COUNT_WHILE(f->n, i, f->row[i].start <= vaddr);
}

bool frames_find(const struct frames *f, __u64 vaddr, __u64 *start, __u64 *end)
{
	size_t lo = rows_upto(f, vaddr);
	__u64 upto;

	upto = lo ? row_end(f, lo - 1) : 0;
	if (vaddr < upto) {
		*start = f->row[lo - 1].start;
		*end = upto;
		return true;
	}
	*start = upto;
	*end = lo < f->n ? f->row[lo].start : ~0ull;
	return false;
}

bool frames_returns_from_signal(const struct frames *f, __u64 start)
{
	size_t n = rows_upto(f, start);
	Dwarf_CFI_Entry fde, cie;

	return n && !read_fde(&fde, &cie, f, f->row[n - 1].fde) &&
	       strchr(cie.cie.augmentation, 'S');
}

void frames_fini(struct frames *f)
{
	free(f->row);
	*f = (struct frames){ 0 };
}
