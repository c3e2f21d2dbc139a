/* report.c - prints a recorded profile */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "analysis/view_chains.h"
#include "profilctl/output/output.h"
#include "load_operands.h"
#include "profilctl/spool/spool.h"
#include "profilctl/util/terminal.h"
#include "report_tree.h"
#include "report_view.h"
#include "verb.h"

/*
 * Reads files, or a span of time from a spool. Prints a message on failure and returns an enum
 * ctl_status.
 */
static int read_profile(struct profile **p, const struct options *o)
{
	bool timed = o->since || o->until;
	struct time_span span;
	const char *wrong;

	if (timed ? o->argc > 0 : !o->argc) {
		log_err("report: needs files or a time: 'profilctl report FILE...', or "
			"'--since 03:00 --until 03:30'");
		return CTL_USAGE;
	}
	if (!timed)
		return load_operands(p, o, o->argv, (size_t)o->argc);
	switch (time_span_parse(&span, o->since, o->until, time(NULL), &wrong)) {
	case 0:
		return spool_read(p, o, &span);
	case -ERANGE:
		log_err("report: --until is not after --since");
		return CTL_USAGE;
	}
	log_err("report: %s is not a time such as 03:00, yesterday, \"2026-11-22 03:00\" or -1h",
		wrong);
	return CTL_USAGE;
}

/* Prints a message on failure and returns an enum ctl_status. */
static int show_wakers(struct profile *p, const struct options *o)
{
	if (!call_tree_has_wakers(&p->calls)) {
		log_err("report: this profile has no wakers; 'profilctl record --wakers' writes "
			"one that has (of threads that slept: see --state)");
		return CTL_ERROR;
	}
	if (!o->chains || !view_chains(p))
		return CTL_OK;
	log_err("report: %s", strerror(ENOMEM));
	return CTL_ERROR;
}

int verb_report(const struct options *o)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	__u64 total = 0;
	FILE *out;
	int status, partial;

	status = read_profile(&p, o);
	partial = status == CTL_PARTIAL ? status : CTL_OK;
	if (!status || partial) {
		total = p->total;
		status = report_view_apply(p, o);
	}
	if (!status && (o->wakers || o->chains))
		status = show_wakers(p, o);
	if (!status)
		status = output_open(&out, o);
	if (status)
		return status;
	if (output_is_text(o) && out == stdout)
		pager_begin();
	if (output_is_text(o))
		report_view_describe(out, o, p, total);
	if (report_tree_wanted(o))
		status = report_tree_write(out, o, p);
	else
		status = output_write(out, o, p);
	pager_end();
	return status ? status : partial;
}
