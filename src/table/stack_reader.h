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

/* Adds the stacks of @n nodes, likewise. */
int stack_reader_add(const struct table_reader *r, const struct stack_count *count, size_t n,
		     struct call_tree *into);

/*
 * Adds all stacks of the table of @r to @into, whose objects are those of r->profile. Does nothing
 * if the table has none. Returns 0 or -ENOMEM.
 */
int stack_reader_read(const struct table_reader *r, struct call_tree *into);

#endif
