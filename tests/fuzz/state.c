/* state.c - fuzzes what a killed daemon left in the maps, as the next one reads it
 *
 * The maps, the clocks and the store are ours; all between them and the processes' memory is real.
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

#include "core/scope.h"
#include "profild/chunks.h"
#include "profild/clock.h"
#include "profild/grace.h"
#include "profild/lifetimes.h"
#include "profild/maps.h"
#include "profild/skeleton.h"
#include "profild/store.h"
#include "arena.h"
#include "fuzz.h"

#define LEFT_TARGETS 4 /* at most so many in one input */
#define LEFT_EVENTS 8

static struct profild d;

/* What the maps hold. */
static struct profil_bucket bucket[PROFIL_BUCKETS];
static struct profil_target target[PROFIL_MAX_TARGETS];
static struct profil_news news;
static struct profil_ledger ledger[PROFIL_MAX_TARGETS];
static struct profil_owner owner[PROFIL_MAX_TARGETS];
static struct profil_region region[PROFIL_MAX_REGIONS];
static struct profil_journal journal;
static struct profil_event event[LEFT_EVENTS];
static unsigned int nevents;
static int first_chunk = -1;
static uint8_t cookie[PROFIL_COOKIE_BYTES];

/* --- maps.h ------------------------------------------------------------------------------------
 */

int maps_open(struct maps *m, struct store *store)
{
	static struct profil_bpf skel;

	(void)store;
	skel.maps.chunk_0 = (struct bpf_map *)&skel;
	m->skel = &skel;
	m->processes = (struct processes){ .bucket = bucket, .target = target, .news = &news };
	m->ledger = ledger;
	m->journal = &journal;
	m->found = true;
	return 0;
}

void maps_close(struct maps *m)
{
	(void)m;
	if (first_chunk >= 0)
		close(first_chunk);
	first_chunk = -1;
}

int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *o)
{
	(void)m;
	must(index < PROFIL_MAX_TARGETS);
	owner[index] = o ? *o : (struct profil_owner){ 0 };
	return 0;
}

int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out)
{
	(void)m;
	must(index < PROFIL_MAX_TARGETS);
	*out = owner[index];
	return 0;
}

int maps_reach(struct maps *m, uint32_t targets, uint32_t regions)
{
	(void)m;
	must(targets <= PROFIL_MAX_TARGETS && regions <= PROFIL_MAX_REGIONS);
	return 0;
}

int maps_narrow(struct maps *m)
{
	(void)m;
	return 0;
}

int maps_image(struct maps *m, uint32_t tgid, uint32_t *image)
{
	(void)m;
	(void)tgid;
	*image = 0;
	return 0;
}

int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n)
{
	(void)m;
	must((uint64_t)t->region_first + from + n <= PROFIL_MAX_REGIONS && from + n <= t->nregions);
	memcpy(&region[t->region_first + from], &t->region[from], n * sizeof(region[0]));
	return 0;
}

int maps_read_regions(struct maps *m, struct target *t)
{
	(void)m;
	if ((uint64_t)t->region_first + t->nregions > PROFIL_MAX_REGIONS)
		return -ENOENT;
	memcpy(t->region, &region[t->region_first], t->nregions * sizeof(region[0]));
	return 0;
}

/* --- clock.h, lifetimes.h, grace.h, store.h ----------------------------------------------------
 */

int clocks_open(struct clocks **out, const struct config *config, struct profil_bpf *skel,
		struct store *store, sd_event *loop)
{
	(void)config;
	(void)skel;
	(void)store;
	(void)loop;
	*out = NULL;
	return 0;
}

struct clocks *clocks_close(struct clocks *c)
{
	return c;
}

int clocks_use(struct clocks *c, uint64_t period_ns, uint32_t *flags)
{
	(void)c;
	(void)flags;
	must(period_ns >= period_of(RATE_MAX_HZ) && period_ns <= period_of(RATE_MIN_HZ));
	return 0;
}

void clocks_unuse(struct clocks *c, uint64_t period_ns, uint32_t flags)
{
	(void)c;
	(void)period_ns;
	(void)flags;
}

void clocks_begin(const struct clocks *c, struct profil_target *k)
{
	(void)c;
	(void)k;
}

static int users;

int lifetimes_open(struct lifetimes **out, struct profil_bpf *skel, struct store *store,
		   sd_event *loop)
{
	(void)skel;
	(void)store;
	(void)loop;
	*out = NULL;
	return 0;
}

struct lifetimes *lifetimes_close(struct lifetimes *l)
{
	return l;
}

int lifetimes_use(struct lifetimes *l)
{
	(void)l;
	users++;
	return 0;
}

void lifetimes_unuse(struct lifetimes *l)
{
	(void)l;
	must(users-- > 0);
}

static void (*passed)(void *arg);
static void *passed_arg;
static bool asked;

int grace_open(struct grace **out, sd_event *loop, void (*fn)(void *arg), void *arg)
{
	(void)loop;
	*out = NULL;
	passed = fn;
	passed_arg = arg;
	asked = false;
	return 0;
}

struct grace *grace_close(struct grace *g)
{
	return g;
}

int grace_ask(struct grace *g, const struct grace_drops *drops)
{
	(void)g;
	(void)drops;
	asked = true;
	return 0;
}

int store_open(struct store **out, const struct config *config)
{
	(void)config;
	*out = NULL;
	return 0;
}

struct store *store_close(struct store *s)
{
	return s;
}

enum store_kind store_kind(const struct store *s)
{
	(void)s;
	return STORE_NONE;
}

int store_put(struct store *s, const char *name, int fd)
{
	(void)s;
	(void)name;
	(void)fd;
	return 0;
}

void store_drop(struct store *s, const char *name)
{
	(void)s;
	(void)name;
}

/* A chunk in which the first counters have counted. */
int store_take(struct store *s, const char *name)
{
	static const uint8_t dirty[32] = { 1, 0, 1, 1 };
	uint32_t count[1024];
	int fd = memfd_create(name, MFD_CLOEXEC);

	(void)s;
	memset(count, 1, sizeof(count));
	must(fd >= 0 && ftruncate(fd, sizeof(struct profil_chunk)) == 0);
	must(pwrite(fd, dirty, sizeof(dirty), 0) == (ssize_t)sizeof(dirty));
	must(pwrite(fd, count, sizeof(count), offsetof(struct profil_chunk, count)) ==
	     (ssize_t)sizeof(count));
	return fd;
}

void store_sweep(struct store *s)
{
	(void)s;
}

void store_clear(struct store *s)
{
	(void)s;
}

/* --- libbpf ------------------------------------------------------------------------------------
 */

static ring_buffer_sample_fn take_event;
static void *take_event_ctx;

/* Only the first chunk's is used. */
int bpf_map__fd(const struct bpf_map *map)
{
	if (map && first_chunk < 0)
		first_chunk = store_take(NULL, "chunk_0");
	return map ? first_chunk : -1;
}

struct ring_buffer *ring_buffer__new(int fd, ring_buffer_sample_fn fn, void *ctx,
				     const struct ring_buffer_opts *opts)
{
	(void)fd;
	(void)opts;
	take_event = fn;
	take_event_ctx = ctx;
	return (struct ring_buffer *)&take_event;
}

void ring_buffer__free(struct ring_buffer *rb)
{
	(void)rb;
}

static int ring_fd = -1;

int ring_buffer__epoll_fd(const struct ring_buffer *rb)
{
	(void)rb;
	return ring_fd;
}

int ring_buffer__consume(struct ring_buffer *rb)
{
	(void)rb;
	while (nevents)
		take_event(take_event_ctx, &event[--nevents], sizeof(event[0]));
	return 0;
}

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 n,
		   const struct bpf_map_create_opts *opts)
{
	(void)type;
	(void)key;
	(void)value;
	(void)n;
	(void)opts;
	return store_take(NULL, name);
}

int bpf_map_freeze(int fd)
{
	(void)fd;
	return 0;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	(void)fd;
	(void)key;
	(void)value;
	(void)flags;
	return 0;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *n,
			 const struct bpf_map_batch_opts *opts)
{
	(void)fd;
	(void)keys;
	(void)values;
	(void)n;
	(void)opts;
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)fd;
	(void)key;
	return 0;
}

/* --- the input ---------------------------------------------------------------------------------
 */

/* What a well-meant profile of ours would have there, in the place of what the input says. */
static void make_ours(struct profil_owner *o)
{
	struct memory *m = NULL;

	must(memory_open(&m, getpid()) == 0);
	o->live = 1;
	o->tgid = (__u32)getpid();
	o->cookie_addr = (unsigned long)cookie;
	memcpy(o->cookie, cookie, sizeof(o->cookie));
	o->image = memory_image(m);
	memory_close(m);
}

/*
 * In the order that the seeds have, whatever the layout's. The rest of a target is what a tick
 * wants at hand; the daemon never reads it.
 */
static void take_counted(struct input *in, struct profil_target *t)
{
	input_take(in, &t->period_ns, sizeof(t->period_ns));
	input_take(in, &t->region_first, sizeof(t->region_first));
	input_take(in, &t->nregions, sizeof(t->nregions));
	input_take(in, &t->flags, sizeof(t->flags));
	input_take(in, &t->began, sizeof(t->began));
	input_take(in, &t->members, sizeof(t->members));
	input_take(in, &t->ended, sizeof(t->ended));
	input_take(in, &t->time_ns, sizeof(t->time_ns));
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
	/* A wrong number only makes the end of a target slow: it is waited for, so often. */
	target[at].members = how >> 3 & 1;
	if (how & 8)
		bucket[profil_bucket_of(owner[at].tgid, 0)].entry[how >> 5] =
			profil_entry(owner[at].tgid, at);
}

static void take_state(struct input *in)
{
	unsigned int n = input_byte(in) % (LEFT_TARGETS + 1);
	__u64 entry;

	while (n--)
		take_target(in);
	input_take(in, &journal, offsetof(struct profil_journal, count));
	memset(journal.count, 1, sizeof(journal.count));
	input_take(in, &entry, sizeof(entry));
	bucket[profil_bucket_of(profil_entry_tgid(entry), 0)].entry[1] = entry;
	nevents = input_byte(in) % (LEFT_EVENTS + 1);
	input_take(in, event, sizeof(event));
}

static void clear_state(void)
{
	memset(bucket, 0, sizeof(bucket));
	memset(target, 0, sizeof(target));
	memset(&news, 0, sizeof(news));
	memset(ledger, 0, sizeof(ledger));
	memset(owner, 0, sizeof(owner));
	memset(region, 0, sizeof(region));
	memset(&journal, 0, sizeof(journal));
}

/* --- a daemon's life ---------------------------------------------------------------------------
 */

static void grace_period(void)
{
	while (asked) {
		asked = false;
		passed(passed_arg);
	}
}

/* As if each of them asked for something. */
static void serve(void)
{
	struct session *s, *next;
	struct ticks t;

	ring_buffer__consume(NULL);
	for (s = d.sessions; s; s = next) {
		next = s->next;
		mirror_session(s);
		session_ticks(s, &t);
		session_check(s);
	}
	for (s = d.sessions; s; s = next) {
		next = s->next;
		if (s->tgid)
			session_leave(s, s->tgid);
	}
}

static void open_daemon(void)
{
	static char *argv[] = { (char *)(unsigned long)"profild", NULL };

	must(config_parse(&d.config, 1, argv) == 0);
	must(sd_event_default(&d.event) >= 0);
	ring_fd = eventfd(0, 0);
	memset(cookie, 7, sizeof(cookie));
	sink.arg = &d;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	unsigned int before;

	if (!d.event) {
		open_daemon();
		/* The loop's own descriptor for timers comes with the first. */
		must(sd_event_add_time(d.event, NULL, CLOCK_MONOTONIC, UINT64_MAX, 0, NULL, NULL) >=
		     0);
	}
	before = descriptors();
	clear_state();
	take_state(&in);
	must(sampler_bpf_open(&d.sampler, &d.config, d.event, &sink) == 0);
	d.sampler->ops->recover(d.sampler);
	serve();
	grace_period();
	while (d.sessions)
		session_end(d.sessions);
	grace_period();
	must(users == 0);
	d.sampler->ops->close(d.sampler);
	must(descriptors() == before);
	return 0;
}
