/* request.c - a request, from its headers to the response */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "accept.h"
#include "answers/metrics.h"
#include "answers/statistics.h"
#include "base/cleanup.h"
#include "base/clocks.h"
#include "request.h"
#include "route.h"

/*
 * A request for a difference takes a snapshot, waits for the requested seconds, takes another one,
 * and waits for the answer from the two. The connection is suspended meanwhile. The request
 * outlives its connection while a waiter is pending.
 */
struct request {
	struct server *server;
	struct connection *connection; /* NULL: ended */
	struct route route;
	struct snapshot_waiter snapshot;
	struct result_waiter result;
	bool pending;	   /* a waiter is queued */
	size_t body_bytes; /* received so far */
	bool finished;	   /* the answer is complete, or NULL if out of memory */
	struct snapshot *from;
	uint64_t due_us; /* of the second snapshot, CLOCK_BOOTTIME; the request is in the server's
			    list until then */
	struct request *next_timed;
	struct answer *answer;
	struct answer *no_spool; /* if there is no profile now; NULL: a profile was asked for */
};

#define BODY_MAX (1u << 20)

static void request_free(struct request *r)
{
	snapshot_unref(r->from);
	answer_unref(r->answer);
	answer_unref(r->no_spool);
	free(r);
}

static void untime(const struct request *r)
{
	struct request **at = &r->server->timed;

	while (*at && *at != r)
		at = &(*at)->next_timed;
	if (*at)
		*at = r->next_timed;
}

/* Resumes the connection, so that MHD calls the handler again. Takes ownership of @a. */
static void finish(struct request *r, struct answer *a)
{
	struct connection *c = r->connection;

	r->answer = a;
	r->finished = true;
	untime(r);
	r->from = snapshot_unref(r->from);
	c->waiting = NULL;
	c->deadline_ns = now_ns() + RESPONSE_NS;
	MHD_resume_connection(c->mhd);
	sd_event_source_set_enabled(r->server->resumed, SD_EVENT_ONESHOT);
}

/* Says whether @r continues; if not, it can be freed already. */
static bool goes_on(struct request *r)
{
	r->pending = false;
	if (!r->connection)
		request_free(r);
	else if (r->connection->waiting == r)
		return true;
	return false;
}

#define container(p, type, member) ((type *)((char *)(p)-offsetof(type, member)))

static void want_snapshot(struct request *r)
{
	r->pending = true;
	snapshots_want(r->server->snapshots, &r->snapshot);
}

static void on_result(struct result_waiter *w, struct answer *a)
{
	struct request *r = container(w, struct request, result);

	if (!goes_on(r)) {
		answer_unref(a);
	} else if (a && a->empty) {
		r->no_spool = a;
		r->route.kind = ANSWER_NOW;
		want_snapshot(r);
	} else {
		finish(r, a);
	}
}

static void want_graph(struct request *r)
{
	r->pending = true;
	graphs_want(r->server->graphs, &r->route.graph, &r->result);
}

static void set_due(struct server *s, uint64_t due_us)
{
	s->due_us = due_us;
	sd_event_source_set_time(s->due, due_us);
	sd_event_source_set_enabled(s->due, due_us == UINT64_MAX ? SD_EVENT_OFF : SD_EVENT_ONESHOT);
}

/*
 * CLOCK_BOOTTIME continues during suspend, so the reader gets the answer soon after resume.
 * Requests that share their first snapshot are due at the same time.
 */
static void wait_for_second(struct request *r, struct snapshot *first)
{
	struct server *s = r->server;

	r->from = first;
	r->due_us = first->boot_ns / 1000 + r->route.seconds * 1000000ull;
	r->next_timed = s->timed;
	s->timed = r;
	if (r->due_us < s->due_us)
		set_due(s, r->due_us);
}

int request_on_due(sd_event_source *source, uint64_t usec, void *server)
{
	struct server *s = server;
	struct request *due = NULL, **at = &s->timed, *r;
	uint64_t now, next = UINT64_MAX;

	sd_event_now(s->event, CLOCK_BOOTTIME, &now);
	if (now < usec)
		now = usec;
	while ((r = *at)) {
		if (r->due_us > now) {
			next = r->due_us < next ? r->due_us : next;
			at = &r->next_timed;
			continue;
		}
		*at = r->next_timed;
		r->next_timed = due;
		due = r;
	}
	set_due(s, next);
	while ((r = due)) {
		due = r->next_timed;
		want_snapshot(r);
	}
	return 0;
}

static void encode(struct request *r, struct snapshot *to)
{
	if (r->from && r->from->source != to->source) {
		finish(r,
		       answer_text(503, "the machine's profile was restarted during the request"));
		return;
	}
	r->pending = true;
	results_want(r->server->results, r->route.kind, &r->route.graph, r->from, to, &r->result);
}

static bool is_metrics(const struct request *r)
{
	return r->route.kind == ANSWER_METRICS || r->route.kind == ANSWER_OPENMETRICS;
}

static void on_snapshot(struct snapshot_waiter *w, struct snapshot *s, const char *why)
{
	struct request *r = container(w, struct request, snapshot);

	if (!goes_on(r)) {
		snapshot_unref(s);
	} else if (!s) {
		finish(r, is_metrics(r) ? metrics_down(r->route.kind == ANSWER_OPENMETRICS)
			  : r->no_spool ? steal(r->no_spool)
					: answer_text(503, why));
	} else if (answer_needs_stacks(r->route.kind) && !s->node) {
		snapshot_unref(s);
		finish(r, answer_text(404, "the machine's profile has no stacks (turn them on with "
					   "'profilctl machine on -g')"));
	} else if (r->route.seconds && !r->from) {
		wait_for_second(r, s);
	} else {
		encode(r, s);
		snapshot_unref(s);
	}
}

void request_expire(struct request *r)
{
	finish(r, answer_text(503, "the answer takes too long: try again later"));
}

void request_cancel(struct request *r)
{
	finish(r, NULL);
}

/* Suspends the connection until the daemon and the encoder have answered. */
static void suspend(struct request *r)
{
	struct connection *c = r->connection;

	MHD_suspend_connection(c->mhd);
	c->waiting = r;
	c->deadline_ns = now_ns() + ANSWER_NS + r->route.seconds * 1000000000ull;
	r->snapshot.ready = on_snapshot;
	r->result.ready = on_result;
	if (r->route.kind == ANSWER_GRAPH)
		want_graph(r);
	else
		want_snapshot(r);
}

static void forget(void *answer)
{
	answer_unref(answer);
}

static void header(struct MHD_Response *response, const char *name, const char *value)
{
	MHD_add_response_header(response, name, value);
}

static void add_headers(struct MHD_Response *response, const struct answer *a)
{
	char text[128];

	header(response, "Content-Type", a->type);
	header(response, "Connection", "close");
	/* What is constant may be kept, and is asked for by its tag. */
	header(response, "Cache-Control", *a->etag ? "no-cache" : "no-store");
	if (*a->etag)
		header(response, "ETag", a->etag);
	if (a->coding)
		header(response, "Content-Encoding", a->coding);
	header(response, "X-Content-Type-Options", "nosniff");
	header(response, "Referrer-Policy", "no-referrer");
	header(response, "Content-Security-Policy",
	       "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; "
	       "base-uri 'none'; form-action 'none'; frame-ancestors 'none'");
	if (a->name) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", a->name);
		header(response, "Content-Disposition", text);
	}
	if (a->to) {
		snprintf(text, sizeof(text), "%llu-%llu", a->from, a->to);
		header(response, "Profil-Snapshots", text);
	}
	header(response, "Vary", "Accept, Accept-Encoding");
	if (a->status == 405)
		header(response, "Allow", a->allow ? a->allow : "GET, HEAD");
	if (a->status == 503)
		header(response, "Retry-After", "5");
}

/* Sends the headers of @a, and its body if @status is its own. */
static enum MHD_Result send_answer(struct MHD_Connection *mhd, struct answer *a,
				   unsigned int status)
{
	size_t n = status == a->status ? a->n : 0;
	struct MHD_Response *response;
	enum MHD_Result result;

	statistics_response(status);
	response = MHD_create_response_from_buffer_with_free_callback_cls(n, a->bytes, forget, a);
	if (!response)
		return MHD_NO;
	answer_ref(a);
	add_headers(response, a);
	result = MHD_queue_response(mhd, status, response);
	MHD_destroy_response(response);
	return result;
}

static const char *header_of(struct MHD_Connection *mhd, const char *name)
{
	return MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, name);
}

/* Sends @a, which stays the caller's, as the reader takes it; NULL: out of memory. */
static enum MHD_Result respond(struct MHD_Connection *mhd, struct answer *a)
{
	enum encoding encoding = accept_encoding(header_of(mhd, "Accept-Encoding"));
	unsigned int status;

	if (!a)
		return MHD_NO;
	if (a->status != 200)
		return send_answer(mhd, a, a->status);
	if (encoding == ENCODING_GZIP)
		a = answer_gzip(a);
	status = conditional_status(*a->etag ? a->etag : NULL, header_of(mhd, "If-Match"),
				    header_of(mhd, "If-None-Match"));
	if (encoding == ENCODING_NONE)
		status = 406;
	return send_answer(mhd, a, status);
}

/* Answers without suspending the connection. */
static enum MHD_Result respond_now(struct request *r, struct answer *a)
{
	enum MHD_Result result = respond(r->connection->mhd, a);

	r->connection->deadline_ns = now_ns() + RESPONSE_NS;
	answer_unref(a);
	return result;
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	return MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

/* An immediate answer is sent before an unexpected body, and after an expected one. */
static bool has_body(struct MHD_Connection *mhd)
{
	const char *length = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding");
}

/* Allow names what the page takes. */
static struct answer *not_allowed(bool may_post)
{
	struct answer *a = answer_text(405, may_post ? "only GET, HEAD and POST are supported"
						     : "only GET and HEAD are supported");

	if (a && may_post)
		a->allow = "GET, HEAD, POST";
	return a;
}

/* Authorization comes first: a client without it learns nothing about which pages exist. */
static struct answer *refusal(const struct connection *c, const char *url, const char *method)
{
	bool may_post = route_takes_body(url);

	if (!c->reader.may_read)
		return answer_text(403, "permission denied (connect as root, or as a member of "
					"group profil)");
	if (c->listener->is_loopback &&
	    !route_is_local_host(MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, "Host")))
		return answer_text(403, "the Host header does not name the loopback interface");
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0 &&
	    !(may_post && !strcmp(method, "POST")))
		return not_allowed(may_post);
	return has_body(c->mhd) && !may_post ? answer_text(413, "a request must not have a body")
					     : NULL;
}

static enum MHD_Result begin(struct server *s, struct connection *c, const char *url,
			     const char *method, void **state)
{
	struct request *r = calloc(1, sizeof(*r));
	struct answer *a;

	if (!r)
		return MHD_NO;
	r->server = s;
	r->connection = c;
	*state = r;
	a = refusal(c, url, method);
	if (!a)
		a = route_parse(&r->route, c->mhd, url, s->options->max_seconds);
	if (a && (a->status != 200 || !has_body(c->mhd)))
		return respond_now(r, a);
	r->answer = a;
	r->finished = a != NULL;
	return MHD_YES;
}

enum MHD_Result request_handle(void *cls, struct MHD_Connection *mhd, const char *url,
			       const char *method, const char *version, const char *data,
			       size_t *bytes, void **state)
{
	struct request *r = *state;

	if (!r)
		return begin(cls, connection_of(mhd), url, method, state);
	if (*bytes) { /* part of a body, which is ignored */
		r->body_bytes += *bytes;
		*bytes = 0;
		return r->body_bytes > BODY_MAX ? MHD_NO : MHD_YES;
	}
	if (r->finished)
		return respond(mhd, r->answer);
	suspend(r);
	return MHD_YES;
}

void request_ended(void *cls, struct MHD_Connection *mhd, void **state,
		   enum MHD_RequestTerminationCode how)
{
	struct request *r = *state;

	if (!r)
		return;
	*state = NULL;
	if (r->connection->waiting == r)
		r->connection->waiting = NULL;
	r->connection = NULL;
	if (!r->pending)
		request_free(r);
}
