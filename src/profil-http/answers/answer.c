/* answer.c - the body of a response, shared by any number of readers */
#include <stdlib.h>

#include "answer.h"

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

struct answer *answer_ref(struct answer *a)
{
	__atomic_add_fetch(&a->refs, 1, __ATOMIC_RELAXED);
	return a;
}

struct answer *answer_unref(struct answer *a)
{
	if (a && !__atomic_sub_fetch(&a->refs, 1, __ATOMIC_ACQ_REL)) {
		free(a->bytes);
		free(a);
	}
	return NULL;
}
