/* page_groups.c - the processes, threads, cgroups and units of a profile, on the page */
#include <errno.h>

#include "page.h"
#include "analysis/group_by.h"

#define ROWS_MAX 30

static void row(FILE *out, const struct profile *p, __u64 samples, const char *name)
{
	double percent = profile_percent(p, samples);

	fprintf(out, "<div class=\"s%.0f\"><span>%.2f %%</span><span>%llu</span><span>",
		0.6 * percent, percent, samples);
	page_text(out, name);
	fputs("</span></div>\n", out);
}

/* Writes nothing if the profile has no groups for @by. Returns 0 or -ENOMEM. */
static int group(FILE *out, const struct profile *p, enum rows_by by)
{
	struct rows rows;
	__u64 rest = 0;
	char more[64];
	int err = p->binned ? rows_init(&rows, p, by) : -ENOENT;

	if (err < 0) {
		if (p->binned)
			rows_fini(&rows);
		return err == -ENOENT ? 0 : err;
	}
	fprintf(out, "<details><summary>By %s</summary><div class=\"code\">\n", rows_by_name(by));
	for (size_t i = 0; i < rows.n; i++) {
		if (i < ROWS_MAX)
			row(out, p, rows.row[i].samples, rows.row[i].name);
		else
			rest += rows.row[i].samples;
	}
	snprintf(more, sizeof(more), "(%zu more)", rows.n - ROWS_MAX);
	if (rest)
		row(out, p, rest, more);
	fputs("</div></details>\n", out);
	rows_fini(&rows);
	return 0;
}

int page_groups(FILE *out, const struct profile *p)
{
	static const enum rows_by kinds[] = { ROWS_COMMAND, ROWS_PROCESS, ROWS_THREAD,
					      ROWS_CGROUP,  ROWS_UNIT,	  ROWS_CONTAINER,
					      ROWS_WAIT,    ROWS_LOCK,	  ROWS_OBJECT };
	int err = 0;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds) && !err; i++)
		err = group(out, p, kinds[i]);
	return err;
}
