/* sanitize.h - makes strings of unknown origin safe to print on a terminal */
#ifndef PROFIL_BASE_SANITIZE_H
#define PROFIL_BASE_SANITIZE_H

#include <stddef.h>

/*
 * Names from files and processes can contain any bytes, escape sequences too. Copies @s, cut to
 * @bytes, with a blank for each control character and '?' for each byte that is not UTF-8. Returns
 * @out.
 */
const char *sanitize(char *out, size_t bytes, const char *s);

#endif
