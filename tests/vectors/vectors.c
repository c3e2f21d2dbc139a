/* vectors.c - rows that say what each dialect must do with one pc */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "libprofil/xform.h"
#include "vectors.h"

static const char *const outcomes[] = {
	[VECTOR_COUNT] = "count",
	[VECTOR_NONE] = "none",
	[VECTOR_OFF] = "off",
	[VECTOR_EINVAL] = "EINVAL",
};

static enum vector_outcome outcome_of(const char *name)
{
	for (size_t i = 0; i < sizeof(outcomes) / sizeof(outcomes[0]); i++) {
		if (!strcmp(name, outcomes[i]))
			return (enum vector_outcome)i;
	}
	cr_assert_fail("no outcome is called \"%s\"", name);
	return VECTOR_NONE;
}

static int row_of(const char *name)
{
	for (int i = 0; i < DIALECTS; i++) {
		if (!strcmp(name, dialects[i].name))
			return i;
	}
	return -1;
}

static __u64 number(const char *text, const char *line)
{
	char *end;
	__u64 n;

	errno = 0;
	n = strtoull(text, &end, 0);
	cr_assert(!errno && end != text && !*end, "\"%s\" is no number in: %s", text, line);
	return n;
}

/* The next field of @rest; a note behind the last one may hold commas, but is never read. */
static const char *field(char **rest)
{
	const char *text = strsep(rest, ",\r\n");

	return text ? text : "";
}

static void parse(struct vector *v, char *rest)
{
	__cleanup(freep) char *line = strdup(rest);
	const char *bin;

	v->id = (int)number(field(&rest), line);
	snprintf(v->dialect, sizeof(v->dialect), "%s", field(&rest));
	v->row = row_of(v->dialect);
	v->kind = strcmp(field(&rest), "normative") ? VECTOR_BUGCOMPAT : VECTOR_NORMATIVE;
	v->width = (__u32)number(field(&rest), line);
	v->offset = number(field(&rest), line);
	v->scale = number(field(&rest), line);
	v->bufsize = number(field(&rest), line);
	v->pc = number(field(&rest), line);
	bin = field(&rest);
	v->outcome = outcome_of(field(&rest));
	v->bin = v->outcome == VECTOR_COUNT ? number(bin, line) : 0;
}

size_t vectors_read(struct vector **out, const char *path)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	__cleanup(freep) char *line = NULL;
	size_t n = 0, room = 0, size = 0;

	cr_assert(f, "%s: %s; the tests run from the top of the tree", path, strerror(errno));
	*out = NULL;
	while (getline(&line, &size, f) > 0) {
		if (*line < '0' || *line > '9')
			continue; /* the names of the columns */
		if (n == room) {
			room = room ? 2 * room : 256;
			*out = reallocarray(*out, room, sizeof(**out));
			cr_assert(*out);
		}
		parse(&(*out)[n++], line);
	}
	cr_assert(n, "%s holds no rows", path);
	return n;
}

int vector_binds(const struct vector *v)
{
	return v->kind == VECTOR_NORMATIVE && v->row >= 0;
}

enum vector_outcome vector_reduce(const struct vector *v, struct profil_xform *x)
{
	int err = xform_reduce(x, &dialects[v->row], v->offset, v->scale, v->bufsize);

	if (err == XFORM_OFF)
		return VECTOR_OFF;
	return err ? VECTOR_EINVAL : VECTOR_COUNT;
}

int vector_agrees(const struct vector *v, enum vector_outcome outcome, __u64 bin)
{
	return outcome == v->outcome && (outcome != VECTOR_COUNT || bin == v->bin);
}
