/* table_maker.c - creates the maps of attachments' tables, in threads */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/jobs.h"
#include "profild/observe/table.h"
#include "table_maker.h"

/* A table of the usual size, with stacks, has 13 MiB. */
#define SMALL_BYTES (16u << 20)

/* Between submit and made() it belongs to the thread. */
struct table_making {
	struct job job;
	struct table_making *next;
	struct table_maker *maker;
	struct user *user;
	struct profil_table header;
	bool made;
	bool dropped;
	int table;
	int unwind;
	int err;
	uint64_t spent_ns;
};

/* One thread makes the small tables, another the large ones. */
struct table_maker {
	struct jobs *small;
	struct jobs *large;
	struct table_making *first;
};

int tables_make(const struct profil_table *header, int *table, int *unwind)
{
	__cleanup(closep) int fd = table_create(header);

	if (fd < 0)
		return fd;
	*unwind = -1;
	if (header->unwind_pages) {
		*unwind = table_create_unwind(header);
		if (*unwind < 0)
			return *unwind;
	}
	*table = steal_fd(fd);
	return 0;
}

static void making_free(struct table_making *t)
{
	struct table_making **place = &t->maker->first;

	while (*place != t)
		place = &(*place)->next;
	*place = t->next;
	user_spend(t->user, now_ns(), t->spent_ns);
	closep(&t->table);
	closep(&t->unwind);
	user_unref(t->user);
	free(t);
}

/* In the thread. */
static void make(struct job *job)
{
	struct table_making *t = (struct table_making *)job;
	uint64_t began_ns = now_ns();

	if (__atomic_load_n(&t->dropped, __ATOMIC_RELAXED))
		return;
	t->err = tables_make(&t->header, &t->table, &t->unwind);
	t->spent_ns = now_ns() - began_ns;
}

static void made(struct job *job)
{
	struct table_making *t = (struct table_making *)job;

	t->made = true;
	if (t->dropped)
		making_free(t);
}

int table_maker_open(struct table_maker **out, sd_event *event)
{
	struct table_maker *m = calloc(1, sizeof(*m));
	int err = (m ? jobs_open(&m->small, event, 1) : -ENOMEM) ?: jobs_open(&m->large, event, 1);

	if (err) {
		table_maker_close(m);
		return err;
	}
	*out = m;
	return 0;
}

struct table_maker *table_maker_close(struct table_maker *m)
{
	if (!m)
		return NULL;
	jobs_close(m->small);
	jobs_close(m->large);
	while (m->first)
		making_free(m->first);
	free(m);
	return NULL;
}

static bool is_busy_for(const struct table_maker *m, const struct user *user)
{
	for (const struct table_making *t = m->first; t; t = t->next) {
		if (!user_is_root(t->user) && !user_is_root(user) &&
		    user_account_uid(t->user) == user_account_uid(user))
			return true;
	}
	return false;
}

int table_making_begin(struct table_making **out, struct table_maker *m, struct user *user,
		       const struct profil_table *header)
{
	struct table_making *t;

	if (is_busy_for(m, user))
		return -EINPROGRESS;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->job = (struct job){ .run = make, .done = made };
	t->maker = m;
	t->user = user_ref(user);
	t->header = *header;
	t->table = t->unwind = -1;
	t->next = m->first;
	m->first = t;
	jobs_submit(table_bytes(header) > SMALL_BYTES ? m->large : m->small, &t->job);
	*out = t;
	return 0;
}

int table_making_take(struct table_making *t, int *table, int *unwind)
{
	int err;

	if (!t->made)
		return -EINPROGRESS;
	err = t->err;
	if (!err) {
		*table = steal_fd(t->table);
		*unwind = steal_fd(t->unwind);
	}
	making_free(t);
	return err;
}

void table_making_drop(struct table_making *t)
{
	__atomic_store_n(&t->dropped, true, __ATOMIC_RELAXED);
	if (t->made)
		making_free(t);
}
