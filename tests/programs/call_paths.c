/* call_paths.c - uses CPU time below known callers: in signal handlers, faults, children and
 * programs */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define ALTERNATE_BYTES (64 << 10)

static volatile unsigned long spun;
static volatile sig_atomic_t handled;
static double seconds;

__attribute__((noinline)) static void spin(void)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);

	do {
		for (unsigned int i = 0; i < 300000; i++)
			spun += i;
	} while (clock() < end);
}

/*
 * The first instructions of two functions, which trap and fault. A lookup of the byte before finds
 * other functions, with larger frames.
 */
void trapping(void);
void faulting(char *at);
#if defined(__x86_64__)
#define TRAP "ud2\n"
#define STORE "movb $1, (%rdi)\n"
#else
#define TRAP "udf #0\n"
#define STORE "strb w0, [x0]\n"
#endif
#define FUNCTION(name, cfa, code)                                    \
	".global " name "\n.type " name ", %function\n" name ":\n"   \
	".cfi_startproc\n.cfi_def_cfa_offset " cfa "\n" code "ret\n" \
	".cfi_endproc\n.size " name ", .-" name "\n"
#if defined(__x86_64__)
#define CFA "8"
#else
#define CFA "0"
#endif
__asm__(".text\n" FUNCTION("before_trapping", "4096", "") FUNCTION("trapping", CFA, TRAP)
		FUNCTION("before_faulting", "4096", "") FUNCTION("faulting", CFA, STORE));

static void on_trap(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig, (void)info;
	spin();
#if defined(__x86_64__)
	u->uc_mcontext.gregs[REG_RIP] += 2;
#else
	u->uc_mcontext.pc += 4;
#endif
}

static void on_inner(int sig)
{
	spin();
	handled++;
}

static void on_outer(int sig)
{
	raise(SIGUSR2);
	handled++;
}

/* Waits in user mode, where the timer's signal finds it at any instruction. */
__attribute__((noinline)) static unsigned long interrupted(unsigned long x)
{
	while (!handled)
		x = x * 2862933555777941757ul + 1;
	return x + 1;
}

__attribute__((noinline)) static void raises(void)
{
	raise(SIGUSR1);
	spun++; /* no tail call */
}

__attribute__((noinline)) static void traps(void)
{
	trapping();
	spun++;
}

static int use_alternate(void *where)
{
	const stack_t stack = { .ss_sp = where, .ss_size = ALTERNATE_BYTES };

	return sigaltstack(&stack, NULL);
}

static void handle(int sig, void (*handler)(int), int flags)
{
	struct sigaction act = { .sa_handler = handler, .sa_flags = flags };

	sigaction(sig, &act, NULL);
}

/* Its first instruction faults, again and again. */
__attribute__((noinline)) static void faults(void)
{
	clock_t end = clock() + (clock_t)(seconds * CLOCKS_PER_SEC);
	const size_t bytes = 4 << 20;
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	do {
		madvise(at, bytes, MADV_DONTNEED);
		for (size_t i = 0; i < bytes; i += 4096)
			faulting(at + i);
	} while (clock() < end);
}

__attribute__((noinline)) static void in_child(void)
{
	spin();
	spun++;
}

/* Parent and child use the time one after the other. */
__attribute__((noinline)) static int forks(void)
{
	int status = 1;
	pid_t pid = fork();

	if (!pid) {
		in_child();
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return 1;
	spin();
	return status != 0;
}

/* The same program again, without the first action. */
static int execs(void)
{
	char text[32];

	spin();
	snprintf(text, sizeof(text), "%f", seconds);
	execl("/proc/self/exe", "second", "raise", text, NULL);
	return 1;
}

__attribute__((noinline)) static void catches(int flags)
{
	struct sigaction trap = { .sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | flags };

	sigaction(SIGILL, &trap, NULL);
	handle(SIGUSR2, on_inner, flags);
	handle(SIGALRM, on_inner, flags);
}

__attribute__((noinline)) static int act(const char *kind)
{
	const struct itimerval soon = { .it_value = { .tv_usec = 20000 } };

	handle(SIGUSR1, strcmp(kind, "nested") ? on_inner : on_outer, SA_ONSTACK);
	catches(SA_ONSTACK);
	if (!strcmp(kind, "raise") || !strcmp(kind, "nested"))
		return raises(), 0;
	if (!strcmp(kind, "timer"))
		return setitimer(ITIMER_REAL, &soon, NULL) || !interrupted(1);
	if (!strcmp(kind, "trap"))
		return traps(), 0;
	if (!strcmp(kind, "fault"))
		return faults(), 0;
	if (!strcmp(kind, "fork"))
		return forks();
	return strcmp(kind, "exec") ? 1 : execs();
}

/*
 * The alternate stack is below the thread's own, or in main()'s frame, so above all others.
 * usage: call_paths raise|nested|timer|trap|fault|fork|exec SECONDS [below|above]
 */
int main(int argc, char **argv)
{
	char above[ALTERNATE_BYTES];

	if (argc < 3)
		return 1;
	if (argc > 3 && use_alternate(strcmp(argv[3], "above")
					      ? mmap(NULL, ALTERNATE_BYTES, PROT_READ | PROT_WRITE,
						     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
					      : above))
		return 1;
	seconds = atof(argv[2]);
	return act(argv[1]);
}
