/* snapshot.h - the counts of a table at one moment */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_SNAPSHOT_H
#define PROFIL_PROFIL_HTTP_MACHINE_SNAPSHOT_H

#include <stddef.h>
#include <linux/types.h>

#include "table/stack_reader.h"
#include "source.h"

/* The kernel never moves a place, so its slot identifies it: line * 5 + way. */
struct snapshot_count {
	__u32 slot;
	__u32 count;
};

struct snapshot_coarse {
	__u32 image;
	__u64 count;
};

/* Samples by outcome; total is the sum of the others. */
struct outcomes {
	__u64 total;
	__u64 placed;
	__u64 unmatched;
	__u64 lost;
};

/*
 * All counts except the user pcs of samples in kernel mode, sorted by slot. The kernel counts while
 * they are read, but counts only grow, so differences of consecutive snapshots add up exactly.
 * Reference-counted atomically; immutable.
 */
struct snapshot {
	int refs;
	__u64 id; /* unique */
	struct source *source;
	__u64 taken_ns; /* CLOCK_MONOTONIC, which stops during suspend */
	__u64 boot_ns;	/* CLOCK_BOOTTIME, which does not stop */
	__u64 real_ns;	/* CLOCK_REALTIME, which can be set */
	struct outcomes outcomes;
	struct profil_table head;
	struct snapshot_count *count;
	size_t n;
	struct snapshot_coarse *coarse; /* samples without a place, by image */
	size_t ncoarse;
	__u64 groupless; /* samples with a place that no group's sum has */
	/*
	 * All nodes of the tree of calls, by index; NULL: without. They have at most as many
	 * samples as there are, and from one snapshot to the next at most as many more.
	 */
	struct profil_node *node;
	__u32 folds;	 /* the table's counter */
	__u64 stackless; /* samples that no node has */
	size_t bytes;	 /* of memory, for SNAPSHOT_BYTES_MAX */
};

/* Limit of the memory of all snapshots. */
#define SNAPSHOT_BYTES_MAX (256u << 20)

/* Reads the table. @last: the snapshot before, or NULL. Returns 0, -ENOMEM or -ENOBUFS. */
int snapshot_take(struct snapshot **out, struct source *source, __u64 id,
		  const struct snapshot *last);

struct snapshot *snapshot_ref(struct snapshot *s);
struct snapshot *snapshot_unref(struct snapshot *s);

#endif
