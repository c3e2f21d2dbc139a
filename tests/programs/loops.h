/* loops.h - loops at known addresses that use known CPU time */
#ifndef PROFIL_TEST_LOOPS_H
#define PROFIL_TEST_LOOPS_H

#include <linux/perf_event.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/*
 * LOOPS loops of the same few instructions, LOOP_BYTES apart, and behind them one system call, in
 * LOOP_BYTES of its own. Assembled, so that no compiler moves, merges or unrolls them. The system
 * call returns LOOP_SYSCALL_RETURNS bytes behind its start.
 */
#define LOOPS 32
#define LOOP_BYTES 64
#define LOOP_SYSCALL LOOPS
#define LOOPS_BYTES ((LOOPS + 1) * LOOP_BYTES)

#if defined(__x86_64__)
#define LOOP_BODY "1: sub $1, %rdi\n jne 1b\n ret\n"
#define LOOP_HAS_INSTRUCTION(at) ((at) == 0 || (at) == 4 || (at) == 6)
#define LOOP_SYSCALL_BODY                                    \
	"mov %rdi, %rax\n mov %rsi, %rdi\n mov %rdx, %rsi\n" \
	"mov %rcx, %rdx\n syscall\n ret\n"
#define LOOP_SYSCALL_RETURNS 14
#elif defined(__aarch64__)
#define LOOP_BODY "1: subs x0, x0, #1\n bne 1b\n ret\n"
#define LOOP_HAS_INSTRUCTION(at) ((at) == 0 || (at) == 4 || (at) == 8)
#define LOOP_SYSCALL_BODY                                     \
	"mov x8, x0\n mov x0, x1\n mov x1, x2\n mov x2, x3\n" \
	"svc #0\n ret\n"
#define LOOP_SYSCALL_RETURNS 20
#else
#error "write the loop in this architecture's instructions"
#endif

__asm__(".pushsection .text\n"
	".balign 4096\n"
	"loops:\n"
	".rept 32\n .balign 64\n" LOOP_BODY ".endr\n"
	".balign 64\n" LOOP_SYSCALL_BODY ".balign 64\n"
	".popsection\n");

__attribute__((visibility("hidden"))) extern const char loops[];

/* The address of loop @n; also of LOOP_SYSCALL and of the end of the code. */
static inline uintptr_t loop_at(unsigned int n)
{
	return (uintptr_t)loops + n * LOOP_BYTES;
}

static inline uint64_t cpu_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Turns between two clock reads: about half a millisecond, of which a read takes a thousandth. */
#define LOOP_TURNS 1000000ul

/* Uses @ns of the calling thread's CPU time in loop @n; returns the measured time. */
static inline uint64_t loop_for(unsigned int n, uint64_t ns)
{
	void (*turn)(unsigned long times) = (void (*)(unsigned long))loop_at(n);
	uint64_t began = cpu_ns(CLOCK_THREAD_CPUTIME_ID), spent;

	do {
		turn(LOOP_TURNS);
		spent = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - began;
	} while (spent < ns);
	return spent;
}

/*
 * The calling thread's CPU time by two clocks. The kernel switches tasks with interrupts off: the
 * scheduler accounts CPU time at one instant, a perf event's task clock and the next tick at
 * another. On a busy machine the two clocks drift apart. A correct number of samples is that of
 * either clock, or one in between.
 */
struct loop_watch {
	int task_clock; /* -1: none */
	uint64_t cpu_ns;
	uint64_t task_ns;
};

static inline void loop_watch_start(struct loop_watch *w)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.size = sizeof(attr),
					.config = PERF_COUNT_SW_TASK_CLOCK };

	w->task_clock = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	w->cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline void loop_watch_stop(struct loop_watch *w)
{
	w->cpu_ns = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - w->cpu_ns;
	if (w->task_clock < 0 ||
	    read(w->task_clock, &w->task_ns, sizeof(w->task_ns)) != sizeof(w->task_ns))
		w->task_ns = w->cpu_ns;
	if (w->task_clock >= 0)
		close(w->task_clock);
}

/* The CPU time that loops have used. */
struct loop_time {
	uint64_t cpu_ns;
	uint64_t task_ns;
};

/* Uses @ns of the calling thread's CPU time in loop @n and adds the measured time to @t. */
static inline void loop_timed(struct loop_time *t, unsigned int n, uint64_t ns)
{
	struct loop_watch w;

	loop_watch_start(&w);
	loop_for(n, ns);
	loop_watch_stop(&w);
	t->cpu_ns += w.cpu_ns;
	t->task_ns += w.task_ns;
}

/* Makes system call @nr at the address of LOOP_SYSCALL. Returns the kernel's result. */
static inline long loop_syscall(long nr, long a, long b, long c)
{
	long (*call)(long, long, long, long) =
		(long (*)(long, long, long, long))loop_at(LOOP_SYSCALL);

	return call(nr, a, b, c);
}

#endif
