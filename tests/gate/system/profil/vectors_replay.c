/* vectors_replay.c - the rows of tests/vectors through every dialect's public call */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/vectors/ways.h"
#include "base/cleanup.h"
#include "tests/lib/daemon.h"

static void check_row(const struct way *w, const struct vector *v)
{
	size_t bytes = v->bufsize + WAY_SPARE;
	void *buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(buf != MAP_FAILED);
	way_start(w, v, buf);
	way_check(w, v, buf);
	cr_assert(w->stop() == 0, "row %d by %s: stop: %s", v->id, w->name, strerror(errno));
	way_check(w, v, buf);
	munmap(buf, bytes);
}

/* Replays one tick at @pc and checks all rows of @v with that pc, by every call of their dialect.
 */
static size_t check_pc(const struct vector *v, size_t n, uint64_t pc)
{
	size_t checked = 0;
	struct daemon d;
	char tick[32];

	snprintf(tick, sizeof(tick), "%#llx\n", (unsigned long long)pc);
	daemon_start(&d, tick, NULL);
	for (size_t i = 0; i < n; i++) {
		for (size_t way = 0; way < nways; way++) {
			if (!way_has(&ways[way], &v[i]))
				continue;
			check_row(&ways[way], &v[i]);
			checked++;
		}
	}
	daemon_stop(&d);
	return checked;
}

static int by_pc(const void *a, const void *b)
{
	const struct vector *left = a, *right = b;

	if (left->pc != right->pc)
		return left->pc < right->pc ? -1 : 1;
	return left->id - right->id;
}

static void check_file(const char *path)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, path), bound = 0, checked = 0;

	for (size_t i = 0; i < n; i++)
		bound += (size_t)vector_binds(&v[i]);
	qsort(v, n, sizeof(*v), by_pc);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && v[end].pc == v[i].pc; end++)
			;
		checked += check_pc(&v[i], end - i, v[i].pc);
	}
	cr_assert(checked > bound, "%zu checks of %zu rows", checked, bound);
}

Test(replay_vectors, golden_rows_are_exact)
{
	check_file(VECTORS_GOLDEN);
}

Test(replay_vectors, own_rows_are_exact)
{
	check_file(VECTORS_OWN);
}
