/* lines_store.c - the lines of a profile's objects, opened when they are first asked for */
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "lines_store.h"

static void drop_kept(struct lines_store *s)
{
	for (size_t i = 0; i < s->nkept; i++) {
		lines_close(s->kept[i].lines);
		free(s->kept[i].path);
	}
	free(steal(s->kept));
	s->nkept = 0;
}

/* Takes the lines of the same file from those kept. NULL: it is not among them. */
static struct lines *take_kept(struct lines_store *s, const struct object *o)
{
	if (o->kind != OBJECT_FILE || !*o->build_id)
		return NULL;
	for (size_t i = 0; i < s->nkept; i++) {
		struct kept_lines *k = &s->kept[i];

		if (k->lines && !strcmp(k->build_id, o->build_id) && !strcmp(k->path, o->path))
			return steal(k->lines);
	}
	return NULL;
}

static bool begin(struct lines_store *s)
{
	size_t n = s->profile->nobjects;

	s->lines = calloc(n + 1, sizeof(struct lines *));
	s->asked = calloc(n + 1, sizeof(*s->asked));
	s->n = s->lines && s->asked ? n : 0;
	return s->n;
}

struct lines *lines_store_find(struct lines_store *s, __u32 object)
{
	const struct object *o = &s->profile->objects[object];

	if (object >= s->n && (s->lines || !begin(s)))
		return NULL;
	if (!s->asked[object]) {
		s->asked[object] = true;
		s->lines[object] = take_kept(s, o);
		if (!s->lines[object])
			lines_open(&s->lines[object], o);
	}
	return s->lines[object];
}

/* Moves the lines of object @i to those kept, if they are a file's and @left suffices. */
static void keep(struct lines_store *s, size_t i, __u64 *left)
{
	const struct object *o = &s->profile->objects[i];
	__u64 bytes = s->lines[i] && *o->build_id ? lines_bytes(s->lines[i]) : 0;
	char *path = bytes && bytes <= *left ? strdup(o->path) : NULL;
	struct kept_lines *k = &s->kept[s->nkept];

	if (!path)
		return;
	*k = (struct kept_lines){ .lines = steal(s->lines[i]), .path = path };
	memcpy(k->build_id, o->build_id, sizeof(k->build_id));
	*left -= bytes;
	s->nkept++;
}

static void drop_lines(struct lines_store *s)
{
	for (size_t i = 0; i < s->n; i++)
		lines_close(s->lines[i]);
	free(steal(s->lines));
	free(steal(s->asked));
	s->n = 0;
}

void lines_store_end(struct lines_store *s)
{
	__u64 left = LINES_STORE_BYTES;

	drop_kept(s);
	s->kept = calloc(s->n + 1, sizeof(*s->kept));
	for (size_t i = 0; i < s->n && s->kept; i++)
		keep(s, i, &left);
	drop_lines(s);
	s->profile = NULL;
}

void lines_store_fini(struct lines_store *s)
{
	drop_lines(s);
	drop_kept(s);
}
