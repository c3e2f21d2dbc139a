/* quantity.c - what samples stand for, in words */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#include "profile/stack_ends.h"

#include "quantity.h"

const char *quantity_of_sample(char *out, size_t bytes, const struct profile *p)
{
	double ms = (double)p->tick_ns / 1e6;

	if (profile_is_wall(p))
		snprintf(out, bytes, "a sample stands for %.6g ms of a thread's time", ms);
	else if (profile_is_off_cpu(p))
		snprintf(out, bytes, "a sample stands for %.6g ms in which a thread slept", ms);
	else if (profile_is_latency(p))
		snprintf(out, bytes, "a sample stands for %.6g ms in which a process ran", ms);
	else if (p->event && p->period == 1)
		snprintf(out, bytes, "a sample for each event of %s", p->event);
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
			 profile_is_wall(p)	 ? "of threads' time"
			 : profile_is_latency(p) ? "in which processes ran"
			 : p->event		 ? "in which threads slept"
						 : "of CPU time");
	else if (p->event && p->period)
		snprintf(out, bytes, "%.6g %s", (double)p->total * (double)p->period, p->event);
	else
		snprintf(out, bytes, "of %s", p->event ? p->event : "unknown events");
	return out;
}

const char *quantity_of_states(char *out, size_t bytes, const struct profile *p, __u64 duration_ns)
{
	double all_ns = (double)p->total * (double)p->tick_ns;
	size_t n = 0;

	for (int i = CALL_RUNNING; i < CALL_STATES && n < bytes; i++) {
		enum call_state state = (enum call_state)i;
		__u64 samples = call_tree_state_samples(&p->calls, state);

		n += (size_t)snprintf(out + n, bytes - n, "%.2f %% %s, ",
				      profile_percent(p, samples), stack_state_text(state));
	}
	if (n < bytes)
		snprintf(out + n, bytes - n, "of %.2f threads",
			 duration_ns ? all_ns / (double)duration_ns : 0);
	return out;
}

/* The process with samples, if there is one only; 0: unknown. */
static pid_t only_pid(const struct profile *p)
{
	__cleanup(freep) __u64 *samples = profile_group_samples(p);

	for (size_t i = 1; samples && p->processes == 1 && i < p->ngroups; i++) {
		if (samples[i] && p->groups[i].pid)
			return p->groups[i].pid;
	}
	return 0;
}

const char *quantity_of_processes(char *out, size_t bytes, const struct profile *p)
{
	const char *least = p->group_full ? "at least " : "";
	pid_t pid = only_pid(p);

	*out = '\0';
	if (p->processes > 1 || (p->processes && p->group_full))
		snprintf(out, bytes, "%s%zu process%s", least, p->processes,
			 p->processes == 1 ? "" : "es");
	else if (pid && p->pid && pid != p->pid)
		snprintf(out, bytes, "1 process, pid %d", (int)pid);
	else if (pid || p->pid)
		snprintf(out, bytes, "pid %d", (int)(pid ? pid : p->pid));
	return out;
}

bool quantity_is_same(const struct profile *a, const struct profile *b)
{
	return !strcmp(a->event ? a->event : "", b->event ? b->event : "");
}
