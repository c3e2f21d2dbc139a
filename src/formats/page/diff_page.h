/* diff_page.h - an HTML page with the changes between two profiles */
#ifndef PROFIL_FORMATS_PAGE_DIFF_PAGE_H
#define PROFIL_FORMATS_PAGE_DIFF_PAGE_H

#include <stdio.h>

#include "analysis/compare.h"

/*
 * Writes a differential flame graph, if both profiles have stacks, and a table of @c from
 * compare_init(). Returns 0 or -ENOMEM.
 */
int diff_page_write(FILE *out, const struct profile *a, const struct profile *b,
		    const struct changes *c);

/* Write parts of such a page: what is compared, and the table of @c. */
void diff_page_facts(FILE *out, const struct profile *a, const struct profile *b,
		     const struct changes *c);
void diff_page_table(FILE *out, const struct profile *a, const struct profile *b,
		     const struct changes *c);

#endif
