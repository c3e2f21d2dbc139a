/* stack_attachment.c - an attachment of the whole machine with call stacks */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "symbols/symbolize_cache.h"
#include "table/daemon_client.h"
#include "table/unwind_feeder.h"
#include "stack_attachment.h"

/*
 * 4 MiB of places, 16 MiB of nodes (their pages are a power of two) and 32 MiB of unwind rows. A
 * row is 8 bytes; the programs that a server runs have about 2 million.
 */
#define PLACES (1u << 18)
#define IMAGES 4096
#define GROUPS 4096
#define NODES (1u << 19)
#define UNWIND_ROWS (1u << 22)

struct stack_attachment {
	const char *socket;
	unsigned int hz;
	struct client *client;	 /* ends the attachment when it is closed; NULL: not attached */
	struct profile *profile; /* the images, for the unwind tables only */
	struct table_reader reader;
	struct unwind_feeder feeder;
};

int stack_attachment_new(struct stack_attachment **out, const char *socket, unsigned int hz)
{
	struct stack_attachment *a = calloc(1, sizeof(*a));

	if (!a)
		return -ENOMEM;
	a->socket = socket;
	a->hz = hz;
	*out = a;
	return 0;
}

static void detach(struct stack_attachment *a)
{
	a->client = client_close(a->client);
	unwind_feeder_close(&a->feeder);
	table_reader_close(&a->reader);
	profile_free(steal(a->profile));
}

/* Waits for nothing: the daemon sends only replies, so input means that it has ended. */
static bool has_ended(const struct stack_attachment *a)
{
	struct pollfd p = { .fd = client_fd(a->client), .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static int observe(struct stack_attachment *a, int *table, int *unwind)
{
	const struct profil_msg_observe m = { .scope = PROFIL_SCOPE_MACHINE,
					      .flags = PROFIL_OBSERVE_KERNEL_STACKS,
					      .stack_mode = PROFIL_STACK_AUTO,
					      .group_by = PROFIL_GROUP_COMMAND |
							  PROFIL_GROUP_CGROUP | PROFIL_GROUP_SUMS,
					      .places = PLACES,
					      .images = IMAGES,
					      .groups = GROUPS,
					      .nodes = NODES,
					      .unwind_rows = UNWIND_ROWS,
					      .period_ns = 1000000000u / a->hz };
	struct profil_msg_reply reply;
	int err = client_open(&a->client, a->socket);

	return err ? err : client_observe(a->client, &m, &reply, table, unwind);
}

static int attach(struct stack_attachment *a, struct source **s)
{
	__cleanup(closep) int unwind = -1;
	int table = -1;
	int err = observe(a, &table, &unwind) ?: source_open(s, table);

	if (err)
		return err;
	a->profile = profile_new();
	if (!a->profile)
		return -ENOMEM;
	err = table_reader_open(&a->reader, (*s)->fd, a->profile);
	if (!err && unwind >= 0)
		err = unwind_feeder_open(&a->feeder, unwind, &a->reader.table);
	return err;
}

static const char *explain(int err)
{
	switch (err) {
	case -EACCES:
	case -EPERM:
		return "profild does not let profil-http record call stacks of the machine (run it "
		       "as a member of group profil, or at a lower rate)";
	case -ENOMEM:
	case -EAGAIN:
		return "profild has no room for profil-http's table of call stacks (see "
		       "'profilctl status', and user-tables in profild(8))";
	case -EPROTO:
		return "profild is of another version";
	}
	return "profild does not answer";
}

int stack_attachment_query(struct stack_attachment *a, struct source **s, const char **why)
{
	struct symbolize_cache none = { 0 }; /* the files are read for their unwind tables only */
	int err = 0;

	if (a->client && (has_ended(a) || profil_table_fills_up(a->reader.table.head) ||
			  profil_tree_fills_up(a->reader.table.head)))
		detach(a);
	if (!a->client) {
		*s = source_unref(*s);
		err = attach(a, s);
	}
	/* A new image costs a pass over all images; a claimed one is complete soon. */
	if (!err && a->reader.table.head->used_images > a->reader.images) {
		err = table_reader_update(&a->reader);
		unwind_feeder_update(&a->feeder, &a->reader);
		symbolize_cache_renew(&none, a->profile, now_ns());
	}
	if (!err)
		return 0;
	detach(a);
	*s = source_unref(*s);
	*why = explain(err);
	return err;
}
