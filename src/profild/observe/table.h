/* table.h - the layout of a table of places, and the BPF map that holds it */
#ifndef PROFIL_PROFILD_OBSERVE_TABLE_H
#define PROFIL_PROFILD_OBSERVE_TABLE_H

#include <stdint.h>

#include "core/observe_maps.h"
#include "core/observers.h"

/* The wanted sizes; 0: the default. */
struct table_room {
	uint32_t places;
	uint32_t images;
	uint32_t groups;
	uint32_t nodes;	      /* of call graphs */
	uint32_t unwind_rows; /* likewise */
	uint32_t sleepers;    /* of off-CPU time */
};

/*
 * Lays out the parts of a table in @header and @o. The caller has set header->group_by, stack_mode
 * and event_type, which say whether there are groups, nodes and sleepers. -E2BIG if @room exceeds
 * the limits of a table.
 */
int table_layout(struct profil_table *header, struct profil_observer *o,
		 const struct table_room *room);

/* Copies the layout into @o, for the BPF programs. */
void table_describe(struct profil_observer *o, const struct profil_table *header);

/* Reads the header of table @fd of an earlier daemon. -EINVAL if its version differs. */
int table_read(struct profil_table *header, int fd);

/* The size of the table and of its map of unwind rules. */
static inline uint64_t table_bytes(const struct profil_table *header)
{
	return (uint64_t)(header->pages + header->unwind_pages) * PROFIL_TABLE_PAGE;
}

#define PROFIL_TABLE_NAME "profil_table" /* the kernel's name of its map */

/*
 * Creates the map of the table with first page @header, and freezes it: neither the daemon nor a
 * client can write to it. Returns its fd or a negative errno.
 */
int table_create(const struct profil_table *header);

/* Creates its map of unwind rules, to which a client can write. Likewise. */
int table_create_unwind(const struct profil_table *header);

#endif
