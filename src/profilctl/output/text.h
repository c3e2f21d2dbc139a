/* text.h - a profile as text: the hottest rows first */
#ifndef PROFIL_PROFILCTL_OUTPUT_TEXT_H
#define PROFIL_PROFILCTL_OUTPUT_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "analysis/group_by.h"
#include "profile/profile.h"

#define TEXT_COLUMNS 132 /* if the output is not a terminal */
#define TEXT_LEAST_PERCENT 0.5

struct text_options {
	enum rows_by by;
	bool colour;
	bool full_names;
	bool all;	      /* also rows below @least_percent */
	size_t rows;	      /* at most; 0: no limit */
	double least_percent; /* 0: TEXT_LEAST_PERCENT, or no limit if @rows is set */
	size_t columns;	      /* of the terminal; 0: TEXT_COLUMNS */
};

/* Has no side effects but its output. Returns 0 or a negative errno; -ENOENT: see rows_init(). */
int text_write(FILE *out, const struct profile *p, const struct text_options *t);

#endif
