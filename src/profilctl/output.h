/* output.h - where a report goes, and who writes it */
#ifndef PROFIL_OUTPUT_H
#define PROFIL_OUTPUT_H

#include <stdio.h>

#include "options.h"
#include "profile.h"
#include "rows.h"

/*
 * Opens what -o names, or stdout; a file keeps what it holds until output_write(). Returns an enum
 * ctl_status, after saying what is wrong.
 */
int output_open(FILE **out, const struct options *o);

/* Writes @p as @o wants it and closes @out. Likewise. */
int output_write(FILE *out, const struct options *o, const struct profile *p);

/* Closes @out, to which a report was written with the outcome @err. Likewise. */
int output_end(FILE *out, const struct options *o, int err);

struct text_options {
	enum rows_by by;
	bool colour;
};

/* The writers: pure, but for what they write. They return 0 or a negative errno. */
int text_write(FILE *out, const struct profile *p, const struct text_options *t);
/* @places: and where each tick fell, so that profile_load() can read it. */
int json_write(FILE *out, const struct profile *p, bool places);

/* Reads what json_write() has written with @places. -EINVAL with @why where it is no such thing. */
int json_load(struct profile **out, FILE *in, char *why, size_t bytes);

#endif
