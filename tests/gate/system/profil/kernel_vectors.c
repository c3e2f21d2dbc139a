/* kernel_vectors.c - the rows of tests/vectors through bin.h inside the kernel */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <stdlib.h>

#include "tests/vectors/vectors.h"
#include "base/cleanup.h"
#include "tests/vectors/vectors.skel.h"

/* As in vectors.bpf.c. */
struct row {
	struct profil_xform x;
	__u64 pc;
	__u32 bin;
	__u32 zero;
};

static __u32 bin_in_kernel(const struct vectors_bpf *skel, const struct profil_xform *x, __u64 pc)
{
	struct row row = { .x = *x, .pc = pc };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &row, .ctx_size_in = sizeof(row));
	int err = bpf_prog_test_run_opts(bpf_program__fd(skel->progs.bin_of), &opts);

	cr_assert(!err && !opts.retval, "the kernel did not run the program: %d, returned %u", err,
		  opts.retval);
	return row.bin;
}

static void check_row(const struct vectors_bpf *skel, const struct vector *v)
{
	struct profil_xform x;
	enum vector_outcome outcome = vector_reduce(v, &x);
	__u32 bin = 0;

	if (outcome == VECTOR_COUNT) {
		bin = bin_in_kernel(skel, &x, v->pc);
		outcome = bin == PROFIL_NO_BIN ? VECTOR_NONE : VECTOR_COUNT;
	}
	cr_expect(vector_agrees(v, outcome, bin),
		  "row %d (%s): outcome %d bin %u, but should be outcome %d bin %llu", v->id,
		  v->dialect, outcome, bin, v->outcome, v->bin);
}

static void check_file(const char *path)
{
	struct vectors_bpf *skel = vectors_bpf__open_and_load();
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, path), bound = 0;

	cr_assert(skel, "the kernel did not take tests/vectors/vectors.bpf.c");
	for (size_t i = 0; i < n; i++) {
		if (!vector_binds(&v[i]))
			continue;
		bound++;
		check_row(skel, &v[i]);
	}
	cr_expect(bound, "%s holds no normative row", path);
	vectors_bpf__destroy(skel);
}

Test(kernel_vectors, golden_rows_are_exact)
{
	check_file(VECTORS_GOLDEN);
}

Test(kernel_vectors, own_rows_are_exact)
{
	check_file(VECTORS_OWN);
}
