/* fork_tree.h - a tree of profiled processes */
#ifndef PROFIL_TEST_FORK_TREE_H
#define PROFIL_TEST_FORK_TREE_H

#include <stdint.h>

#include "kernel_ticks.h"

struct fork_tree {
	unsigned int depth;    /* below the root; each process has FORK_TREE_WIDTH children */
	unsigned int workers;  /* so many processes work at a time */
	uint64_t slow_fork_ns; /* after such a fork() a child inherits what it gets; 0: never */
	const struct ticks_way *way;
};
#define FORK_TREE_WIDTH 4

/*
 * Expects that each process has counts of its own, and inherits its parent's as they were at the
 * fork. Returns the ticks of all since their forks, and their CPU time.
 */
unsigned long fork_tree_grow(const struct fork_tree *tree, struct loop_time *all);

#endif
