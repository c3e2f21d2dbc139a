/* option_table.h - the command line: one table of all options, of which each verb takes some */
#ifndef PROFIL_PROFILCTL_OPTIONS_OPTION_TABLE_H
#define PROFIL_PROFILCTL_OPTIONS_OPTION_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "options.h"

/*
 * Reads the options in @allowed. They can precede or follow operands; with OPTION_COMMAND the first
 * operand ends them. Permutes @argv. Returns 0, or -EINVAL after a message on stderr;
 * options_fini() in any case.
 */
int options_parse(struct options *o, __u64 allowed, int argc, char **argv);

/*
 * The first operand, of a verb whose parts have options of their own, with the same letters: only
 * which options take a value is looked at. NULL: there is none. *@help becomes true for --help.
 */
const char *options_operand(__u64 allowed, int argc, char **argv, bool *help);

/* Lists the options in @allowed. */
void options_help(FILE *f, __u64 allowed);

#endif
