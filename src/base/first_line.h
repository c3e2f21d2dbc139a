/* first_line.h - files of one line, as in /proc and /sys */
#ifndef PROFIL_BASE_FIRST_LINE_H
#define PROFIL_BASE_FIRST_LINE_H

#include <stddef.h>

/* Copies the first line of @path without its newline; "" if the file cannot be read. */
void first_line(const char *path, char *out, size_t bytes);

#endif
