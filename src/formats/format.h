/* format.h - the formats of a report: names and writers */
#ifndef PROFIL_FORMATS_FORMAT_H
#define PROFIL_FORMATS_FORMAT_H

#include <stdio.h>

#include "profile/profile.h"

struct lines_store;

/*
 * A writer has no side effects but its output. It returns 0 or a negative errno, -EDOM if the
 * format cannot say that samples are of events, -EOPNOTSUPP if it is of code that runs and they are
 * also of threads that do not, -ENODATA if it needs line numbers or symbols
 * and the program has none.
 */
struct format {
	const char *name;
	int (*write)(FILE *out, const struct profile *p); /* NULL: text, which takes options */
	bool binary;
	bool of_time; /* it cannot say that samples are of events */
};

/* NULL: no format has that name. */
const struct format *format_find(const char *name);

/* Writes all names, as "a, b or c". Returns @out. */
const char *format_names(char *out, size_t bytes);

int bolt_write(FILE *out, const struct profile *p);
int callgrind_write(FILE *out, const struct profile *p);
int firefox_write(FILE *out, const struct profile *p);
int folded_write(FILE *out, const struct profile *p);
int gmon_write(FILE *out, const struct profile *p);
int html_write(FILE *out, const struct profile *p);
int llvm_write(FILE *out, const struct profile *p);
int markdown_write(FILE *out, const struct profile *p);
int otlp_write(FILE *out, const struct profile *p);
/* Writes the profile of @lines, which keeps the lines open for further profiles. */
int otlp_write_lines(FILE *out, struct lines_store *lines);
int perf_write(FILE *out, const struct profile *p);
int pprof_write(FILE *out, const struct profile *p);
/*
 * These write @p, which began at @began_ns since the epoch, for collectors, which add up many
 * profiles and look up functions themselves, by build id and address. Addresses are those of the
 * files, so that they are the same in every profile; functions without a name are left out; each
 * location has a mapping; source lines are not read, as that takes longer than all else.
 */
int pprof_write_for_collectors(FILE *out, const struct profile *p, __u64 began_ns);
int otlp_write_for_collectors(FILE *out, const struct profile *p, __u64 began_ns);
int rows_write(FILE *out, const struct profile *p);
int speedscope_write(FILE *out, const struct profile *p);

#endif
