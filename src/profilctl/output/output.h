/* output.h - opens the output of a report, and writes it in the format of the options */
#ifndef PROFIL_PROFILCTL_OUTPUT_OUTPUT_H
#define PROFIL_PROFILCTL_OUTPUT_OUTPUT_H

#include <stdio.h>

#include "profilctl/options/options.h"
#include "profile/profile.h"
#include "profile/json.h"
#include "text.h"

/*
 * Opens the file of -o, or standard output; once per process. The file is only replaced by
 * output_end(); a profile has mode 0600, and the file it replaces is renamed to FILE.old. This and
 * the following print a message on failure and return an enum ctl_status.
 */
int output_open(FILE **out, const struct options *o);

/* Says whether the output of @o is text. */
bool output_is_text(const struct options *o);

/* Writes @p in the format of @o and closes @out. */
int output_write(FILE *out, const struct options *o, const struct profile *p);

/*
 * Keeps @p, of samples that are nowhere else, after output_write() has failed to write the file of
 * -o: as a profile in TMPDIR, or as text on standard error where that is impossible, too.
 */
void output_rescue(const struct options *o, const struct profile *p);

/* Closes @out after writing a report returned @err. */
int output_end(FILE *out, const struct options *o, int err);

#endif
