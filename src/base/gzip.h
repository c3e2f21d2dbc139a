/* gzip.h - writes and reads gzip files */
#ifndef PROFIL_BASE_GZIP_H
#define PROFIL_BASE_GZIP_H

#include <stdbool.h>
#include <stdio.h>

/* Compresses the @n bytes into @out. Returns 0 or a negative errno. */
int gzip_write(FILE *out, const char *bytes, size_t n);

/* Says whether the @n bytes begin with gzip's magic number. */
bool gzip_is(const char *bytes, size_t n);

/*
 * Decompresses @bytes into *@out, NUL-terminated, which the caller frees. Returns 0, -ENOMEM,
 * -EFBIG if the contents exceed @max bytes, or -EINVAL if the file is damaged or truncated.
 */
int gzip_read(char **out, size_t *out_n, const char *bytes, size_t n, size_t max);

#endif
