/* jit_feeder.h - feeds the unwind rules of a process's own code, as its jitdump grows */
#ifndef PROFIL_TABLE_JIT_FEEDER_H
#define PROFIL_TABLE_JIT_FEEDER_H

#include "unwind_pages.h"

struct jit_image {
	__u32 image;
	__u32 latest;  /* area whose rows the kernel reads */
	__u64 bytes;   /* of the jitdump, when its rules were read */
	__u64 next_ns; /* of now_ns(), when it is looked at again */
	struct unwind_area area[2];
};

/*
 * Reads the rules of @image, memory of a process without a file and of no interpreter, and writes
 * the position of its rows to @at if there are any. From then on jit_feeder_update() reads them
 * again when there are more.
 */
void jit_feeder_add(struct unwind_feeder *f, const struct table_reader *r, __u32 image,
		    struct profil_unwind_image *at);

/* Costs a system call for each of these images five times a second. */
void jit_feeder_update(struct unwind_feeder *f, const struct table_reader *r);

/* The rows have been removed. */
void jit_feeder_clear(struct unwind_feeder *f);

#endif
