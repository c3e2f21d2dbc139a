/* short_name.h - shortens function names to a number of columns */
#ifndef PROFIL_SYMBOLS_SHORT_NAME_H
#define PROFIL_SYMBOLS_SHORT_NAME_H

#include <stddef.h>

enum name_form {
	NAME_PLAIN, /* without return type, parameters, default template arguments, package path */
	NAME_BARE,  /* and without all template arguments */
};

/* The caller frees it. NULL: out of memory. */
char *short_name(const char *name, enum name_form form);

/* The terminal columns of @s, one for each character. */
size_t columns_of(const char *s);

/*
 * Writes @name in at most @columns: its plain form, else its bare form, else that without outer
 * namespaces, else that cut with an ellipsis. Returns @out.
 */
const char *fit_name(char *out, size_t bytes, const char *name, size_t columns);

/* Cuts @s to @columns, with an ellipsis if something was cut. Returns @s. */
char *fit_text(char *s, size_t bytes, size_t columns);

#endif
