/* recorder_renew.c - replaces the table of a long-running attachment when it fills up */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/cleanup.h"

#include "recorder.h"

/*
 * The kernel's hash lookup ends at a free place, so half of the places are kept free; groups and
 * images are looked up in 8 or 16 neighbouring slots.
 */
bool recorder_is_full(const struct recorder *r)
{
	const struct profil_table *head = r->reader.table.head;

	return !r->machine && (head->used_places > (__u64)head->lines * PROFIL_LINE_PLACES / 2 ||
			       head->used_nodes > head->nodes / 4 * 3 ||
			       head->used_images > head->images / 4 * 3 ||
			       (head->groups && head->used_groups > head->groups / 4 * 3));
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
	return p;
}

int recorder_renew(struct recorder *r)
{
	__cleanup(closep) int table = -1;
	__cleanup(closep) int unwind = -1;
	struct profil_msg_reply reply;
	struct profile *old = r->profile;
	int err = client_detach(r->client, &reply);

	if (!err)
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
	if (!err && unwind >= 0)
		err = unwind_feeder_open(&r->feeder, unwind, &r->reader.table);
	if (!err)
		add_all_again(r, old);
	profile_free(old);
	return err;
}
