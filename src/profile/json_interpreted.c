/* json_interpreted.c - the functions of interpreted languages in a profile's file */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "core/observe_maps.h"

#include "json_interpreted.h"
#include "json_name.h"

/* Marks the functions of object @object that have a place or a frame. */
static bool *used_functions(const struct profile *p, __u32 object)
{
	const struct interpreted *i = p->objects[object].interpreted;
	bool *used = calloc(i->n + 1, sizeof(*used));

	if (!used)
		return NULL;
	places_each(place, &p->places) {
		const struct interpreted_function *f =
			place->object == object ? interpreted_find(i, place->offset) : NULL;

		if (f)
			used[f - i->function] = true;
	}
	for (size_t k = CALL_ROOTS; k < p->calls.n; k++) {
		const struct call_node *n = &p->calls.node[k];
		const struct interpreted_function *f =
			n->object == object ? interpreted_find(i, n->offset) : NULL;

		if (f)
			used[f - i->function] = true;
	}
	return used;
}

/* A function of an interpreted language: [start, length, line, name, file, line format, table]. */
static json_t *interpreted_one(const struct interpreted_function *f)
{
	__cleanup(freep) char *hex = malloc(2 * (size_t)f->lines_bytes + 1);

	if (!hex)
		return NULL;
	hex_write(hex, 2 * (size_t)f->lines_bytes + 1, f->lines, f->lines_bytes);
	return json_pack("[IIIooIs]", (json_int_t)f->start, (json_int_t)f->length,
			 (json_int_t)f->line, jsonname(f->name),
			 f->file ? jsonname(f->file) : json_null(), (json_int_t)f->line_format,
			 hex);
}

json_t *json_interpreted(const struct profile *p, __u32 object)
{
	const struct interpreted *i = p->objects[object].interpreted;
	__cleanup(freep) bool *used = used_functions(p, object);
	json_t *all = used ? json_array() : NULL;

	for (size_t k = 0; all && k < i->n; k++) {
		if (used[k] && json_array_append_new(all, interpreted_one(&i->function[k])) < 0) {
			json_decref(all);
			return NULL;
		}
	}
	return all;
}

/* --- loading ---------------------------------------------------------------------------------- */

/* A copy of the text @j; NULL if it is none. What prints it makes it safe. */
static char *text_of(const json_t *j)
{
	const char *text = json_string_value(j);

	return text ? strdup(text) : NULL;
}

/* The bytes that @hex stands for; NULL: it is no hex, or too long for a line table. */
static __u8 *bytes_of(const char *hex, __u32 *n)
{
	size_t digits = strlen(hex);
	__u8 *out;

	*n = 0;
	if (!digits || digits % 2 || digits / 2 > PROFIL_FUNCTION_LINES ||
	    hex[strspn(hex, "0123456789abcdef")])
		return NULL;
	out = malloc(digits / 2);
	for (size_t i = 0; out && i < digits / 2; i++) {
		char two[3] = { hex[2 * i], hex[2 * i + 1], '\0' };

		out[i] = (__u8)strtoul(two, NULL, 16);
	}
	*n = out ? (__u32)(digits / 2) : 0;
	return out;
}

static int load_one(struct interpreted *i, const json_t *one, __u64 *behind)
{
	json_int_t start, length, line, format;
	struct interpreted_function f = { 0 };
	json_t *name, *file;
	const char *hex;

	if (json_unpack((json_t *)one, "[IIIooIs]", &start, &length, &line, &name, &file, &format,
			&hex) < 0 ||
	    start < (json_int_t)*behind || start < 1 || length < 0 ||
	    length > PROFIL_FUNCTION_UNITS_MAX || start > UINT32_MAX - length - 1 || line < 0 ||
	    line > INT32_MAX || format < 0 || format > PROFIL_LINES_UNITS)
		return -EINVAL;
	*behind = (__u64)start + (__u64)length + 1;
	f.start = (__u32)start;
	f.length = (__u32)length;
	f.line = (__u32)line;
	f.line_format = (__u32)format;
	f.name = text_of(name);
	if (!f.name)
		return -EINVAL;
	f.file = text_of(file);
	f.lines = bytes_of(hex, &f.lines_bytes);
	return interpreted_add(i, &f);
}

int json_interpreted_load(struct object *o, const json_t *functions)
{
	__u64 behind = 0;
	const json_t *one;
	size_t i;

	if (!functions)
		return 0;
	if (o->kind != OBJECT_INTERPRETED)
		return -EINVAL;
	o->interpreted = calloc(1, sizeof(*o->interpreted));
	if (!o->interpreted)
		return -ENOMEM;
	json_array_foreach(functions, i, one) {
		int err = load_one(o->interpreted, one, &behind);

		if (err < 0)
			return err;
	}
	return 0;
}
