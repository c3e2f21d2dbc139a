/* table.h - an attachment's table of places, mapped read-only while the kernel counts into it */
#ifndef PROFIL_TABLE_TABLE_H
#define PROFIL_TABLE_TABLE_H

#include <stddef.h>

#include "core/observe_maps.h"

/* Zeroed, it is closed. */
struct table {
	const struct profil_table *head; /* at the start of the mapping */
	size_t bytes;
};

/*
 * Maps the table @fd, which stays the caller's. Returns 0 or a negative errno: -EPROTO if its parts
 * exceed it, or for another version.
 */
int table_open(struct table *t, int fd);

void table_close(struct table *t);

/*
 * Copies the head of the table @fd, whose started_ns tells tables apart. table_open() takes
 * milliseconds of a large one, as Linux maps each page of it at once. The same errors.
 */
int table_read_head(struct profil_table *out, int fd);

/* Image or group @index, from 1 to head->images or groups; NULL: not complete (yet). */
const struct profil_image *table_image(const struct table *t, __u32 index);
const struct profil_group *table_group(const struct table *t, __u32 index);

/* The head->lines lines of places. The kernel counts while they are read. */
const struct profil_line *table_lines(const struct table *t);

/* Node @index of the call stacks, below head->nodes. Complete once its place is not 0. */
const struct profil_node *table_node(const struct table *t, __u32 index);

/* Function @index of an interpreted language, below head->functions; NULL: not complete (yet). */
const struct profil_function *table_function(const struct table *t, __u32 index);

/* The head->sleepers sleepers, likewise. */
const struct profil_sleeper *table_sleepers(const struct table *t);

/* CPU time of ended threads that waits for a place: see PROFIL_UNSEEN_PAGE. */
__u64 table_waiting_ns(const struct table *t);

/* All samples so far, of all outcomes. */
__u64 table_total(const struct table *t);

/* Writes the path of @image in its mount namespace, "" if unknown. */
void table_image_path(const struct profil_image *image, char *out, size_t bytes);

#endif
