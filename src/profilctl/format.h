/* format.h - the formats of a report, by name, and who writes each */
#ifndef PROFIL_FORMAT_H
#define PROFIL_FORMAT_H

#include <stdio.h>

#include "profile.h"

/* A writer is pure, but for what it writes. It returns 0 or a negative errno. */
struct format {
	const char *name;
	int (*write)(FILE *out, const struct profile *p); /* NULL: text, which has options */
	bool binary;
};

/* NULL: there is none of that name. */
const struct format *format_find(const char *name);

/* All names, as a sentence has them: "a, b or c". Returns @out. */
const char *format_names(char *out, size_t bytes);

int callgrind_write(FILE *out, const struct profile *p);
int folded_write(FILE *out, const struct profile *p);
int gmon_write(FILE *out, const struct profile *p);
int gperftools_write(FILE *out, const struct profile *p);
int html_write(FILE *out, const struct profile *p);
int pprof_write(FILE *out, const struct profile *p);
int speedscope_write(FILE *out, const struct profile *p);

#endif
