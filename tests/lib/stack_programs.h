/* stack_programs.h - programs with known call stacks, for a child that is observed */
#ifndef PROFIL_TEST_STACK_PROGRAMS_H
#define PROFIL_TEST_STACK_PROGRAMS_H

#include <stdint.h>

struct stack_program {
	void (*run)(const struct stack_program *program);
	uint64_t cpu_ns;	/* of each process that works, at least */
	unsigned int depth;	/* recursive calls */
	unsigned int processes; /* children that work one after the other */
};

/* The CPU time that the caller's process has used. */
uint64_t process_cpu_ns(void);

/*
 * Calls itself @depth times, then @work(@cpu_ns). Like stack_spin(), this function has a frame
 * pointer.
 */
void stack_recur(unsigned int depth, void (*work)(uint64_t cpu_ns), uint64_t cpu_ns);

/* Computes until the process has used @cpu_ns. */
void stack_spin(uint64_t cpu_ns);

/* Computes at the end of a recursion. */
void run_recursion(const struct stack_program *program);

/* Two recursions through different functions, half of the time each: they share no recursive node.
 */
void run_two_recursions(const struct stack_program *program);

/* Each child computes at the end of a recursion. */
void run_recursions_of_children(const struct stack_program *program);

/* Each child executes tests/programs/image.c, which is loaded at another address every time. */
void run_images(const struct stack_program *program);

/* Reads from /dev/zero: nearly all of the time passes in the kernel, below read(). */
void run_reads_of_zeros(const struct stack_program *program);

#endif
