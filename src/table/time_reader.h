/* time_reader.h - reads the stacks of a table by slices of time */
#ifndef PROFIL_TABLE_TIME_READER_H
#define PROFIL_TABLE_TIME_READER_H

#include "analysis/time_slices.h"
#include "stack_reader.h"

/* Zeroed but for max and slice_ns of @of. */
struct time_reader {
	struct slices of;
	struct stack_series series;
};

/*
 * Ends a slice at @now_ns of CLOCK_MONOTONIC. The time until then of threads that still have no CPU
 * is in it. Returns 0 or -ENOMEM.
 */
int time_reader_take(struct time_reader *t, struct table_reader *r, __u64 now_ns);

void time_reader_fini(struct time_reader *t);

#endif
