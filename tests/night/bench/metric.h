/* metric.h - clocks and figures of the programs that are measured */
#ifndef PROFIL_TESTS_BENCH_METRIC_H
#define PROFIL_TESTS_BENCH_METRIC_H

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static inline void die(const char *what)
{
	fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, strerror(errno));
	exit(1);
}

static inline void metric(const char *name, double value)
{
	printf("%s %.9g\n", name, value);
}

static inline uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static inline void stay_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static inline int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

/* Prints the median and the 99th percentile of @ns, which it sorts. */
static inline void tell_times(const char *name, uint32_t *ns, size_t n)
{
	char metric_name[32];

	qsort(ns, n, sizeof(*ns), compare);
	snprintf(metric_name, sizeof(metric_name), "%s_p50_us", name);
	metric(metric_name, ns[n / 2] / 1e3);
	snprintf(metric_name, sizeof(metric_name), "%s_p99_us", name);
	metric(metric_name, ns[n * 99 / 100] / 1e3);
}

#endif
