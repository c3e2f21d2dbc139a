/* work.c - what is profiled, of one kind at a time, and what it saw of it itself */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/profil.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "metric.h"

/*
 * usage: work KIND AMOUNT
 *
 * In the environment, BENCH_CALL: none, profil, sprofil or fast (sprofil with PROF_FAST) is how the
 * process profiles itself; BENCH_STOP: it stops before it begins, for a profiler to attach;
 * BENCH_CPU: the CPU that it stays on. It prints lines "METRIC VALUE".
 */
#define NBINS 65536

static unsigned short bins[NBINS];
static struct timeval tick;

static uint64_t cycles(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	uint64_t now;

	__asm__ volatile("mrs %0, cntvct_el0" : "=r"(now));
	return now;
#endif
}

/* --- how it is profiled ----------------------------------------------------------------------- */

static const char *call_kind(void)
{
	const char *kind = getenv("BENCH_CALL");

	return kind ? kind : "none";
}

static void profile_regions(struct prof *p, int n, unsigned int flags)
{
	if (strcmp(call_kind(), "fast") == 0)
		flags |= PROF_FAST;
	if (sprofil(p, n, &tick, flags))
		die("sprofil");
}

/* The two bytes at each pc of the @NBINS × 2 from @from have a bin of their own. */
static void profile_text(const void *from)
{
	struct prof p = { bins, sizeof(bins), (size_t)from, 0x10000 };

	if (strcmp(call_kind(), "profil") == 0) {
		if (profil(bins, sizeof(bins), (size_t)from, 0x10000))
			die("profil");
	} else if (strcmp(call_kind(), "none") != 0) {
		profile_regions(&p, 1, PROF_USHORT);
	}
}

static void profile_end(void)
{
	unsigned short *volatile none = NULL; /* <unistd.h> says that NULL is not meant */

	if (strcmp(call_kind(), "profil") == 0)
		profil(none, 0, 0, 0);
	else if (strcmp(call_kind(), "none") != 0)
		sprofil(NULL, 0, NULL, 0);
}

/* Where an attached profiler is to find the process. */
static void begin(void)
{
	if (getenv("BENCH_STOP"))
		raise(SIGSTOP);
}

/* --- kinds of work ---------------------------------------------------------------------------- */

extern char __executable_start;

/* An interruption takes longer than that; being off the CPU longer than the second. */
#define GAP_MIN_NS 300
#define GAP_MAX_NS 200000
#define GAPS_MAX 1000000

/* Nothing but interrupts takes the CPU from it then. */
static void be_first(void)
{
	const struct sched_param first = { .sched_priority = 1 };

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		die("sched_setscheduler");
}

/* Reads the cycle counter for @seconds and tells of the times when it was kept from it. */
static void gaps(double seconds)
{
	uint32_t *gap = malloc(GAPS_MAX * sizeof(*gap)), n = 0;
	uint64_t start_ns, end_ns, start, last, now, end;
	double scale, lost = 0;

	start_ns = clock_ns(CLOCK_MONOTONIC);
	start = cycles();
	while (clock_ns(CLOCK_MONOTONIC) - start_ns < 20000000)
		;
	scale = (double)(clock_ns(CLOCK_MONOTONIC) - start_ns) / (double)(cycles() - start);
	profile_text(&__executable_start);
	begin();
	be_first();
	start_ns = clock_ns(CLOCK_MONOTONIC);
	last = cycles();
	end = last + (uint64_t)(seconds * 1e9 / scale);
	do {
		now = cycles();
		if ((double)(now - last) * scale > GAP_MIN_NS && n < GAPS_MAX)
			gap[n++] = (uint32_t)((double)(now - last) * scale);
		last = now;
	} while (now < end);
	end_ns = clock_ns(CLOCK_MONOTONIC);
	profile_end();

	while (n && (qsort(gap, n, sizeof(*gap), compare), gap[n - 1] > GAP_MAX_NS))
		for (; n && gap[n - 1] > GAP_MAX_NS; n--)
			;
	for (uint32_t i = 0; i < n; i++)
		lost += gap[i];
	metric("gaps_per_s", n * 1e9 / (double)(end_ns - start_ns));
	metric("gap_ns", n ? gap[n / 2] : 0);
	metric("lost_ppm", lost * 1e6 / (double)(end_ns - start_ns));
	free(gap);
}

static double cpu_s(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
	       (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e6;
}

static void forks(double n)
{
	for (double i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(0);
		if (pid < 0 || waitpid(pid, NULL, 0) != pid)
			die("fork");
	}
}

/* Two processes pass a byte to and fro. */
static void switches(double n)
{
	int to[2], fro[2];
	char byte = 0;
	pid_t pid;

	if (pipe(to) || pipe(fro))
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	for (double i = 0; i < n; i++) {
		if (pid && (write(to[1], &byte, 1) != 1 || read(fro[0], &byte, 1) != 1))
			die("pipe");
		if (!pid && (read(to[0], &byte, 1) != 1 || write(fro[1], &byte, 1) != 1))
			_exit(1);
	}
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static void cpu_of(void (*work)(double amount), double amount)
{
	double before;

	profile_text(&__executable_start);
	begin();
	before = cpu_s(RUSAGE_SELF) + cpu_s(RUSAGE_CHILDREN);
	work(amount);
	metric("cpu_s", cpu_s(RUSAGE_SELF) + cpu_s(RUSAGE_CHILDREN) - before);
	profile_end();
}

/* Three loops of the same shape, each on a page of its own. */
#define LOOP(name)                                                                   \
	__attribute__((noinline, aligned(4096))) static void name(unsigned int n)    \
	{                                                                            \
		for (unsigned int i = 0; i < n; i++)                                 \
			__asm__ volatile("nop\n\tnop\n\tnop\n\tnop" : : : "memory"); \
	}

LOOP(often)
LOOP(sometimes)
LOOP(seldom)

#define ROUND 40000

static double tick_s(void)
{
	return (double)tick.tv_sec + (double)tick.tv_usec / 1e6;
}

static void (*const loops[])(unsigned int) = { often, sometimes, seldom };

/* The loops' own counters; what is in none of them comes last. */
static uint32_t loop_count[4];

static void profile_loops(void)
{
	struct prof p[4] = { { &loop_count[3], sizeof(loop_count[3]), 0, 2 } };

	for (int i = 0; i < 3; i++)
		p[i + 1] = (struct prof){ &loop_count[i], sizeof(loop_count[i]), (size_t)loops[i],
					  64 };
	if (strcmp(call_kind(), "none") != 0)
		profile_regions(p, 4, PROF_UINT);
}

/* How many ticks came in @cpu_ns, and how far they are from the loops' true shares. */
static void tell_loops(uint64_t cpu_ns, const double share[3])
{
	double total = 0, inside, worst = 0;

	for (int i = 0; i < 4; i++)
		total += loop_count[i];
	inside = total - loop_count[3];
	for (int i = 0; i < 3; i++) {
		double error = loop_count[i] / inside - share[i];

		worst = error > worst ? error : -error > worst ? -error : worst;
	}
	metric("cpu_s", (double)cpu_ns / 1e9);
	metric("share_often", share[0]);
	metric("share_sometimes", share[1]);
	metric("share_seldom", share[2]);
	if (strcmp(call_kind(), "none") == 0)
		return;
	metric("tick_us", tick_s() * 1e6);
	metric("delivered", total * tick_s() * 1e9 / (double)cpu_ns);
	metric("ticks", total);
	metric("error", worst);
}

/* Adds the CPU time since @now to @spent. */
static void add_until(uint64_t *spent, uint64_t *now)
{
	uint64_t then = *now;

	*now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	*spent += *now - then;
}

/*
 * 70/20/10 for @seconds of CPU time, in pieces shorter than any tick that are drawn by lot: no tick
 * has to do with the one before it. What each loop really had, the CPU clock says.
 */
static void split(double seconds)
{
	uint64_t spent[3] = { 0 }, began, now, end;
	double share[3], sum = 0;

	profile_loops();
	begin();
	began = now = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	end = began + (uint64_t)(seconds * 1e9);
	while (now < end) {
		long lot = random() % 10;
		int k = lot < 7 ? 0 : lot < 9 ? 1 : 2;

		loops[k](ROUND);
		add_until(&spent[k], &now);
	}
	profile_end();
	for (int i = 0; i < 3; i++)
		sum += (double)spent[i];
	for (int i = 0; i < 3; i++)
		share[i] = (double)spent[i] / sum;
	tell_loops(now - began, share);
}

static void spin_in(void (*loop)(unsigned int), uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_MONOTONIC) + ns;

	while (clock_ns(CLOCK_MONOTONIC) < end)
		loop(ROUND / 400);
}

/* Woken each @period_us by a timer: half its 300 us in one loop, then half in another. */
static void woken_each(unsigned int period_us, double seconds)
{
	uint64_t cpu, next = clock_ns(CLOCK_MONOTONIC), end = next + (uint64_t)(seconds * 1e9);
	const double share[] = { .5, .5, 0 };

	profile_loops();
	begin();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	while (next < end) {
		struct timespec at;

		next += period_us * 1000ULL;
		at.tv_sec = (time_t)(next / 1000000000);
		at.tv_nsec = (long)(next % 1000000000);
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
		spin_in(often, 150000);
		spin_in(sometimes, 150000);
	}
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	profile_end();
	tell_loops(cpu, share);
}

/* As long as the kernel's own tick, or not. */
static void woken4ms(double seconds)
{
	woken_each(4000, seconds);
}

static void woken1300us(double seconds)
{
	woken_each(1300, seconds);
}

/* Answers a client, which asks again at once, with 70/20/10 of some 60 us of work each time. */
static void served(double seconds)
{
	const double share[] = { .7, .2, .1 };
	uint64_t cpu, end;
	int pair[2];
	char byte = 0;
	pid_t client;

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || (client = fork()) < 0)
		die("socketpair");
	if (!client) {
		while (write(pair[1], &byte, 1) == 1 && read(pair[1], &byte, 1) == 1)
			seldom(ROUND / 10);
		_exit(0);
	}
	profile_loops();
	begin();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	while (clock_ns(CLOCK_MONOTONIC) < end && read(pair[0], &byte, 1) == 1) {
		often(7 * ROUND / 10);
		sometimes(2 * ROUND / 10);
		seldom(ROUND / 10);
		if (write(pair[0], &byte, 1) != 1)
			break;
	}
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	profile_end();
	kill(client, SIGKILL);
	waitpid(client, NULL, 0);
	tell_loops(cpu, share);
}

static void *spin(void *end)
{
	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < *(const uint64_t *)end)
		often(ROUND);
	return NULL;
}

/* Two threads, one counter. */
static void pair(double seconds)
{
	static uint32_t count;
	struct prof p = { &count, sizeof(count), 0, 2 };
	uint64_t each = (uint64_t)(seconds * 1e9), cpu;
	pthread_t thread[2];

	profile_regions(&p, 1, PROF_UINT);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 0; i < 2; i++)
		pthread_create(&thread[i], NULL, spin, &each);
	for (int i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	profile_end();
	metric("delivered",
	       count * ((double)tick.tv_sec * 1e6 + (double)tick.tv_usec) * 1e3 / (double)cpu);
}

/* One instruction for each bin, and each as likely. */
static void sled(double seconds)
{
	size_t bytes = NBINS * 2;
	uint8_t *text = mmap(NULL, bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	unsigned int ticks = 0, changed = 0;
	uint64_t end;

	if (text == MAP_FAILED)
		die("mmap");
#if defined(__x86_64__)
	memset(text, 0x90, bytes);
	text[bytes - 1] = 0xc3;
#else
	for (size_t i = 0; i < bytes / 4; i++)
		((uint32_t *)(void *)text)[i] = i < bytes / 4 - 1 ? 0xd503201f : 0xd65f03c0;
	__builtin___clear_cache((char *)text, (char *)text + bytes);
#endif
	profile_text(text);
	begin();
	end = clock_ns(CLOCK_MONOTONIC) + (uint64_t)(seconds * 1e9);
	while (clock_ns(CLOCK_MONOTONIC) < end)
		((void (*)(void))(uintptr_t)text)();
	profile_end();
	for (int i = 0; i < NBINS; i++)
		ticks += bins[i], changed += bins[i] != 0;
	metric("ticks", ticks);
	metric("changed", changed);
}

static void wait_for_end_of_input(void)
{
	char byte;

	puts("ready 1");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
}

/* @n processes with a profile, asleep until the end of input. */
static void fleet(double n)
{
	int ready[2], over[2];
	char byte = 0;

	if (pipe(ready) || pipe(over))
		die("pipe");
	for (double i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			die("fork");
		if (pid)
			continue;
		close(over[1]);
		profile_text(&__executable_start);
		if (write(ready[1], &byte, 1) != 1)
			_exit(1);
		close(ready[1]); /* only those that still start hold it */
		_exit(read(over[0], &byte, 1) != 0);
	}
	close(ready[1]);
	for (double i = 0; i < n; i++) {
		if (read(ready[0], &byte, 1) != 1)
			die("a process of the fleet");
	}
	wait_for_end_of_input();
	close(over[1]);
	while (wait(NULL) > 0)
		;
}

/* @n times on and off. */
static void calls(double n)
{
	size_t count = (size_t)n;
	uint32_t *on = malloc(count * sizeof(*on)), *off = malloc(count * sizeof(*off));

	for (size_t i = 0; i < count; i++) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC), middle;

		profile_text(&__executable_start);
		middle = clock_ns(CLOCK_MONOTONIC);
		profile_end();
		on[i] = (uint32_t)(middle - start);
		off[i] = (uint32_t)(clock_ns(CLOCK_MONOTONIC) - middle);
	}
	tell_times("on", on, count);
	tell_times("off", off, count);
	free(on);
	free(off);
}

/* Profiles @regions regions, of which the last has the loop, on the CPU for ever. */
static void hits(double regions)
{
	static struct prof p[4096];
	uint64_t forever = ~(uint64_t)0;
	int n = (int)regions;

	for (int i = 0; i < n; i++)
		p[i] = (struct prof){ bins, 2, (size_t)often - (size_t)(n - 1 - i) * 4096, 32 };
	if (n)
		profile_regions(p, n, PROF_USHORT);
	begin();
	spin(&forever);
}

/* Spins @amount calls deep until it is killed, with frame pointers and with unwind rules. */
__attribute__((noinline, optimize("no-omit-frame-pointer"))) static void
go_deeper(unsigned int calls)
{
	static volatile unsigned int spun;

	if (calls)
		go_deeper(calls - 1);
	while (!calls)
		spun++;
	spun++; /* no tail call */
}

static void deep(double amount)
{
	begin();
	go_deeper(amount > 2 ? (unsigned int)amount - 2 : 0);
}

static const struct {
	const char *name;
	void (*run)(double amount);
} kinds[] = {
	{ "gaps", gaps },     { "split", split },	{ "pair", pair },
	{ "sled", sled },     { "fleet", fleet },	{ "calls", calls },
	{ "hits", hits },     { "woken4ms", woken4ms }, { "woken1300us", woken1300us },
	{ "served", served }, { "deep", deep },
};

int main(int argc, char **argv)
{
	const char *cpu = getenv("BENCH_CPU");
	double amount = argc == 3 ? atof(argv[2]) : 0;

	if (cpu)
		stay_on(atoi(cpu));
	if (argc == 3 && (strcmp(argv[1], "forks") == 0 || strcmp(argv[1], "switches") == 0)) {
		cpu_of(*argv[1] == 'f' ? forks : switches, amount);
		return 0;
	}
	for (size_t i = 0; argc == 3 && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0) {
			kinds[i].run(amount);
			return 0;
		}
	}
	fputs("usage: work KIND AMOUNT\n", stderr);
	return 2;
}
