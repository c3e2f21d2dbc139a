/* stack_reader.h - reads the calling contexts of a table into a profile's call tree */
#ifndef PROFIL_TABLE_STACK_READER_H
#define PROFIL_TABLE_STACK_READER_H

#include "table_reader.h"

/* Samples in @state whose innermost frame is node @node, an index. */
struct stack_count {
	__u32 node;
	enum call_state state; /* CALL_NO_STATE: as the node's notes say */
	__u64 count;
	__u64 wait; /* a note: what it sleeps for; 0: not known, or as the node's notes say */
};

/* Adds the stacks of @n nodes. */
int stack_reader_add(const struct table_reader *r, const struct stack_count *count, size_t n,
		     struct call_tree *into);

/*
 * Copies all nodes of the table to @copy, by index; those that are free stay 0. Returns the table's
 * counter of folds.
 */
__u32 stack_reader_copy(const struct table *t, struct profil_node *copy);

/*
 * Reads the stacks of a copy into the empty @into. Stacks with an image that @r does not know are
 * left out. Returns 0 or -ENOMEM.
 */
int stack_reader_read_copy(const struct table_reader *r, const struct profil_node *copy,
			   struct call_tree *into);

/*
 * table_reader_read() with all stacks of the table, if it has any: not more than samples, although
 * the kernel counts between the two. @into has none yet. Returns 0 or -ENOMEM.
 */
int stack_reader_read_all(struct table_reader *r, struct profile *into);

/*
 * table_reader_read_since() with the stacks since @last, which is updated; initially empty. A stack
 * whose sample was counted between the two is left to the next call.
 */
int stack_reader_read_since(struct table_reader *r, struct table_seen *seen, struct call_tree *last,
			    struct profile *into);

/* All stacks so far, read again and again; initially zeroed. */
struct stack_series {
	struct call_tree tree; /* without wake-ups; a node keeps its index */
	__u32 *index;	       /* see struct tree_reader */
	__u32 *seen;	       /* of each node of the table: its count at the last read */
};

/* Adds to s->tree what stacks have had since the last call. Returns 0 or -ENOMEM. */
int stack_series_read(struct stack_series *s, struct table_reader *r);
void stack_series_fini(struct stack_series *s);

#endif
