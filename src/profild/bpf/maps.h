/* maps.h - the BPF programs and their maps: new, or as an earlier daemon left them */
#ifndef PROFIL_PROFILD_BPF_OBJECT_H
#define PROFIL_PROFILD_BPF_OBJECT_H

#include <stdbool.h>

#include "core/observers.h"
#include "core/shared_maps.h"
#include "process_table.h"

struct config;
struct profil_bpf;
struct store;
struct target;

struct maps {
	struct profil_bpf *skel;
	struct process_table processes;
	struct profil_ledger *ledger;
	bool found;    /* the maps are an earlier daemon's */
	bool exec_ids; /* maps_exec_id() works: the kernel has bpf_task_from_pid() */
	enum profil_image_lookup image_lookup;
};

/* Logs its errors itself. */
int maps_open(struct maps *m, const struct config *config, struct store *store);
void maps_close(struct maps *m);

/*
 * The exec_id of process @tgid, as in its entries; 0 (unknown) before Linux 6.2. -ESRCH if there is
 * no such process.
 */
int maps_exec_id(struct maps *m, uint32_t tgid, uint32_t *exec_id);

/* Stores the owner of target @index for the next daemon. NULL: the target has no owner. */
int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *owner);
int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out);

/* Copy regions @from … @from + @n - 1 of @t to the map, and all of its regions from the map. */
int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n);
int maps_read_regions(struct maps *m, struct target *t);

#endif
