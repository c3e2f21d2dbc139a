/* metrics.c - metrics in the OpenMetrics text format */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "amounts.h"
#include "base/cleanup.h"
#include "metrics.h"
#include "base/utf8.h"
#include "statistics.h"

#define TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Writes the head of a metric family; @unit NULL: none. */
static void family(FILE *f, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(f, "# TYPE %s %s\n", name, type);
	if (unit)
		fprintf(f, "# UNIT %s %s\n", name, unit);
	fprintf(f, "# HELP %s %s\n", name, help);
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

static void gauge(FILE *f, const char *name, const char *help, __u64 value)
{
	family(f, name, "gauge", NULL, help);
	number(f, name, value);
}

/* Writes nanoseconds as seconds, exactly. */
static void seconds(FILE *f, __u64 ns)
{
	fprintf(f, " %llu.%09llu\n", ns / 1000000000u, ns % 1000000000u);
}

static void cpu_seconds(FILE *f, const char *name, const char *help, __u64 ns)
{
	family(f, name, "counter", "seconds", help);
	fprintf(f, "%s_total", name);
	seconds(f, ns);
}

static void up(FILE *f, bool is_up)
{
	gauge(f, "profil_up", "Whether the profile of the machine is on.", is_up);
}

static void write_info(FILE *f, const struct host_identity *h)
{
	family(f, "profil", "info", NULL, "The machine that is profiled.");
	fputs("profil_info{version=\"" PROFIL_VERSION "\",host=", f);
	quoted(f, h->name);
	fputs(",kernel=", f);
	quoted(f, h->kernel);
	fputs(",arch=", f);
	quoted(f, h->architecture);
	fputs(",boot_id=", f);
	quoted(f, h->boot_id);
	fputs("} 1\n", f);
}

static void write_samples(FILE *f, const struct difference *d)
{
	const struct profil_table *head = &d->to->head;

	family(f, "profil_samples", "counter", NULL,
	       "Samples of running CPUs: placed in a file or the kernel, unmatched (in no mapping) "
	       "or lost.");
	fprintf(f, "profil_samples_total{outcome=\"placed\"} %llu\n", d->outcomes.placed);
	fprintf(f, "profil_samples_total{outcome=\"unmatched\"} %llu\n", d->outcomes.unmatched);
	fprintf(f, "profil_samples_total{outcome=\"lost\"} %llu\n", d->outcomes.lost);
	family(f, "profil_sample_period_seconds", "gauge", "seconds", "CPU time of a sample.");
	fputs("profil_sample_period_seconds", f);
	seconds(f, head->period_ns);
	family(f, "profil_started_seconds", "gauge", "seconds",
	       "When the profile began, since the epoch.");
	fputs("profil_started_seconds", f);
	seconds(f, head->started_real_ns);
	cpu_seconds(f, "profil_unseen_cpu_seconds",
		    "CPU time of threads that ended before their first sample.", head->unseen_ns);
}

static void write_room(FILE *f, const struct profil_table *head)
{
	gauge(f, "profil_places_used", "Places in use in the kernel's table.", head->used_places);
	gauge(f, "profil_places_room",
	      "Places that the table has; look-ups begin to fail when half are in use.",
	      (__u64)head->lines * PROFIL_LINE_PLACES);
	gauge(f, "profil_images_used", "Files in use in the table.", head->used_images);
	gauge(f, "profil_images_room", "Files for which the table has room.", head->images);
	gauge(f, "profil_groups_used", "Commands in cgroups in use in the table.",
	      head->used_groups);
	gauge(f, "profil_groups_room", "Commands in cgroups for which the table has room.",
	      head->groups);
}

static void write_cost(FILE *f, const struct cost *daemon)
{
	static const char *const classes[] = { NULL, "1xx", "2xx", "3xx", "4xx", "5xx" };
	struct cost self;

	if (daemon->cpu_ns)
		cpu_seconds(f, "profil_daemon_cpu_seconds", "CPU time of profild.", daemon->cpu_ns);
	if (daemon->resident_bytes)
		gauge(f, "profil_daemon_resident_bytes", "Memory of profild.",
		      daemon->resident_bytes);
	cost_of_self(&self);
	cpu_seconds(f, "profil_http_cpu_seconds", "CPU time of profil-http.", self.cpu_ns);
	gauge(f, "profil_http_resident_bytes",
	      "Memory of profil-http, with the table that it shares with the kernel.",
	      self.resident_bytes);
	family(f, "profil_http_responses", "counter", NULL, "Responses, by class of their status.");
	for (size_t i = 2; i < sizeof(classes) / sizeof(*classes); i++)
		fprintf(f, "profil_http_responses_total{class=\"%s\"} %llu\n", classes[i],
			__atomic_load_n(&statistics.response[i], __ATOMIC_RELAXED));
	gauge(f, "profil_http_connections", "Connections of readers, this one too.",
	      __atomic_load_n(&statistics.connections, __ATOMIC_RELAXED));
	family(f, "profil_http_refused_connections", "counter", NULL,
	       "Connections beyond what a user may have.");
	number(f, "profil_http_refused_connections_total",
	       __atomic_load_n(&statistics.refused, __ATOMIC_RELAXED));
}

static void write_series(FILE *f, const char *name, const char *key, const char *help,
			 const struct series *s, __u64 period_ns)
{
	family(f, name, "counter", "seconds", help);
	for (size_t i = 0; i < s->n; i++) {
		fprintf(f, "%s_total{%s=", name, key);
		quoted(f, s->one[i].name);
		fputc('}', f);
		seconds(f, s->one[i].samples * period_ns);
	}
	fprintf(f, "%s_total{%s=\"(other)\"}", name, key);
	seconds(f, s->other * period_ns);
}

static int update(struct metrics *m, const struct profile *p, const struct difference *d)
{
	const struct profil_table *head = &d->to->head;
	__u64 enough = head->period_ns ? 1000000000u / head->period_ns + 1 : 1; /* a second */
	__cleanup(freep) struct amount *units = NULL;
	__cleanup(freep) struct amount *images = NULL;
	size_t nunits, nimages;
	int err;

	if (m->started_ns != head->started_ns)
		metrics_fini(m);
	m->started_ns = head->started_ns;
	units = amounts_by_unit(p, d, &nunits);
	images = amounts_by_image(p, d, &nimages);
	if (!units || !images)
		return -ENOMEM;
	err = series_update(&m->units, units, nunits, d->outcomes.placed,
			    m->units.begun ? enough : 1);
	if (!err)
		err = series_update(&m->images, images, nimages, d->outcomes.placed,
				    m->images.begun ? enough : 1);
	return err;
}

/* Ends the answer and closes @f. */
static int close_answer(struct answer **out, FILE *f, char **bytes, const size_t *n)
{
	bool failed;

	fputs("# EOF\n", f);
	failed = ferror(f);
	if (fclose(f) != 0 || failed) {
		free(*bytes);
		return -ENOMEM;
	}
	*out = answer_new(200, TYPE, *bytes, *n);
	return *out ? 0 : -ENOMEM;
}

int metrics_answer(struct answer **out, struct metrics *m, const struct profile *p,
		   const struct difference *d, const struct host_identity *host,
		   const struct cost *daemon)
{
	const struct profil_table *head = &d->to->head;
	char *bytes = NULL;
	size_t n = 0;
	FILE *f;
	int err = update(m, p, d);

	f = err ? NULL : open_memstream(&bytes, &n);
	if (!f)
		return -ENOMEM;
	up(f, true);
	write_info(f, host);
	write_samples(f, d);
	write_room(f, head);
	write_series(f, "profil_unit_cpu_seconds", "unit",
		     "CPU time by systemd unit; (none): in no unit, (other): without a series.",
		     &m->units, head->period_ns);
	write_series(f, "profil_image_cpu_seconds", "image",
		     "CPU time by executed file; (other): without a series.", &m->images,
		     head->period_ns);
	write_cost(f, daemon);
	return close_answer(out, f, &bytes, &n);
}

struct answer *metrics_down(void)
{
	struct answer *a = NULL;
	char *bytes = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&bytes, &n);

	if (!f)
		return NULL;
	up(f, false);
	return close_answer(&a, f, &bytes, &n) < 0 ? NULL : a;
}

void metrics_fini(struct metrics *m)
{
	series_fini(&m->units);
	series_fini(&m->images);
	*m = (struct metrics){ 0 };
}
