/* recorder_renew.c - replaces the table of a long-running attachment when it fills up */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "recorder.h"

/* Says whether the machine profile has another table, or none. */
static bool machine_is_over(const struct recorder *r)
{
	__cleanup(closep) int fd = -1;
	struct profil_table now;
	struct profil_msg_reply reply;
	int err = client_machine(r->client, PROFIL_MACHINE_QUERY, 0, &reply, &fd);

	if (err || table_read_head(&now, fd) < 0)
		return err == -ENOENT;
	return now.started_ns != r->reader.table.head->started_ns;
}

bool recorder_must_renew(const struct recorder *r)
{
	const struct profil_table *head = r->reader.table.head;

	return r->machine ? machine_is_over(r)
			  : profil_table_fills_up(head) || head->group_full || head->image_full ||
				    profil_tree_fills_up(head);
}

static bool is_watched(const struct recorder *r, pid_t pid)
{
	for (size_t i = 0; i < r->nwatched; i++) {
		if (r->watched[i].pid == pid)
			return true;
	}
	return false;
}

/* Adds the named processes, and their children that are in @seen and still run. */
static void add_all_again(struct recorder *r, const struct profile *seen)
{
	if (r->asked.scope != PROFIL_SCOPE_PROCESSES)
		return;
	for (size_t i = 0; i < r->nwatched; i++) {
		if (r->watched[i].added && !r->watched[i].ended)
			recorder_attach(r, &r->watched[i]);
	}
	for (size_t i = 1; i < seen->ngroups; i++) {
		pid_t pid = seen->groups[i].pid;

		if (pid > 0 && !is_watched(r, pid) && !kill(pid, 0))
			recorder_add(r, pid);
	}
}

/* A new profile with the head of @from; takes its command and event. NULL: out of memory. */
static struct profile *profile_like(struct profile *from)
{
	struct profile *p = profile_new();

	if (!p)
		return NULL;
	p->command = steal(from->command);
	p->event = steal(from->event);
	p->period = from->period;
	p->pid = from->pid;
	p->started = from->started;
	p->tick_ns = from->tick_ns;
	p->host = from->host;
	return p;
}

__u64 recorder_began_ns(const struct recorder *r)
{
	return now_ns() - (clock_ns(CLOCK_BOOTTIME) - r->reader.table.head->started_ns);
}

int recorder_renew(struct recorder *r)
{
	__cleanup(closep) int table = -1;
	__cleanup(closep) int unwind = -1;
	struct profil_msg_reply reply;
	struct profile *old = r->profile;
	int err = r->machine ? client_machine(r->client, PROFIL_MACHINE_QUERY, 0, &reply, &table)
			     : client_detach(r->client, &reply);

	if (!err && !r->machine)
		err = client_observe(r->client, &r->asked, &reply, &table, &unwind);
	if (err < 0)
		return err;
	unwind_feeder_close(&r->feeder);
	table_reader_close(&r->reader);
	r->profile = profile_like(old);
	if (!r->profile) {
		r->profile = old;
		return -ENOMEM;
	}
	err = table_reader_open(&r->reader, table, r->profile);
	if (!err && r->machine) /* it may have been turned on at another rate */
		r->profile->tick_ns = r->reader.table.head->period_ns;
	if (!err && unwind >= 0)
		err = recorder_feed(r, unwind);
	if (!err)
		add_all_again(r, old);
	profile_free(old);
	return err;
}
