/* intern_table.c - byte strings, each once, by number: strings, and the messages of OTLP's tables
 */
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "base/utf8.h"
#include "intern_table.h"
#include "protobuf.h"

/* FNV-1a */
static __u64 hash(const char *bytes, size_t n)
{
	__u64 h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)bytes[i]) * 0x100000001b3u;
	return h ^ h >> 29;
}

static bool is_entry(const struct interned *e, const char *bytes, size_t n)
{
	return e->n == n && !memcmp(e->bytes, bytes, n);
}

static __u32 *slot_of(const struct intern_table *t, const char *bytes, size_t n)
{
	const struct index_slots *s = &t->slots;
	size_t at = index_slots_first(s, hash(bytes, n));

	while (s->slot[at] && !is_entry(&t->entry[s->slot[at] - 1], bytes, n))
		at = index_slots_next(s, at);
	return &s->slot[at];
}

static int make_room(struct intern_table *t)
{
	int anew = index_slots_reserve(&t->slots, t->n);

	for (size_t i = 0; anew > 0 && i < t->n; i++)
		*slot_of(t, t->entry[i].bytes, t->entry[i].n) = (__u32)i + 1;
	return anew < 0 ? anew : 0;
}

static __u32 add(struct intern_table *t, const void *bytes, size_t n, __u32 *slot)
{
	struct interned *more = grow(t->entry, t->n, sizeof(*more));
	char *copy = more ? malloc(n + 1) : NULL;

	if (more)
		t->entry = more;
	if (!copy) {
		t->failed = true;
		return 0;
	}
	memcpy(copy, bytes, n);
	copy[n] = '\0';
	more[t->n++] = (struct interned){ copy, n };
	*slot = (__u32)t->n;
	return *slot;
}

__u32 intern_bytes(struct intern_table *t, const void *bytes, size_t n)
{
	__u32 *slot;

	if (!n)
		return 0;
	if (make_room(t) < 0) {
		t->failed = true;
		return 0;
	}
	slot = slot_of(t, bytes, n);
	return *slot ? *slot : add(t, bytes, n, slot);
}

__u32 intern_string(struct intern_table *t, const char *s)
{
	return intern_bytes(t, s, strlen(s));
}

void intern_clean(struct intern_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		struct interned *e = &t->entry[i];
		char *copy = utf8_clean(e->bytes);

		t->failed |= !copy;
		if (!copy)
			continue;
		free(e->bytes);
		*e = (struct interned){ copy, strlen(copy) };
	}
}

const char *intern_text(const struct intern_table *t, __u32 number)
{
	return number ? t->entry[number - 1].bytes : "";
}

void intern_write(const struct intern_table *t, FILE *out, unsigned int field)
{
	protobuf_bytes(out, field, "", 0);
	for (size_t i = 0; i < t->n; i++)
		protobuf_bytes(out, field, t->entry[i].bytes, t->entry[i].n);
}

void intern_fini(struct intern_table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->entry[i].bytes);
	free(t->entry);
	index_slots_fini(&t->slots);
	*t = (struct intern_table){ 0 };
}
