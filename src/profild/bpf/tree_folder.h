/* tree_folder.h - frees the coldest nodes of the machine's tree of calls, in a thread */
#ifndef PROFIL_PROFILD_BPF_TREE_FOLDER_H
#define PROFIL_PROFILD_BPF_TREE_FOLDER_H

#include <stdint.h>
#include <systemd/sd-event.h>

struct maps;
struct tree_folder;

int tree_folder_open(struct tree_folder **out, const struct maps *maps, sd_event *event);
struct tree_folder *tree_folder_close(struct tree_folder *f);

/*
 * Begins to free nodes of the table @table in @slot, until three quarters of them are free. The
 * observer's epoch is @epoch, and @next_epoch from then on. Does nothing if it is not done with an
 * earlier one.
 */
void tree_folder_begin(struct tree_folder *f, uint32_t slot, int table, uint32_t epoch,
		       uint32_t next_epoch);

/* Returns when the tables in @slot are no longer changed, at once or after some 100 us. */
void tree_folder_stop(struct tree_folder *f, uint32_t slot);

#endif
