/* vectors.c - the rows of tests/vectors end to end: call, sample in the kernel, buffer */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "synthetic.h"
#include "tests/vectors/ways.h"

SYNTHETIC_SUITE(synth_vectors, false);

static void check_row(const struct way *w, const struct vector *v)
{
	size_t bytes = v->bufsize + WAY_SPARE;
	void *buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	cr_assert(buf != MAP_FAILED);
	way_start(w, v, buf);
	if (v->outcome == VECTOR_COUNT || v->outcome == VECTOR_NONE)
		synthetic_hit(&s, getpid(), v->pc, 1);
	cr_assert(w->stop() == 0, "row %d by %s: stop: %s", v->id, w->name, strerror(errno));
	way_check(w, v, buf);
	munmap(buf, bytes);
}

static void check_file(const char *path)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, path), bound = 0, checked = 0;

	for (size_t i = 0; i < n; i++) {
		bound += (size_t)vector_binds(&v[i]);
		for (size_t way = 0; way < nways; way++) {
			if (!way_has(&ways[way], &v[i]))
				continue;
			check_row(&ways[way], &v[i]);
			checked++;
		}
	}
	cr_assert(checked > bound, "%zu checks of %zu rows", checked, bound);
}

Test(synth_vectors, golden_rows_are_exact)
{
	check_file(VECTORS_GOLDEN);
}

Test(synth_vectors, own_rows_are_exact)
{
	check_file(VECTORS_OWN);
}
