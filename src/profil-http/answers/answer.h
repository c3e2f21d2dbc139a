/* answer.h - the body of a response, shared by any number of readers */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_ANSWER_H
#define PROFIL_PROFIL_HTTP_ANSWERS_ANSWER_H

#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

/* Reference-counted atomically; immutable. */
struct answer {
	int refs;
	unsigned int status; /* HTTP status */
	const char *type;    /* Content-Type */
	const char *name;    /* file name for a browser to save it as; NULL: the browser shows it */
	const char *allow;   /* of status 405; NULL: GET and HEAD */
	__u64 from, to;	     /* ids of its snapshots; 0: none */
	size_t n;
	char *bytes;
};

/* Takes ownership of @bytes, even on failure. NULL: out of memory. */
struct answer *answer_new(unsigned int status, const char *type, char *bytes, size_t n);

/* A line of text, for errors. */
struct answer *answer_text(unsigned int status, const char *text);

struct answer *answer_ref(struct answer *a);
struct answer *answer_unref(struct answer *a);

#endif
