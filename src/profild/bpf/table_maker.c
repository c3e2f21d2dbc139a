/* table_maker.c - creates the maps of attachments' tables, in threads */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/thread.h"
#include "profild/observe/table.h"
#include "table_maker.h"

/* A table of the usual size, with stacks, has 13 MiB. */
#define SMALL_BYTES (16u << 20)

/*
 * QUEUED -> RUNNING (a thread has it) -> MADE. The main thread frees it: in table_making_take(), or
 * if it was dropped before it was MADE, in reap(). Only the state is shared, under the mutex; the
 * other members belong to the thread while RUNNING.
 */
enum state { QUEUED, RUNNING, MADE };

struct table_making {
	struct table_making *next; /* the oldest first */
	struct table_maker *maker;
	struct user *user;
	struct profil_table header;
	enum state state;
	bool dropped; /* the main thread's */
	int table;
	int unwind;
	int err;
	uint64_t spent_ns;
};

/* One thread makes tables of all sizes, the other only small ones. */
struct table_maker {
	pthread_mutex_t mutex;
	pthread_cond_t more;
	bool ends;
	struct table_making *first;
	int made; /* eventfd: wakes the main thread, to reap */
	sd_event_source *source;
	struct maker_thread {
		struct table_maker *maker;
		uint64_t most_bytes;
		pthread_t thread;
		bool running;
	} thread[2];
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

/* --- the threads ------------------------------------------------------------------------------ */

static struct table_making *next_of(const struct maker_thread *t)
{
	struct table_making *next = t->maker->first;

	while (next && (next->state != QUEUED || table_bytes(&next->header) > t->most_bytes))
		next = next->next;
	return next;
}

static void *make_tables(void *arg)
{
	const struct maker_thread *t = arg;
	struct table_maker *m = t->maker;
	struct table_making *next;

	pthread_mutex_lock(&m->mutex);
	while (!m->ends) {
		uint64_t began_ns;

		next = next_of(t);
		if (!next) {
			pthread_cond_wait(&m->more, &m->mutex);
			continue;
		}
		next->state = RUNNING;
		pthread_mutex_unlock(&m->mutex);
		began_ns = now_ns();
		next->err = tables_make(&next->header, &next->table, &next->unwind);
		next->spent_ns = now_ns() - began_ns;
		pthread_mutex_lock(&m->mutex);
		next->state = MADE;
		eventfd_write(m->made, 1);
	}
	pthread_mutex_unlock(&m->mutex);
	return NULL;
}

/* --- the main thread -------------------------------------------------------------------------- */

static enum state state_of(const struct table_making *t)
{
	enum state state;

	pthread_mutex_lock(&t->maker->mutex);
	state = t->state;
	pthread_mutex_unlock(&t->maker->mutex);
	return state;
}

/* The thread has @t no longer, or has never had it. */
static void making_free(struct table_making *t)
{
	struct table_making **place = &t->maker->first;
	uint64_t now = now_ns();

	pthread_mutex_lock(&t->maker->mutex);
	while (*place != t)
		place = &(*place)->next;
	*place = t->next;
	pthread_mutex_unlock(&t->maker->mutex);
	user_spend(t->user, now, t->spent_ns);
	closep(&t->table);
	closep(&t->unwind);
	user_unref(t->user);
	free(t);
}

static void reap(struct table_maker *m)
{
	for (struct table_making *t = m->first, *next; t; t = next) {
		next = t->next;
		if (t->dropped && state_of(t) == MADE)
			making_free(t);
	}
}

static int on_made(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	eventfd_t n;

	(void)source;
	(void)revents;
	eventfd_read(fd, &n);
	reap(userdata);
	return 0;
}

int table_maker_open(struct table_maker **out, sd_event *event)
{
	struct table_maker *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	pthread_mutex_init(&m->mutex, NULL);
	pthread_cond_init(&m->more, NULL);
	m->made = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = m->made < 0 ? -errno : 0;
	if (!err)
		err = sd_event_add_io(event, &m->source, m->made, EPOLLIN, on_made, m);
	for (int i = 0; err >= 0 && i < 2; i++) {
		struct maker_thread *t = &m->thread[i];

		*t = (struct maker_thread){ .maker = m,
					    .most_bytes = i ? SMALL_BYTES : UINT64_MAX };
		err = thread_start(&t->thread, make_tables, t);
		t->running = !err;
	}
	if (err < 0) {
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
	pthread_mutex_lock(&m->mutex);
	m->ends = true;
	pthread_cond_broadcast(&m->more);
	pthread_mutex_unlock(&m->mutex);
	for (int i = 0; i < 2; i++) {
		if (m->thread[i].running)
			pthread_join(m->thread[i].thread, NULL);
	}
	while (m->first)
		making_free(m->first);
	sd_event_source_unref(m->source);
	closep(&m->made);
	pthread_cond_destroy(&m->more);
	pthread_mutex_destroy(&m->mutex);
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
	struct table_making **place, *t;

	if (is_busy_for(m, user))
		return -EINPROGRESS;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->maker = m;
	t->user = user_ref(user);
	t->header = *header;
	t->table = t->unwind = -1;
	pthread_mutex_lock(&m->mutex);
	for (place = &m->first; *place; place = &(*place)->next)
		;
	*place = t;
	pthread_cond_broadcast(&m->more);
	pthread_mutex_unlock(&m->mutex);
	*out = t;
	return 0;
}

int table_making_take(struct table_making *t, int *table, int *unwind)
{
	int err;

	if (state_of(t) != MADE)
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
	enum state was;

	pthread_mutex_lock(&t->maker->mutex);
	was = t->state;
	if (was == QUEUED)
		t->state = MADE; /* no thread takes it any more */
	pthread_mutex_unlock(&t->maker->mutex);
	t->dropped = true;
	if (was != RUNNING)
		making_free(t);
}
