/* call_tree.h - the stacks of a profile: a tree of calling contexts */
#ifndef PROFIL_PROFILE_CALL_TREE_H
#define PROFIL_PROFILE_CALL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

#include "base/index_slots.h"

/*
 * A node is a frame, its parent the calling frame: the same place with the same callers is one
 * node, in however many processes. Its count is the number of samples whose innermost frame it is.
 * The first nodes are not frames but roots, one for each way in which a stack walk can end: below
 * CALL_WHOLE are stacks that reach the start of their thread, below the others truncated ones. A
 * profile of waits has these roots for each state of threads. Outermost frames can distinguish
 * groups, as flat places do; all nodes below them are of the same group.
 */
enum call_root {
	CALL_WHOLE,	 /* reached the start of the thread */
	CALL_NO_TABLE,	 /* code without unwind rules, and no valid frame pointer */
	CALL_BEYOND,	 /* an unwind rule that is a DWARF expression */
	CALL_UNREADABLE, /* the stack could not be read, or the chain of frames is circular */
	CALL_NOWHERE,	 /* the return address is not in executable memory */
	CALL_DEEP,	 /* more frames than the walk's limit */
	CALL_NOT_YET,	 /* the code's unwind rules were not loaded yet */
	CALL_NO_ROOM,	 /* like CALL_NO_TABLE: the table had no room for the code's unwind rules */
	CALL_ENDS
};

/* What the threads did. */
enum call_state {
	CALL_NO_STATE, /* in profiles that do not distinguish states, or without a stack */
	CALL_RUNNING,
	CALL_RUNNABLE, /* waiting for a CPU */
	CALL_ASLEEP,
	CALL_STATES
};

#define CALL_NO_NODE (~0u)
#define CALL_ROOTS ((size_t)CALL_ENDS * CALL_STATES)

static inline __u32 call_root(enum call_root end, enum call_state state)
{
	return (__u32)end + (__u32)CALL_ENDS * (__u32)state;
}

static inline enum call_root call_root_end(__u32 root)
{
	return (enum call_root)(root % CALL_ENDS);
}

static inline enum call_state call_root_state(__u32 root)
{
	return (enum call_state)(root / CALL_ENDS);
}

struct call_node {
	__u64 offset; /* in the object; in a caller: the return address */
	__u64 count;
	__u32 object;
	__u32 parent; /* index, always less than the node's own */
	__u32 frame;  /* index in frames, set by symbolize() */
	__u32 group;  /* index in the profile's groups; 0: not distinguished */
};

/* A function on a stack. */
struct call_frame {
	char *name; /* NULL: unknown, printed as object+0xOFFSET */
	__u64 offset;
	__u32 object;
};

/* What woke up a thread, if its stack is not known. These are no nodes: they are below CALL_ROOTS.
 */
enum call_waker { CALL_BY_INTERRUPT = 1, CALL_BY_KERNEL, CALL_BY_HIDDEN, CALL_WAKERS };

/*
 * The samples of sleeps at node @sleeper, by what they waited for and what ended them. Before
 * symbolize() a lock is the variable at @offset of @object, after it a frame with its name.
 */
struct call_wake {
	__u32 sleeper;
	__u32 waker; /* the node of a thread, or an enum call_waker; 0: not known */
	__u64 count;
	__u64 offset; /* of the lock; 0: none, or it is no variable */
	__u32 object;
	__u32 lock; /* 1 + a frame; 0: none */
	__u32 wait; /* enum profil_wait */
	__u32 zero;
};

/* Samples of a node in a slice of time. */
struct call_time {
	__u64 count;
	__u32 node;
	__u32 slice;
};

/* Zeroed, it is empty: a profile without stacks. */
struct call_tree {
	struct call_node *node;
	size_t n; /* 0, or at least CALL_ROOTS */
	struct call_frame *frame;
	size_t nframes;
	struct index_slots slots; /* of the nodes, by index + 1 */
	struct call_wake *wake;	  /* of sleeps of which anything is known */
	size_t nwakes;
	struct call_time *time; /* by slice, where slices were recorded */
	size_t ntimes;
};

void call_tree_fini(struct call_tree *t);

/* Adds the roots, unless they are there. Returns 0 or -ENOMEM. */
int call_tree_init(struct call_tree *t);

/*
 * Finds or adds the node of @object and @offset below @parent, which is an index from an earlier
 * call or a call_root(). Returns 0 or -ENOMEM.
 */
int call_tree_add(struct call_tree *t, __u32 parent, __u32 object, __u64 offset, __u32 *index);

/* The same for the object and offset of @like, and below a root for its group. */
int call_tree_add_like(struct call_tree *t, __u32 parent, const struct call_node *like,
		       __u32 *index);

/* Says whether any stack has a group. */
bool call_tree_has_groups(const struct call_tree *t);

/* Counts @n samples at node @index, or at a call_root(). Returns 0 or -ENOMEM. */
int call_tree_count(struct call_tree *t, __u32 index, __u64 n);

/* Adds a wake-up. Returns 0 or -ENOMEM. */
int call_tree_add_wake(struct call_tree *t, const struct call_wake *wake);

/*
 * Adds the wake-ups of @from, of sleepers that have samples: its nodes i are to[i] here, its frames
 * f are frame[f] - 1, or the same ones if @frame is NULL. Returns 0 or -ENOMEM.
 */
int call_tree_add_wakes(struct call_tree *t, const struct call_tree *from, const __u32 *to,
			const __u32 *frame);

/* Adds the samples of node time->node in a slice. Returns 0 or -ENOMEM. */
int call_tree_add_time(struct call_tree *t, const struct call_time *time);

/* Adds what @from has by slices: its nodes i, those with samples, are to[i]. 0 or -ENOMEM. */
int call_tree_add_times(struct call_tree *t, const struct call_tree *from, const __u32 *to);

/* Adds all nodes of @from, which has the same objects. Returns 0 or -ENOMEM. */
int call_tree_add_all(struct call_tree *t, const struct call_tree *from);

/* Adds a frame; takes ownership of its name. Returns 0 or -ENOMEM. */
int call_tree_add_frame(struct call_tree *t, const struct call_frame *frame, __u32 *index);

/* Says whether the tree knows any sleep's waker, or what it waited for. */
bool call_tree_has_wakers(const struct call_tree *t);
bool call_tree_has_waits(const struct call_tree *t);

/* The root above node @index: a call_root(). */
__u32 call_tree_root(const struct call_tree *t, __u32 index);

/* Says whether node @index is a function inlined into its parent's, at the same place. */
bool call_tree_is_inlined(const struct call_tree *t, __u32 index);

/*
 * Removes nodes without samples in themselves or below, but for those that woke others up. Returns
 * 0 or -ENOMEM.
 */
int call_tree_prune(struct call_tree *t);

/*
 * Moves samples in the objects i with @folds[i] to their innermost frame in another object; samples
 * without such a frame move to the root CALL_NOWHERE of their state. Returns 0 or -ENOMEM.
 */
int call_tree_fold(struct call_tree *t, const bool *folds);

/*
 * Moves the samples of nodes with fewer than @least to their callers, unless other samples are left
 * below. Outermost frames keep theirs. Returns 0 or -ENOMEM.
 */
int call_tree_fold_light(struct call_tree *t, __u64 least);

/*
 * Fills the empty @t with the counts of @now minus those of @last, @most samples at most; what
 * exceeds it is taken from @now, so that its difference to a later reading has it. All have the
 * same objects and no frames yet. Nodes may have been folded into their callers between the two:
 * the sum is exact, except that samples of a folded outermost frame are in no node. Returns 0 or
 * -ENOMEM.
 */
int call_tree_difference(struct call_tree *t, const struct call_tree *last, struct call_tree *now,
			 __u64 most);

/* Takes away what exceeds @most samples. */
void call_tree_limit(struct call_tree *t, __u64 most);

/* Samples below the root @root; in @state; and below all roots. */
__u64 call_tree_samples(const struct call_tree *t, __u32 root);
__u64 call_tree_state_samples(const struct call_tree *t, enum call_state state);
__u64 call_tree_sum(const struct call_tree *t);

#endif
