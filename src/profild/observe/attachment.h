/* attachment.h - one attachment: what a client observes, and the table that counts its samples */
#ifndef PROFIL_PROFILD_OBSERVE_ATTACHMENT_H
#define PROFIL_PROFILD_OBSERVE_ATTACHMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/observe_maps.h"
#include "core/observers.h"
#include "core/proto.h"
#include "profild/clock/event_links.h"
#include "profild/daemon.h"
#include "profild/quota/quota.h"
#include "retired_tables.h"

struct attachment {
	struct attachment *next;
	struct profild *daemon;
	struct user *user;
	struct table_charges charges;
	struct charge events;
	struct charge wide; /* until it is detached */
	uint32_t scope;
	uint32_t flags;	 /* enum profil_observe_flags; without LATER from BEGIN on */
	bool privileged; /* the client may observe others */
	bool machine;	 /* the machine's profile, not a client's */
	bool at_once;	 /* its tables must exist when attachment_open() returns */
	struct event_choice event;
	uint64_t period_ns;  /* of an event: events for each sample */
	int table;	     /* fd of the map; frozen */
	int unwind;	     /* fd of the map of unwind rules; -1: none */
	uint32_t stack_mode; /* enum profil_stack_mode */
	uint32_t processes;  /* number of added processes */
	pid_t first;	     /* the first of them */
	uint64_t past;	     /* samples until it was detached */
	void *source;	     /* private to the place source; NULL: detached */
};

/* What the daemon knows of the client that requests an attachment. */
struct observer_peer {
	struct user *user;
	uid_t uid;
	gid_t gid;
	bool privileged;
	bool machine;	   /* no client: the machine's profile */
	uint32_t limit_hz; /* samples of an event in a second on each CPU; 0: no limit */
	bool at_once;	   /* as in struct attachment */
	bool found;	   /* only continue with the table of an earlier daemon */
	uint32_t pid_ns;
	uint32_t pid_ns_level;
	uint32_t user_ns;
	uint64_t caps; /* permitted capabilities */
};

/* The interface of what counts places: the BPF programs (bpf/observers.c), or replay. */
struct place_source_ops {
	/* Says whether @a can be counted; -EINPROGRESS: ask again in some milliseconds. */
	int (*prepare)(struct place_source *source, const struct attachment *a);
	/*
	 * Starts counting for @a, or prepares it. The caller has filled in @o and @header, except
	 * what only the source knows. Sets a->source, and a->table now or in ready(). -EOPNOTSUPP
	 * if no clock can do what the flags ask, -EAGAIN if there is no room, -EINPROGRESS: ask
	 * again in some milliseconds.
	 */
	int (*open)(struct place_source *source, struct attachment *a, struct profil_observer *o,
		    struct profil_table *header);
	/* Returns 0 when @a counts, -EINPROGRESS in the first milliseconds, or another error. */
	int (*ready)(struct place_source *source, struct attachment *a);
	/*
	 * Continues the machine's profile of an earlier daemon and reads its header into @header.
	 * -ENOENT if there is none.
	 */
	int (*recover)(struct place_source *source, struct attachment *a, struct profil_observer *o,
		       struct profil_table *header);
	/* Starts counting if open() did not, as PROFIL_OBSERVE_LATER asks. */
	int (*begin)(struct place_source *source, struct attachment *a);
	/* Adds process @tgid. -ESRCH if it has ended. */
	int (*add)(struct place_source *source, struct attachment *a, pid_t tgid);
	/* Samples so far. */
	uint64_t (*total)(struct place_source *source, const struct attachment *a);
	/* Begins to free the coldest nodes of the tree of @a, the machine's profile. */
	int (*fold)(struct place_source *source, const struct attachment *a);
	/* Stops counting. The table exists as long as a client has its fd. */
	void (*close)(struct place_source *source, struct attachment *a);
	/* Removes it from the daemon only: the kernel continues to count, for the next daemon. */
	void (*forget)(struct place_source *source, struct attachment *a);
};

struct place_source {
	const struct place_source_ops *ops;
};

/* The source with --replay: every table stays empty (observe/replay_places.c). */
extern struct place_source replay_places;

/* True if @m asks for samples of an event, not of CPU time. */
bool attachment_is_event(const struct profil_msg_observe *m);

/* What is to be linked for @a besides a clock: its event, or what its waits need; NULL: nothing. */
const struct event_choice *attachment_links(const struct attachment *a);

/*
 * Starts the attachment that @m asks for, for @peer. Returns 0 or a negative errno; -EINPROGRESS:
 * what counts its event is being loaded; -EDQUOT: what the user has just given back is not yet
 * free. Then ask again in some milliseconds.
 */
int attachment_open(struct attachment **out, struct profild *d, const struct profil_msg_observe *m,
		    const struct observer_peer *peer);
struct attachment *attachment_close(struct attachment *a);

/* Removes it from the daemon only: the kernel continues to count, for the next daemon. */
struct attachment *attachment_forget(struct attachment *a);

/* Starts counting, for the client's BEGIN. -EINVAL if it was not to be waited for. */
int attachment_begin(struct attachment *a);

/* Adds process @tgid. The caller has checked that the client may observe it. */
int attachment_add(struct attachment *a, pid_t tgid);

/* Stops counting; the table keeps its contents. */
void attachment_detach(struct attachment *a);

/*
 * Returns 0 when @a counts, -EINPROGRESS soon after attachment_open(), or another negative errno.
 * It must be called until then: it continues what attachment_open() has begun.
 */
int attachment_ready(struct attachment *a);

/* Samples so far. */
uint64_t attachment_total(const struct attachment *a);

/* Reads the namespaces and capabilities of process @pid into @peer. */
int observer_peer_of(struct observer_peer *peer, pid_t pid);

#endif
