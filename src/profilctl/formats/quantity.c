/* quantity.c - what samples stand for, in words */
#include <stdio.h>
#include <string.h>

#include "quantity.h"

const char *quantity_of_sample(char *out, size_t bytes, const struct profile *p)
{
	double ms = (double)p->tick_ns / 1e6;

	if (p->event && p->tick_ns)
		snprintf(out, bytes, "a sample stands for %.6g ms in which a thread slept", ms);
	else if (p->event && p->period)
		snprintf(out, bytes, "a sample for each %llu %s", p->period, p->event);
	else if (p->event)
		snprintf(out, bytes, "samples of %s at a frequency", p->event);
	else
		snprintf(out, bytes, "%.6g Hz, a sample stands for %.6g ms of CPU time",
			 p->tick_ns ? 1e9 / (double)p->tick_ns : 0, ms);
	return out;
}

const char *quantity_of_all(char *out, size_t bytes, const struct profile *p)
{
	if (p->tick_ns)
		snprintf(out, bytes, "%.2f s %s", (double)p->total * (double)p->tick_ns / 1e9,
			 p->event ? "in which threads slept" : "of CPU time");
	else if (p->event && p->period)
		snprintf(out, bytes, "%.6g %s", (double)p->total * (double)p->period, p->event);
	else
		snprintf(out, bytes, "of %s", p->event ? p->event : "unknown events");
	return out;
}

bool quantity_is_same(const struct profile *a, const struct profile *b)
{
	return !strcmp(a->event ? a->event : "", b->event ? b->event : "");
}
