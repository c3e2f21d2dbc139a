/* json.h - writes and reads profiles as JSON: profilctl's own files, and reports for programs */
#ifndef PROFIL_PROFILE_JSON_H
#define PROFIL_PROFILE_JSON_H

#include <stdbool.h>
#include <stdio.h>

#include "profile.h"

/* The contents of schema.json. */
extern const char schema_json[];

/* Writes @p; json_load() can read it only with @places. Returns 0 or a negative errno. */
int json_write(FILE *out, const struct profile *p, bool places);

/*
 * Reads the @n bytes that json_write() has written with @places. Returns 0, -ENOMEM, or -EINVAL
 * with a description of the file in @why.
 */
int json_load(struct profile **out, const char *text, size_t n, char *why, size_t bytes);

#endif
