/* metrics.c - labels are escaped as OpenMetrics has it, and name containers */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "profil-http/answers/metrics.h"

/* systemd's own unit names have backslashes: dev-disk-by\x2duuid.device. */
Test(http_metrics, escapes_backslashes_quotation_marks_and_line_breaks)
{
	static const struct host_identity host = { .name = "a\\x2d\"b\"\n<&'\xff" };
	static struct snapshot to;
	struct difference d = { .to = &to };
	struct metrics m = { 0 };
	struct profile p = { 0 };
	struct cost cost = { 0 };
	struct answer *a = NULL;

	cr_assert_eq(metrics_answer(&a, &m, &p, &d, &host, &cost, true), 0);
	cr_assert_not_null(strstr(a->bytes, "=\"a\\\\x2d\\\"b\\\"\\n<&'\xef\xbf\xbd\""), "%.2000s",
			   a->bytes);
	answer_unref(a);
	metrics_fini(&m);
}

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define POD "6b2f34d1-3c9f-4c8a-9d2e-1f0a5b7c8d9e"

/* Samples of a group of cgroup @path. */
static void run(struct profile *p, struct difference *d, const char *path, __u64 samples)
{
	struct group g = { .command = strdup("x"), .cgroup = strdup(path) };
	struct place place = { .count = samples };

	cr_assert_eq(profile_add_group(p, &g, &place.group), 0);
	cr_assert_eq(places_add(&d->sums, &place), 0);
	d->outcomes.placed += samples;
}

static bool has(const struct answer *a, const char *line)
{
	bool found = strstr(a->bytes, line);

	if (!found)
		fprintf(stderr, "%s is not in %s\n", line, a->bytes);
	return found;
}

Test(http_metrics, name_containers_and_pods)
{
	static const struct host_identity host = { .name = "host" };
	static struct snapshot to = { .head.period_ns = 10000000 };
	struct difference d = { .to = &to };
	struct metrics m = { 0 };
	struct profile *p = profile_new();
	struct cost cost = { 0 };
	struct answer *a = NULL;
	__u32 object;

	cr_assert_eq(profile_add_object(p, "/bin/x", 0, 0, -1, &object), 0);
	run(p, &d, "/system.slice/ssh.service", 100);
	run(p, &d, "/kubepods.slice/pod" POD "/" ID, 200);
	run(p, &d, "/kubepods.slice/pod" POD "/" ID "/nested", 400);
	run(p, &d, "/system.slice/docker-" ID ".scope", 800);
	cr_assert_eq(metrics_answer(&a, &m, p, &d, &host, &cost, false), 0);
#define TOTAL "profil_container_cpu_seconds_total{container=\""
	cr_expect(has(a, TOTAL ID "\",pod=\"" POD "\"} 6.000000000\n"));
	cr_expect(has(a, TOTAL ID "\",pod=\"\"} 8.000000000\n"));
	cr_expect(has(a, TOTAL "(none)\",pod=\"\"} 1.000000000\n"));
	cr_expect(has(a, TOTAL "(other)\",pod=\"\"} 0.000000000\n"));
	cr_expect(has(a, "profil_series_used{label=\"container\"} 3\n"));
	cr_expect(has(a, "profil_series_room 100\n"));
	answer_unref(a);
	metrics_fini(&m);
	places_fini(&d.sums);
	profile_free(p);
}
