/* format.c - the formats of a report, by name, and who writes each */
#include <string.h>

#include "format.h"
#include "output.h"

static int report_write(FILE *out, const struct profile *p)
{
	return json_write(out, p, false);
}

static const struct format formats[] = {
	{ "text", NULL },
	{ "json", report_write },
	{ "pprof", pprof_write },
	{ "gmon", gmon_write },
	{ "folded", folded_write },
	{ "callgrind", callgrind_write },
	{ "speedscope", speedscope_write },
	{ "gperftools", gperftools_write },
	{ "html", html_write },
};

#define NFORMATS (sizeof(formats) / sizeof(*formats))

const struct format *format_find(const char *name)
{
	for (size_t i = 0; i < NFORMATS; i++) {
		if (!strcmp(name, formats[i].name))
			return &formats[i];
	}
	return NULL;
}

const char *format_names(char *out, size_t bytes)
{
	size_t at = 0;

	for (size_t i = 0; i < NFORMATS && at < bytes; i++)
		at += (size_t)snprintf(out + at, bytes - at, "%s%s", formats[i].name,
				       i + 2 < NFORMATS	  ? ", "
				       : i + 1 < NFORMATS ? " or "
							  : "");
	return out;
}
