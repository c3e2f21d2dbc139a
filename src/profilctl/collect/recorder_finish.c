/* recorder_finish.c - ends a recording: the report, and messages about what it lacks */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "base/clocks.h"

#include "profile/stack_ends.h"
#include "profilctl/output/output.h"
#include "symbols/proc/cgroups.h"
#include "symbols/proc/mounts.h"
#include "symbols/symbolize.h"
#include "profilctl/util/exit_status.h"
#include "recorder.h"
#include "table/sleeper_reader.h"
#include "table/stack_reader.h"

/* Missing CPU time is reported from this amount, and from a tenth of the total. */
#define MISSING_NS 100000000u

/* Truncated stacks that --call-graph=fp may explain are reported from this share. */
#define TRUNCATED_PERCENT 10.0

/* The daemon replies after the last sample of the attachment is counted. */
static void detach(struct recorder *r)
{
	struct profil_msg_reply reply;

	if (!r->machine && !r->broken && client_detach(r->client, &reply) == -ENODATA)
		r->broken = true;
}

static int make_report(struct recorder *r, __u64 ended_ns)
{
	struct symbolize_cache *names = &r->names;
	int err = stack_reader_read_all(&r->reader, r->profile);

	names->reopen = table_reader_reopen;
	names->reader = &r->reader;
	if (!err)
		err = sleepers_read(&r->reader, r->profile, ended_ns);
	if (!err)
		err = quiet_threads_read(&r->quiet, r->profile, ended_ns);
	r->client = client_close(r->client);
	daemon_end(steal(r->daemon));
	r->profile->processes = profile_count_processes(r->profile);
	if (!err && r->options->slice_ns)
		err = slices_into(&r->slices.of, &r->slices.series.tree, r->profile);
	if (!err)
		err = symbolize(r->profile, names);
	if (!err && r->options->slice_ns)
		err = slices_of_functions(r->profile);
	symbolize_cache_fini(names);
	return err;
}

/* More than samples and the steps of /proc explain. */
static bool is_more(const struct profile *p, __u64 ns, __u64 than_ns)
{
	return ns >= than_ns + MISSING_NS + 10 * p->tick_ns && ns - than_ns >= ns / 10;
}

/*
 * The CPU time of the observed processes by the kernel's accounting; 0: unknown, as that of the
 * processes of a wide scope, and of attached ones whose children outlive their parents.
 */
static __u64 used_ns(const struct recorder *r)
{
	const struct profile *p = r->profile;
	__u64 sum = 0;

	if (r->asked.scope != PROFIL_SCOPE_PROCESSES)
		return 0;
	if (r->command.keeper)
		return command_cpu_ns(&r->command);
	for (size_t i = 0; i < r->nwatched; i++)
		sum += r->watched[i].cpu_ns;
	sum += r->children.later_ns;
	return p->event || !is_more(p, p->total * p->tick_ns, sum) ? sum : 0;
}

int recorder_end(struct recorder *r)
{
	__u64 ended_ns = now_ns();
	int err;

	if (r->began_ns)
		r->profile->duration_ns = ended_ns - r->began_ns;
	recorder_note_cpu_time(r);
	/* Before the report is made, which takes its time. */
	if (r->command.keeper && command_running(&r->command, &r->running, &r->nrunning))
		r->nrunning = 0;
	detach(r);
	attached_children_end(&r->children);
	r->profile->cpu_ns = used_ns(r);
	err = make_report(r, ended_ns);
	if (!err)
		return CTL_OK;
	log_err("cannot make a report: %s", strerror(-err));
	return CTL_ERROR;
}

/* Prints a note if processes that the user may not observe used a noticeable part of the CPU time.
 */
static void tell_hidden(const struct recorder *r)
{
	const struct profile *p = r->profile;
	__u64 all = p->hidden_ns + p->total * p->tick_ns;

	if (p->hidden_ns < MISSING_NS || p->hidden_ns < all / 10)
		return;
	log_warning("%.2f s of CPU time of your processes are not in the profile: permission "
		    "denied, as for set-id programs and the sandboxes of browsers (run as root, or "
		    "join group profil)",
		    (double)p->hidden_ns / 1e9);
}

/* Prints a note if samples account for noticeably less CPU time than was used, and says so. */
static bool tell_unseen(const struct recorder *r)
{
	const struct profile *p = r->profile;
	const struct options *o = r->options;
	__u64 used = p->cpu_ns, seen = p->total * p->tick_ns + p->unseen_ns, missing;

	if (p->event || o->user_only || r->asked.scope != PROFIL_SCOPE_PROCESSES)
		return false;
	if (!is_more(p, used, seen))
		return false;
	missing = used - seen;
	log_warning("%.2f s of %.2f s of CPU time are not in the profile: %s",
		    (double)missing / 1e9, (double)used / 1e9,
		    p->secret ? "programs ran that you may not observe (set-id, or another user's)"
		    : p->unfollowed ? "processes could not be followed"
		    : o->no_inherit ? "children ran, which --no-inherit leaves out"
				    : "processes ran that were not observed");
	return true;
}

/* Prints a note if children that ran before the attachment used a noticeable amount of CPU time. */
static void tell_earlier(const struct recorder *r)
{
	const struct attached_children *e = &r->children;

	if (!r->profile->event && e->earlier_ns >= MISSING_NS)
		log_warning("%.2f s of CPU time are not in the profile: %zu child process%s ran "
			    "already before (name the pids as well, or use --cgroup)",
			    (double)e->earlier_ns / 1e9, e->nearlier, e->nearlier == 1 ? "" : "es");
}

/* Prints a note if many stacks are truncated, for which frame pointers alone may be the reason. */
static void tell_frame_pointers(const struct recorder *r)
{
	double truncated = 0;
	struct stack_ends e;

	if (r->options->stack_mode != PROFIL_STACK_FP || !has_stacks(r->profile))
		return;
	if (!stack_ends_init(&e, r->profile))
		truncated = 100 - stack_ends_percent(&e, e.ended[CALL_WHOLE]);
	if (truncated >= TRUNCATED_PERCENT)
		log_warning("%.0f %% of the stacks are truncated: --call-graph=fp follows frame "
			    "pointers only; -g uses unwind rules too",
			    truncated);
	stack_ends_fini(&e);
}

/* A lower rate does not help where files had no room. */
bool recorder_tell_lost(const struct profile *p)
{
	if (p->lost <= p->total / 100)
		return false;
	log_warning("%llu of %llu samples were lost%s", p->lost, p->total,
		    p->image_full > p->lost / 2 ? ": more files were executed than the table has "
						  "room for (observe fewer processes)"
						: "; take a lower rate");
	return true;
}

/* Says whether the name @exe is that of another file now. */
static bool is_another_file(const struct recorder *r, const char *exe)
{
	struct mounts_file now;

	return !mounts_file(&now, exe) && (now.ino != r->asked.ino || now.dev != r->asked.dev);
}

/* Likewise of the cgroup that was selected by its path or unit. */
static bool is_another_cgroup(const struct recorder *r, const struct procfs_select *s)
{
	__u64 now;
	int err = cgroups_selected_id(&now, s);

	return !err && now != r->asked.cgroup;
}

/*
 * A file or cgroup is selected by its inode. Prints a note if its name has another one by now, as
 * after an upgrade or the restart of a service: what runs there since is not in the profile.
 */
static bool tell_replaced(const struct recorder *r)
{
	const struct procfs_select *s = &r->options->select;
	const char *what, *name = s->exe ? s->exe : cgroups_selected(&what, s);

	if (!name || !(s->exe ? is_another_file(r, name) : is_another_cgroup(r, s)))
		return false;
	log_warning("%s was replaced during the recording: its new processes are not in the "
		    "profile (record again)",
		    name);
	return true;
}

int recorder_missing(const struct recorder *r)
{
	const struct profile *p = r->profile;
	bool told = tell_unseen(r), replaced = tell_replaced(r);

	tell_hidden(r);
	tell_earlier(r);
	tell_frame_pointers(r);
	if (p->unfollowed)
		log_warning("%llu process%s could not be followed: profild's process table has no "
			    "more room",
			    p->unfollowed, p->unfollowed == 1 ? "" : "es");
	if (p->secret && !told && !output_is_text(r->options))
		log_notice("%llu process%s left the profile at the execution of a program that you "
			   "may not observe",
			   p->secret, p->secret == 1 ? "" : "es");
	if (p->place_full && !output_is_text(r->options))
		log_warning("%llu samples are counted by file only: the table of places is full "
			    "(profile for a shorter time, or fewer processes)",
			    p->place_full);
	if (p->sleepers_full)
		log_warning("%llu sleeps are not counted: more threads slept than the table has "
			    "room for",
			    p->sleepers_full);
	return recorder_tell_lost(p) || r->broken || p->unfollowed || replaced ? CTL_PARTIAL
									       : CTL_OK;
}

/* Describes how the command ended; "" without a command. */
static void describe_end(char *out, size_t bytes, const struct recorder *r)
{
	const struct profile *p = r->profile;

	*out = '\0';
	if (p->end == PROFILE_EXITED)
		snprintf(out, bytes, "the command exited with status %d", p->end_code);
	else if (p->end == PROFILE_KILLED)
		snprintf(out, bytes, "the command was killed by signal %d (%s)", p->end_code,
			 strsignal(p->end_code));
	else if (r->command.keeper)
		snprintf(out, bytes, "the command runs on (pid %d)", (int)r->command.pid);
}

/* Names the processes that outlive their command. */
static void tell_running(const struct recorder *r)
{
	size_t n = r->nrunning, used = 0, i;
	char list[128] = "";

	if (!n || r->asked.scope != PROFIL_SCOPE_PROCESSES || r->profile->end == PROFILE_RUNS_ON)
		return;
	for (i = 0; i < n && used < sizeof(list) - 16; i++)
		used += (size_t)sprintf(list + used, "%s%d", i ? ", " : "", (int)r->running[i]);
	log_warning("%zu process%s that the command started run%s on: pid %s%s. The profile ends "
		    "with the command ('attach PID', or 'record -d SECONDS')",
		    n, n == 1 ? "" : "es", n == 1 ? "s" : "", list, i < n ? ", ..." : "");
}

void recorder_tell_written(const struct recorder *r)
{
	const struct options *o = r->options;
	const struct profile *p = r->profile;
	char end[128];

	describe_end(end, sizeof(end), r);
	if (o->output)
		log_notice("wrote %llu samples of %.2f s to %s%s%s", p->total,
			   (double)p->duration_ns / 1e9,
			   strcmp(o->output, "-") ? o->output : "standard output", *end ? "; " : "",
			   end);
	else if (r->command.keeper && p->end == PROFILE_RUNS_ON)
		log_notice("%s", end);
}

int recorder_finish(struct recorder *r)
{
	const struct options *o = r->options;
	int status = recorder_end(r);

	if (!status && !(o->quiet && o->apart && !o->output)) {
		status = output_write(steal(r->out), o, r->profile);
		if (status)
			output_rescue(o, r->profile);
	}
	if (!status)
		recorder_tell_written(r);
	tell_running(r);
	return status ? status : recorder_missing(r);
}
