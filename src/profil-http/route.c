/* route.c - maps paths and parameters to answers */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "answers/pages.h"
#include "route.h"

#define SECONDS_DEFAULT 30 /* as in Go's net/http/pprof */

static const char *parameter(struct MHD_Connection *mhd, const char *name)
{
	return MHD_lookup_connection_value(mhd, MHD_GET_ARGUMENT_KIND, name);
}

static struct answer *parse_seconds(struct route *r, struct MHD_Connection *mhd, unsigned int max)
{
	const char *text = parameter(mhd, "seconds");
	unsigned long n;
	char *end, say[80];

	r->seconds = SECONDS_DEFAULT < max ? SECONDS_DEFAULT : max;
	if (!text)
		return NULL;
	n = strtoul(text, &end, 10);
	if (*text >= '0' && *text <= '9' && !*end && n >= 1 && n <= max) {
		r->seconds = (unsigned int)n;
		return NULL;
	}
	snprintf(say, sizeof(say), "seconds: say a number from 1 to %u", max);
	return answer_text(400, say);
}

static struct answer *parse_by(struct route *r, struct MHD_Connection *mhd)
{
	const char *by = parameter(mhd, "by");

	if (!by)
		return NULL;
	r->kind = !strcmp(by, "unit")	 ? ANSWER_BY_GROUP
		  : !strcmp(by, "place") ? ANSWER_PLACES
					 : ANSWER_STACKS;
	if (r->kind == ANSWER_STACKS && strcmp(by, "stack") != 0)
		return answer_text(400, "by: must be stack, place or unit");
	return NULL;
}

static struct answer *parse_otlp(struct route *r, struct MHD_Connection *mhd)
{
	const char *by = parameter(mhd, "by");

	r->kind = !by			 ? ANSWER_OTLP
		  : !strcmp(by, "stack") ? ANSWER_OTLP_STACKS
					 : ANSWER_OTLP_PLACES;
	return by && strcmp(by, "stack") != 0 && strcmp(by, "place") != 0
		       ? answer_text(400, "by: must be place or stack")
		       : NULL;
}

/* Reads a time in seconds; *@out is 0 without one. */
static bool parse_time(time_t *out, struct MHD_Connection *mhd, const char *name)
{
	const char *text = parameter(mhd, name);
	char *end;
	long long n;

	*out = 0;
	if (!text)
		return true;
	n = strtoll(text, &end, 10);
	*out = (time_t)n;
	return *text >= '0' && *text <= '9' && !*end && n > 0 && n < SPOOL_NO_END;
}

static bool parse_span(struct graph_query *q, struct MHD_Connection *mhd, const char *from,
		       const char *to)
{
	struct spool_span *span = &q->span[q->spans];

	if (!parse_time(&span->since, mhd, from) || !parse_time(&span->until, mhd, to) ||
	    !span->since != !span->until || (span->since && span->since >= span->until))
		return false;
	q->spans += span->since > 0;
	return true;
}

static struct answer *parse_graph(struct route *r, struct MHD_Connection *mhd)
{
	struct graph_query *q = &r->graph;
	const char *by = parameter(mhd, "by"), *language = parameter(mhd, "language");

	r->kind = ANSWER_GRAPH;
	if (!parse_span(q, mhd, "from", "to") || (q->spans && !parse_span(q, mhd, "vfrom", "vto")))
		return answer_text(400, "from, to, vfrom, vto: say seconds since 1970, from before "
					"to");
	if (by && *by && strcmp(by, "unit") != 0 && strcmp(by, "code") != 0)
		return answer_text(400, "by: must be code or unit");
	q->by_unit = by && !strcmp(by, "unit");
	if (language && strlen(language) >= sizeof(q->language))
		return answer_text(400, "language: there is none of this name");
	strcpy(q->language, language ? language : "");
	for (size_t i = 0; i < SPOOL_PAGE_KINDS; i++) {
		const char *name = parameter(mhd, rows_by_name(spool_page_kinds[i]));

		if (name && strlen(name) >= sizeof(q->name[i]))
			return answer_text(400, "a name is too long");
		strcpy(q->name[i], name ? name : "");
	}
	return NULL;
}

static struct answer *parse_accept(struct route *r, struct MHD_Connection *mhd)
{
	switch (accept_metrics(MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Accept"))) {
	case METRICS_PROMETHEUS:
		r->kind = ANSWER_METRICS;
		return NULL;
	case METRICS_OPENMETRICS:
		r->kind = ANSWER_OPENMETRICS;
		return NULL;
	case METRICS_NONE:
		break;
	}
	return answer_text(406, "there are text/plain and application/openmetrics-text");
}

struct answer *route_parse(struct route *r, struct MHD_Connection *mhd, const char *url,
			   unsigned int max_seconds)
{
	struct answer *wrong;

	*r = (struct route){ .kind = ANSWER_PROFILE };
	if (!strcmp(url, "/debug/pprof/profile")) {
		wrong = parse_seconds(r, mhd, max_seconds);
		return wrong ? wrong : parse_by(r, mhd);
	}
	if (!strcmp(url, "/debug/pprof/stacks")) {
		r->kind = ANSWER_STACKS;
		return parse_seconds(r, mhd, max_seconds);
	}
	if (!strcmp(url, "/debug/pprof/folded")) {
		r->kind = ANSWER_FOLDED;
		return parse_seconds(r, mhd, max_seconds);
	}
	if (!strcmp(url, "/v1development/profiles")) {
		wrong = parse_otlp(r, mhd);
		return wrong ? wrong : parse_seconds(r, mhd, max_seconds);
	}
	if (!strcmp(url, "/debug/pprof/total"))
		return parse_by(r, mhd);
	if (!strcmp(url, "/"))
		return parse_graph(r, mhd);
	if (!strcmp(url, "/metrics")) {
		return parse_accept(r, mhd);
	}
	return pages_answer(url);
}

bool route_takes_body(const char *url)
{
	return !strcmp(url, "/debug/pprof/symbol");
}

bool route_is_local_host(const char *host)
{
	static const char *const names[] = { "localhost", "127.0.0.1", "[::1]" };

	if (!host)
		return true; /* HTTP/1.0, which browsers do not use */
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i]);

		if (!strncmp(host, names[i], n) && (!host[n] || host[n] == ':'))
			return true;
	}
	return false;
}
