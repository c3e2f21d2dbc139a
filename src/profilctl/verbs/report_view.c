/* report_view.c - the samples that a report shows: the filters and views of its options */
#include <errno.h>
#include <string.h>

#include "base/log.h"

#include "profilctl/output/output.h"
#include "profilctl/util/exit_status.h"
#include "base/sanitize.h"
#include "report_view.h"

/*
 * Without stacks the machine profile counts commands and cgroups by object only, not by function.
 * Says whether the options ask for more.
 */
static bool asks_for_groups(const struct options *o)
{
	return view_filter_is_of_groups(&o->filter) ||
	       (output_is_text(o) && !rows_have_object(o->by) &&
		(o->fold_kernel || o->filter.function));
}

static void refuse_groups(const struct options *o)
{
	log_err("%s: this profile counts %s by file only, not by function: 'profilctl machine on "
		"-g' counts functions by command and cgroup, 'profilctl record -a -o FILE' by "
		"process",
		o->verb,
		o->filter.process	  ? "processes"
		: o->filter.unit	  ? "units"
		: o->filter.container	  ? "containers"
		: o->filter.pod		  ? "pods"
		: rows_have_object(o->by) ? "commands"
					  : rows_by_name(o->by));
}

int report_view_check_machine(const struct options *o, bool stacks)
{
	if (stacks || !asks_for_groups(o))
		return CTL_OK;
	refuse_groups(o);
	return CTL_USAGE;
}

/* A file without the stacks that a filter cannot divide looks like that of a flat profile. */
static void tell_stacks_removed(const struct profile *p, const struct options *o, const char *what)
{
	char clean[512];

	if (!p->calls.n && p->total && !output_is_text(o))
		log_warning("%s: the stacks of this profile do not tell which are of %s: samples "
			    "are written without their callers",
			    o->verb, sanitize(clean, sizeof(clean), what));
}

int report_view_apply(struct profile *p, const struct options *o)
{
	bool stacks = call_tree_sum(&p->calls) > 0;
	__u64 total = p->total;
	char what[512];
	int err = asks_for_groups(o) ? view_group_places(p) : 0;

	if (!err && p->sums.n && asks_for_groups(o))
		err = -EOPNOTSUPP;
	if (!err && o->fold_kernel)
		err = view_fold_kernel(p);
	if (!err && *view_filter_text(what, sizeof(what), &o->filter))
		err = view_filter(p, &o->filter);
	if (!err && stacks)
		tell_stacks_removed(p, o, what);
	if (!err && (p->total || !total))
		return CTL_OK;
	if (!err)
		log_err("%s: no samples are of %s%s", o->verb, what,
			o->fold_kernel ? ", if those in the kernel are counted where user mode was "
					 "left"
				       : "");
	else if (err == -ENOMSG)
		log_err("%s: this profile does not distinguish states; 'profilctl record --wall' "
			"writes one that does",
			o->verb);
	else if (err == -ENODATA)
		log_err("%s: this profile does not distinguish processes; 'profilctl record -o "
			"FILE' writes one that does",
			o->verb);
	else if (err == -EOPNOTSUPP)
		refuse_groups(o);
	else if (err == -ENOENT)
		log_err("%s: no function %s has samples", o->verb, o->filter.function);
	else if (err == -EINVAL)
		log_err("%s: %s is not a regular expression", o->verb, o->filter.function);
	else
		log_err("%s: %s", o->verb, strerror(-err));
	return CTL_ERROR;
}

void report_view_describe(FILE *out, const struct options *o, const struct profile *p, __u64 total)
{
	char what[512], text[512];

	if (*view_filter_text(what, sizeof(what), &o->filter))
		fprintf(out, "only %s: %llu of %llu samples\n", sanitize(text, sizeof(text), what),
			p->total, total);
	if (o->fold_kernel)
		fputs("samples in the kernel are counted where user mode was left\n", out);
}
