/* metrics.h - metrics in the formats of OpenMetrics and of Prometheus */
#ifndef PROFIL_PROFIL_HTTP_ANSWERS_METRICS_H
#define PROFIL_PROFIL_HTTP_ANSWERS_METRICS_H

#include <stdbool.h>

#include "answer.h"
#include "cost.h"
#include "profil-http/machine/difference.h"
#include "base/host_identity.h"
#include "series.h"

/* The series of one source; a new source resets them. */
struct metrics {
	__u64 started_ns;
	struct series units;
	struct series containers;
	struct series images;
};

/* @d begins when the machine profile was turned on. Returns 0 or -ENOMEM. */
int metrics_answer(struct answer **out, struct metrics *m, const struct profile *p,
		   const struct difference *d, const struct host_identity *host,
		   const struct cost *daemon, bool openmetrics);

/* The metrics without a machine profile: profil_up is 0. NULL: out of memory. */
struct answer *metrics_down(bool openmetrics);

void metrics_fini(struct metrics *m);

#endif
