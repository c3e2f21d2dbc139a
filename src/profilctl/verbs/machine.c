/* machine.c - the machine profile: turns it on and off, and reports it */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"

#include "answer.h"
#include "diff.h"
#include "profilctl/collect/daemon_spawn.h"
#include "profilctl/collect/machine_feed.h"
#include "profilctl/collect/recorder.h"
#include "formats/format.h"
#include "profilctl/output/output.h"
#include "profilctl/push/push.h"
#include "profilctl/spool/spool.h"
#include "symbols/symbolize.h"
#include "report_tree.h"
#include "report_view.h"
#include "verb.h"

#define DIFF_NS 10000000000u

/* Sends the request; the caller closes *@table. *@feeder: the process that feeds it; 0: none. */
static int request(const struct options *o, __u32 ask, int *table, pid_t *feeder)
{
	struct profil_msg_reply reply = { 0 };
	struct client *c;
	int status = daemon_connect(&c, o), err;

	*table = -1;
	if (status)
		return status;
	if (ask == PROFIL_MACHINE_ON && o->stack_mode)
		err = client_machine_stacks(c, o->stack_mode, options_period_ns(o), &reply, table);
	else
		err = client_machine(c, ask, options_period_ns(o), &reply, table);
	client_close(c);
	*feeder = (pid_t)reply.tgid;
	if (!err || (err == -ENOENT && ask != PROFIL_MACHINE_ON))
		return CTL_OK;
	if (err == -EPERM || err == -EACCES)
		return recorder_machine_denied(o);
	if (err == -ERANGE)
		return recorder_rate_refused(o);
	log_err("profild cannot profile the machine: %s", strerror(-err));
	return CTL_ERROR;
}

/* The samples of a machine profile that is on at another rate are lost. */
static void tell_replaced(const struct table *before, const struct table *now)
{
	if (before->head && before->head->started_ns != now->head->started_ns)
		log_notice("the profile until now, of %llu samples at %.6g Hz, is discarded",
			   table_total(before), 1e9 / (double)before->head->period_ns);
}

/* Of a sample with an interrupt of its own, by the bench. */
#define SAMPLE_NS 17500u

/* The rate is that of everybody's processes. */
static void tell_cost(__u64 period_ns)
{
	double percent = period_ns ? 100.0 * SAMPLE_NS / (double)period_ns : 0;

	if (percent >= 1)
		log_notice(
			"at that rate it takes about %.0f %% of each busy CPU; without -F it has "
			"the daemon's, usually 100 Hz",
			percent);
}

static void tell_on(const struct profil_table *head, pid_t feeder)
{
	log_notice("the machine's profile is on, at %.6g Hz%s",
		   head->period_ns ? 1e9 / (double)head->period_ns : 0,
		   head->stack_mode ? ", with stacks" : "");
	tell_cost(head->period_ns);
	if (head->unwind_pages && head->stack_mode && !feeder)
		log_notice("its stacks are cut where code has no frame pointers until 'profilctl "
			   "machine feed' (profil-feed.service) runs");
}

static int on(const struct options *o)
{
	__cleanup(closep) int table = -1;
	__cleanup(closep) int former = -1;
	struct table t = { 0 }, before = { 0 };
	pid_t feeder;
	int status = request(o, PROFIL_MACHINE_QUERY, &former, &feeder);

	if (!status)
		status = request(o, PROFIL_MACHINE_ON, &table, &feeder);
	if (status)
		return status;
	if (table_open(&t, table) < 0) {
		log_err("cannot read profild's table: it is of another version");
		return CTL_ERROR;
	}
	if (former >= 0 && !table_open(&before, former))
		tell_replaced(&before, &t);
	table_close(&before);
	tell_on(t.head, feeder);
	table_close(&t);
	return CTL_OK;
}

static int off(const struct options *o)
{
	__cleanup(closep) int table = -1;
	pid_t feeder;

	return request(o, PROFIL_MACHINE_OFF, &table, &feeder);
}

static void status_text(const struct profil_table *head, __u64 total, pid_t feeder)
{
	time_t since = (time_t)(head->started_real_ns / 1000000000u);
	char when[64];
	struct tm tm;

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S", localtime_r(&since, &tm));
	printf("machine    on since %s, %.6g Hz\n", when,
	       head->period_ns ? 1e9 / (double)head->period_ns : 0);
	printf("samples    %llu, %llu unmatched, %llu lost\n", total, head->unmatched,
	       head->lost + head->image_full);
	printf("room       %llu of %llu places, %u of %u images, %u of %u groups\n",
	       head->used_places, (__u64)head->lines * PROFIL_LINE_PLACES, head->used_images,
	       head->images, head->used_groups, head->groups);
	if (!head->stack_mode)
		return;
	printf("stacks     %u of %u nodes, %llu samples without room, %llu folded into callers\n",
	       head->used_nodes, head->nodes, head->node_full + head->stack_lost, head->folded);
	if (head->folded)
		puts("           the tree was full: 'profilctl record -a -g' has one of its own");
	if (feeder)
		printf("fed by     process %d\n", (int)feeder);
	else
		puts("fed by     nothing: 'profilctl machine feed' gives it unwind rows");
}

static int status_json(const struct profil_table *head, __u64 total, pid_t feeder)
{
	return answer_json(json_pack(
		"{ss sb sI sI sI sI sI sI sI sI sI sb sI sI sI sI sI}", "schema",
		"profil-machine/1", "on", true, "started_ns", (json_int_t)head->started_real_ns,
		"tick_ns", (json_int_t)head->period_ns, "total", (json_int_t)total, "unmatched",
		(json_int_t)head->unmatched, "lost", (json_int_t)(head->lost + head->image_full),
		"places", (json_int_t)head->used_places, "room",
		(json_int_t)head->lines * PROFIL_LINE_PLACES, "images",
		(json_int_t)head->used_images, "groups", (json_int_t)head->used_groups, "stacks",
		head->stack_mode != PROFIL_STACK_NONE, "nodes", (json_int_t)head->used_nodes,
		"node_room", (json_int_t)head->nodes, "stack_lost",
		(json_int_t)(head->node_full + head->stack_lost), "folded",
		(json_int_t)head->folded, "feeder", (json_int_t)feeder));
}

static int show_status(const struct options *o)
{
	__cleanup(closep) int fd = -1;
	struct table t = { 0 };
	pid_t feeder;
	int status = request(o, PROFIL_MACHINE_QUERY, &fd, &feeder);

	if (status)
		return status;
	if (fd >= 0 && table_open(&t, fd) < 0) {
		log_err("cannot read profild's table: it is of another version");
		return CTL_ERROR;
	}
	if (t.head && o->format)
		status = status_json(t.head, table_total(&t), feeder);
	else if (t.head)
		status_text(t.head, table_total(&t), feeder);
	else if (o->format)
		status = answer_json(
			json_pack("{ss sb}", "schema", "profil-machine/1", "on", false));
	else
		puts("machine    off");
	table_close(&t);
	return status;
}

/* Sets the head for all samples since the machine profile was turned on. */
static void set_head(struct recorder *r)
{
	const struct profil_table *head = r->reader.table.head;

	r->profile->command = strdup(PROFILE_MACHINE);
	r->profile->started = (time_t)(head->started_real_ns / 1000000000u);
	r->profile->duration_ns = clock_ns(CLOCK_BOOTTIME) - head->started_ns;
}

static int wait_until(struct recorder *r, __u64 end_ns)
{
	int on;

	do
		on = recorder_wait(r, end_ns);
	while (on > 0 && now_ns() < end_ns);
	return on;
}

/* Says whether samples of @p, an interval until now, are missing. */
static bool is_partial(const struct recorder *r, const struct profile *p)
{
	bool over = recorder_must_renew(r);

	if (over)
		log_warning("the machine's profile was turned off or began anew meanwhile: the "
			    "samples since then are missing");
	return recorder_tell_lost(p) || over;
}

/* Makes @p what @after has more than @before. */
static int subtract(struct profile *p, const struct profile *before, struct profile *after)
{
	int err = profile_difference(p, before, after);

	if (err)
		return err;
	p->unmatched = after->unmatched - before->unmatched;
	p->lost = after->lost > before->lost ? after->lost - before->lost : 0;
	p->total = p->binned + p->unmatched + p->lost;
	p->calls_folded = after->calls_folded - before->calls_folded;
	p->processes = profile_count_processes(p);
	return call_tree_difference(&p->calls, &before->calls, &after->calls, p->total - p->lost);
}

/* Records into @p from now until the time limit or a signal. */
static int take_interval(struct recorder *r, struct profile *p, __u64 ns)
{
	struct profile *before = profile_borrow(r->profile), *after = profile_borrow(r->profile);
	int err = before && after ? recorder_snapshot(r, before) : -ENOMEM;
	__u64 began = now_ns();

	p->started = time(NULL);
	err = err ?: wait_until(r, began + ns);
	if (err >= 0)
		err = recorder_snapshot(r, after);
	profile_borrow_again(p, r->profile);
	p->duration_ns = now_ns() - began;
	err = err ?: subtract(p, before, after) ?: symbolize(p, NULL);
	profile_give_back(before);
	profile_give_back(after);
	return err;
}

static int failed(int err)
{
	log_err("cannot make a report: %s", strerror(-err));
	return CTL_ERROR;
}

/* Writes the report of the samples of @p that the options select. */
static int write_selected(struct recorder *r, struct profile *p)
{
	const struct options *o = r->options;
	__u64 total = p->total;
	int status = report_view_apply(p, o);

	if (status)
		return status;
	if (output_is_text(o))
		report_view_describe(r->out, o, p, total);
	if (report_tree_wanted(o))
		return report_tree_write(steal(r->out), o, p);
	status = output_write(steal(r->out), o, p);
	if (status)
		output_rescue(o, p);
	return status;
}

/* What is missing is said before: a filter removes the samples that are lost. */
static int report_interval(struct recorder *r)
{
	struct profile *p = profile_borrow(r->profile);
	int err = p ? take_interval(r, p, r->options->duration_ns) : -ENOMEM;
	int status = err < 0 ? failed(err) : CTL_OK;
	bool partial;

	if (!status) {
		p->command = strdup(r->profile->command);
		partial = is_partial(r, p);
		status = write_selected(r, p) ?: (partial ? CTL_PARTIAL : CTL_OK);
	}
	profile_give_back(p);
	return status;
}

static int report_all(struct recorder *r)
{
	int status = recorder_end(r), partial;

	if (status)
		return status;
	partial = recorder_missing(r);
	status = write_selected(r, r->profile);
	if (!status)
		recorder_tell_written(r);
	return status ?: partial;
}

/*
 * Reports all samples since the machine profile was turned on, or with -d those of the next
 * seconds.
 */
static int report(struct recorder *r)
{
	bool stacks = r->reader.table.head->stack_mode != PROFIL_STACK_NONE;
	int status = report_view_check_machine(r->options, stacks);

	if (status)
		return status;
	set_head(r);
	return r->options->duration_ns ? report_interval(r) : report_all(r);
}

/* Compares the samples before now with those of the next seconds. */
static int compare(struct recorder *r)
{
	struct profile *before = profile_borrow(r->profile), *now = profile_borrow(r->profile);
	int err = before && now ? recorder_snapshot(r, before) : -ENOMEM;
	int status;

	set_head(r);
	if (!err)
		err = take_interval(r, now, r->options->duration_ns ?: DIFF_NS);
	if (!err) {
		profile_borrow_again(before, r->profile);
		err = symbolize(before, NULL);
	}
	if (!err) {
		before->command = strdup("the machine until now");
		now->command = strdup("the machine since then");
		err = diff_write(r->out, r->options, before, now);
	}
	status = err < 0 ? failed(err) : output_end(steal(r->out), r->options, 0);
	if (!status && is_partial(r, now))
		status = CTL_PARTIAL;
	profile_give_back(before);
	profile_give_back(now);
	return status;
}

static int with_table(const struct options *o, int (*run)(struct recorder *r))
{
	struct recorder r;
	int status = recorder_init_connected(&r, o);

	if (!status)
		status = recorder_machine(&r);
	if (!status)
		status = run(&r);
	recorder_fini(&r);
	return status;
}

/* The daemon counts the machine by command and cgroup, without wakers. */
static int check_rows(const struct options *o)
{
	const char *by = rows_by_name(o->by);

	if (o->wakers || o->chains) {
		log_err("machine report: the machine's profile has no wakers: use 'profilctl "
			"record "
			"-a --wakers'");
		return CTL_USAGE;
	}

	if ((o->by != ROWS_PROCESS && o->by != ROWS_THREAD) || !output_is_text(o))
		return CTL_OK;
	log_err("machine report: the machine's profile does not distinguish one %s from another: "
		"use 'profilctl record -a --by %s'",
		by, by);
	return CTL_USAGE;
}

static int compare_files(const struct options *o)
{
	if (!o->duration_ns)
		return verb_diff(o);
	log_err("machine diff: -d is for the machine's profile: leave out the files, or -d");
	return CTL_USAGE;
}

static int usage(void)
{
	log_err("machine: needs one of on, off, status, report, top, diff, spool, push and feed");
	return CTL_USAGE;
}

int verb_machine(const struct options *o)
{
	const char *what = o->argc ? o->argv[0] : "status";
	struct options rest = *o;

	rest.argc -= o->argc > 0;
	rest.argv += o->argc > 0;
	if (!strcmp(what, "diff") && rest.argc)
		return compare_files(&rest);
	if (!strcmp(what, "spool") && rest.argc < 2) {
		rest.spool = rest.argc ? rest.argv[0] : o->spool;
		return spool_keep(&rest);
	}
	if (!strcmp(what, "push") && rest.argc < 2)
		return push_spool(&rest, rest.argc ? rest.argv[0] : o->endpoint);
	if (rest.argc)
		return usage();
	if (!strcmp(what, "on"))
		return on(o);
	if (!strcmp(what, "off"))
		return off(o);
	if (!strcmp(what, "status"))
		return show_status(o);
	if (!strcmp(what, "feed"))
		return machine_feed(o);
	if (!strcmp(what, "report"))
		return check_rows(o) ?: with_table(o, report);
	if (!strcmp(what, "diff")) {
		if (!rest.format) /* two profiles have no format for a file */
			rest.format = format_find("text");
		return diff_check(&rest) ?: with_table(&rest, compare);
	}
	if (strcmp(what, "top") != 0)
		return usage();
	rest.machine = true;
	return verb_top(&rest);
}
