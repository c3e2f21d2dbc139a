/* page.h - the parts of the pages that "report -f html" and profil-http write */
#ifndef PROFIL_FORMATS_PAGE_PAGE_H
#define PROFIL_FORMATS_PAGE_PAGE_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

/*
 * The numbers of functions shown with source and with instructions, each with at least this share.
 */
#define PAGE_SOURCE_FUNCTIONS 40
#define PAGE_LISTED_FUNCTIONS 10
#define PAGE_SOURCE_PERCENT 0.5

/* The contents of the files with these names. */
extern const char page_css[], page_js[], flame_css[], flame_js[], strip_css[], strip_js[];

/* Writes @s with markup characters escaped, and allows line breaks inside of long names. */
void page_text(FILE *out, const char *s);

/* Writes at most @columns of @s, escaped for an attribute. */
void page_attribute(FILE *out, const char *s, size_t columns);

/* Writes the style sheet. Class sN sets the length of a bar, or its shade, to N percent. */
void page_styles(FILE *out);

/* Write the page up to its heading, and its end after the last section. */
void page_begin(FILE *out, const char *title);
void page_end(FILE *out);

/* Writes an entry of the list at the start of the page; @class is an attribute or "". */
void page_fact(FILE *out, const char *what, const char *value, const char *class);

/*
 * Writes the table of functions, with links to their sections if the page has @sections. Returns 0
 * or -ENOMEM.
 */
int page_table(FILE *out, const struct profile *p, bool sections);

/* Says whether function @i has a section, #f@i. */
bool page_has_section(const struct profile *p, size_t i);

/* Writes these sections: source lines and instructions. Returns 0 or -ENOMEM. */
int page_sections(FILE *out, const struct profile *p);

/*
 * Writes the samples by process, command, thread, cgroup or unit, if the profile has groups.
 * Returns 0 or -ENOMEM.
 */
int page_groups(FILE *out, const struct profile *p);

/* Writes the samples over time, by function and by address. */
void page_strips(FILE *out, const struct profile *p);

#endif
