/* fork_tree.h - a tree of profiled processes */
#ifndef PROFIL_TEST_FORK_TREE_H
#define PROFIL_TEST_FORK_TREE_H

#define FORK_TREE_WIDTH 4

/*
 * Grows a tree of @depth levels below the root, in which each process has FORK_TREE_WIDTH children.
 * Expects that each process has counts of its own, and inherits its parent's as they were at the
 * fork.
 */
void fork_tree_grow(unsigned int depth);

#endif
