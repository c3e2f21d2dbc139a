/* kernel_stacks_hostile.c - hostile stacks and unwind rules spoil no profile but their own */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/unwind_maps.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observer.h"

DAEMON_SUITE(kernel_stacks_hostile, "--rate", TICKS_RATE);

#define SPELL_NS \
	(100 * TICKS_PERIOD_NS) /* no more than TICKS_TOLERANCE of its samples may be missing */

/* --- stacks ----------------------------------------------------------------------------------- */

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

static uint64_t used_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * 1000000000 + (uint64_t)used.tv_nsec;
}

/* What a frame pointer points to: the caller's frame pointer and the return address. */
struct record {
	const void *next;
	const void *ra;
};

static void spin_for_a_spell(const struct record *fp)
{
	while (used_ns() < SPELL_NS)
		spin_with(fp, 4000000);
}

static void loop_to_itself(void)
{
	volatile struct record r = { (void *)&r, (void *)used_ns };

	spin_for_a_spell((void *)&r);
}

static void grow_without_end(void)
{
	struct record r[1000];

	for (size_t i = 0; i < 1000; i++)
		r[i] = (struct record){ &r[(i + 1) % 1000], (void *)((char *)used_ns + 1) };
	asm volatile("" : : "r"(r) : "memory");
	spin_for_a_spell(r);
}

/* A page above the stack: a frame pointer below the stack pointer is not followed at all. */
#ifdef __aarch64__
#define ABOVE_THE_STACK ((void *)0xffffffffe000)
#else
#define ABOVE_THE_STACK ((void *)0x7fffffffe000)
#endif

static void point_to_unmapped_memory(void)
{
	spin_for_a_spell(ABOVE_THE_STACK);
}

static void return_into_data(void)
{
	static long data[2];
	volatile struct record r[2] = { { (void *)&r[1], &data[1] }, { NULL, NULL } };

	spin_for_a_spell((void *)r);
}

static void return_to_unmapped_memory(void)
{
	volatile struct record r[2] = { { (void *)&r[1], (void *)0x123456789 }, { NULL, NULL } };

	spin_for_a_spell((void *)r);
}

/* --- memory of all kinds, above a stack that is below all of it --- */

#define LOW_STACK ((void *)0x20000000)
#define LOW_STACK_BYTES (1 << 20)

static void *spin_below(void *fp)
{
	spin_for_a_spell(fp);
	return NULL;
}

/* Spins with the frame pointer @fp in a thread whose stack is below it. */
static void spin_in_low_thread(void *fp)
{
	void *stack = mmap(LOW_STACK, LOW_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	pthread_attr_t low;
	pthread_t thread;

	if (stack != LOW_STACK || fp < stack || pthread_attr_init(&low) ||
	    pthread_attr_setstack(&low, stack, LOW_STACK_BYTES) ||
	    pthread_create(&thread, &low, spin_below, fp) || pthread_join(thread, NULL))
		_exit(1);
}

static void point_into_another_threads_stack(void)
{
	struct record r[1000];

	for (size_t i = 0; i < 999; i++)
		r[i] = (struct record){ &r[i + 1], (void *)((char *)used_ns + 1) };
	r[999] = (struct record){ NULL, NULL };
	asm volatile("" : : "r"(r) : "memory");
	spin_in_low_thread(r);
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

static void point_into_a_file(void)
{
	struct record *r = map_file(8192, PROT_READ | PROT_WRITE);

	r[0] = (struct record){ &r[1], (void *)((char *)used_ns + 1) };
	r[1] = (struct record){ NULL, (void *)((char *)used_ns + 1) };
	spin_in_low_thread(r);
}

static void point_into_a_file_that_was_never_read(void)
{
	spin_in_low_thread(map_file(8192, PROT_READ));
}

/* An access raises SIGBUS, as on a page that a network or FUSE file system cannot bring. */
static void point_behind_the_end_of_a_file(void)
{
	spin_in_low_thread((char *)map_file(100, PROT_READ) + 4096);
}

static void *map_nothing(int prot)
{
	void *at = mmap(NULL, 8192, prot, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

static void point_into_memory_that_was_never_touched(void)
{
	spin_in_low_thread(map_nothing(PROT_READ | PROT_WRITE));
}

static void point_into_memory_without_access(void)
{
	spin_in_low_thread(map_nothing(PROT_NONE));
}

/* The second word of the record is in the next page, which cannot be read. */
static void point_across_the_end_of_readable_memory(void)
{
	char *at = map_nothing(PROT_READ | PROT_WRITE);

	memset(at, 8, 4096);
	if (mprotect(at + 4096, 4096, PROT_NONE))
		_exit(1);
	spin_in_low_thread(at + 4096 - 8);
}

static void point_into_the_kernel(void)
{
	spin_in_low_thread((void *)0xffff888000000000);
}

static void point_to_the_end_of_all_addresses(void)
{
	spin_in_low_thread((void *)~7ul);
}

/* Observes a child that does @work and exits. */
static pid_t observe_child(struct observer *o, const struct profil_msg_observe *ask,
			   void (*work)(void))
{
	int go[2];
	pid_t pid;
	char byte = 0;

	cr_assert_eq(pipe(go), 0);
	pid = fork();
	cr_assert_geq(pid, 0);
	if (!pid) {
		if (read(go[0], &byte, 1) == 1)
			work();
		_exit(0);
	}
	cr_assert_eq(observer_open(o, &d, ask), 0);
	cr_assert_eq(observer_add(o, pid), 0);
	cr_assert_eq(write(go[1], &byte, 1), 1);
	close(go[0]);
	close(go[1]);
	return pid;
}

static void wait_for(pid_t pid)
{
	int status;

	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "wait status 0x%x",
		  (unsigned int)status);
}

/* Fills in the samples below each root; returns those of all nodes. Paths are at most 256 long. */
static uint64_t count_roots(const struct observer *o, uint64_t *below)
{
	uint64_t all = 0;

	memset(below, 0, PROFIL_STACK_ROOTS * sizeof(*below));
	for (uint32_t i = 0; i < o->table->nodes; i++) {
		const struct profil_node *node = observer_node(o, PROFIL_STACK_ROOTS + i),
					 *at = node;
		unsigned int depth = 1;

		for (; at->parent >= PROFIL_STACK_ROOTS; depth++)
			at = observer_node(o, at->parent);
		cr_expect_leq(depth, PROFIL_FRAMES_MAX + 1u);
		all += node->count;
		below[at->parent] += node->count;
	}
	return all;
}

/*
 * Expects stacks of @work to end with @root. Others are in clock_gettime(), with another frame
 * pointer.
 */
static void expect_root(void (*work)(void), enum profil_stack_root root, const char *name)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer o;

	ask.stack_mode = PROFIL_STACK_FP;
	wait_for(observe_child(&o, &ask, work));
	all = count_roots(&o, below);
	cr_expect_eq(all + o.table->stack_lost, observer_check(&o));
	cr_expect_gt(below[root], 0, "%s: none of %lu below root %d", name, (unsigned long)all,
		     (int)root);
	observer_close(&o);
}

Test(kernel_stacks_hostile, a_frame_pointer_to_itself_ends_the_stack)
{
	expect_root(loop_to_itself, PROFIL_STACK_NO_TABLE, "loop_to_itself");
}

Test(kernel_stacks_hostile, an_endless_stack_is_cut_after_255_frames)
{
	expect_root(grow_without_end, PROFIL_STACK_DEEP, "grow_without_end");
}

Test(kernel_stacks_hostile, an_unmapped_frame_ends_the_stack)
{
	expect_root(point_to_unmapped_memory, PROFIL_STACK_UNREADABLE, "point_to_unmapped_memory");
}

Test(kernel_stacks_hostile, a_return_address_outside_of_text_ends_the_stack)
{
	expect_root(return_into_data, PROFIL_STACK_NOWHERE, "return_into_data");
	expect_root(return_to_unmapped_memory, PROFIL_STACK_NOWHERE, "return_to_unmapped_memory");
}

static const struct {
	void (*work)(void);
	enum profil_stack_root root;
	const char *name;
} memory[] = {
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

Test(kernel_stacks_hostile, frames_in_any_memory_end_the_stack)
{
	for (size_t i = 0; i < sizeof(memory) / sizeof(*memory); i++)
		expect_root(memory[i].work, memory[i].root, memory[i].name);
}

/* --- rules ------------------------------------------------------------------------------------ */

static atomic_bool lying;

struct liar {
	uint64_t *word;
	size_t n; /* words */
};

/* A random row or image entry, which is plausible at times. */
static uint64_t lie(unsigned int *seed)
{
	uint64_t a = (uint64_t)rand_r(seed), b = (uint64_t)rand_r(seed);

	switch (rand_r(seed) % 4) {
	case 0: /* two page numbers, or a number of pages and a flag */
		return (a % 4096) << 32 | b % 4096;
	case 1: /* a row */
		return (a & 0x3f) << 56 | (b & 0xff) << 48 | (a >> 8 & 0xff) << 32 | (b & 0xffffff);
	case 2:
		return a << 33 ^ b << 16 ^ a;
	default:
		return ~0ull;
	}
}

static void *tell_lies(void *arg)
{
	const struct liar *liar = arg;
	unsigned int seed = 26;

	while (lying) {
		/* The first pages hold the locations of all others. */
		size_t n = rand_r(&seed) % 2 ? liar->n : 8 * 512;

		*(volatile uint64_t *)&liar->word[(size_t)rand_r(&seed) % n] = lie(&seed);
	}
	return NULL;
}

static void recur(unsigned int depth)
{
	volatile char room[64];

	room[0] = 0;
	if (depth)
		recur(depth - 1);
	while (!depth && used_ns() < SPELL_NS)
		for (volatile int i = 0; i < 1000000; i++)
			;
	room[1] = room[0];
}

static void recur_50(void)
{
	recur(50);
}

/* Says of every image of @o that its rules were looked for, with this result. */
static void look_at_all(const struct observer *o, enum profil_unwind_looked looked)
{
	size_t bytes = (size_t)o->table->unwind_pages * PROFIL_UNWIND_PAGE;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o->unwind, 0);
	struct profil_unwind_image *image =
		(void *)(map + (size_t)PROFIL_UNWIND_IMAGE_PAGE * PROFIL_UNWIND_PAGE);

	cr_assert(map != MAP_FAILED);
	for (uint32_t i = 0; i < o->table->images; i++)
		image[i].looked = looked;
	munmap(map, bytes);
}

/* Expects that stacks which unwind rules alone are to walk end with @root. */
static void expect_without_pages(enum profil_unwind_looked looked, enum profil_stack_root root)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer o;
	pid_t pid;

	ask.stack_mode = PROFIL_STACK_CFI;
	ask.unwind_rows = 4096;
	pid = observe_child(&o, &ask, recur_50);
	look_at_all(&o, looked);
	wait_for(pid);
	all = count_roots(&o, below);
	cr_expect_gt(below[root], 0, "none of %lu below root %d", (unsigned long)all, (int)root);
	observer_close(&o);
}

Test(kernel_stacks_hostile, code_whose_rules_have_no_room_is_told_from_code_without_rules)
{
	expect_without_pages(PROFIL_LOOKED, PROFIL_STACK_NO_TABLE);
	expect_without_pages(PROFIL_LOOKED_NO_ROOM, PROFIL_STACK_NO_ROOM);
}

Test(kernel_stacks_hostile, rules_changed_during_the_walk_spoil_no_other_profile)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t below[PROFIL_STACK_ROOTS], all;
	struct observer liars, neighbour;
	struct liar liar;
	pthread_t thread;
	pid_t pid, other;

	ask.stack_mode = PROFIL_STACK_AUTO;
	ask.unwind_rows = 4096;
	pid = observe_child(&liars, &ask, recur_50);
	cr_assert_geq(liars.unwind, 0);
	liar.n = (size_t)liars.table->unwind_pages * PROFIL_UNWIND_PAGE / sizeof(uint64_t);
	liar.word = mmap(NULL, liar.n * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED,
			 liars.unwind, 0);
	cr_assert(liar.word != MAP_FAILED);
	lying = true;
	cr_assert_eq(pthread_create(&thread, NULL, tell_lies, &liar), 0);
	ask.stack_mode = PROFIL_STACK_FP;
	other = observe_child(&neighbour, &ask, grow_without_end);
	wait_for(pid);
	wait_for(other);
	lying = false;
	pthread_join(thread, NULL);

	all = count_roots(&liars, below);
	cr_expect_eq(all + liars.table->stack_lost, observer_check(&liars));
	all = count_roots(&neighbour, below);
	cr_expect_eq(all + neighbour.table->stack_lost, observer_check(&neighbour));
	cr_expect_gt(below[PROFIL_STACK_DEEP], 0, "none of %lu", (unsigned long)all);
	munmap(liar.word, liar.n * sizeof(uint64_t));
	observer_close(&liars);
	observer_close(&neighbour);
}
