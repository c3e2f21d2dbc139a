/* kernel_observe_tick.c - attachments on the timer tick, at its rate: exact places in both modes */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"

#define SECOND 1000000000ull

static struct daemon d;
static unsigned long tick_ns;

static void start(void)
{
	static char rate[24];
	static const char *args[] = { "--clock", "tick", "--rate", rate, NULL };

	snprintf(rate, sizeof(rate), "%lu", ticks_timer_hz());
	tick_ns = SECOND / ticks_timer_hz();
	daemon_start(&d, NULL, args);
}

static void stop(void)
{
	daemon_stop(&d);
}

TestSuite(kernel_observe_tick, .init = start, .fini = stop);

/* Observes @work from its beginning to its end; returns the number of samples. */
static uint64_t observe(struct observer *o, void (*work)(const char *arg))
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, tick_ns);
	struct child c = child_fork(work, NULL);

	cr_assert_eq(observer_open(o, &d, &ask), 0);
	cr_expect_eq(o->table->period_ns, tick_ns);
	cr_assert_eq(observer_add(o, c.pid), 0);
	child_run(&c);
	cr_expect_eq(o->table->unmatched + o->table->lost + o->table->image_full, 0);
	return observer_check(o);
}

/* The image of this program. */
static uint32_t own_image(const struct observer *o)
{
	char exe[512] = { 0 };
	uint32_t image;

	cr_assert(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	image = observer_find(o, PROFIL_IMAGE_FILE, strrchr(exe, '/') + 1);
	cr_assert(image, "the program's image is missing");
	return image;
}

/* Places of @bits in @image, from offset @from on; @exact: those of which the loop has an
 * instruction. */
struct span {
	uint32_t image;
	uint64_t from;
	uint64_t bytes;
	uint64_t bits;
	int exact;
};

static int is_in_span(const void *arg, uint64_t key)
{
	const struct span *s = arg;
	uint64_t at = profil_place_offset(key) - s->from;

	return (key & (PROFIL_PLACE_SUM | PROFIL_PLACE_FOLDED)) == s->bits &&
	       profil_place_image(key) == s->image && at < s->bytes &&
	       (!s->exact || LOOP_HAS_INSTRUCTION(at));
}

static uint64_t count_in_loop(const struct observer *o, unsigned int n, int exact)
{
	struct span span = { .image = own_image(o),
			     .from = observed_offset(loop_at(n)),
			     .bytes = LOOP_BYTES,
			     .exact = exact };

	return observer_count_by(o, is_in_span, &span);
}

static void spend_in_two_loops(const char *arg)
{
	loop_for(1, SECOND);
	loop_for(3, 3 * SECOND);
}

/*
 * A sample stands for the CPU time since the thread's previous tick, so that the number of samples
 * is exact to one tick for each loop, whatever else runs. 1 % are a part of the loop's own time in
 * interrupts and clock reads.
 */
static void expect_loop(const struct observer *o, unsigned int n, uint64_t ns)
{
	struct loop_time time = { ns, ns };
	uint64_t samples = count_in_loop(o, n, 0);
	char what[16];

	snprintf(what, sizeof(what), "loop %u", n);
	ticks_expect(samples, &time, tick_ns, 2, 3, what);
	cr_expect_eq(count_in_loop(o, n, 1), samples, "%s has samples where no instruction begins",
		     what);
}

Test(kernel_observe_tick, counts_exact_places)
{
	struct observer o;
	uint64_t all = observe(&o, spend_in_two_loops), inside;

	expect_loop(&o, 1, SECOND);
	expect_loop(&o, 3, 3 * SECOND);
	inside = count_in_loop(&o, 1, 0) + count_in_loop(&o, 3, 0);
	cr_expect(all - inside <= all / 50 + 3, "%lu of %lu samples are outside of the loops",
		  (unsigned long)(all - inside), (unsigned long)all);
	observer_close(&o);
}

/* Reads zeros for two seconds, by system calls from one place. */
static void spend_in_kernel(const char *arg)
{
	static char buf[1 << 25];
	uint64_t end = cpu_ns(CLOCK_THREAD_CPUTIME_ID) + 2 * SECOND;
	int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		_exit(1);
	while (cpu_ns(CLOCK_THREAD_CPUTIME_ID) < end)
		loop_syscall(SYS_read, fd, (long)buf, sizeof(buf));
}

/*
 * Nearly all of the two seconds: a call takes some milliseconds. A shorter one does not do where a
 * hypervisor takes part in each entry of the kernel.
 */
Test(kernel_observe_tick, counts_kernel_samples_also_where_the_system_call_returns)
{
	struct loop_time time = { 2 * SECOND, 2 * SECOND };
	struct observer o;
	uint64_t all = observe(&o, spend_in_kernel), kernel, folded;
	uint32_t image = observer_find(&o, PROFIL_IMAGE_KERNEL, NULL);
	struct span returns = { .image = own_image(&o),
				.from = observed_offset(loop_at(LOOP_SYSCALL)) +
					LOOP_SYSCALL_RETURNS,
				.bytes = 1,
				.bits = PROFIL_PLACE_FOLDED };

	cr_assert(image, "no sample in the kernel");
	ticks_expect(all, &time, tick_ns, 2, 3, "the process");
	kernel = observer_count(&o, image, 0);
	folded = observer_count_by(&o, is_in_span, &returns);
	cr_expect_geq(kernel, all * 95 / 100);
	/* The others are those of its start and end. */
	cr_expect(folded <= kernel && folded >= kernel * 95 / 100,
		  "%lu of %lu samples are folded to where the call returns", (unsigned long)folded,
		  (unsigned long)kernel);
	observer_close(&o);
}
