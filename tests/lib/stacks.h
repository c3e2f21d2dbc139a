/* stacks.h - the tree of calls of observed programs: its readers, and what tests expect of it */
#ifndef PROFIL_TEST_STACKS_H
#define PROFIL_TEST_STACKS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon.h"
#include "kernel_ticks.h"
#include "observed.h"
#include "observer.h"
#include "stack_programs.h"

/*
 * How long a program runs, and how many of its samples must have the stack in question. The number
 * of samples is the scheduler's choice, so the gate expects one of them (@percent 0). The night
 * expects a share, of more than 20 samples.
 */
struct stack_demand {
	uint64_t cpu_ns;
	unsigned int percent;
};

/* The gate's: no more than TICKS_TOLERANCE samples of this time may be missing. */
#define STACKS_ANY ((const struct stack_demand){ 100 * TICKS_PERIOD_NS, 0 })

/* The night's: some 250 samples. */
#define STACKS_SHARE(percent) ((const struct stack_demand){ TICKS_SPELL_NS, percent })

/* Expects as many of @all samples as @demand says to be among @part. */
void stacks_expect_share(struct stack_demand demand, uint64_t part, uint64_t all, const char *what);

/* Requests stacks by frame pointers, every TICKS_PERIOD_NS. */
struct profil_msg_observe stacks_ask(enum profil_scope scope);

/* Opens @o and forks a child for @program, which child_start() starts. */
struct child stacks_open(struct observer *o, const struct daemon *d,
			 const struct profil_msg_observe *ask, const struct stack_program *program);

/* Opens @o and observes @program in a child until its end. */
void stacks_observe(struct observer *o, const struct daemon *d,
		    const struct profil_msg_observe *ask, const struct stack_program *program);

/* --- readers --- */

/* Whether the frame of @node is in the kernel. */
bool stacks_in_kernel(const struct observer *o, const struct profil_node *node);

/* Whether the frame of @node is in the file @name, in any directory. NULL: any file. */
bool stacks_in_file(const struct observer *o, const struct profil_node *node, const char *name);

/*
 * Fills in the samples below each root; returns those of all nodes. Expects no path to be longer
 * than a walk with the kernel's frame, and none to end as PROFIL_STACK_DEEP that is shorter than
 * PROFIL_FRAMES_MAX, unless the tree had no room for a frame.
 */
uint64_t stacks_count_roots(const struct observer *o, uint64_t below[PROFIL_STACK_ROOTS]);

struct stacks {
	uint64_t samples;
	uint64_t exact; /* with exactly the wanted number of recursive calls */
};

/* Counts the stacks of run_two_recursions(). */
struct stacks stacks_read(const struct observer *o, unsigned int depth);

/* --- expectations --- */

/* A recursion of @depth calls has as many frames. */
void stacks_expect_recursion(const struct daemon *d, unsigned int depth,
			     struct stack_demand demand);

/* A recursion of more calls than a walk follows ends as PROFIL_STACK_DEEP. */
void stacks_expect_deep(const struct daemon *d, struct stack_demand demand);

/* An attachment to the whole machine has the stacks of one of its processes. */
void stacks_expect_machine(const struct daemon *d, struct stack_demand demand);

/* Samples in the kernel have frames of the kernel, all of them below the user's frames. */
void stacks_expect_kernel_frames(const struct daemon *d, struct stack_demand demand);

#endif
