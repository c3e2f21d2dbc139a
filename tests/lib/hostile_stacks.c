/* hostile_stacks.c - programs whose frame pointers lead a stack walk anywhere */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hostile_stacks.h"

/* Runs @n steps of a loop with the frame pointer @fp. */
static void spin_with(const void *fp, unsigned long n)
{
#if defined(__x86_64__)
	asm volatile("mov %%rbp, %%r11\n\tmov %0, %%rbp\n1:\tdec %1\n\tjnz 1b\n\tmov %%r11, %%rbp"
		     : "+D"(fp), "+S"(n)
		     :
		     : "r11", "memory", "cc");
#else
	asm volatile("mov x11, x29\n\tmov x29, %0\n1:\tsubs %1, %1, #1\n\tb.ne 1b\n\tmov x29, x11"
		     : "+r"(fp), "+r"(n)
		     :
		     : "x11", "memory", "cc");
#endif
}

/* What a frame pointer points to: the caller's frame pointer and the return address. */
struct record {
	const void *next;
	const void *ra;
};

/* Runs with the frame pointer @fp until the process has used @cpu_ns. */
static void spin_until(uint64_t cpu_ns, const void *fp)
{
	while (process_cpu_ns() < cpu_ns)
		spin_with(fp, 4000000);
}

static void loop_to_itself(const struct stack_program *program)
{
	volatile struct record r = { (void *)&r, (void *)process_cpu_ns };

	spin_until(program->cpu_ns, (void *)&r);
}

static void grow_without_end(const struct stack_program *program)
{
	struct record r[1000];

	for (size_t i = 0; i < 1000; i++)
		r[i] = (struct record){ &r[(i + 1) % 1000], (void *)((char *)process_cpu_ns + 1) };
	asm volatile("" : : "r"(r) : "memory");
	spin_until(program->cpu_ns, r);
}

/* A page above the stack: a frame pointer below the stack pointer is not followed at all. */
#ifdef __aarch64__
#define ABOVE_THE_STACK ((void *)0xffffffffe000)
#else
#define ABOVE_THE_STACK ((void *)0x7fffffffe000)
#endif

static void point_to_unmapped_memory(const struct stack_program *program)
{
	spin_until(program->cpu_ns, ABOVE_THE_STACK);
}

static void return_to_data(const struct stack_program *program)
{
	static long data[2];
	volatile struct record r[2] = { { (void *)&r[1], &data[1] }, { NULL, NULL } };

	spin_until(program->cpu_ns, (void *)r);
}

static void return_to_a_hole(const struct stack_program *program)
{
	volatile struct record r[2] = { { (void *)&r[1], (void *)0x123456789 }, { NULL, NULL } };

	spin_until(program->cpu_ns, (void *)r);
}

/* --- memory of all kinds, above a stack that is below all of it --- */

#define LOW_STACK ((void *)0x20000000)
#define LOW_STACK_BYTES (1 << 20)

struct low_thread {
	uint64_t cpu_ns;
	const void *fp;
};

static void *spin_below(void *arg)
{
	const struct low_thread *low = arg;

	spin_until(low->cpu_ns, low->fp);
	return NULL;
}

/* Runs with the frame pointer @fp in a thread whose stack is below it. */
static void spin_in_low_thread(uint64_t cpu_ns, const void *fp)
{
	struct low_thread arg = { cpu_ns, fp };
	void *stack = mmap(LOW_STACK, LOW_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	pthread_attr_t attr;
	pthread_t thread;

	if (stack != LOW_STACK || fp < stack || pthread_attr_init(&attr) ||
	    pthread_attr_setstack(&attr, stack, LOW_STACK_BYTES) ||
	    pthread_create(&thread, &attr, spin_below, &arg) || pthread_join(thread, NULL))
		_exit(1);
}

static void point_into_another_threads_stack(const struct stack_program *program)
{
	struct record r[1000];

	for (size_t i = 0; i < 999; i++)
		r[i] = (struct record){ &r[i + 1], (void *)((char *)process_cpu_ns + 1) };
	r[999] = (struct record){ NULL, NULL };
	asm volatile("" : : "r"(r) : "memory");
	spin_in_low_thread(program->cpu_ns, r);
}

/* Two pages of a file of which @bytes exist, mapped with @prot. */
static void *map_file(off_t bytes, int prot)
{
	char path[] = "/tmp/profil-stack.XXXXXX";
	int fd = mkstemp(path);
	void *at = fd < 0 || unlink(path) || ftruncate(fd, bytes)
			   ? MAP_FAILED
			   : mmap(NULL, 8192, prot, MAP_SHARED, fd, 0);

	close(fd);
	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

static void point_into_a_file(const struct stack_program *program)
{
	struct record *r = map_file(8192, PROT_READ | PROT_WRITE);

	r[0] = (struct record){ &r[1], (void *)((char *)process_cpu_ns + 1) };
	r[1] = (struct record){ NULL, (void *)((char *)process_cpu_ns + 1) };
	spin_in_low_thread(program->cpu_ns, r);
}

static void point_into_a_file_that_was_never_read(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, map_file(8192, PROT_READ));
}

/* An access raises SIGBUS, as on a page that a network or FUSE file system cannot bring. */
static void point_behind_the_end_of_a_file(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, (char *)map_file(100, PROT_READ) + 4096);
}

static void *map_nothing(int prot)
{
	void *at = mmap(NULL, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

static void point_into_memory_that_was_never_touched(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, map_nothing(PROT_READ | PROT_WRITE));
}

static void point_into_memory_without_access(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, map_nothing(PROT_NONE));
}

/* The second word of the record is in the next page, which cannot be read. */
static void point_across_the_end_of_readable_memory(const struct stack_program *program)
{
	char *at = map_nothing(PROT_READ | PROT_WRITE);

	memset(at, 8, 4096);
	if (mprotect(at + 4096, 4096, PROT_NONE))
		_exit(1);
	spin_in_low_thread(program->cpu_ns, at + 4096 - 8);
}

static void point_into_the_kernel(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, (void *)0xffff888000000000);
}

static void point_to_the_end_of_all_addresses(const struct stack_program *program)
{
	spin_in_low_thread(program->cpu_ns, (void *)~7ul);
}

/* --- how walks end ---------------------------------------------------------------------------- */

const struct hostile_stack frame_to_itself = { loop_to_itself, PROFIL_STACK_NO_TABLE,
					       "a frame pointer to itself" };
const struct hostile_stack endless_stack = { grow_without_end, PROFIL_STACK_DEEP,
					     "an endless stack" };
const struct hostile_stack unmapped_frame = { point_to_unmapped_memory, PROFIL_STACK_UNREADABLE,
					      "an unmapped frame" };
const struct hostile_stack return_into_data = { return_to_data, PROFIL_STACK_NOWHERE,
						"a return into data" };
const struct hostile_stack return_to_unmapped_memory = { return_to_a_hole, PROFIL_STACK_NOWHERE,
							 "a return to unmapped memory" };

const struct hostile_stack hostile_memory[HOSTILE_MEMORIES] = {
	{ point_into_another_threads_stack, PROFIL_STACK_DEEP, "another thread's stack" },
	{ point_into_a_file, PROFIL_STACK_WHOLE, "a file" },
	{ point_into_a_file_that_was_never_read, PROFIL_STACK_UNREADABLE,
	  "a file that was never read" },
	{ point_behind_the_end_of_a_file, PROFIL_STACK_UNREADABLE, "behind the end of a file" },
	{ point_into_memory_that_was_never_touched, PROFIL_STACK_UNREADABLE,
	  "memory that was never touched" },
	{ point_into_memory_without_access, PROFIL_STACK_UNREADABLE, "memory without access" },
	{ point_across_the_end_of_readable_memory, PROFIL_STACK_UNREADABLE,
	  "across the end of readable memory" },
	{ point_into_the_kernel, PROFIL_STACK_UNREADABLE, "the kernel" },
	{ point_to_the_end_of_all_addresses, PROFIL_STACK_UNREADABLE, "the end of all addresses" },
};

uint64_t hostile_stack_expect_root(const struct daemon *d, const struct hostile_stack *stack,
				   struct stack_demand demand)
{
	struct profil_msg_observe ask = stacks_ask(PROFIL_SCOPE_PROCESSES);
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer o;

	stacks_observe(&o, d, &ask,
		       &(struct stack_program){ .run = stack->run, .cpu_ns = demand.cpu_ns });
	all = stacks_count_roots(&o, below);
	cr_expect_eq(all + o.table->stack_lost, observer_check(&o));
	stacks_expect_share(demand, below[stack->root], all, stack->name);
	observer_close(&o);
	return all;
}
