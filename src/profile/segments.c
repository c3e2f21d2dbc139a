/* segments.c - the executable segments of an ELF file, and addresses by file offset */
#include <errno.h>
#include <stdlib.h>

#include "base/grow.h"

#include "segments.h"

int segments_add(struct segments *s, const struct segment *add)
{
	struct segment *more = grow(s->segment, s->n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	s->segment = more;
	more[s->n++] = *add;
	return 0;
}

int segments_copy(struct segments *s, const struct segments *from)
{
	int err = 0;

	for (size_t i = 0; i < from->n && !err; i++)
		err = segments_add(s, &from->segment[i]);
	return err;
}

const struct segment *segments_of_offset(const struct segments *s, __u64 offset)
{
	for (size_t i = 0; i < s->n; i++) {
		if (offset - s->segment[i].offset < s->segment[i].bytes)
			return &s->segment[i];
	}
	return NULL;
}

const struct segment *segments_of_address(const struct segments *s, __u64 vaddr)
{
	for (size_t i = 0; i < s->n; i++) {
		if (vaddr - s->segment[i].vaddr < s->segment[i].bytes)
			return &s->segment[i];
	}
	return NULL;
}

bool segments_address(const struct segments *s, __u64 offset, __u64 *vaddr)
{
	const struct segment *g = segments_of_offset(s, offset);

	if (g)
		*vaddr = offset - g->offset + g->vaddr;
	return g;
}

bool segments_offset(const struct segments *s, __u64 vaddr, __u64 *offset)
{
	const struct segment *g = segments_of_address(s, vaddr);

	if (g)
		*offset = vaddr - g->vaddr + g->offset;
	return g;
}

void segments_fini(struct segments *s)
{
	free(s->segment);
	*s = (struct segments){ 0 };
}
