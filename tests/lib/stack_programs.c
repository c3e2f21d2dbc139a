/* stack_programs.c - programs with known call stacks, for a child that is observed */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "stack_programs.h"

#define WITH_FRAME_POINTER __attribute__((noinline, optimize("no-omit-frame-pointer")))

static volatile unsigned long spun;

uint64_t process_cpu_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

WITH_FRAME_POINTER void stack_spin(uint64_t cpu_ns)
{
	do {
		for (int i = 0; i < 1000000; i++)
			spun += (unsigned int)i;
	} while (process_cpu_ns() < cpu_ns);
}

WITH_FRAME_POINTER void stack_recur(unsigned int depth, void (*work)(uint64_t cpu_ns),
				    uint64_t cpu_ns)
{
	if (depth)
		stack_recur(depth - 1, work, cpu_ns);
	else
		work(cpu_ns);
	spun++; /* no tail call */
}

/* stack_recur() again: its frames are other nodes of the tree. */
WITH_FRAME_POINTER static void recur_elsewhere(unsigned int depth, uint64_t cpu_ns)
{
	if (depth)
		recur_elsewhere(depth - 1, cpu_ns);
	else
		stack_spin(cpu_ns);
	spun--;
}

void run_recursion(const struct stack_program *program)
{
	stack_recur(program->depth, stack_spin, program->cpu_ns);
}

void run_two_recursions(const struct stack_program *program)
{
	stack_recur(program->depth, stack_spin, program->cpu_ns / 2);
	recur_elsewhere(program->depth, program->cpu_ns);
}

void run_recursions_of_children(const struct stack_program *program)
{
	for (unsigned int i = 0; i < program->processes; i++) {
		pid_t pid = fork();

		if (!pid) {
			run_recursion(program);
			_exit(0);
		}
		waitpid(pid, NULL, 0);
	}
}

void run_images(const struct stack_program *program)
{
	const char *build = getenv("BUILD");
	char command[4096];

	snprintf(command, sizeof(command),
		 "exec %s/tests/programs/image after </dev/null >/dev/null",
		 build ? build : "build");
	for (unsigned int i = 0; i < program->processes; i++) {
		if (system(command))
			_exit(1);
	}
}

void run_reads_of_zeros(const struct stack_program *program)
{
	static char buffer[1 << 20];
	__cleanup(closep) int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	do {
		for (int i = 0; i < 20; i++)
			spun += (unsigned long)read(fd, buffer, sizeof(buffer));
	} while (process_cpu_ns() < program->cpu_ns);
}
