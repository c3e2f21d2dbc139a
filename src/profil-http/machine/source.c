/* source.c - a table of profild, as a source of snapshots */
#include <errno.h>
#include <stdbool.h>

#include "base/cleanup.h"
#include "table/daemon_client.h"
#include "source.h"

struct source *source_ref(struct source *s)
{
	if (s)
		__atomic_add_fetch(&s->refs, 1, __ATOMIC_RELAXED);
	return s;
}

struct source *source_unref(struct source *s)
{
	if (s && !__atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL)) {
		table_close(&s->table);
		closep(&s->fd);
		free(s);
	}
	return NULL;
}

static const char *explain(int err)
{
	switch (err) {
	case -ENOENT:
		return "the machine's profile is off (turn it on with 'profilctl machine on', or "
		       "run profild with --machine)";
	case -EACCES:
	case -EPERM:
		return "profild does not let profil-http read the machine's profile (run it as a "
		       "member of group profil)";
	case -EPROTO:
		return "profild is of another version";
	}
	return "profild does not answer";
}

static int ask(int *table, const char *socket, const char **why)
{
	struct profil_msg_reply reply;
	struct client *c = NULL;
	int err = client_open(&c, socket);

	if (err < 0) {
		*why = err == -EACCES ? "profild's socket: permission denied"
				      : "profild does not answer";
		return err;
	}
	err = client_machine(c, PROFIL_MACHINE_QUERY, 0, &reply, table);
	if (!err && *table < 0)
		err = -ENOENT;
	client_close(c);
	*why = explain(err);
	return err;
}

int source_open(struct source **out, int fd)
{
	struct source *s = calloc(1, sizeof(*s));
	int err = s ? table_open(&s->table, fd) : -ENOMEM;

	if (err < 0) {
		closep(&fd);
		free(s);
		return err;
	}
	s->refs = 1;
	s->fd = fd;
	*out = s;
	return 0;
}

/* Whether @s has the table that begins with @head. */
static bool has_table(const struct source *s, const struct profil_table *head)
{
	return s && s->table.head->started_ns == head->started_ns &&
	       s->table.head->started_real_ns == head->started_real_ns &&
	       s->table.head->pages == head->pages;
}

int source_query(struct source **s, const char *socket, const char **why)
{
	struct profil_table head;
	int fd = -1, err = ask(&fd, socket, why);

	if (!err) {
		err = table_read_head(&head, fd);
		*why = explain(err);
	}
	if (!err && has_table(*s, &head)) {
		close(fd);
		return 0;
	}
	*s = source_unref(*s);
	if (!err) {
		err = source_open(s, steal_fd(fd));
		*why = explain(err);
	}
	closep(&fd);
	return err;
}
