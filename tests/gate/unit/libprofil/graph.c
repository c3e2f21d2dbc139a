/* graph.c - the shared memory of a -pg program, and its counts of calls */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/gmon_file.h"
#include "libprofil/gprof/mcount.h"

#define LOW 0x400000u
#define CALLERS 1000u
#define ROUNDS 100u

static struct profil_graph *graph_of(__u32 arcs_max)
{
	struct profil_graph shape, *g;

	cr_assert_eq(graph_shape(&shape, LOW, LOW + 0x1000), 0);
	shape.arcs_max = arcs_max;
	g = calloc(1, graph_bytes(&shape));
	cr_assert_not_null(g);
	*g = shape;
	return g;
}

static __u64 calls_in(struct profil_graph *g)
{
	__u64 sum = 0;

	for (__u32 i = 0; i < g->arcs; i++)
		sum += graph_arcs(g)[i].calls;
	return sum;
}

Test(graph, has_a_bin_for_every_byte_of_the_text)
{
	struct profil_graph g;

	cr_assert_eq(graph_shape(&g, LOW + 3, LOW + 0x1001), 0);
	cr_assert_eq(g.low, LOW);
	cr_assert_geq(g.low + g.text_bytes, LOW + 0x1001);
	cr_assert_eq(g.text_bytes, (__u64)g.bins * PROFIL_GRAPH_BIN);
}

Test(graph, rejects_empty_text_range)
{
	struct profil_graph g;

	cr_assert_neq(graph_shape(&g, LOW, LOW), 0);
	cr_assert_neq(graph_shape(&g, LOW, LOW - 4), 0);
	cr_assert_neq(graph_shape(&g, 0, ~0ull), 0);
}

Test(graph, ignores_calls_from_or_to_other_text)
{
	struct profil_graph *g = graph_of(8);

	mcount_set(g);
	mcount_call(LOW - 1, LOW);
	mcount_call(LOW, LOW - 1);
	mcount_call(LOW + 0x1000, LOW);
	mcount_call(LOW, LOW + 0x1000);
	cr_assert_eq(g->arcs, 0);
	mcount_call(LOW, LOW + 0xfff);
	cr_assert_eq(calls_in(g), 1);
	free(g);
}

Test(graph, counts_calls_without_a_free_arc)
{
	struct profil_graph *g = graph_of(2);

	mcount_set(g);
	for (__u32 i = 0; i < 5; i++)
		mcount_call(LOW + i, LOW);
	mcount_call(LOW, LOW);
	cr_assert_eq(g->arcs, 2);
	cr_assert_eq(calls_in(g), 3);
	cr_assert_eq(g->uncounted, 3);
	free(g);
}

/* All threads add the same arcs at the same time. */
static void *call(void *arg)
{
	for (__u32 n = 0; n < ROUNDS; n++) {
		for (__u32 i = 0; i < CALLERS; i++)
			mcount_call(LOW + i, LOW + i / 2);
	}
	return arg;
}

Test(graph, loses_no_call_of_any_thread)
{
	struct profil_graph *g = graph_of(4096);
	pthread_t thread[4];

	mcount_set(g);
	for (unsigned int i = 0; i < 4; i++)
		cr_assert_eq(pthread_create(&thread[i], NULL, call, NULL), 0);
	for (unsigned int i = 0; i < 4; i++)
		pthread_join(thread[i], NULL);
	cr_assert_eq(calls_in(g), 4 * ROUNDS * CALLERS);
	cr_assert_eq(g->uncounted, 0);
	free(g);
}

Test(graph, is_not_written_without_end)
{
	struct profil_graph *g = graph_of(8);
	int fd = open("/dev/null", O_WRONLY);

	g->arcs = 1;
	graph_arcs(g)->calls = UINT64_MAX;
	cr_assert_eq(graph_write(fd, g), -EFBIG);
	close(fd);
	free(g);
}
