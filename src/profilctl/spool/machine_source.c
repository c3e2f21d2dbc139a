/* machine_source.c - the machine profile's samples, across restarts of the daemon and new tables */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"

#include "machine_source.h"
#include "profilctl/collect/recorder.h"
#include "profilctl/collect/daemon_spawn.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/symbolize.h"
#include "table/stack_reader.h"
#include "profilctl/util/exit_status.h"
#include "base/host_identity.h"

/*
 * Objects whose symbols are in memory at a time. A machine that builds software runs about 300
 * files a minute; others can run as many as they like.
 */
#define SYMBOLS_MOST 512

static void close_table(struct machine_source *s)
{
	symbolize_cache_fini(&s->cache);
	table_seen_fini(&s->seen);
	call_tree_fini(&s->stacks);
	table_reader_close(&s->reader);
	profile_free(s->names);
	s->names = NULL;
	s->table_ns = 0;
}

/* Adds the samples of the table since the last call to @into; NULL: discards them. */
static int take_table(struct machine_source *s, struct merge *into)
{
	struct profile *p = profile_borrow(s->names);
	__u64 began_ns = now_ns();
	int err = p ? stack_reader_read_since(&s->reader, &s->seen, &s->stacks, p) : -ENOMEM;

	if (!err && into)
		p->command = strdup(PROFILE_MACHINE);
	if (!err && into)
		err = p->command ? symbolize(p, &s->cache) : -ENOMEM;
	if (!err && into)
		err = merge_add(into, p);
	profile_give_back(p);
	symbolize_cache_renew(&s->cache, s->names, began_ns);
	malloc_trim(0); /* of the symbols of this interval, most are freed */
	return err;
}

static int open_table(struct machine_source *s, int fd)
{
	int err;

	s->names = profile_new();
	if (!s->names)
		return -ENOMEM;
	err = table_reader_open(&s->reader, fd, s->names);
	if (!err)
		err = table_seen_init(&s->seen, &s->reader.table);
	if (err < 0) {
		close_table(s);
		return err;
	}
	s->cache.most = SYMBOLS_MOST;
	s->cache.reopen = table_reader_reopen;
	s->cache.reader = &s->reader;
	guarded_files_copy_network(); /* an interval must end though a file server hangs */
	host_identify(&s->names->host);
	s->names->tick_ns = s->reader.table.head->period_ns;
	s->table_ns = s->reader.table.head->started_ns;
	return 0;
}

/* The start of the table @fd; 0: it cannot be read. */
static __u64 started_ns(int fd)
{
	struct profil_table head;

	return table_read_head(&head, fd) < 0 ? 0 : head.started_ns;
}

/* Prints one message when there is no table, and one when there is one again. */
static void tell_state(struct machine_source *s, const char *lack)
{
	if (lack && !s->reported)
		log_warning("%s: no profiles are written until it is back", lack);
	else if (!lack && s->reported)
		log_notice("the machine's profile continues");
	s->reported = lack;
}

/* Requests the machine profile's table; *@fd is -1 if there is none. */
static int ask(struct machine_source *s, int *fd)
{
	struct profil_msg_reply reply;
	bool is_new = !s->client;
	int err = is_new ? client_open(&s->client, s->options->socket) : 0;

	*fd = -1;
	if (err < 0)
		return err;
	if (is_new)
		err = client_machine(s->client, PROFIL_MACHINE_ON, 0, &reply, fd);
	else
		err = client_machine(s->client, PROFIL_MACHINE_QUERY, 0, &reply, fd);
	if (err == -ENODATA || err == -ETIMEDOUT)
		machine_source_lost(s);
	return err == -ENOENT ? 0 : err;
}

/* Takes the last samples of a table that was replaced. */
static int take_rest(struct machine_source *s, struct merge *rest)
{
	int err = s->names ? take_table(s, rest) : 0;

	if (err == -EDOM) {
		log_warning("the rate was changed twice within an interval: samples of the rate "
			    "between are in no file");
		err = 0;
	}
	if (s->names)
		close_table(s);
	return err;
}

static bool is_other_rate(const struct machine_source *s, const struct merge *m)
{
	return m->added && m->into->tick_ns != s->names->tick_ns;
}

int machine_source_update(struct machine_source *s, struct merge *rest)
{
	__cleanup(closep) int fd = -1;
	int err = ask(s, &fd);

	tell_state(s, err < 0  ? "profild does not answer"
		      : fd < 0 ? "the machine's profile was turned off"
			       : NULL);
	if (fd < 0 || started_ns(fd) == s->table_ns)
		return s->names ? table_reader_update(&s->reader) : 0;
	err = take_rest(s, rest);
	if (!err)
		err = open_table(s, fd);
	return err ? err : is_other_rate(s, rest);
}

int machine_source_take(struct machine_source *s, struct merge *into)
{
	int err = machine_source_update(s, into);

	if (err < 0)
		return err;
	return s->names && !is_other_rate(s, into) ? take_table(s, into) : 0;
}

static int refused(const struct options *o, int err)
{
	if (err == -ERANGE)
		return recorder_rate_refused(o);
	if (err == -EPERM || err == -EACCES) {
		log_err("the machine's profile: permission denied (%srun as root, or join "
			"group profil)",
			o->rate_hz ? "take a lower rate, " : "");
		return CTL_DENIED;
	}
	log_err("profild cannot profile the machine: %s",
		err == -EPROTO ? "its table is of another version" : strerror(-err));
	return CTL_ERROR;
}

int machine_source_open(struct machine_source *s, const struct options *o)
{
	__cleanup(closep) int fd = -1;
	struct profil_msg_reply reply;
	int status, err;

	*s = (struct machine_source){ .options = o };
	s->opened_ns = clock_ns(CLOCK_BOOTTIME);
	status = daemon_connect(&s->client, o);
	if (status)
		return status;
	err = client_machine(s->client, PROFIL_MACHINE_ON, options_period_ns(o), &reply, &fd);
	if (!err)
		err = open_table(s, fd);
	if (!err && s->table_ns < s->opened_ns)
		err = take_table(s, NULL);
	return err < 0 ? refused(s->options, err) : CTL_OK;
}

void machine_source_close(struct machine_source *s)
{
	if (s->names)
		close_table(s);
	s->client = client_close(s->client);
}

int machine_source_fd(const struct machine_source *s)
{
	return s->client ? client_fd(s->client) : -1;
}

void machine_source_lost(struct machine_source *s)
{
	s->client = client_close(s->client);
}
