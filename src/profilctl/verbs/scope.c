/* scope.c - the processes and the event that a command line selects */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/observe_maps.h"

#include "formats/format.h"
#include "profilctl/collect/events.h"
#include "profilctl/collect/uprobes.h"
#include "symbols/proc/cgroups.h"
#include "symbols/proc/mounts.h"
#include "scope.h"
#include "verb.h"

static int no_cgroup(const char *what, const char *name, int err)
{
	if (err == -ENOTSUP) {
		log_err("%s %s: no cgroup2 hierarchy is mounted", what, name);
		return CTL_ERROR;
	}
	if (err == -ENOTUNIQ) {
		log_err("there are several containers whose ids begin with %s: give more of it",
			name);
		return CTL_USAGE;
	}
	log_err("no %s %s; see systemd-cgls(1)", what, name);
	return err == -ENOENT || err == -ENOTDIR ? CTL_GONE : CTL_ERROR;
}

/*
 * After an upgrade, processes still execute the file that was at @path before. It is selected as
 * well, if it is on the same file system, as when a file is replaced by rename.
 */
static void add_former_file(struct profil_msg_observe *m, const char *path)
{
	const struct procfs_select select = { .exe = path };
	__cleanup(freep) pid_t *pids = NULL;
	size_t n, nformer = 0, nother = 0;

	if (procfs_find(&pids, &n, &select) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		struct mounts_file own;
		char exe[64];

		snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pids[i]);
		if (mounts_file(&own, exe) || (own.ino == m->ino && own.dev == m->dev))
			continue;
		if (own.dev == m->dev && (!m->former_ino || m->former_ino == own.ino)) {
			m->former_ino = own.ino;
			nformer++;
		} else {
			nother++;
		}
	}
	if (nformer)
		log_notice("%zu process%s execute%s the file that was %s before: profiled as well",
			   nformer, nformer == 1 ? "" : "es", nformer == 1 ? "s" : "", path);
	if (nother)
		log_warning("%zu process%s execute%s yet another file that was %s before: not "
			    "profiled (name the pids)",
			    nother, nother == 1 ? "" : "es", nother == 1 ? "s" : "", path);
}

static int by_exe(struct profil_msg_observe *m, const char *path)
{
	struct mounts_file file;
	int err = mounts_file(&file, path);

	if (err) {
		log_err("exe %s: %s", path, strerror(-err));
		return CTL_ERROR;
	}
	m->scope = PROFIL_SCOPE_EXE;
	m->ino = file.ino;
	m->dev = file.dev;
	add_former_file(m, path);
	return CTL_OK;
}

static int by_cgroup(struct profil_msg_observe *m, const struct procfs_select *s)
{
	const char *what, *name = cgroups_selected(&what, s);
	int err = cgroups_selected_id(&m->cgroup, s);

	m->scope = PROFIL_SCOPE_CGROUP;
	return err < 0 ? no_cgroup(what, name, err) : CTL_OK;
}

int scope_of(struct profil_msg_observe *m, const struct options *o)
{
	const struct procfs_select *s = &o->select;
	const char *what;
	bool in_cgroup = cgroups_selected(&what, s);
	int n = !!s->comm + !!s->exe + !!s->cgroup + !!s->unit + !!s->container + !!s->pod +
		o->everything;

	*m = (struct profil_msg_observe){ .scope = PROFIL_SCOPE_PROCESSES };
	if (n > 1) {
		log_err("%s: give one of --comm, --exe, --cgroup, --unit, --container, --pod and "
			"--all; 'report' can select further",
			o->verb);
		return CTL_USAGE;
	}
	if (o->everything)
		m->scope = PROFIL_SCOPE_MACHINE;
	if (s->exe)
		return by_exe(m, s->exe);
	if (in_cgroup)
		return by_cgroup(m, s);
	if (s->comm) {
		m->scope = PROFIL_SCOPE_COMMAND;
		snprintf(m->command, sizeof(m->command), "%s", s->comm);
	}
	return CTL_OK;
}

#define OFF_CPU_PERIOD_NS 1000000u

static int no_event(const struct options *o, int err)
{
	if (err == -EACCES) {
		log_err("event %s: cannot read the kernel's tracepoints: permission denied (run as "
			"root)",
			o->event);
		return CTL_DENIED;
	}
	if (uprobe_is(o->event)) {
		log_err("event %s: %s", o->event,
			err == -ENXIO	     ? "there is no such file"
			: err == -ENOENT     ? "the file has no such function or probe"
			: err == -ENOEXEC    ? "it is not an ELF file"
			: err == -EOPNOTSUPP ? "this kernel has no uprobes"
					     : strerror(-err));
		return err == -ENXIO || err == -ENOENT ? CTL_USAGE : CTL_ERROR;
	}
	log_err("unknown event %s; 'profilctl list --events' shows those of this machine",
		o->event);
	return CTL_USAGE;
}

static int check_waits(const struct options *o)
{
	if (o->user_only) {
		log_err("threads sleep in the kernel: leave out --user-only");
		return CTL_USAGE;
	}
	return CTL_OK;
}

/* Its samples of CPU time are a clock's: recorder_observe() sets their period. */
static int wall(struct profil_msg_observe *m, struct profile *p, const struct options *o)
{
	m->flags |= PROFIL_OBSERVE_WAITS | (o->record_wakers ? PROFIL_OBSERVE_WAKERS : 0u);
	p->event = strdup(PROFILE_WALL);
	if (p->event)
		return check_waits(o);
	log_err("cannot begin: %s", strerror(ENOMEM));
	return CTL_ERROR;
}

/* Its clock is perf events, as that of wall(): time at the end of a thread has no moment. */
static int latency(struct profil_msg_observe *m, struct profile *p)
{
	m->flags |= PROFIL_OBSERVE_LATENCY | PROFIL_OBSERVE_CPU_CLOCK;
	p->event = strdup(PROFILE_LATENCY);
	if (p->event)
		return CTL_OK;
	log_err("cannot begin: %s", strerror(ENOMEM));
	return CTL_ERROR;
}

/* A sample for each period of sleep; a rate means so many for each second of it. */
static int off_cpu_period(struct profil_msg_observe *m, struct profile *p, const struct options *o)
{
	int status = check_waits(o);

	if (status)
		return status;
	if (o->period && (o->period < PROFIL_OFF_CPU_LEAST_NS || o->period > UINT32_MAX)) {
		log_err("--count of off-CPU time is in ns, from %u to %u", PROFIL_OFF_CPU_LEAST_NS,
			UINT32_MAX);
		return CTL_USAGE;
	}
	m->period_ns = o->period    ? o->period
		       : o->rate_hz ? 1000000000u / o->rate_hz
				    : OFF_CPU_PERIOD_NS;
	p->period = p->tick_ns = m->period_ns;
	return CTL_OK;
}

static int no_event_here(const struct options *o, int err)
{
	if (options_branches(o))
		log_err("cannot record branches: perf_event_open() of cycles with branch records: "
			"%s: %s (leave out --branches: report -f llvm and -f bolt take samples of "
			"CPU time as well)",
			strerror(-err), event_no_branches(err));
	else
		log_err("this machine has no event %s; 'profilctl list --events' shows those that "
			"it has",
			o->event);
	return CTL_ERROR;
}

static int check_branches(const struct options *o)
{
	if (o->stack_mode == PROFIL_STACK_FP && !o->kernel_stacks && !o->period)
		return CTL_OK;
	log_err("--branches %s", o->period ? "takes samples at a rate: use -F in place of -c"
					   : "records no call stacks: leave out -g");
	return CTL_USAGE;
}

/*
 * Software events and tracepoints are rare enough to sample each one. Hardware events are sampled
 * at a frequency, to which the kernel adapts the period.
 */
int scope_event(struct profil_msg_observe *m, struct profile *p, const struct options *o)
{
	struct event e;
	int err;

	if (!o->event)
		return CTL_OK;
	if (options_wall(o))
		return wall(m, p, o);
	if (options_latency(o))
		return latency(m, p);
	err = uprobe_is(o->event) ? uprobe_define(&e, o->event) : event_find(&e, o->event);
	if (err < 0)
		return no_event(o, err);
	if (event_is_branches(&e) && check_branches(o))
		return CTL_USAGE;
	if (!event_is_here(&e))
		return no_event_here(o, event_try(&e));
	m->flags |= PROFIL_OBSERVE_EVENT;
	m->event_type = e.type;
	m->event_config = e.config;
	p->event = strdup(event_name(o->event));
	if (!p->event) {
		log_err("cannot begin: %s", strerror(ENOMEM));
		return CTL_ERROR;
	}
	if (event_is_off_cpu(&e))
		return off_cpu_period(m, p, o);
	if (o->format && o->format->of_time) {
		log_err("-f %s is for samples of time, and these are of events (try -f pprof)",
			o->format->name);
		return CTL_USAGE;
	}
	m->period_ns = o->period;
	if (!o->period && (o->rate_hz || event_is_hardware(&e)))
		m->frequency = (__u32)(o->rate_hz ? o->rate_hz : OPTIONS_RATE_DEFAULT);
	else if (!o->period)
		m->period_ns = 1;
	p->period = m->frequency ? 0 : m->period_ns;
	return CTL_OK;
}

char *scope_name(const struct profil_msg_observe *m, const struct options *o)
{
	const struct procfs_select *s = &o->select;
	const char *what, *cgroup = cgroups_selected(&what, s);
	char *name = NULL;
	int n = -1;

	if (m->scope == PROFIL_SCOPE_MACHINE)
		return strdup(PROFILE_MACHINE);
	if (m->scope == PROFIL_SCOPE_USER)
		n = asprintf(&name, "all processes of user %u", m->uid);
	else if (s->comm)
		n = asprintf(&name, "command %s", s->comm);
	else if (s->exe)
		return strdup(s->exe);
	else if (cgroup)
		n = asprintf(&name, "%s %s", what, cgroup);
	else
		return strdup("?");
	return n < 0 ? NULL : name;
}
