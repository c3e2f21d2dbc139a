/* answer.c - the body of a response, shared by any number of readers */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/gzip.h"

#include "answer.h"

/* FNV-1a: the tags of one address must differ, which no reader can choose. */
static void etag_of(char out[ETAG_BYTES], const char *bytes, size_t n, const char *coding)
{
	__u64 h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
	snprintf(out, ETAG_BYTES, "\"%016llx%s%s\"", h, *coding ? "-" : "", coding);
}

/* Says whether @list, "*" or tags with commas between them, has @etag. Weak tags are equal to
 * strong ones of the same text, if @weak. */
static bool has(const char *list, const char *etag, bool weak)
{
	size_t n = etag ? strlen(etag) : 0;

	list += strspn(list, " \t");
	if (*list == '*')
		return true;
	while (n && *list) {
		bool is_weak = !strncmp(list, "W/", 2);
		const char *tag = list + (is_weak ? 2 : 0);
		const char *end = *tag == '"' ? strchr(tag + 1, '"') : NULL;

		if (!end)
			return false;
		if ((weak || !is_weak) && (size_t)(end + 1 - tag) == n && !memcmp(tag, etag, n))
			return true;
		list = end + 1 + strspn(end + 1, " \t,");
	}
	return false;
}

unsigned int conditional_status(const char *etag, const char *if_match, const char *if_none_match)
{
	if (if_match && !has(if_match, etag, false))
		return 412;
	return if_none_match && has(if_none_match, etag, true) ? 304 : 200;
}

struct answer *answer_new(unsigned int status, const char *type, char *bytes, size_t n)
{
	struct answer *a = bytes ? malloc(sizeof(*a)) : NULL;

	if (!a) {
		free(bytes);
		return NULL;
	}
	*a = (struct answer){ .refs = 1, .status = status, .type = type, .bytes = bytes, .n = n };
	return a;
}

struct answer *answer_text(unsigned int status, const char *text)
{
	char *line;
	int n = asprintf(&line, "%s\n", text);

	return n < 0 ? NULL : answer_new(status, "text/plain; charset=utf-8", line, (size_t)n);
}

void answer_is_constant(struct answer *a)
{
	etag_of(a->etag, a->bytes, a->n, a->coding ? a->coding : "");
}

struct answer *answer_gzip(struct answer *a)
{
	__cleanup(freep) char *bytes = NULL;
	size_t n = 0;
	FILE *out;

	if (a->gzip || gzip_is(a->bytes, a->n))
		return a->gzip ? a->gzip : a;
	out = open_memstream(&bytes, &n);
	if (!out)
		return a;
	if (gzip_write(out, a->bytes, a->n) < 0)
		n = a->n;
	if (fclose(out) || n >= a->n)
		return a;
	a->gzip = answer_new(a->status, a->type, steal(bytes), n);
	if (!a->gzip)
		return a;
	a->gzip->name = a->name;
	a->gzip->from = a->from;
	a->gzip->to = a->to;
	a->gzip->coding = "gzip";
	if (*a->etag)
		answer_is_constant(a->gzip);
	return a->gzip;
}

struct answer *answer_ref(struct answer *a)
{
	__atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
	return a;
}

struct answer *answer_unref(struct answer *a)
{
	if (a && !__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL)) {
		answer_unref(a->gzip);
		free(a->bytes);
		free(a);
	}
	return NULL;
}
