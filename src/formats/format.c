/* format.c - the formats of a report: names and writers */
#include <string.h>

#include "format.h"
#include "profile/json.h"

static int report_write(FILE *out, const struct profile *p)
{
	return json_write(out, p, false);
}

static const struct format formats[] = {
	{ .name = "text" },
	{ .name = "json", .write = report_write },
	{ .name = "pprof", .write = pprof_write, .binary = true },
	{ .name = "otlp", .write = otlp_write, .binary = true },
	{ .name = "gmon", .write = gmon_write, .binary = true, .of_time = true },
	{ .name = "folded", .write = folded_write },
	{ .name = "callgrind", .write = callgrind_write },
	{ .name = "speedscope", .write = speedscope_write },
	{ .name = "firefox", .write = firefox_write },
	{ .name = "perf", .write = perf_write, .binary = true },
	{ .name = "html", .write = html_write },
	{ .name = "markdown", .write = markdown_write },
	{ .name = "rows", .write = rows_write },
	{ .name = "llvm", .write = llvm_write },
	{ .name = "bolt", .write = bolt_write },
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
