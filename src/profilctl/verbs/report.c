/* report.c - prints a recorded profile */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"

#include "analysis/view_chains.h"
#include "profilctl/output/output.h"
#include "profilctl/output/text_stacks.h"
#include "load_operands.h"
#include "profilctl/spool/spool.h"
#include "base/sanitize.h"
#include "profilctl/util/terminal.h"
#include "report_view.h"
#include "verb.h"

/* Stacks are not kept per process: names the command that records those of the process only. */
static void refuse_process(const struct options *o, const struct profile *p)
{
	const struct view_filter *f = &o->filter;
	const char *name = f->container ?: f->pod ?: f->command ?: f->process;
	bool is_pid = name == f->process && !name[strspn(name, "0123456789")];
	const char *how = profile_is_wall(p)	  ? "--wall"
			  : profile_is_off_cpu(p) ? "--off-cpu"
						  : "-g";
	char clean[256];

	log_err("report: stacks do not distinguish processes: leave out --%s, or record only these "
		"processes: 'profilctl attach %s%s %s'",
		f->container ? "container"
		: f->pod     ? "pod"
		: f->command ? "command"
			     : "process",
		is_pid	       ? ""
		: f->container ? "--container "
		: f->pod       ? "--pod "
			       : "--comm ",
		sanitize(clean, sizeof(clean), name), how);
}

/* Writes calls instead of the flat profile. Returns an enum ctl_status. */
static int tree_write(FILE *out, const struct options *o, const struct profile *p)
{
	struct text_tree t = { .callers = o->callers,
			       .callees = o->callees,
			       .wakers = o->wakers,
			       .rows = o->rows,
			       .least_percent = o->all		   ? 0
						: o->least_percent ? o->least_percent
						: o->rows	   ? 0
								   : TEXT_LEAST_PERCENT,
			       .columns = out == stdout ? terminal_columns(STDOUT_FILENO) : 0,
			       .full_names = o->full_names };
	const char *name = o->callers ?: o->callees ?: o->wakers;
	char what[512];
	int err = text_tree(out, p, &t);

	if (!err)
		return output_end(out, o, 0);
	if (err == -ENODATA && !p->total)
		log_err("report: this profile has no samples");
	else if (err == -ENODATA && view_filter_is_of_groups(&o->filter))
		refuse_process(o, p);
	else if (err == -ENODATA && *view_filter_text(what, sizeof(what), &o->filter))
		log_err("report: %s: there are no stacks, or not for all samples", what);
	else if (err == -ENODATA)
		log_err("report: this profile has no stacks: record it with -g");
	else if (err == -ENOENT)
		log_err("report: no stack has a function %s", name);
	else if (err == -EINVAL)
		log_err("report: %s is not a regular expression", name);
	else
		log_err("report: %s", strerror(-err));
	return CTL_ERROR;
}

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
	if (o->tree || o->callers || o->callees || o->wakers)
		status = tree_write(out, o, p);
	else
		status = output_write(out, o, p);
	pager_end();
	return status ? status : partial;
}
