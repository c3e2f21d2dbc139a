/* top_table.h - the rows of top: functions and the processes that ran them */
#ifndef PROFIL_PROFILCTL_TOP_TOP_TABLE_H
#define PROFIL_PROFILCTL_TOP_TOP_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "profile/profile.h"

enum top_order {
	TOP_BY_SAMPLES,
	TOP_BY_FUNCTION,
	TOP_BY_OBJECT,
	TOP_BY_PROCESS,
	TOP_BY_TOTAL, /* with stacks only */
	TOP_ORDERS,
};

struct top_row {
	const struct function *function; /* of several instances, the one with the most samples */
	__u64 samples;
	char *name; /* sanitized */
	char object[128];
	char command[32]; /* of the process with the most samples in the function */
	pid_t pid;	  /* of that process; 0: unknown */
	size_t processes; /* number of processes with samples in it */
	__u64 total;	  /* samples in it and its callees; 0: no stacks */
};

struct top_rows {
	struct top_row *row;
	size_t n;
};

/*
 * Makes a row for each function of @p whose name, object or command contains @filter, ignoring
 * case. Returns 0 or -ENOMEM. top_rows_fini() in any case.
 */
int top_rows_init(struct top_rows *rows, const struct profile *p, enum top_order order,
		  const char *filter);
void top_rows_fini(struct top_rows *rows);

struct top_table {
	__u64 period_ns; /* length of the interval */
	size_t lines;	 /* of the screen */
	size_t columns;
	size_t first;	  /* first row that is shown */
	const char *note; /* for the second line; NULL: the CPU time of the samples */
};

/* Lines above the first row. */
#define TOP_HEADING 3

/*
 * Writes a heading and the rows. On a narrow screen other columns are dropped before the column of
 * functions is cut.
 */
void top_write(FILE *out, const struct profile *p, const struct top_rows *rows,
	       const struct top_table *t);

#endif
