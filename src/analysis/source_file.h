/* source_file.h - the lines of a source file */
#ifndef PROFIL_ANALYSIS_SOURCE_FILE_H
#define PROFIL_ANALYSIS_SOURCE_FILE_H

#include <stddef.h>

struct source {
	char *text;
	char **line; /* line[0] is line 1 */
	size_t n;
};

/* Returns 0 or a negative errno. source_fini() in any case. */
int source_init(struct source *s, const char *path);

void source_fini(struct source *s);

#endif
