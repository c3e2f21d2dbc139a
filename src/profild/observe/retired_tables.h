/* retired_tables.h - charges of tables whose attachment has ended, but which clients still have */
#ifndef PROFIL_PROFILD_OBSERVE_RETIRED_TABLES_H
#define PROFIL_PROFILD_OBSERVE_RETIRED_TABLES_H

#include <stdbool.h>

#include "profild/quota/quota.h"

/*
 * A table exists as long as any process has its fd or has it mapped, and the kernel charges its
 * memory to the daemon. So the charges of an attachment pass to its maps when it ends: they are
 * given back when the kernel no longer knows the maps' ids, for which they are looked at only where
 * something is refused, or the charges are shown. The slots of the BPF programs hold
 * references, too, until an RCU grace period after the end.
 */
struct retired_tables;

/* What is charged while a table exists. */
struct table_charges {
	struct charge profile;
	struct charge memory;
};

int retired_tables_open(struct retired_tables **out);

/*
 * From now on the tables that exist are listed by the BPF iterator with link @fd, which the caller
 * keeps; <= 0: none can be listed, and a table counts as gone with its attachment.
 */
void retired_tables_list_by(struct retired_tables *r, int fd);

/* Gives back all charges. */
struct retired_tables *retired_tables_close(struct retired_tables *r);

/*
 * Moves the charges of the maps @table and @unwind (-1: none) here. The caller keeps the fds, and
 * closes them.
 */
void retired_tables_add(struct retired_tables *r, struct table_charges *charges, int table,
			int unwind);

/* Gives back the charges of tables that no longer exist. */
void retired_tables_sweep(void *retired);

/* True if a table of @u has just been retired: the daemon itself may still have a reference. */
bool retired_tables_are_ending(const struct retired_tables *r, const struct user *u);

void table_charges_give(struct table_charges *c);

#endif
