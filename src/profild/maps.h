/* maps.h - the BPF programs and their maps: new, or as an earlier daemon left them */
#ifndef PROFIL_MAPS_H
#define PROFIL_MAPS_H

#include <stdbool.h>

#include "core/layout.h"
#include "processes.h"
#include "window.h"

struct profil_bpf;
struct store;
struct target;

struct maps {
	struct profil_bpf *skel;
	struct processes processes;
	struct profil_ledger *ledger;
	struct profil_journal *journal;
	bool found; /* there was an earlier daemon */

	struct window targets; /* processes.target */
	struct window ledgers; /* ledger */
	struct window starts;  /* where the regions begin, as in struct profil_tables */
};

/* Says itself what went wrong. */
int maps_open(struct maps *m, struct store *store);
void maps_close(struct maps *m);

/*
 * Maps the first @targets targets and ledgers, and where the first @regions regions begin: until
 * then they cannot be looked at. What an earlier daemon left can, until maps_narrow() leaves no
 * more than what has been asked for.
 */
int maps_reach(struct maps *m, uint32_t targets, uint32_t regions);
int maps_narrow(struct maps *m);

/*
 * Which image process @tgid runs, as entries say it; 0 where the kernel misses no exec. -ESRCH
 * where the process has gone.
 */
int maps_image(struct maps *m, uint32_t tgid, uint32_t *image);

/* Whose target @index is, for the next daemon. NULL: nobody's any more. */
int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *owner);
int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out);

/* Regions @from … @from + @n - 1 of @t, to the maps or from there. */
int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n);
int maps_read_regions(struct maps *m, struct target *t);

#endif
