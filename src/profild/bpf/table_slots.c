/* table_slots.c - slots of the array of tables, changed by a thread that waits for RCU */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/clocks.h"
#include "core/observers.h"
#include "table_slots.h"

/*
 * A change to an array of maps takes effect at once, but then waits for an RCU grace period, 5 to
 * 16 ms, which the main thread must not do. A thread reads the changes from a pipe, makes them in
 * order, and writes each to a second pipe when it is done.
 */
struct change {
	uint32_t slot;
	int fd;	    /* the map to put into the slot, then closed; -1: delete the slot's maps */
	int unwind; /* likewise; -1: no unwind rules */
};

#define SLOT_END PROFIL_MAX_OBSERVERS /* not a slot: the thread ends */

struct table_slots {
	int outer;
	int unwind;
	int asked[2];
	int done[2];
	bool used[PROFIL_MAX_OBSERVERS];
	bool running;
	pthread_t thread;
	sd_event_source *source;
};

static bool read_change(int fd, struct change *c)
{
	return TEMP_FAILURE_RETRY(read(fd, c, sizeof(*c))) == sizeof(*c);
}

static bool write_change(int fd, const struct change *c)
{
	return TEMP_FAILURE_RETRY(write(fd, c, sizeof(*c))) == sizeof(*c);
}

static bool is_there(int outer, uint32_t slot)
{
	__u32 id;

	return bpf_map_lookup_elem(outer, &slot, &id) == 0;
}

/* Puts the map @fd (-1: none) into @slot and closes it. */
static void put(int outer, uint32_t slot, int fd)
{
	if (fd < 0)
		return;
	bpf_map_update_elem(outer, &slot, &fd, BPF_ANY);
	close(fd);
}

static void *make_changes(void *arg)
{
	const struct table_slots *s = arg;
	struct change c;

	while (read_change(s->asked[0], &c) && c.slot != SLOT_END) {
		if (c.fd >= 0) {
			put(s->unwind, c.slot, c.unwind);
			put(s->outer, c.slot, c.fd);
		} else {
			bpf_map_delete_elem(s->outer, &c.slot);
			if (is_there(s->unwind, c.slot))
				bpf_map_delete_elem(s->unwind, &c.slot);
		}
		if (!write_change(s->done[1], &c))
			break;
	}
	return NULL;
}

static int on_done(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct table_slots *s = userdata;
	struct change c;

	(void)source;
	(void)revents;
	if (read_change(fd, &c) && c.fd < 0)
		s->used[c.slot] = false;
	return 0;
}

static int open_pipes(struct table_slots *s)
{
	s->asked[0] = s->asked[1] = s->done[0] = s->done[1] = -1;
	return pipe2(s->asked, O_CLOEXEC) < 0 || pipe2(s->done, O_CLOEXEC) < 0 ? -errno : 0;
}

int table_slots_open(struct table_slots **out, int outer, int unwind, sd_event *event)
{
	struct table_slots *s = calloc(1, sizeof(*s));
	int err = s ? open_pipes(s) : -ENOMEM;

	if (!err) {
		s->outer = outer;
		s->unwind = unwind;
		err = sd_event_add_io(event, &s->source, s->done[0], EPOLLIN, on_done, s);
	}
	if (err >= 0)
		err = -pthread_create(&s->thread, NULL, make_changes, s);
	if (err < 0) {
		table_slots_close(s);
		return err;
	}
	s->running = true;
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++) {
		if (i != PROFIL_OBSERVER_MACHINE && is_there(s->outer, i)) {
			s->used[i] = true;
			table_slots_give(s, i);
		}
	}
	*out = s;
	return 0;
}

/* The thread makes the changes that are still in the pipe first: all tables are removed. */
struct table_slots *table_slots_close(struct table_slots *s)
{
	const struct change end = { SLOT_END, -1, -1 };

	if (!s)
		return NULL;
	if (s->running)
		write_change(s->asked[1], &end);
	closep(&s->asked[1]);
	if (s->running)
		pthread_join(s->thread, NULL);
	sd_event_source_unref(s->source);
	closep(&s->asked[0]);
	closep(&s->done[0]);
	closep(&s->done[1]);
	free(s);
	return NULL;
}

int table_slots_take(struct table_slots *s, uint32_t *slot)
{
	for (uint32_t i = 0; i < PROFIL_MAX_OBSERVERS; i++) {
		if (i == PROFIL_OBSERVER_MACHINE || s->used[i])
			continue;
		s->used[i] = true;
		*slot = i;
		return 0;
	}
	return -EAGAIN;
}

/* The thread usually needs 0.1 ms; on a busy machine it may start later than this limit. */
#define SEEN_NS 2000000

int table_slots_put(struct table_slots *s, uint32_t slot, int table, int unwind)
{
	struct change c = { slot, fcntl(table, F_DUPFD_CLOEXEC, 0), -1 };
	uint64_t end = now_ns() + SEEN_NS;

	if (unwind >= 0)
		c.unwind = fcntl(unwind, F_DUPFD_CLOEXEC, 0);
	if (c.fd < 0 || (unwind >= 0 && c.unwind < 0) || !write_change(s->asked[1], &c)) {
		closep(&c.fd);
		closep(&c.unwind);
		return -EMFILE;
	}
	while (!is_there(s->outer, slot) && now_ns() < end)
		sched_yield();
	return 0;
}

void table_slots_give(struct table_slots *s, uint32_t slot)
{
	struct change c = { slot, -1, -1 };

	write_change(s->asked[1], &c);
}
