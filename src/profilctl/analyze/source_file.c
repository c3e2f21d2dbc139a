/* source_file.c - the lines of a source file */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/cleanup.h"

#include "source_file.h"

#define SOURCE_BYTES_MAX (64u << 20)

static int read_all(char **out, const char *path)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");
	struct stat st;
	size_t n;

	if (!f || fstat(fileno(f), &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > SOURCE_BYTES_MAX)
		return -EINVAL;
	*out = malloc((size_t)st.st_size + 1);
	if (!*out)
		return -ENOMEM;
	n = fread(*out, 1, (size_t)st.st_size, f);
	(*out)[n] = '\0';
	return 0;
}

int source_init(struct source *s, const char *path)
{
	size_t lines = 1;
	char *at;
	int err;

	*s = (struct source){ 0 };
	err = read_all(&s->text, path);
	if (err < 0)
		return err;
	for (at = s->text; *at; at++)
		lines += *at == '\n';
	s->line = calloc(lines, sizeof(*s->line));
	if (!s->line)
		return -ENOMEM;
	for (at = s->text; at; s->n++) {
		s->line[s->n] = at;
		at = strchr(at, '\n');
		if (at)
			*at++ = '\0';
	}
	return 0;
}

void source_fini(struct source *s)
{
	free(s->line);
	free(s->text);
}
