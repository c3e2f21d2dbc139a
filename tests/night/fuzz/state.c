/* state.c - fuzzes the maps of a killed daemon, as the next one reads them
 *
 * Maps, clocks and the persistent store are simulated; the daemon's other code and the processes'
 * memory are real.
 */
int profild_main(int argc, char **argv);
#define main profild_main
#include "profild/main.c"
#undef main

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profild/bpf/counters/counter_pool.h"
#include "profild/clock/clock.h"
#include "base/jobs.h"
#include "profild/bpf/rcu_barrier.h"
#include "profild/bpf/lifecycle_hooks.h"
#include "profild/bpf/maps.h"
#include "profild/skeleton.h"
#include "profild/store.h"
#include "profild/worker/process_memory.h"
#include "arena.h"
#include "fuzz.h"

#define LEFT_TARGETS 4 /* the most in one input */
#define LEFT_EVENTS 8

static struct profild d;

/* The contents of the maps. */
static struct profil_tables tables;
static struct profil_bucket *const bucket = tables.bucket;
static struct profil_target target[PROFIL_MAX_TARGETS];
static struct profil_ledger ledger[PROFIL_MAX_TARGETS];
static struct profil_owner owner[PROFIL_MAX_TARGETS];
static struct profil_region region[PROFIL_MAX_REGIONS];
static struct profil_event event[LEFT_EVENTS];
static unsigned int nevents;
static struct profil_cookie_area area;

/* --- object.h --------------------------------------------------------------------------------- */

int maps_open(struct maps *m, const struct config *config, struct store *store)
{
	static struct profil_bpf skel;

	m->skel = &skel;
	m->processes = (struct process_table){ .tables = &tables, .target = target };
	m->ledger = ledger;
	m->found = true;
	return 0;
}

void maps_close(struct maps *m)
{
}

int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *o)
{
	must(index < PROFIL_MAX_TARGETS);
	owner[index] = o ? *o : (struct profil_owner){ 0 };
	return 0;
}

int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out)
{
	must(index < PROFIL_MAX_TARGETS);
	*out = owner[index];
	return 0;
}

int maps_exec_id(struct maps *m, uint32_t tgid, uint32_t *exec_id)
{
	*exec_id = 0;
	return 0;
}

int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n)
{
	must((uint64_t)t->region_first + from + n <= PROFIL_MAX_REGIONS && from + n <= t->nregions);
	memcpy(&region[t->region_first + from], &t->region[from], n * sizeof(region[0]));
	return 0;
}

int maps_read_regions(struct maps *m, struct target *t)
{
	if ((uint64_t)t->region_first + t->nregions > PROFIL_MAX_REGIONS)
		return -ENOENT;
	memcpy(t->region, &region[t->region_first], t->nregions * sizeof(region[0]));
	return 0;
}

/* --- clock.h, lifecycle_hooks.h, rcu_barrier.h, store.h ------------------------------------- */

int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct late_programs *programs, struct store *store, sd_event *loop)
{
	*out = NULL;
	return 0;
}

int clocks_prepare(const struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	return 0;
}

struct clocks *clocks_close(struct clocks *c)
{
	return c;
}

int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags)
{
	must(period_ns >= period_of(RATE_MAX_HZ) && period_ns <= period_of(RATE_MIN_HZ));
	return 0;
}

void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags)
{
}

void clocks_begun(struct clocks *c, const struct profil_target *k)
{
}

void clocks_begin(const struct clocks *c, struct profil_target *k)
{
}

static int users;

int lifecycle_hooks_open(struct lifecycle_hooks **out, struct profil_bpf *skel, struct store *store,
			 sd_event *loop)
{
	*out = NULL;
	return 0;
}

struct lifecycle_hooks *lifecycle_hooks_close(struct lifecycle_hooks *l)
{
	return l;
}

int lifecycle_hooks_use(struct lifecycle_hooks *l)
{
	users++;
	return 0;
}

void lifecycle_hooks_unuse(struct lifecycle_hooks *l)
{
	must(users-- > 0);
}

static void (*passed)(void *arg);
static void *passed_arg;
static bool asked;

int rcu_barrier_open(struct rcu_barrier **out, sd_event *loop, void (*fn)(void *arg), void *arg)
{
	*out = NULL;
	passed = fn;
	passed_arg = arg;
	asked = false;
	return 0;
}

struct rcu_barrier *rcu_barrier_close(struct rcu_barrier *g)
{
	return g;
}

void rcu_barrier_ask(struct rcu_barrier *g, const struct rcu_barrier_drops *drops)
{
	asked = true;
}

int jobs_open_with(struct jobs **out, sd_event *loop, unsigned int threads, size_t stack)
{
	*out = NULL;
	return 0;
}

struct jobs *jobs_close(struct jobs *j)
{
	return j;
}

void jobs_submit(struct jobs *j, struct job *job)
{
	job->run(job);
	job->done(job);
}

void jobs_finish(struct jobs *j, bool wait)
{
}

int store_open(struct store **out, const struct config *config)
{
	*out = NULL;
	return 0;
}

struct store *store_close(struct store *s)
{
	return s;
}

enum store_kind store_kind(const struct store *s)
{
	return STORE_NONE;
}

int store_put(struct store *s, const char *name, int fd)
{
	return 0;
}

void store_drop(struct store *s, const char *name)
{
}

/* A chunk whose first counters are not 0. */
int store_take_map(struct store *s, const char *name, const char *kernel_name, size_t value_bytes)
{
	static const uint8_t dirty[32] = { 1, 0, 1, 1 };
	uint32_t count[1024];
	int fd = memfd_create(name, MFD_CLOEXEC);

	memset(count, 1, sizeof(count));
	must(fd >= 0 && ftruncate(fd, sizeof(struct profil_chunk)) == 0);
	must(pwrite(fd, dirty, sizeof(dirty), 0) == (ssize_t)sizeof(dirty));
	must(pwrite(fd, count, sizeof(count), offsetof(struct profil_chunk, count)) ==
	     (ssize_t)sizeof(count));
	return fd;
}

void store_abandon(struct store *s)
{
}

void store_sweep(struct store *s)
{
}

void store_clear(struct store *s)
{
}

/* --- libbpf ----------------------------------------------------------------------------------- */

static ring_buffer_sample_fn take_event;
static void *take_event_ctx;

int bpf_map__fd(const struct bpf_map *map)
{
	return -1;
}

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx,
				     const struct ring_buffer_opts *opts)
{
	take_event = fn;
	take_event_ctx = ctx;
	return (struct ring_buffer *)&take_event;
}

int ring_buffer__add(struct ring_buffer *rb, int fd, ring_buffer_sample_fn fn, void *ctx)
{
	return 0;
}

void ring_buffer__free(struct ring_buffer *rb)
{
}

static int ring_fd = -1;

int ring_buffer__epoll_fd(const struct ring_buffer *rb)
{
	return ring_fd;
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	while (nevents)
		take_event(take_event_ctx, &event[--nevents], sizeof(event[0]));
	return 0;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 n,
		   const struct bpf_map_create_opts *opts)
{
	return store_take_map(NULL, name, name, 0);
}

int bpf_map_freeze(int fd)
{
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	return 0;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *n,
			 const struct bpf_map_batch_opts *opts)
{
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	return 0;
}

/* --- the input -------------------------------------------------------------------------------- */

/* Replaces fields of the input by those of a valid profile of this process. */
static void make_ours(struct profil_owner *o)
{
	struct memory *m = NULL;

	must(memory_open(&m, getpid()) == 0);
	o->live = 1;
	o->tgid = (__u32)getpid();
	o->cookie_addr = (unsigned long)&area;
	memcpy(o->cookie, area.cookie, sizeof(o->cookie));
	o->image = memory_image(m);
	memory_close(m);
}

/*
 * Reads fields in the order of the seeds, which does not depend on the layout. The daemon does not
 * read the other fields of a target.
 */
static void take_counted(struct input *in, struct profil_target *t)
{
	input_take(in, &t->period_ns, sizeof(t->period_ns));
	input_take(in, &t->region_first, sizeof(t->region_first));
	input_take(in, &t->nregions, sizeof(t->nregions));
	input_take(in, &t->flags, sizeof(t->flags));
	input_take(in, &t->epoch, sizeof(__u32));
	input_take(in, &t->members, sizeof(t->members));
	input_take(in, &t->ended, sizeof(t->ended));
	input_take(in, &t->elapsed_ns, sizeof(t->elapsed_ns));
	input_take(in, &t->total, sizeof(t->total));
	input_take(in, &t->unmatched, sizeof(t->unmatched));
	input_take(in, &t->lost, sizeof(t->lost));
	input_take(in, &t->raw, sizeof(t->raw));
}

static void take_target(struct input *in)
{
	unsigned int how = input_byte(in), n;
	uint16_t at, first;

	input_take(in, &at, sizeof(at));
	at %= PROFIL_MAX_TARGETS;
	input_take(in, &owner[at], sizeof(owner[at]));
	take_counted(in, &target[at]);
	input_take(in, &ledger[at], sizeof(ledger[at]));
	first = (uint16_t)target[at].region_first;
	n = input_byte(in) % 8;
	for (unsigned int i = 0; i < n; i++) {
		struct profil_region *r = &region[(uint16_t)(first + i)];

		input_take(in, r, sizeof(*r));
		r->addr = arena_address(r->addr);
	}
	if (how & 1)
		make_ours(&owner[at]);
	if (how & 2)
		target[at].nregions = (__u16)n;
	if (how & 4)
		target[at].period_ns = NSEC_PER_SEC / 100;
	/* A wrong count of members only delays the end of a target. */
	target[at].members = how >> 3 & 1;
	if (how & 8)
		bucket[profil_bucket_of(owner[at].tgid, 0, 0)].entry[how >> 5] =
			profil_entry(owner[at].tgid, at);
}

static void take_state(struct input *in)
{
	unsigned int n = input_byte(in) % (LEFT_TARGETS + 1);
	__u64 entry;

	while (n--)
		take_target(in);
	input_take(in, &entry, sizeof(entry));
	bucket[profil_bucket_of(profil_entry_tgid(entry), 0, 0)].entry[1] = entry;
	nevents = input_byte(in) % (LEFT_EVENTS + 1);
	input_take(in, event, sizeof(event));
}

static void clear_state(void)
{
	memset(&tables, 0, sizeof(tables));
	memset(target, 0, sizeof(target));
	memset(ledger, 0, sizeof(ledger));
	memset(owner, 0, sizeof(owner));
	memset(region, 0, sizeof(region));
}

/* --- a daemon's run --------------------------------------------------------------------------- */

static void grace_period(void)
{
	while (asked) {
		asked = false;
		passed(passed_arg);
	}
}

/* Runs the event loop until the worker is idle and its answers are handled. */
static void settle(void)
{
	while (lanes_busy(d.lanes) || d.dirty)
		must(sd_event_run(d.event, UINT64_MAX) >= 0);
}

/* Handles each profile as after a request of its process. */
static void serve(void)
{
	struct own_profile *own, *next;
	struct samples t;

	ring_buffer__consume(NULL);
	for (own = d.profiles; own; own = next) {
		next = own->next;
		writer_pass(own);
		own_profile_samples(own, &t);
		own_profile_check(own);
	}
	settle();
	for (own = d.profiles; own; own = next) {
		next = own->next;
		if (own->tgid)
			own_profile_leave(own, own->tgid);
	}
	settle();
}

static void open_daemon(void)
{
	static char *argv[] = { (char *)(unsigned long)"profild", NULL };

	must(config_parse(&d.config, 1, argv) == 0);
	must(sd_event_default(&d.event) >= 0);
	must(quota_new(&d.quota, &d.config.quota) == 0);
	must(own_profiles_open(&d) >= 0);
	ring_fd = eventfd(0, 0);
	memset(area.cookie, 7, sizeof(area.cookie));
	sink.arg = &d;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	unsigned int before;

	if (!d.event) {
		open_daemon();
		/* The first timer opens the event loop's timerfd. */
		must(sd_event_add_time(d.event, NULL, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, NULL) >=
		     0);
	}
	before = descriptors();
	clear_state();
	take_state(&in);
	must(lanes_open(&d.lanes, d.event, NSEC_PER_SEC, on_lost, &d) == 0);
	must(sampler_bpf_open(&d.sampler, &d.config, d.event, &sink) == 0);
	d.sampler->ops->recover(d.sampler);
	serve();
	grace_period();
	while (d.profiles)
		own_profile_end(d.profiles);
	grace_period();
	settle();
	writers_close(&d);
	d.lanes = lanes_close(d.lanes);
	grace_period();
	must(users == 0);
	d.sampler->ops->close(d.sampler);
	must(descriptors() == before);
	return 0;
}
