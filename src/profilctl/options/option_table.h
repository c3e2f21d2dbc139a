/* option_table.h - the command line: one table of all options, of which each verb takes some */
#ifndef PROFIL_PROFILCTL_OPTIONS_OPTION_TABLE_H
#define PROFIL_PROFILCTL_OPTIONS_OPTION_TABLE_H

#include <stdio.h>

#include "options.h"

/*
 * Reads the options in @allowed. They can precede or follow operands; with OPTION_COMMAND the first
 * operand ends them. Permutes @argv. Returns 0, or -EINVAL after a message on stderr;
 * options_fini() in any case.
 */
int options_parse(struct options *o, __u64 allowed, int argc, char **argv);

/* Lists the options in @allowed. */
void options_help(FILE *f, __u64 allowed);

#endif
