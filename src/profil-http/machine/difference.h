/* difference.h - the samples between two snapshots */
#ifndef PROFIL_PROFIL_HTTP_MACHINE_DIFFERENCE_H
#define PROFIL_PROFIL_HTTP_MACHINE_DIFFERENCE_H

#include "names.h"
#include "snapshot.h"

struct difference {
	const struct snapshot *from; /* NULL: from the start */
	const struct snapshot *to;
	struct places places; /* with the objects of the names; without groups */
	struct places sums;   /* by group and object; at most as many samples as @places */
	struct outcomes outcomes;
	struct call_tree stacks; /* at most as many samples as there are; empty: not asked for */
	__u64 began_ns;		 /* CLOCK_REALTIME at @from */
	/*
	 * In CLOCK_MONOTONIC, which like samples does not grow during suspend; if @from is NULL, in
	 * CLOCK_BOOTTIME.
	 */
	__u64 duration_ns;
};

/*
 * @n must be updated from the snapshots' source. @stacks: also finds the difference of the trees
 * of calls, if there are any. Returns 0 or -ENOMEM. difference_fini() in any case.
 */
int difference_init(struct difference *d, const struct names *n, const struct snapshot *from,
		    const struct snapshot *to, bool stacks);

void difference_fini(struct difference *d);

#endif
