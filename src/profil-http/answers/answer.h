/* answer.h - the body of a response, shared by any number of readers */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_ANSWER_H
#define PROFIL_PROFIL_HTTP_ANSWERS_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

#define ETAG_BYTES 32

/* Reference-counted atomically; immutable but for @gzip, which is the event loop's. */
struct answer {
	int refs;
	unsigned int status; /* HTTP status */
	const char *type;    /* Content-Type */
	const char *name;    /* file name for a browser to save it as; NULL: the browser shows it */
	const char *allow;   /* of status 405; NULL: GET and HEAD */
	bool empty;	     /* a page of a spool that has no profiles */
	__u64 from, to;	     /* ids of its snapshots; 0: none */
	char etag[ETAG_BYTES]; /* "": it changes from one request to the next */
	const char *coding;    /* Content-Encoding; NULL: none */
	struct answer *gzip;   /* the same with that coding, once a reader took it; NULL: none */
	size_t n;
	char *bytes;
};

/* Takes ownership of @bytes, even on failure. NULL: out of memory. */
struct answer *answer_new(unsigned int status, const char *type, char *bytes, size_t n);

/* A line of text, for errors. */
struct answer *answer_text(unsigned int status, const char *text);

/* Says that @a stays the same while profil-http runs, so that readers can ask for another one. */
void answer_is_constant(struct answer *a);

/* The same as @a, compressed, which lives as long as @a; @a itself if that is not smaller. */
struct answer *answer_gzip(struct answer *a);

struct answer *answer_ref(struct answer *a);
struct answer *answer_unref(struct answer *a);

/*
 * The status for a GET or HEAD of something with @etag (NULL: without one), given the values of
 * If-Match and If-None-Match, of which NULL is none: 200, 304 or 412.
 */
unsigned int conditional_status(const char *etag, const char *if_match, const char *if_none_match);

#endif
