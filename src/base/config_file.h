/* config_file.h - reads a file of options, one in a line */
#ifndef PROFIL_BASE_CONFIG_FILE_H
#define PROFIL_BASE_CONFIG_FILE_H

/*
 * Takes option @name with @value; NULL: none. Prints a message on failure and returns a negative
 * errno.
 */
typedef int config_take(void *arg, const char *name, char *value);

/*
 * Calls @take for each line of @path: an option's long name without dashes and its value, which is
 * the rest of the line, with blanks or '=' between them. '#' at the start of a line or behind a
 * blank begins a comment. The values stay in *@text, NULL before, which the caller frees. A missing
 * file is not an error. Prints the line of an error after @take's message. Returns 0 or a negative
 * errno.
 */
int config_file_read(char **text, const char *path, config_take *take, void *arg);

#endif
