/* report_tree.c - the calls of a profile as text, instead of its functions */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/sanitize.h"

#include "profilctl/output/output.h"
#include "profilctl/output/text_stacks.h"
#include "profilctl/util/exit_status.h"
#include "profilctl/util/terminal.h"
#include "report_tree.h"

/* Stacks are not kept per process: names the command that records those of the process only. */
static void refuse_process(const struct options *o, const struct profile *p)
{
	const struct view_filter *f = &o->filter;
	const char *name = f->container ?: f->pod ?: f->command ?: f->process;
	bool is_pid = name && name == f->process && !name[strspn(name, "0123456789")];
	const char *how = profile_is_wall(p)	  ? "--wall"
			  : profile_is_latency(p) ? "--latency -g"
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

bool report_tree_wanted(const struct options *o)
{
	return o->tree || o->callers || o->callees || o->wakers;
}

int report_tree_write(FILE *out, const struct options *o, const struct profile *p)
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
		log_err("%s: this profile has no samples", o->verb);
	else if (err == -ENODATA && view_filter_is_of_groups(&o->filter))
		refuse_process(o, p);
	else if (err == -ENODATA && *view_filter_text(what, sizeof(what), &o->filter))
		log_err("%s: %s: there are no stacks, or not for all samples", o->verb, what);
	else if (err == -ENODATA)
		log_err("%s: this profile has no stacks: %s", o->verb,
			strcmp(o->verb, "report") ? "'profilctl machine on -g' counts them"
						  : "record it with -g");
	else if (err == -ENOENT)
		log_err("%s: no stack has a function %s", o->verb, name);
	else if (err == -EINVAL)
		log_err("%s: %s is not a regular expression", o->verb, name);
	else
		log_err("%s: %s", o->verb, strerror(-err));
	return CTL_ERROR;
}
