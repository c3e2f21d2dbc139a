/* find_function.c - finds the functions of a profile by name or regular expression */
#include <errno.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

#include "find_function.h"
#include "symbols/elf/elf_file.h"
#include "symbols/elf_symbols.h"
#include "symbols/short_name.h"

/* The forms of one function's name. */
struct forms {
	char full[4096];
	char base[4096]; /* without the directory of its object */
	char *plain;
	char *bare;
};

static int forms_init(struct forms *f, const struct profile *p, const struct function *function)
{
	const char *path = p->objects[function->object].path;
	size_t directory = (size_t)(profile_base_name(path) - path);

	profile_function_name(p, function, f->full, sizeof(f->full));
	if (function->name || directory > strlen(f->full)) /* it is cut */
		directory = 0;
	strcpy(f->base, f->full + directory);
	f->plain = short_name(f->base, NAME_PLAIN);
	f->bare = short_name(f->base, NAME_BARE);
	return f->plain && f->bare ? 0 : -ENOMEM;
}

static void forms_fini(struct forms *f)
{
	free(f->plain);
	free(f->bare);
}

static bool is_called(const struct forms *f, const char *name)
{
	size_t n = strlen(name);

	return !strcmp(f->full, name) || !strcmp(f->base, name) || !strcmp(f->plain, name) ||
	       !strcmp(f->bare, name) || (!strncmp(f->full, name, n) && f->full[n] == '(');
}

static bool matches(const struct forms *f, const regex_t *regex)
{
	return !regexec(regex, f->full, 0, NULL, 0) || !regexec(regex, f->base, 0, NULL, 0) ||
	       !regexec(regex, f->plain, 0, NULL, 0) || !regexec(regex, f->bare, 0, NULL, 0);
}

/* Finds functions by @regex, or if that is NULL by exact @name. */
static int find(struct matches *out, const struct profile *p, const char *name,
		const regex_t *regex)
{
	int err = 0;

	for (size_t i = 0; i < p->nfunctions && !err; i++) {
		struct forms f;

		err = forms_init(&f, p, &p->functions[i]);
		if (!err && (regex ? matches(&f, regex) : is_called(&f, name)))
			out->function[out->n++] = &p->functions[i];
		forms_fini(&f);
	}
	return err;
}

/* If @name is a symbol of @object, finds the functions at its offset. */
static void find_alias_in(struct matches *out, const struct profile *p, __u32 object,
			  const char *name)
{
	const struct object *o = &p->objects[object];
	__cleanup(closep) int fd = elf_file_open(o);
	struct symbols *s = NULL;
	__u64 at;

	if (fd < 0 || symbols_open(&s, fd, o->path) < 0)
		return;
	if (symbols_named(s, name, &at)) {
		for (size_t i = 0; i < p->nfunctions; i++) {
			const struct function *f = &p->functions[i];

			/* The frame of a stack has no size. */
			if (f->object == object && (at == f->offset || at - f->offset < f->size))
				out->function[out->n++] = f;
		}
	}
	symbols_close(s);
}

static int find_alias(struct matches *out, const struct profile *p, const char *name)
{
	__cleanup(freep) bool *tried = calloc(p->nobjects + 1, sizeof(*tried));

	if (!tried)
		return -ENOMEM;
	for (size_t i = 0; i < p->nfunctions && !out->n; i++) {
		__u32 object = p->functions[i].object;

		if (!tried[object])
			find_alias_in(out, p, object, name);
		tried[object] = true;
	}
	return 0;
}

/* A regular expression that finds @name anywhere; "..." in it matches anything. */
static char *pattern_of(const char *name)
{
	char *pattern = malloc(2 * strlen(name) + 1), *to = pattern;

	for (const char *c = name; pattern && *c; c++) {
		if (!strncmp(c, "...", 3)) {
			*to++ = '.';
			*to++ = '*';
			c += 2;
			continue;
		}
		if (strchr("\\^$.[]|()*+?{}", *c))
			*to++ = '\\';
		*to++ = *c;
	}
	if (pattern)
		*to = '\0';
	return pattern;
}

static int find_regex(struct matches *out, const struct profile *p, const char *pattern)
{
	regex_t regex;
	int err;

	if (regcomp(&regex, pattern, REG_EXTENDED | REG_NOSUB))
		return -EINVAL;
	err = find(out, p, pattern, &regex);
	regfree(&regex);
	return err;
}

int matches_find(struct matches *out, const struct profile *p, const char *name)
{
	__cleanup(freep) char *pattern = NULL;
	size_t n = strlen(name);
	int err;

	*out = (struct matches){ .function = calloc(p->nfunctions + 1, sizeof(*out->function)) };
	if (!out->function)
		return -ENOMEM;
	if (n > 2 && *name == '/' && name[n - 1] == '/') {
		pattern = strndup(name + 1, n - 2);
	} else {
		err = find(out, p, name, NULL);
		if (!err && !out->n)
			err = find_alias(out, p, name);
		if (err < 0 || out->n)
			return err;
		pattern = pattern_of(name);
	}
	if (!pattern)
		return -ENOMEM;
	err = find_regex(out, p, pattern);
	return err ? err : out->n ? 0 : -ENOENT;
}

void matches_fini(struct matches *m)
{
	free(m->function);
	*m = (struct matches){ 0 };
}
