/* log.c - messages to stderr, with priorities for the journal */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "log.h"

static const char *log_name = "profil";
static int log_journal;
static enum log_level log_least = LOG_LEVEL_INFO;

void log_open(const char *name)
{
	log_name = name;
	log_journal = getenv("JOURNAL_STREAM") != NULL && !isatty(STDERR_FILENO);
}

void log_limit(enum log_level level)
{
	log_least = level;
}

void log_line(enum log_level level, const char *format, ...)
{
	char line[1024];
	va_list ap;

	if (level > log_least)
		return;
	va_start(ap, format);
	vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (log_journal)
		fprintf(stderr, "<%d>%s\n", (int)level, line);
	else
		fprintf(stderr, "%s: %s\n", log_name, line);
}
