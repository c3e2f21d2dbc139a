/* maps.h - the BPF programs and their maps: new, or as an earlier daemon left them */
#ifndef PROFIL_MAPS_H
#define PROFIL_MAPS_H

#include <stdbool.h>

#include "config.h"
#include "core/layout.h"
#include "processes.h"

struct profil_bpf;
struct store;
struct target;

struct maps {
	struct profil_bpf *skel;
	struct processes processes;
	struct profil_ledger *ledger;	/* mapped: PROFIL_MAX_TARGETS of them */
	struct profil_journal *journal; /* mapped */
	bool found;			/* there was an earlier daemon */
};

/* The programs are made for @clock. Says itself what went wrong. */
int maps_open(struct maps *m, struct store *store, enum clock_choice clock);
void maps_close(struct maps *m);

/* Whose target @index is, for the next daemon. NULL: nobody's any more. */
int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *owner);
int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out);

/* Regions @from … @from + @n - 1 of @t, to the maps or from there. */
int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n);
int maps_read_regions(struct maps *m, struct target *t);

#endif
