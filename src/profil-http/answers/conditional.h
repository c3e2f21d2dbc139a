/* conditional.h - conditional requests by entity tags (RFC 9110, 13.1) */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_CONDITIONAL_H
#define PROFIL_PROFIL_HTTP_ANSWERS_CONDITIONAL_H

#include <stddef.h>

#define ETAG_BYTES 32

/* Writes the strong entity tag of the @n bytes, which are sent with this content coding. */
void etag_of(char out[ETAG_BYTES], const char *bytes, size_t n, const char *coding);

/*
 * The status for a GET or HEAD of something with @etag (NULL: without one), given the values of
 * If-Match and If-None-Match, of which NULL is none: 200, 304 or 412.
 */
unsigned int conditional_status(const char *etag, const char *if_match, const char *if_none_match);

#endif
