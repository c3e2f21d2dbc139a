/* encoder.c - makes answers from snapshots, with the state that lasts from one to the next */
#include <errno.h>

#include "encoder.h"
#include "profiles.h"

void encoder_init(struct encoder *e, const char *socket)
{
	*e = (struct encoder){ .socket = socket };
	host_identify(&e->host);
}

static int encode(struct answer **out, struct encoder *e, enum answer_kind kind,
		  const struct graph_query *q, struct difference *d)
{
	struct cost daemon;

	switch (kind) {
	case ANSWER_PROFILE:
	case ANSWER_PLACES:
	case ANSWER_STACKS:
		return profiles_answer(out, &e->names, d, &e->host, PROFILES_PPROF);
	case ANSWER_BY_GROUP:
		return profiles_answer(out, &e->names, d, &e->host, PROFILES_PPROF_BY_GROUP);
	case ANSWER_OTLP:
	case ANSWER_OTLP_PLACES:
	case ANSWER_OTLP_STACKS:
		return profiles_answer(out, &e->names, d, &e->host, PROFILES_OTLP);
	case ANSWER_FOLDED:
		return profiles_answer(out, &e->names, d, &e->host, PROFILES_FOLDED);
	case ANSWER_NOW:
		return profiles_answer_page(out, &e->names, d, &e->host, q);
	case ANSWER_METRICS:
	case ANSWER_OPENMETRICS:
		cost_of_daemon(&daemon, e->socket);
		return metrics_answer(out, &e->metrics, e->names.profile, d, &e->host, &daemon,
				      kind == ANSWER_OPENMETRICS);
	case ANSWER_GRAPH:
		break;
	}
	return -EINVAL;
}

static bool has_stacks(enum answer_kind kind)
{
	return kind != ANSWER_PLACES && kind != ANSWER_BY_GROUP && kind != ANSWER_OTLP_PLACES &&
	       kind != ANSWER_METRICS && kind != ANSWER_OPENMETRICS;
}

struct answer *encoder_answer(struct encoder *e, enum answer_kind kind, const struct graph_query *q,
			      const struct snapshot *from, const struct snapshot *to)
{
	struct answer *a = NULL;
	struct difference d = { 0 };
	int err = names_update(&e->names, to->source);

	if (!err)
		err = difference_init(&d, &e->names, from, to, has_stacks(kind));
	if (!err)
		err = encode(&a, e, kind, q, &d);
	difference_fini(&d);
	names_renew(&e->names);
	if (err < 0 || !a)
		return answer_text(500, "profil-http: out of memory");
	a->from = from ? from->id : 0;
	a->to = to->id;
	return a;
}
