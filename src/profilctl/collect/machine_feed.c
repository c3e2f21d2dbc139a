/* machine_feed.c - feeds the machine's profile the unwind rows of what runs, for whole stacks */
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "base/log.h"

#include "daemon_spawn.h"
#include "machine_feed.h"
#include "profilctl/util/exit_status.h"
#include "self_setup.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/mounts.h"
#include "table/machine_feeder.h"

#define UPDATE_MS 100	       /* in which a new file gets its rows */
#define ASK_NS 1000000000u     /* in which a table, or a restarted daemon, is found, ... */
#define ASK_FED_NS 5000000000u /* ... and another table than the one that is fed */

struct feed {
	const struct options *options;
	struct client *client; /* NULL: not connected */
	struct machine_feeder feeder;
	__u64 table_ns; /* start of the table that is fed, CLOCK_BOOTTIME; 0: none */
	__u64 ask_ns;	/* of now_ns(), when the daemon is asked again */
	const char *lack;
	bool full; /* the message was printed */
};

static void close_feeder(struct feed *f)
{
	machine_feeder_close(&f->feeder);
	f->table_ns = 0;
	f->full = false;
}

/* Why nothing can be fed now; NULL: that does not pass by itself. */
static const char *lack_of(int err)
{
	switch (err) {
	case -ENOENT:
		return "the machine's profile is off";
	case -ENOTSUP:
		return "the machine's profile has no stacks ('profilctl machine on -g')";
	case -ECONNREFUSED:
	case -ENODATA:
	case -ETIMEDOUT:
	case -EAGAIN:
		return "profild does not answer";
	}
	return NULL;
}

/* Prints a message when something begins or ceases to be lacking. */
static void tell_state(struct feed *f, const char *lack)
{
	if (lack && lack != f->lack)
		log_notice("%s: waiting for it", lack);
	else if (!lack && !f->table_ns)
		log_notice("feeding the machine's profile the unwind rows of what runs");
	f->lack = lack;
}

static int open_table(struct feed *f, int table, int unwind)
{
	struct profil_table head;
	int err = table_read_head(&head, table);

	if (err)
		return err;
	f->ask_ns = now_ns() + ASK_FED_NS;
	tell_state(f, NULL);
	if (f->table_ns == head.started_ns)
		return 0;
	close_feeder(f);
	f->table_ns = head.started_ns;
	guarded_files_copy_network(); /* the map must be fed though a file server hangs */
	return machine_feeder_open(&f->feeder, table, unwind);
}

/* Continues with the daemon's present table. Returns 0, also without one, or a negative errno. */
static int ask(struct feed *f, pid_t *other)
{
	__cleanup(closep) int table = -1;
	__cleanup(closep) int unwind = -1;
	struct profil_msg_reply reply = { 0 };
	int err = 0;

	f->ask_ns = now_ns() + ASK_NS;
	if (!f->client) {
		close_feeder(f); /* a new daemon has a new map of rows */
		err = client_open(&f->client, f->options->socket);
	}
	if (!err)
		err = client_machine_feed(f->client, &reply, &table, &unwind);
	*other = (pid_t)reply.tgid;
	if (!err)
		return unwind < 0 ? -EPROTO : open_table(f, table, unwind);
	if (!lack_of(err))
		return err;
	tell_state(f, lack_of(err));
	close_feeder(f);
	if (err != -ENOENT && err != -ENOTSUP)
		f->client = client_close(f->client);
	return 0;
}

static void tell_full(struct feed *f)
{
	if (f->feeder.feeder.full && !f->full)
		log_warning("no room for the unwind rows of all files: the least sampled ones are "
			    "walked by frame pointers");
	f->full = f->feeder.feeder.full;
}

/* Returns 0, 1 at the end, or a negative errno. */
static int step(struct feed *f, int signals, pid_t *other)
{
	struct pollfd p[] = { { .fd = signals, .events = POLLIN },
			      { .fd = f->client ? client_fd(f->client) : -1, .events = POLLIN } };
	int n = poll(p, 2, f->table_ns ? UPDATE_MS : (int)(ASK_NS / 1000000)), err = 0;

	if (n < 0 && errno != EINTR)
		return -errno;
	if (n > 0 && p[0].revents)
		return 1;
	if (n > 0 && p[1].revents) { /* the daemon sends only replies: it has ended */
		f->client = client_close(f->client);
		f->ask_ns = 0;
	}
	if (now_ns() >= f->ask_ns)
		err = ask(f, other);
	if (!err && f->table_ns)
		err = machine_feeder_update(&f->feeder);
	tell_full(f);
	return err;
}

static int failed(int err, pid_t other)
{
	if (err == -EACCES || err == -EPERM) {
		log_err("cannot feed the machine's profile: permission denied (run as root)");
		return CTL_DENIED;
	}
	if (err == -EBUSY)
		log_err("cannot feed the machine's profile: process %d does already", (int)other);
	else
		log_err("cannot feed the machine's profile: %s",
			err == -EPROTO ? "profild is of another version" : strerror(-err));
	return CTL_ERROR;
}

int machine_feed(const struct options *o)
{
	struct feed f = { .options = o };
	struct self self;
	int signals = self_prepare(&self);
	__u64 end_ns = o->duration_ns ? now_ns() + o->duration_ns : ~0ull;
	pid_t other = 0;
	int err;

	if (o->mounts_of)
		mounts_trust(o->mounts_of);
	err = signals < 0 ? signals : ask(&f, &other);

	while (!err && now_ns() < end_ns)
		err = step(&f, signals, &other);
	close_feeder(&f);
	client_close(f.client);
	closep(&signals);
	return err < 0 ? failed(err, other) : CTL_OK;
}
