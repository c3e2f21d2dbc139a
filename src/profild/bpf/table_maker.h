/* table_maker.h - creates the maps of attachments' tables, in threads */
#ifndef PROFIL_PROFILD_BPF_TABLE_MAKER_H
#define PROFIL_PROFILD_BPF_TABLE_MAKER_H

#include <systemd/sd-event.h>

#include "core/observe_maps.h"
#include "profild/quota/quota.h"

/*
 * The kernel zeroes a map's memory when it is created: 85 MiB, the most that a client may ask for,
 * take 50 ms, which the main thread must not wait. A user but root has one table made at a time,
 * and the time is charged to it as if the main thread had worked. Small tables do not wait for
 * large ones.
 */
struct table_maker;
struct table_making;

int table_maker_open(struct table_maker **out, sd_event *event);
/* All tables have been taken or dropped. Waits for those that are being made. */
struct table_maker *table_maker_close(struct table_maker *m);

/*
 * Begins to make the maps of the table with first page @header. -EINPROGRESS: another of @user's is
 * being made; ask again in some milliseconds.
 */
int table_making_begin(struct table_making **out, struct table_maker *m, struct user *user,
		       const struct profil_table *header);

/*
 * Ends @t when its maps have been made, and gives their fds in @table and @unwind (-1: it has
 * none). -EINPROGRESS: not yet. Another negative errno ends it, too.
 */
int table_making_take(struct table_making *t, int *table, int *unwind);

/* Ends it: its maps are closed as soon as they have been made. */
void table_making_drop(struct table_making *t);

/* Makes the maps at once. Returns 0 or a negative errno, without any fd. */
int tables_make(const struct profil_table *header, int *table, int *unwind);

#endif
