/* segments.c - the executable segments of an ELF file */
#include <gelf.h>

#include "segments.h"

static void read_headers(struct segments *s, Elf *elf)
{
	size_t n;

	if (elf_getphdrnum(elf, &n) < 0)
		return;
	for (size_t i = 0; i < n && s->n < SEGMENTS_MAX; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(elf, (int)i, &h) || h.p_type != PT_LOAD || !(h.p_flags & PF_X))
			continue;
		s->segment[s->n++] = (struct segment){ h.p_vaddr, h.p_offset, h.p_filesz };
	}
}

void segments_read(struct segments *s, const struct object *o)
{
	Elf *elf;

	*s = (struct segments){ 0 };
	if (o->kind != OBJECT_FILE || o->fd < 0)
		return;
	elf_version(EV_CURRENT);
	elf = elf_begin(o->fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF)
		read_headers(s, elf);
	elf_end(elf);
}

const struct segment *segments_find(const struct segments *s, __u64 offset)
{
	for (size_t i = 0; i < s->n; i++) {
		const struct segment *g = &s->segment[i];

		if (offset >= g->offset && offset - g->offset < g->bytes)
			return g;
	}
	return NULL;
}
