/* list.c - what the daemon profiles, and how it is: list and status */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/log.h"
#include "core/wire.h"

#include "daemon.h"
#include "jsonname.h"
#include "procfs.h"
#include "verb.h"

/* Connects and asks. The caller closes *@r whatever is returned. */
static int ask(struct reader **r, const struct options *o, unsigned int type,
	       const struct profil_header **answer)
{
	int status, err;

	*r = NULL;
	if (o->argc) {
		log_err("%s: takes no arguments", o->verb);
		return CTL_USAGE;
	}
	status = daemon_connect(r, o);
	if (status)
		return status;
	err = reader_ask(*r, type, answer);
	if (!err)
		return CTL_OK;
	log_err("profild does not answer %s: %s", o->verb, strerror(-err));
	return CTL_ERROR;
}

static void row(const struct profil_msg_profile *p)
{
	char name[32];

	printf("%7u %-12.12s %6u %-6s %6.5g %10llu %9llu %7llu %9llu\n", p->tgid,
	       procfs_comm((pid_t)p->tgid, name, sizeof(name)), p->uid,
	       p->reader ? "reader" : "own", p->tick_ns ? 1e9 / (double)p->tick_ns : 0, p->total,
	       p->unmatched, p->lost, p->nbins);
}

static int write_json(json_t *root)
{
	int err = root ? json_dumpf(root, stdout, JSON_COMPACT) : -1;

	json_decref(root);
	if (err < 0) {
		log_err("cannot write JSON: %s", root ? "is stdout full?" : strerror(ENOMEM));
		return CTL_ERROR;
	}
	putchar('\n');
	return CTL_OK;
}

static json_t *profile_json(const struct profil_msg_profile *p)
{
	char name[32];

	return json_pack("{si so si ss sI sI sI sI sI}", "pid", (int)p->tgid, "command",
			 jsonname(procfs_comm((pid_t)p->tgid, name, sizeof(name))), "uid",
			 (int)p->uid, "kind", p->reader ? "reader" : "own", "tick_ns",
			 (json_int_t)p->tick_ns, "total", (json_int_t)p->total, "unmatched",
			 (json_int_t)p->unmatched, "lost", (json_int_t)p->lost, "bins",
			 (json_int_t)p->nbins);
}

static int list_json(const struct profil_msg_list *m)
{
	json_t *all = json_array();

	for (__u32 i = 0; i < m->h.count; i++)
		json_array_append_new(all, profile_json(&m->profile[i]));
	return write_json(json_pack("{ss so}", "schema", "profil-list/1", "profiles", all));
}

static int list_text(const struct profil_msg_list *m)
{
	printf("%7s %-12s %6s %-6s %6s %10s %9s %7s %9s\n", "pid", "command", "uid", "kind", "Hz",
	       "total", "unmatched", "lost", "bins");
	for (__u32 i = 0; i < m->h.count; i++)
		row(&m->profile[i]);
	return CTL_OK;
}

static int misunderstood(const struct options *o)
{
	log_err("profild's answer to %s is none: are both of one version?", o->verb);
	return CTL_ERROR;
}

int verb_list(const struct options *o)
{
	const struct profil_header *answer;
	const struct profil_msg_list *m;
	struct reader *r;
	int status = ask(&r, o, PROFIL_MSG_LIST, &answer);

	if (!status && !wire_fits(answer, sizeof(*m), sizeof(m->profile[0]), PROFIL_MSG_LIST_MAX))
		status = misunderstood(o);
	if (!status) {
		m = (const void *)answer;
		status = o->format ? list_json(m) : list_text(m);
	}
	reader_close(r);
	return status;
}

static int status_json(const struct profil_msg_status *m)
{
	return write_json(json_pack("{ss si sI sb sI sI si si si}", "schema", "profil-status/1",
				    "pid", (int)m->pid, "uptime_ns", (json_int_t)m->uptime_ns,
				    "replay", (int)m->replay, "tick_ns",
				    (json_int_t)m->rate_period_ns, "fast_tick_ns",
				    (json_int_t)m->fast_period_ns, "profiles", (int)m->profiles,
				    "regions", (int)m->regions, "chunks", (int)m->chunks));
}

static int status_text(const struct profil_msg_status *m)
{
	printf("profild    pid %u, up %.0f s%s\n", m->pid, (double)m->uptime_ns / 1e9,
	       m->replay ? ", replaying a file" : "");
	printf("rate       %.6g Hz, fast %.6g Hz\n", 1e9 / (double)m->rate_period_ns,
	       1e9 / (double)m->fast_period_ns);
	printf("profiles   %u, of %u regions\n", m->profiles, m->regions);
	printf("counters   %u chunks of 1 MiB\n", m->chunks);
	return CTL_OK;
}

int verb_status(const struct options *o)
{
	const struct profil_header *answer;
	const struct profil_msg_status *m;
	struct reader *r;
	int status = ask(&r, o, PROFIL_MSG_STATUS, &answer);

	if (!status && answer->bytes != sizeof(*m))
		status = misunderstood(o);
	if (!status) {
		m = (const void *)answer;
		status = o->format ? status_json(m) : status_text(m);
	}
	reader_close(r);
	return status;
}
