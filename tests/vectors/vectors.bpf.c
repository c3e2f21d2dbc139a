/* vectors.bpf.c - bin.h as the kernel runs it: one row a call */
#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#include "core/bin.h"

struct row {
	struct profil_xform x;
	__u64 pc;
	__u32 bin;
	__u32 zero;
};

SEC("syscall")
int bin_of(struct row *row)
{
	struct profil_xform x = row->x;

	row->bin = profil_bin(&x, row->pc);
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
