/* fork_tree.c - a tree of profiled processes */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fork_tree.h"
#include "forks.h"
#include "profil.h"

/* The results of one process of the tree. */
struct node {
	unsigned int own;	/* ticks in its loop, since it was forked */
	unsigned int inherited; /* ticks in its parent's loop when it was forked */
	unsigned int strays;	/* other loops whose ticks changed after the fork */
	int sync_errno;
	int done;
};

static unsigned int tree_depth;
static struct node *nodes;
static unsigned short tree_buf[LOOPS];

/* Siblings and ancestors have loops of their own. */
static unsigned int loop_of(unsigned int i, unsigned int depth)
{
	return i ? 1 + (depth - 1) * FORK_TREE_WIDTH + (i - 1) % FORK_TREE_WIDTH : 0;
}

/* Works, forks its children and waits for them. Returns 1 when all of them have succeeded. */
static int grow(unsigned int i, unsigned int depth, unsigned int parents_loop)
{
	unsigned int loop = loop_of(i, depth);
	unsigned short before[LOOPS];
	struct node *n = &nodes[i];
	pid_t pid[FORK_TREE_WIDTH];
	int ok, status;

	memcpy(before, tree_buf, sizeof(before));
	n->inherited = before[parents_loop];
	ok = TICKS_SPUN(loop, TICKS_SYNCED(tree_buf[loop]) > before[loop]);
	for (unsigned int k = 0; k < FORK_TREE_WIDTH && depth < tree_depth; k++) {
		pid[k] = fork();
		if (pid[k] == 0)
			_exit(!grow(i * FORK_TREE_WIDTH + 1 + k, depth + 1, loop));
	}
	n->sync_errno = profil_sync() ? errno : 0;
	n->own = tree_buf[loop] - before[loop];
	for (unsigned int k = 0; k < LOOPS; k++)
		n->strays += k != loop && tree_buf[k] != before[k];
	n->done = 1;
	for (unsigned int k = 0; k < FORK_TREE_WIDTH && depth < tree_depth; k++)
		ok &= pid[k] > 0 && waitpid(pid[k], &status, 0) == pid[k] && status == 0;
	return ok;
}

static void expect_node(unsigned int i)
{
	const struct node *n = &nodes[i], *parent = &nodes[i ? (i - 1) / FORK_TREE_WIDTH : 0];

	cr_assert(n->done, "process %u did not finish", i);
	cr_expect_eq(n->sync_errno, 0, "profil_sync in process %u: %s", i, strerror(n->sync_errno));
	cr_expect_eq(n->strays, 0, "process %u has ticks in %u loops of others", i, n->strays);
	cr_expect(!i || n->inherited == parent->own,
		  "process %u inherited %u ticks from its parent, which has %u", i, n->inherited,
		  parent->own);
	cr_expect_geq(n->own, 1, "process %u has no tick", i);
}

void fork_tree_grow(unsigned int depth)
{
	unsigned int total = 1, level = 1;

	for (unsigned int i = 0; i < depth; i++)
		total += level *= FORK_TREE_WIDTH;
	tree_depth = depth;
	nodes = forks_memory(total * sizeof(*nodes));
	forks_profile(tree_buf);
	cr_expect(grow(0, 0, LOOPS - 1), "a process has no sample, or could not fork");
	for (unsigned int i = 0; i < total; i++)
		expect_node(i);
}
