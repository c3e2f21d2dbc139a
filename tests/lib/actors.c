/* actors.c - processes that act when they are told, and the events that they cause */
#include <criterion/criterion.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "actors.h"
#include "kernel_ticks.h"
#include "observer.h"

struct actor actor_fork(void (*act)(int go, int done, const void *arg), const void *arg)
{
	struct actor a;
	int go[2], done[2];

	cr_assert(!pipe(go) && !pipe(done));
	a.pid = fork();
	cr_assert(a.pid >= 0);
	if (!a.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(go[1]);
		close(done[0]);
		act(go[0], done[1], arg);
		_exit(0);
	}
	close(go[0]);
	close(done[1]);
	a.go = go[1];
	a.done = done[0];
	return a;
}

void actor_tell(const struct actor *a)
{
	cr_assert(write(a->go, "", 1) == 1);
}

uint64_t actor_end(const struct actor *a)
{
	struct rusage r;

	kill(a->pid, SIGKILL); /* a later actor may hold its pipes open */
	close(a->go);
	close(a->done);
	cr_assert_eq(wait4(a->pid, NULL, 0, &r), a->pid);
	return (uint64_t)(r.ru_nvcsw + r.ru_nivcsw);
}

/* --- actors that cause a known number of events ----------------------------------------------- */

static long voluntary_switches(void)
{
	struct rusage r;

	getrusage(RUSAGE_SELF, &r);
	return r.ru_nvcsw;
}

/* Sleeps until that was @n context switches: a timer that expires at once causes none. */
static void sleep_times(unsigned int n)
{
	const struct timespec ts = { 0, 1000 };
	long end = voluntary_switches() + (long)n;

	while (voluntary_switches() < end)
		ppoll(NULL, 0, &ts, NULL);
}

/* Faults in @n pages, or sleeps @n times, or uses @n ms of CPU time. */
static void act(enum deed deed, unsigned int n)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = page * (n ? n : 1);
	volatile char *at;

	if (deed == SPIN)
		loop_for(0, (uint64_t)n * 1000000);
	if (deed == SLEEP)
		sleep_times(n);
	if (deed != FAULT)
		return;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED || madvise((void *)at, bytes, MADV_NOHUGEPAGE))
		_exit(1);
	for (size_t i = 0; i < n; i++)
		at[i * page] = 1;
}

struct part {
	enum deed deed;
	unsigned int n;
};

static void play(int go, int done, const void *arg)
{
	const struct part *part = arg;
	char byte;

	act(part->deed, 0);
	while (write(done, "", 1) == 1 && read(go, &byte, 1) == 1)
		act(part->deed, part->n);
}

static void actor_await(const struct actor *a)
{
	char byte;

	cr_assert(read(a->done, &byte, 1) == 1);
}

struct actor actor(enum deed deed, unsigned int n)
{
	struct actor a = actor_fork(play, &(struct part){ deed, n });

	actor_await(&a);
	return a;
}

void actor_once_more(const struct actor *a)
{
	actor_tell(a);
	actor_await(a);
}

struct profil_msg_observe ask_event(__u32 type, __u64 config, __u64 period)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, period);

	ask.flags |= PROFIL_OBSERVE_EVENT;
	ask.event_type = type;
	ask.event_config = config;
	return ask;
}

uint64_t actor_samples(const struct daemon *d, const struct profil_msg_observe *ask, enum deed deed,
		       unsigned int n, uint64_t *switches)
{
	struct actor a = actor(deed, n);
	struct observer o;
	uint64_t samples, left;

	cr_assert_eq(observer_open(&o, d, ask), 0);
	cr_assert_eq(observer_add(&o, a.pid), 0);
	actor_once_more(&a);
	left = actor_end(&a);
	if (switches)
		*switches = left;
	samples = observer_check(&o);
	observer_close(&o);
	return samples;
}

void actor_samples_apart(const struct daemon *d, uint64_t *events, uint64_t *times)
{
	struct profil_msg_observe faults = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS,
						     1),
				  clock = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct actor spins = actor(SPIN, 200), faulty = actor(FAULT, 5000);
	struct observer by_event, by_clock;

	cr_assert_eq(observer_open(&by_event, d, &faults), 0);
	cr_assert_eq(observer_open(&by_clock, d, &clock), 0);
	cr_assert_eq(observer_add(&by_event, spins.pid), 0);
	cr_assert_eq(observer_add(&by_clock, spins.pid), 0);
	actor_once_more(&faulty); /* is not observed */
	actor_once_more(&spins);
	actor_end(&spins);
	*events = observer_check(&by_event);
	*times = observer_check(&by_clock);
	actor_end(&faulty);
	observer_close(&by_clock);
	observer_close(&by_event);
}

int actor_weighted(const struct daemon *d, uint64_t least)
{
	struct profil_msg_observe ask = ask_event(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, 1);
	struct actor a = actor(FAULT, 300000);
	struct observer o;
	int places = 0;

	if (observer_open(&o, d, &ask) || observer_add(&o, a.pid))
		return 1;
	actor_once_more(&a);
	actor_end(&a);
	if (observer_check(&o) < least)
		return 2;
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *image = observer_image(&o, i);

		if (image && image->kind == PROFIL_IMAGE_KERNEL)
			places++;
	}
	observer_close(&o);
	return places > 1 ? 3 : 0;
}
