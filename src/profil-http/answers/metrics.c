/* metrics.c - metrics in the formats of OpenMetrics and of Prometheus */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amounts.h"
#include "base/cleanup.h"
#include "metrics.h"
#include "base/utf8.h"
#include "statistics.h"

struct statistics statistics;

#define OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define PROMETHEUS "text/plain; version=0.0.4; charset=utf-8"

/* An answer in one of the two formats. */
struct text {
	FILE *f;
	bool open; /* OpenMetrics; else Prometheus's own, which has neither info nor units */
};

/*
 * Writes the head of a metric family; @unit NULL: none. Prometheus's format names a family like its
 * samples, which have a suffix.
 */
static void family(const struct text *t, const char *name, const char *type, const char *unit,
		   const char *help)
{
	bool info = !strcmp(type, "info");
	const char *suffix = t->open			? ""
			     : info			? "_info"
			     : !strcmp(type, "counter") ? "_total"
							: "";

	if (!t->open)
		fprintf(t->f, "# HELP %s%s %s\n", name, suffix, help);
	fprintf(t->f, "# TYPE %s%s %s\n", name, suffix, info && !t->open ? "gauge" : type);
	if (unit && t->open)
		fprintf(t->f, "# UNIT %s %s\n", name, unit);
	if (t->open)
		fprintf(t->f, "# HELP %s %s\n", name, help);
}

/* Writes a label's value, in quotes. */
static void quoted(FILE *f, const char *s)
{
	fputc('"', f);
	while (*s) {
		size_t n = utf8_bytes(s);

		if (!n)
			fputs("\xef\xbf\xbd", f);
		else if (*s == '\n')
			fputs("\\n", f);
		else if (*s == '"' || *s == '\\')
			fprintf(f, "\\%c", *s);
		else
			fwrite(s, 1, n, f);
		s += n ? n : 1;
	}
	fputc('"', f);
}

static void number(FILE *f, const char *name, __u64 value)
{
	fprintf(f, "%s %llu\n", name, value);
}

static void gauge(const struct text *t, const char *name, const char *help, __u64 value)
{
	family(t, name, "gauge", NULL, help);
	number(t->f, name, value);
}

/* Writes nanoseconds as seconds, exactly. */
static void seconds(FILE *f, __u64 ns)
{
	fprintf(f, " %llu.%09llu\n", ns / 1000000000u, ns % 1000000000u);
}

static void cpu_seconds(const struct text *t, const char *name, const char *help, __u64 ns)
{
	family(t, name, "counter", "seconds", help);
	fprintf(t->f, "%s_total", name);
	seconds(t->f, ns);
}

static void up(const struct text *t, bool is_up)
{
	gauge(t, "profil_up", "Whether the profile of the machine is on.", is_up);
}

static void write_info(const struct text *t, const struct host_identity *h)
{
	family(t, "profil", "info", NULL, "The machine that is profiled.");
	fputs("profil_info{version=\"" PROFIL_VERSION "\",host=", t->f);
	quoted(t->f, h->name);
	fputs(",kernel=", t->f);
	quoted(t->f, h->kernel);
	fputs(",arch=", t->f);
	quoted(t->f, h->architecture);
	fputs(",boot_id=", t->f);
	quoted(t->f, h->boot_id);
	fputs("} 1\n", t->f);
}

static void write_samples(const struct text *t, const struct difference *d)
{
	const struct profil_table *head = &d->to->head;

	family(t, "profil_samples", "counter", NULL,
	       "Samples of running CPUs: placed in a file or the kernel, unmatched (in no mapping) "
	       "or lost.");
	fprintf(t->f, "profil_samples_total{outcome=\"placed\"} %llu\n", d->outcomes.placed);
	fprintf(t->f, "profil_samples_total{outcome=\"unmatched\"} %llu\n", d->outcomes.unmatched);
	fprintf(t->f, "profil_samples_total{outcome=\"lost\"} %llu\n", d->outcomes.lost);
	family(t, "profil_sample_period_seconds", "gauge", "seconds", "CPU time of a sample.");
	fputs("profil_sample_period_seconds", t->f);
	seconds(t->f, head->period_ns);
	family(t, "profil_started_seconds", "gauge", "seconds",
	       "When the profile began, since the epoch.");
	fputs("profil_started_seconds", t->f);
	seconds(t->f, head->started_real_ns);
	cpu_seconds(t, "profil_unseen_cpu_seconds",
		    "CPU time of threads that ended before their first sample.", head->unseen_ns);
}

static void write_room(const struct text *t, const struct profil_table *head)
{
	gauge(t, "profil_places_used", "Places in use in the kernel's table.", head->used_places);
	gauge(t, "profil_places_room",
	      "Places that the table has; look-ups begin to fail when half are in use.",
	      (__u64)head->lines * PROFIL_LINE_PLACES);
	gauge(t, "profil_images_used", "Files in use in the table.", head->used_images);
	gauge(t, "profil_images_room", "Files for which the table has room.", head->images);
	gauge(t, "profil_groups_used", "Commands in cgroups in use in the table.",
	      head->used_groups);
	gauge(t, "profil_groups_room", "Commands in cgroups for which the table has room.",
	      head->groups);
}

static void write_cost(const struct text *t, const struct cost *daemon)
{
	static const char *const classes[] = { NULL, "1xx", "2xx", "3xx", "4xx", "5xx" };
	struct cost self;

	if (daemon->cpu_ns)
		cpu_seconds(t, "profil_daemon_cpu_seconds", "CPU time of profild.", daemon->cpu_ns);
	if (daemon->resident_bytes)
		gauge(t, "profil_daemon_resident_bytes", "Memory of profild.",
		      daemon->resident_bytes);
	cost_of_self(&self);
	cpu_seconds(t, "profil_http_cpu_seconds", "CPU time of profil-http.", self.cpu_ns);
	gauge(t, "profil_http_resident_bytes",
	      "Memory of profil-http, with the table that it shares with the kernel.",
	      self.resident_bytes);
	family(t, "profil_http_responses", "counter", NULL, "Responses, by class of their status.");
	for (size_t i = 2; i < sizeof(classes) / sizeof(*classes); i++)
		fprintf(t->f, "profil_http_responses_total{class=\"%s\"} %llu\n", classes[i],
			__atomic_load_n(&statistics.response[i], __ATOMIC_RELAXED));
	gauge(t, "profil_http_connections", "Connections of readers, this one too.",
	      __atomic_load_n(&statistics.connections, __ATOMIC_RELAXED));
	family(t, "profil_http_refused_connections", "counter", NULL,
	       "Connections beyond what a user may have.");
	number(t->f, "profil_http_refused_connections_total",
	       __atomic_load_n(&statistics.refused, __ATOMIC_RELAXED));
}

/* Writes the labels of a series, before its value. */
typedef void labels_fn(FILE *f, const char *name);

static void unit_labels(FILE *f, const char *name)
{
	fputs("{unit=", f);
	quoted(f, name);
	fputc('}', f);
}

static void image_labels(FILE *f, const char *name)
{
	fputs("{image=", f);
	quoted(f, name);
	fputc('}', f);
}

static void container_labels(FILE *f, const char *name)
{
	const char *pod = strrchr(name, CONTAINER_POD);
	char id[128];

	snprintf(id, sizeof(id), "%.*s", pod ? (int)(pod - name) : (int)sizeof(id) - 1, name);
	fputs("{container=", f);
	quoted(f, id);
	fputs(",pod=", f);
	quoted(f, pod ? pod + 1 : "");
	fputc('}', f);
}

static void write_series(const struct text *t, const char *name, labels_fn *labels,
			 const char *help, const struct series *s, __u64 period_ns)
{
	family(t, name, "counter", "seconds", help);
	for (size_t i = 0; i < s->n; i++) {
		fprintf(t->f, "%s_total", name);
		labels(t->f, s->one[i].name);
		seconds(t->f, s->one[i].samples * period_ns);
	}
	fprintf(t->f, "%s_total", name);
	labels(t->f, "(other)");
	seconds(t->f, s->other * period_ns);
}

/* Where the names of a family have no room, it has series (other) only for new ones. */
static void write_all_series(const struct text *t, const struct metrics *m, __u64 period_ns)
{
	write_series(t, "profil_unit_cpu_seconds", unit_labels,
		     "CPU time by systemd unit; (none): in no unit, (other): without a series.",
		     &m->units, period_ns);
	write_series(t, "profil_container_cpu_seconds", container_labels,
		     "CPU time by container and pod; (none): in no container, (other): without a "
		     "series.",
		     &m->containers, period_ns);
	write_series(t, "profil_image_cpu_seconds", image_labels,
		     "CPU time by executed file; (other): without a series.", &m->images,
		     period_ns);
	family(t, "profil_series_used", "gauge", NULL, "Names that have a series, by label.");
	fprintf(t->f, "profil_series_used{label=\"unit\"} %zu\n", m->units.n);
	fprintf(t->f, "profil_series_used{label=\"container\"} %zu\n", m->containers.n);
	fprintf(t->f, "profil_series_used{label=\"image\"} %zu\n", m->images.n);
	gauge(t, "profil_series_room", "Names of a label that can have a series.", SERIES_MAX);
}

static int series_take(struct series *s, struct amount *a, size_t n, const struct difference *d)
{
	__u64 period_ns = d->to->head.period_ns;
	__u64 enough = period_ns ? 1000000000u / period_ns + 1 : 1; /* a second */

	return a ? series_update(s, a, n, d->outcomes.placed, s->begun ? enough : 1) : -ENOMEM;
}

static int update(struct metrics *m, const struct profile *p, const struct difference *d)
{
	size_t nunits, nimages, ncontainers;
	__cleanup(freep) struct amount *units = amounts_by_unit(p, d, &nunits);
	__cleanup(freep) struct amount *images = amounts_by_image(p, d, &nimages);
	__cleanup(freep) struct amount *containers = amounts_by_container(p, d, &ncontainers);

	if (m->started_ns != d->to->head.started_ns)
		metrics_fini(m);
	m->started_ns = d->to->head.started_ns;
	return series_take(&m->units, units, nunits, d) ?:
		       series_take(&m->images, images, nimages, d) ?:
		       series_take(&m->containers, containers, ncontainers, d);
}

/* Begins an answer in *@bytes. */
static int text_open(struct text *t, bool open, char **bytes, size_t *n)
{
	*t = (struct text){ .f = open_memstream(bytes, n), .open = open };
	return t->f ? 0 : -ENOMEM;
}

/* Ends the answer and closes the stream. */
static int text_close(struct answer **out, const struct text *t, char **bytes, const size_t *n)
{
	bool failed;

	if (t->open)
		fputs("# EOF\n", t->f);
	failed = ferror(t->f);
	if (fclose(t->f) != 0 || failed) {
		free(*bytes);
		return -ENOMEM;
	}
	*out = answer_new(200, t->open ? OPENMETRICS : PROMETHEUS, *bytes, *n);
	return *out ? 0 : -ENOMEM;
}

int metrics_answer(struct answer **out, struct metrics *m, const struct profile *p,
		   const struct difference *d, const struct host_identity *host,
		   const struct cost *daemon, bool openmetrics)
{
	const struct profil_table *head = &d->to->head;
	char *bytes = NULL;
	size_t n = 0;
	struct text text, *t = &text;
	int err = update(m, p, d) ?: text_open(t, openmetrics, &bytes, &n);

	if (err)
		return -ENOMEM;
	up(t, true);
	write_info(t, host);
	write_samples(t, d);
	write_room(t, head);
	write_all_series(t, m, head->period_ns);
	write_cost(t, daemon);
	return text_close(out, t, &bytes, &n);
}

struct answer *metrics_down(bool openmetrics)
{
	struct answer *a = NULL;
	char *bytes = NULL;
	size_t n = 0;
	struct text t;

	if (text_open(&t, openmetrics, &bytes, &n) < 0)
		return NULL;
	up(&t, false);
	return text_close(&a, &t, &bytes, &n) < 0 ? NULL : a;
}

void metrics_fini(struct metrics *m)
{
	series_fini(&m->units);
	series_fini(&m->containers);
	series_fini(&m->images);
	*m = (struct metrics){ 0 };
}
