/* interpreted.c - the functions of one interpreted language, by their offsets in its object */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/grow.h"
#include "core/observe_maps.h"

#include "interpreted.h"

static const char *const languages[PROFIL_LANGUAGES] = {
	[PROFIL_LANGUAGE_PYTHON] = "python",  [PROFIL_LANGUAGE_JAVASCRIPT] = "node",
	[PROFIL_LANGUAGE_PHP] = "php",	      [PROFIL_LANGUAGE_RUBY] = "ruby",
	[PROFIL_LANGUAGE_PERL] = "perl",      [PROFIL_LANGUAGE_JAVA] = "java",
	[PROFIL_LANGUAGE_THREADS] = "thread",
};

const char *interpreted_language(__u32 language)
{
	return language < PROFIL_LANGUAGES ? languages[language] : NULL;
}

bool interpreted_is_language(const char *path)
{
	for (__u32 i = 0; i < PROFIL_LANGUAGES; i++) {
		if (languages[i] && !strcmp(path, languages[i]))
			return true;
	}
	return false;
}

int interpreted_add(struct interpreted *i, const struct interpreted_function *f)
{
	struct interpreted_function *grown = grow(i->function, i->n, sizeof(*f));

	if (!grown) {
		free(f->name);
		free(f->file);
		free(f->lines);
		return -ENOMEM;
	}
	i->function = grown;
	i->function[i->n++] = *f;
	return 0;
}

static int by_start(const void *a, const void *b)
{
	const struct interpreted_function *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

void interpreted_sort(struct interpreted *i)
{
	if (i->n)
		qsort(i->function, i->n, sizeof(*i->function), by_start);
}

const struct interpreted_function *interpreted_find(const struct interpreted *i, __u64 offset)
{
	size_t lo = COUNT_WHILE(i->n, k, i->function[k].start <= offset);

	if (!lo || offset - i->function[lo - 1].start > i->function[lo - 1].length)
		return NULL;
	return &i->function[lo - 1];
}

void interpreted_fini(struct interpreted *i)
{
	for (size_t k = 0; k < i->n; k++) {
		free(i->function[k].name);
		free(i->function[k].file);
		free(i->function[k].lines);
	}
	free(i->function);
	index_slots_fini(&i->slots);
	*i = (struct interpreted){ 0 };
}

void interpreted_free(struct interpreted *i)
{
	if (i)
		interpreted_fini(i);
	free(i);
}

struct interpreted *interpreted_copy_names(const struct interpreted *from)
{
	struct interpreted *to = calloc(1, sizeof(*to));

	for (size_t i = 0; to && i < from->n; i++) {
		struct interpreted_function f = from->function[i];

		f.name = strdup(f.name);
		f.file = NULL;
		f.lines = NULL; /* names only */
		if (!f.name || interpreted_add(to, &f) < 0) {
			interpreted_free(to);
			return NULL;
		}
	}
	return to;
}

/* --- the same function in another profile ----------------------------------------------------- */

static bool is_same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static __u32 *slot_of(const struct interpreted *i, const struct interpreted_function *like)
{
	const struct index_slots *s = &i->slots;
	__u64 h = hash_text(hash_text(like->line * 0x9e3779b97f4a7c15u, like->name), like->file);
	size_t at = index_slots_first(s, h);

	while (s->slot[at]) {
		const struct interpreted_function *f = &i->function[s->slot[at] - 1];

		if (f->line == like->line && f->length == like->length &&
		    is_same_text(f->name, like->name) && is_same_text(f->file, like->file))
			break;
		at = index_slots_next(s, at);
	}
	return &s->slot[at];
}

static int make_room(struct interpreted *i)
{
	int anew = index_slots_reserve(&i->slots, i->n);

	for (size_t k = 0; anew > 0 && k < i->n; k++)
		*slot_of(i, &i->function[k]) = (__u32)k + 1;
	return anew < 0 ? anew : 0;
}

int interpreted_same(struct interpreted *i, const struct interpreted_function *like, __u32 *start)
{
	const struct interpreted_function *last = i->n ? &i->function[i->n - 1] : NULL;
	struct interpreted_function f = *like;
	__u32 *slot;
	int err = make_room(i);

	if (err)
		return err;
	slot = slot_of(i, like);
	if (*slot) {
		*start = i->function[*slot - 1].start;
		return 0;
	}
	f.start = last ? last->start + last->length + 1 : 1;
	f.name = strdup(like->name);
	f.file = like->file ? strdup(like->file) : NULL;
	f.lines = like->lines ? malloc(like->lines_bytes) : NULL;
	if (f.lines)
		memcpy(f.lines, like->lines, like->lines_bytes);
	if (!f.name) {
		free(f.file);
		free(f.lines);
		return -ENOMEM;
	}
	err = interpreted_add(i, &f);
	if (!err)
		*slot = (__u32)i->n;
	*start = f.start;
	return err;
}

/* --- line tables ------------------------------------------------------------------------------ */

struct table {
	const __u8 *at;
	size_t left;
};

static bool next_byte(struct table *t, __u8 *out)
{
	if (!t->left)
		return false;
	*out = *t->at++;
	t->left--;
	return true;
}

/* CPython's varint: 6 bits a byte, the lowest first; bit 6 says that more follow. */
static bool next_varint(struct table *t, __u32 *out)
{
	unsigned int shift = 0;
	__u8 byte;

	*out = 0;
	do {
		if (!next_byte(t, &byte) || shift > 30)
			return false;
		*out |= (__u32)(byte & 63) << shift;
		shift += 6;
	} while (byte & 64);
	return true;
}

static bool next_signed(struct table *t, int *out)
{
	__u32 raw;

	if (!next_varint(t, &raw))
		return false;
	*out = raw & 1 ? -(int)(raw >> 1) : (int)(raw >> 1);
	return true;
}

/* PEP 657's kinds of entries, of CPython's Objects/locations.md. */
enum location {
	LOCATION_ONE_LINE = 10, /* 10 to 12: the line is 0 to 2 lines further */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Reads an entry: how many units it covers, and its line in *@line; 0: it has none. */
static bool next_location(struct table *t, __u32 *units, int *at, int *line)
{
	__u8 head, byte;
	__u32 skip;
	int delta = 0, columns = 0, kind;

	if (!next_byte(t, &head))
		return false;
	*units = (head & 7u) + 1;
	kind = head >> 3 & 15;
	if (kind < LOCATION_NO_COLUMNS) {
		delta = kind < LOCATION_ONE_LINE ? 0 : kind - LOCATION_ONE_LINE;
		columns = kind < LOCATION_ONE_LINE ? 1 : 2;
	} else if (kind != LOCATION_NONE && !next_signed(t, &delta)) {
		return false;
	}
	for (int i = 0; i < columns; i++) {
		if (!next_byte(t, &byte))
			return false;
	}
	for (int i = 0; kind == LOCATION_LONG && i < 3; i++) {
		if (!next_varint(t, &skip))
			return false;
	}
	*at += delta;
	*line = kind == LOCATION_NONE ? 0 : *at;
	return true;
}

static int line_pep_657(const struct interpreted_function *f, __u32 unit)
{
	struct table t = { f->lines, f->lines_bytes };
	int at = (int)f->line, line, last = (int)f->line;
	__u32 units;

	while (next_location(&t, &units, &at, &line)) {
		if (line)
			last = line;
		if (unit < units)
			return last;
		unit -= units;
	}
	return (int)f->line;
}

/* Pairs: bytes of code, and how much further the line is from there (PEP 626: up to there). */
static int line_of_pairs(const struct interpreted_function *f, __u32 unit)
{
	bool pep_626 = f->line_format == PROFIL_LINES_PEP_626;
	__u32 offset = 2 * unit, code = 0;
	int line = (int)f->line;

	for (__u32 i = 0; i + 1 < f->lines_bytes; i += 2) {
		int delta = f->lines[i + 1] - (f->lines[i + 1] & 0x80 ? 256 : 0);

		if (pep_626 && delta != -128)
			line += delta;
		code += f->lines[i];
		if (offset < code)
			return line;
		if (!pep_626)
			line += delta;
	}
	return line;
}

int interpreted_line(const struct interpreted_function *f, __u64 offset)
{
	__u32 unit = (__u32)(offset - f->start);

	if (f->line_format == PROFIL_LINES_UNITS)
		return unit < f->length ? (int)(f->line + unit) : (int)f->line;
	if (!f->lines)
		return (int)f->line;
	switch (f->line_format) {
	case PROFIL_LINES_PEP_657:
		return line_pep_657(f, unit);
	case PROFIL_LINES_PEP_626:
	case PROFIL_LINES_LNOTAB:
		return line_of_pairs(f, unit);
	}
	return (int)f->line;
}
