/* hostile_stacks.h - programs whose frame pointers lead a stack walk anywhere */
#ifndef PROFIL_TEST_HOSTILE_STACKS_H
#define PROFIL_TEST_HOSTILE_STACKS_H

#include "core/observe_maps.h"
#include "stacks.h"

struct hostile_stack {
	void (*run)(const struct stack_program *program);
	enum profil_stack_root root; /* the end of a walk */
	const char *name;
};

extern const struct hostile_stack frame_to_itself, endless_stack, unmapped_frame, return_into_data,
	return_to_unmapped_memory;

/* Frames in memory of all kinds. */
#define HOSTILE_MEMORIES 9
extern const struct hostile_stack hostile_memory[HOSTILE_MEMORIES];

/*
 * Runs @stack and expects its walks to end with its root. The other samples are in clock_gettime(),
 * with another frame pointer. Returns the number of all samples.
 */
uint64_t hostile_stack_expect_root(const struct daemon *d, const struct hostile_stack *stack,
				   struct stack_demand demand);

#endif
