/* source_file.c - the lines of a source file */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "symbols/proc/guarded_file.h"
#include "source_file.h"

/* Another user's program can name any file: a line takes 40 bytes here and in a listing. */
#define SOURCE_BYTES_MAX (16u << 20)
#define SOURCE_LINES_MAX (1u << 20)

static int read_all(char **out, const char *path)
{
	__cleanup(closep) int fd = guarded_file_open(path, NULL);
	struct stat st;
	size_t n = 0;
	ssize_t got;

	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size > SOURCE_BYTES_MAX)
		return -EFBIG;
	*out = malloc((size_t)st.st_size + 1);
	if (!*out)
		return -ENOMEM;
	while (n < (size_t)st.st_size && (got = read(fd, *out + n, (size_t)st.st_size - n)) > 0)
		n += (size_t)got;
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
	if (lines > SOURCE_LINES_MAX)
		return -EFBIG;
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
