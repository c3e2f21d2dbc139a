/* list.c - lists the daemon's profiles, or the events that can be observed */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "core/wire.h"

#include "answer.h"
#include "profilctl/collect/events.h"
#include "profile/json_name.h"
#include "symbols/proc/procfs.h"
#include "base/sanitize.h"
#include "verb.h"

/* An attachment to many processes has no process to name it by. */
static const char *command_of(const struct profil_msg_profile *p, char *out, size_t bytes)
{
	static const char *const scopes[] = {
		[PROFIL_SCOPE_PROCESSES] = "(processes)",
		[PROFIL_SCOPE_USER] = "(user)",
		[PROFIL_SCOPE_CGROUP] = "(cgroup)",
		[PROFIL_SCOPE_COMMAND] = "(command)",
		[PROFIL_SCOPE_EXE] = "(file)",
		[PROFIL_SCOPE_MACHINE] = "(machine)",
	};

	if (p->tgid)
		return procfs_comm((pid_t)p->tgid, out, bytes);
	return p->attachment && p->attachment <= sizeof(scopes) / sizeof(*scopes)
		       ? scopes[p->attachment - 1]
		       : "?";
}

static void row(const struct profil_msg_profile *p)
{
	char comm[32], name[32];

	printf("%7u %-12.12s %6u %-10s %6.5g %10llu %9llu %7llu %9llu\n", p->tgid,
	       sanitize(name, sizeof(name), command_of(p, comm, sizeof(comm))), p->uid,
	       p->attachment ? "attachment" : "own", p->tick_ns ? 1e9 / (double)p->tick_ns : 0,
	       p->total, p->unmatched, p->lost, p->nbins);
}

static json_t *profile_json(const struct profil_msg_profile *p)
{
	char name[32];

	return json_pack("{si so si ss sI sI sI sI sI sI}", "pid", (int)p->tgid, "command",
			 jsonname(command_of(p, name, sizeof(name))), "uid", (int)p->uid, "kind",
			 p->attachment ? "attachment" : "own", "tick_ns", (json_int_t)p->tick_ns,
			 "total", (json_int_t)p->total, "unmatched", (json_int_t)p->unmatched,
			 "lost", (json_int_t)p->lost, "unfollowed", (json_int_t)p->unfollowed,
			 "bins", (json_int_t)p->nbins);
}

static int list_json(const struct profil_msg_list *m)
{
	json_t *all = json_array();

	for (__u32 i = 0; i < m->h.count; i++)
		json_array_append_new(all, profile_json(&m->profile[i]));
	return answer_json(json_pack("{ss so}", "schema", "profil-list/1", "profiles", all));
}

static int list_text(const struct profil_msg_list *m)
{
	printf("%7s %-12s %6s %-10s %6s %10s %9s %7s %9s\n", "pid", "command", "uid", "kind", "Hz",
	       "total", "unmatched", "lost", "bins");
	for (__u32 i = 0; i < m->h.count; i++)
		row(&m->profile[i]);
	return CTL_OK;
}

static void event_text(void *ctx, const char *name, const struct event *e)
{
	if (event_is_here(e))
		puts(name);
}

static void event_json(void *ctx, const char *name, const struct event *e)
{
	json_array_append_new(ctx, json_pack("{ss sb}", "name", name, "present", event_is_here(e)));
}

static void tracepoint_text(void *ctx, const char *name, const struct event *e)
{
	puts(name);
}

/* All listed tracepoints can be observed. */
static void tracepoint_json(void *ctx, const char *name, const struct event *e)
{
	json_array_append_new(ctx, json_pack("{ss sb}", "name", name, "present", true));
}

static int list_events(const struct options *o)
{
	json_t *all;
	int err;

	if (o->argc) {
		log_err("list: takes no arguments");
		return CTL_USAGE;
	}
	all = o->format ? json_array() : NULL;
	events_each(o->format ? event_json : event_text, all);
	err = events_each_tracepoint(o->format ? tracepoint_json : tracepoint_text, all);
	if (err < 0)
		log_notice("the kernel's tracepoints are not listed: %s", strerror(-err));
	if (!o->format)
		return CTL_OK;
	return answer_json(json_pack("{ss so}", "schema", "profil-events/1", "events", all));
}

int verb_list(const struct options *o)
{
	const struct profil_header *answer;
	const struct profil_msg_list *m;
	struct client *c;
	int status;

	if (o->events)
		return list_events(o);
	status = answer_get(&c, o, PROFIL_MSG_LIST, &answer);
	if (!status && !wire_fits(answer, sizeof(*m), sizeof(m->profile[0]), PROFIL_MSG_LIST_MAX))
		status = answer_misunderstood(o);
	if (!status) {
		m = (const void *)answer;
		status = o->format ? list_json(m) : list_text(m);
	}
	client_close(c);
	return status;
}
