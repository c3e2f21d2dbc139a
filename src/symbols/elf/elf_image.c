/* elf_image.c - sections by name or type, and executable segments, of an ELF file */
#include <errno.h>
#include <string.h>

#include "elf_image.h"

Elf_Scn *elf_image_section(Elf *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		const char *is = gelf_getshdr(scn, sh) ? elf_strptr(elf, names, sh->sh_name) : NULL;

		if (is && !strcmp(is, name))
			return scn;
	}
	return NULL;
}

Elf_Scn *elf_image_section_of_type(Elf *elf, GElf_Word type, GElf_Shdr *sh)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		if (gelf_getshdr(scn, sh) && sh->sh_type == type)
			return scn;
	}
	return NULL;
}

Elf_Data *elf_image_bytes(Elf *elf, const char *name, GElf_Shdr *sh)
{
	Elf_Scn *scn = elf_image_section(elf, name, sh);
	Elf_Data *data = scn && sh->sh_type != SHT_NOBITS ? elf_rawdata(scn, NULL) : NULL;

	return data && data->d_buf ? data : NULL;
}

/* Moves the segment of .text to the front: tools that know of one difference only use that one. */
static void put_text_first(struct segments *s, Elf *elf)
{
	const struct segment *text;
	struct segment first;
	GElf_Shdr sh;

	if (!s->n || !elf_image_section(elf, ".text", &sh))
		return;
	text = segments_of_address(s, sh.sh_addr);
	if (!text)
		return;
	first = *text;
	s->segment[text - s->segment] = s->segment[0];
	s->segment[0] = first;
}

/* No file has code there: sums of its offsets and addresses must not overflow. */
static bool overflows(const struct segment *g)
{
	return g->offset + g->bytes < g->offset || g->vaddr + g->bytes < g->vaddr;
}

int elf_image_segments(struct segments *out, Elf *elf)
{
	size_t n;
	int err = 0;

	if (elf_getphdrnum(elf, &n) < 0)
		return -ENOEXEC;
	for (size_t i = 0; i < n && !err; i++) {
		GElf_Phdr ph;
		struct segment g;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		g = (struct segment){ ph.p_offset, ph.p_filesz, ph.p_vaddr };
		if (!overflows(&g))
			err = segments_add(out, &g);
	}
	put_text_first(out, elf);
	return err;
}

int elf_image_code(struct segments *out, Elf *elf, __u64 bias)
{
	Elf_Scn *scn = NULL;
	struct segment g;
	GElf_Shdr sh;
	int err = 0;

	while (!err && (scn = elf_nextscn(elf, scn))) {
		if (!gelf_getshdr(scn, &sh) || !(sh.sh_flags & SHF_EXECINSTR) || !sh.sh_addr)
			continue;
		g = (struct segment){ sh.sh_offset, sh.sh_size, sh.sh_addr - bias };
		if (!overflows(&g))
			err = segments_add(out, &g);
	}
	if (err || out->n)
		return err;
	err = elf_image_segments(out, elf);
	for (size_t i = 0; i < out->n; i++)
		out->segment[i].vaddr -= bias;
	return err;
}

Elf_Data *elf_image_bytes_at(Elf *elf, __u64 vaddr)
{
	size_t n = 0;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;
		__u64 at;

		if (!gelf_getphdr(elf, (int)i, &ph) || ph.p_type != PT_LOAD)
			continue;
		at = vaddr - ph.p_vaddr;
		if (at < ph.p_filesz)
			return elf_getdata_rawchunk(elf, (__s64)(ph.p_offset + at),
						    ph.p_filesz - at, ELF_T_BYTE);
	}
	return NULL;
}
