/* string_table.c - the string table of a pprof profile: each string once */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "protobuf.h"
#include "string_table.h"

/* FNV-1a */
static __u64 hash(const char *s)
{
	__u64 h = 0xcbf29ce484222325u;

	for (; *s; s++)
		h = (h ^ (unsigned char)*s) * 0x100000001b3u;
	return h ^ h >> 29;
}

static __u32 *slot_of(const struct string_table *t, const char *s)
{
	size_t i = (size_t)hash(s) & (t->room - 1);

	while (t->slot[i] && strcmp(t->string[t->slot[i] - 1], s) != 0)
		i = (i + 1) & (t->room - 1);
	return &t->slot[i];
}

static int make_room(struct string_table *t)
{
	struct string_table more = *t;

	if (2 * (t->n + 1) < t->room)
		return 0;
	more.room = t->room ? 2 * t->room : 1024;
	more.slot = calloc(more.room, sizeof(*more.slot));
	if (!more.slot)
		return -1;
	for (size_t i = 0; i < t->n; i++)
		*slot_of(&more, t->string[i]) = (__u32)i + 1;
	free(t->slot);
	*t = more;
	return 0;
}

__u64 string_table_add(struct string_table *t, const char *s)
{
	char *copy, **more;
	__u32 *slot, known;

	if (!*s)
		return 0;
	if (make_room(t) < 0) {
		t->failed = true;
		return 0;
	}
	slot = slot_of(t, s);
	known = *slot;
	if (known)
		return known;
	more = grow(t->string, t->n, sizeof(*more));
	copy = more ? strdup(s) : NULL;
	if (more)
		t->string = more;
	if (!copy) {
		t->failed = true;
		return 0;
	}
	more[t->n++] = copy;
	*slot = (__u32)t->n;
	return *slot;
}

void string_table_write(const struct string_table *t, FILE *out, unsigned int field)
{
	protobuf_bytes(out, field, "", 0);
	for (size_t i = 0; i < t->n; i++) {
		char *copy = utf8_clean(t->string[i]);
		const char *s = copy ? copy : t->string[i];

		protobuf_bytes(out, field, s, strlen(s));
		free(copy);
	}
}

void string_table_fini(struct string_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->string[i]);
	free(t->string);
	free(t->slot);
	*t = (struct string_table){ 0 };
}
