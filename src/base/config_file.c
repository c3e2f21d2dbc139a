/* config_file.c - reads a file of options, one in a line */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cleanup.h"
#include "config_file.h"
#include "log.h"

#define BYTES_MAX 65536

/* Cuts off the comment and the blanks at the end. */
static void cut_comment(char *line)
{
	size_t n;

	for (char *c = strchr(line, '#'); c; c = strchr(c + 1, '#')) {
		if (c == line || c[-1] == ' ' || c[-1] == '\t')
			*c = '\0';
	}
	for (n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--)
		line[n - 1] = '\0';
}

static int read_line(char *line, config_take *take, void *arg)
{
	char *value;

	cut_comment(line);
	line += strspn(line, " \t");
	if (!*line)
		return 0;
	value = line + strcspn(line, " \t=");
	if (*value) {
		char *name_end = value;

		value += strspn(value, " \t");
		value += *value == '=';
		value += strspn(value, " \t");
		*name_end = '\0';
	}
	return take(arg, line, *value ? value : NULL);
}

/* Reads the file into *@text, NUL-terminated. */
static int read_text(char **text, const char *path)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	size_t n;

	*text = calloc(1, BYTES_MAX + 1);
	if (!*text)
		return -ENOMEM;
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	n = fread(*text, 1, BYTES_MAX + 1, f);
	if (ferror(f)) /* as of a directory */
		return errno ? -errno : -EIO;
	if (n > BYTES_MAX || strlen(*text) < n)
		return -EFBIG;
	return 0;
}

int config_file_read(char **text, const char *path, config_take *take, void *arg)
{
	char *rest, *line;
	int err;

	if (*text) {
		log_err("cannot read %s: there was another file of options", path);
		return -EINVAL;
	}
	err = read_text(text, path);
	if (err < 0) {
		log_err("cannot read %s: %s", path, strerror(-err));
		return err;
	}
	rest = *text;
	for (unsigned int n = 1; !err && (line = strsep(&rest, "\n")); n++) {
		err = read_line(line, take, arg);
		if (err < 0)
			log_err("%s:%u: invalid option", path, n);
	}
	return err;
}
