/* progress.c - a line of progress on the terminal */
#include <stdio.h>
#include <unistd.h>

#include "progress.h"

static bool shown, off;

void progress_off(void)
{
	off = true;
}

bool progress_wanted(void)
{
	return !off && isatty(STDERR_FILENO);
}

void progress_show(__u64 elapsed_ns, __u64 samples)
{
	fprintf(stderr, "\rprofilctl: %.0f s, %llu samples; Ctrl-C ends it\033[K",
		(double)elapsed_ns / 1e9, samples);
	shown = true;
}

void progress_fetch(long done, long total)
{
	fprintf(stderr, "\rprofilctl: fetching a debug file: %ld of %ld KiB\033[K", done / 1024,
		total / 1024);
	shown = true;
}

void progress_clear(void)
{
	if (shown)
		fputs("\r\033[K", stderr);
	shown = false;
}
