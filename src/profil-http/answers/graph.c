/* graph.c - the page with the flame graph of a span of the spool's time, or of two */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "graph.h"

#define LATEST_S 900 /* of the newest span */
/* How long files are read before the page is answered, which tells what is still to be read. */
#define FIRST_NS 500000000u
#define MORE_NS 60000000u

bool graph_query_is_same(const struct graph_query *a, const struct graph_query *b)
{
	return a->spans == b->spans && a->by_unit == b->by_unit &&
	       !memcmp(a->span, b->span, sizeof(a->span)) &&
	       !memcmp(a->name, b->name, sizeof(a->name)) &&
	       !memcmp(a->language, b->language, sizeof(a->language));
}

static void read_files(struct spool_index *x, const struct spool_span *span, size_t spans)
{
	__u64 end_ns = now_ns() + (x->sums.n ? MORE_NS : FIRST_NS);
	size_t all = 0, too_old = 0;

	memset(x->wanted, 0, sizeof(x->wanted));
	memcpy(x->wanted, span, spans * sizeof(*span));
	for (size_t i = 0; i < spans; i++) {
		while (spool_index_unread(x, &span[i], &all, &too_old) && now_ns() < end_ns &&
		       spool_index_read_one(x))
			;
	}
}

/* The spans of @q, or the newest one. */
static size_t spans_of(struct spool_span *out, const struct spool_index *x,
		       const struct graph_query *q)
{
	const struct spool_entry *last = x->n ? &x->entry[x->n - 1] : NULL;

	memcpy(out, q->span, sizeof(q->span));
	if (q->spans)
		return q->spans;
	out->until = last ? last->start + last->seconds : time(NULL);
	out->since = out->until - LATEST_S;
	return 1;
}

static struct sums_choice choice_of(const struct graph_query *q, const struct spool_span *span)
{
	struct sums_choice c = { .since = span->since,
				 .until = span->until,
				 .language = *q->language ? q->language : NULL,
				 .by_unit = q->by_unit };

	for (size_t i = 0; i < SPOOL_PAGE_KINDS; i++)
		c.name[spool_page_kinds[i]] = *q->name[i] ? q->name[i] : NULL;
	return c;
}

/* The CPUs in use in each interval of the spool that is in memory. */
static struct spool_strip *strip_of(const struct spool_index *x)
{
	struct spool_strip *strip = calloc(x->n + 1, sizeof(*strip));
	const struct interval_sums *s = &x->sums;
	size_t at = 0;

	for (size_t i = 0; strip && i < x->n; i++) {
		const struct spool_entry *e = &x->entry[i];
		const struct interval *v;

		strip[i] = (struct spool_strip){ e->start, e->seconds, -1 };
		while (at < s->n && s->interval[at].start < e->start)
			at++;
		v = at < s->n && s->interval[at].start == e->start ? &s->interval[at] : NULL;
		if (v)
			strip[i].cpus = v->duration_ns ? (double)v->total * (double)v->tick_ns /
								 (double)v->duration_ns
						       : 0;
	}
	return strip;
}

/* Why there is nothing to be shown; NULL: there is. */
static const char *trouble_of(const struct spool_index *x, char *out, size_t bytes)
{
	if (x->n)
		return NULL;
	if (x->error == -EACCES)
		snprintf(out, bytes, "cannot read the spool %s: permission denied", x->path);
	else if (x->error && x->error != -ENOENT)
		snprintf(out, bytes, "cannot read the spool %s: %s", x->path, strerror(-x->error));
	else
		snprintf(out, bytes,
			 "There are no profiles in %s: 'systemctl enable --now profil-spool' "
			 "keeps one for each minute.",
			 x->path);
	return out;
}

static struct answer *write_page(const struct spool_page *page)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *out = open_memstream(&bytes, &n);
	int err = out ? spool_page_write(out, page) : -ENOMEM;

	if (out && fclose(out))
		err = -ENOMEM;
	if (!err)
		return answer_new(200, "text/html; charset=utf-8", bytes, n);
	free(bytes);
	return NULL;
}

struct answer *graph_answer(struct spool_index *x, const struct host_identity *host,
			    const struct graph_query *q)
{
	__cleanup(freep) struct spool_strip *strip = NULL;
	struct spool_span span[SPOOL_SPANS];
	struct sums_choice choice[SPOOL_SPANS];
	struct sums_range range[SPOOL_SPANS] = { 0 };
	struct spool_page page = { .host = host->name, .latest = !q->spans };
	struct answer *a = NULL;
	char trouble[512];
	int err = 0;

	spool_index_list(x);
	page.spans = spans_of(span, x, q);
	read_files(x, span, page.spans);
	strip = strip_of(x);
	for (size_t i = 0; i < page.spans && !err; i++) {
		choice[i] = choice_of(q, &span[i]);
		err = interval_sums_range(&range[i], &x->sums, &choice[i]);
		page.unread += spool_index_unread(x, &span[i], &page.intervals, &page.too_old);
	}
	page.strip = strip;
	page.nstrip = x->n;
	page.choice = choice;
	page.range = range;
	page.trouble = trouble_of(x, trouble, sizeof(trouble));
	if (!err && strip)
		a = write_page(&page);
	if (a)
		a->empty = !x->n && (!x->error || x->error == -ENOENT);
	for (size_t i = 0; i < page.spans; i++)
		sums_range_fini(&range[i]);
	return a;
}

int graph_answer_of(struct answer **out, const struct profile *p, const struct host_identity *host,
		    const struct graph_query *q)
{
	time_t seconds = (time_t)(p->duration_ns / 1000000000u) + 1;
	const struct spool_span span = { p->started, p->started + seconds };
	const struct sums_choice choice = choice_of(q, &span);
	const struct spool_strip strip = { p->started, seconds, -1 };
	struct interval_sums sums = { 0 };
	struct sums_range range = { 0 };
	struct spool_page page = { .host = host->name,
				   .strip = &strip,
				   .nstrip = 1,
				   .choice = &choice,
				   .range = &range,
				   .spans = 1,
				   .latest = true,
				   .intervals = 1 };
	int err = interval_sums_add(&sums, p, p->started, seconds)
			  ?: interval_sums_range(&range, &sums, &choice);

	page.notice = "All samples since the machine's profile was turned on: there is no spool. "
		      "'systemctl enable --now profil-spool' keeps a profile for each minute, of "
		      "which any span can be chosen and compared.";
	if (!err) {
		*out = write_page(&page);
		err = *out ? 0 : -ENOMEM;
	}
	sums_range_fini(&range);
	interval_sums_fini(&sums);
	return err;
}
