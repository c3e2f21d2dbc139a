/* first_line.c - files of one line, as in /proc and /sys */
#include <stdio.h>
#include <string.h>

#include "cleanup.h"

#include "first_line.h"

void first_line(const char *path, char *out, size_t bytes)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");

	if (!f || !fgets(out, (int)bytes, f))
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
}
