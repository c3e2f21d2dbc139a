/* replay.c - the replay sampler: samples from a file of pcs, without the kernel; exact counts */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "profild/config.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "../../../bpf/count.bpf.h" /* what the kernel runs */
#include "counters.h"
#include "sampler.h"
#include "own_profile.h"

struct line {
	uint64_t pc;
	uint32_t count;
};

struct sampler_replay {
	struct sampler s;
	struct line *line;
	size_t nlines;
	struct replayed *target[PROFIL_MAX_TARGETS];
};

/* A target as the BPF programs have it, in memory of this process. */
struct replayed {
	struct profil_target kernel;
	struct sampler_replay *of;
	struct target *target;
	size_t at; /* the next line */
	size_t chunks_bytes;
	struct profil_chunk *chunk[];
};

static struct sampler_replay *self(struct sampler *s)
{
	return (struct sampler_replay *)s;
}

static struct replayed *replayed_of(struct sampler *s, const struct target *t)
{
	return t->placed ? self(s)->target[t->index] : NULL;
}

/* --- where the counting code finds the maps --------------------------------------------------- */

static const struct replayed *of_kernel(const struct profil_target *kernel)
{
	return (const struct replayed *)((const char *)kernel - offsetof(struct replayed, kernel));
}

static const struct profil_region *region_at(const struct profil_target *kernel, __u32 index)
{
	return &of_kernel(kernel)->target->region[index];
}

static struct profil_chunk *chunk_at(const struct profil_target *kernel, __u32 number)
{
	return of_kernel(kernel)->chunk[number];
}

static bool post_raw(const struct profil_target *kernel, __u64 entry, __u64 pc)
{
	const struct replayed *e = of_kernel(kernel);
	const struct profil_event event = { .pc = pc,
					    .tgid = profil_entry_tgid(entry),
					    .kind = PROFIL_EVENT_RAW };

	e->of->s.sink->pc(e->target, &event);
	return true;
}

/* --- the file --------------------------------------------------------------------------------- */

/* Parses "PC [COUNT]"; -EINVAL for anything else. */
static int parse_line(struct line *out, const char *text)
{
	char *end;
	unsigned long long n;

	errno = 0;
	if (*text < '0' || *text > '9')
		return -EINVAL;
	out->pc = strtoull(text, &end, 0);
	out->count = 1;
	if (end == text || errno)
		return -EINVAL;
	if (*end != ' ' && *end != '\t' && *end)
		return -EINVAL;
	end += strspn(end, " \t");
	if (!*end)
		return 0;

	text = end;
	n = strtoull(text, &end, 0);
	if (end == text || *text < '0' || *text > '9' || errno || n > UINT32_MAX)
		return -EINVAL;
	out->count = (uint32_t)n;
	return end[strspn(end, " \t")] ? -EINVAL : 0;
}

/* Reads every line of @f; returns the number of the first bad one, 0, or a negative errno. */
static long read_lines(struct sampler_replay *r, FILE *f)
{
	__cleanup(freep) char *text = NULL;
	size_t size = 0, room = 0;
	ssize_t len;

	errno = 0;
	for (long number = 1; (len = getline(&text, &size, f)) >= 0; number++) {
		char *start = text;

		text[strcspn(text, "#\r\n")] = 0;
		start += strspn(start, " \t");
		if (!*start)
			continue;
		if (r->nlines == room) {
			struct line *more;

			room = room ? 2 * room : 256;
			more = reallocarray(r->line, room, sizeof(*more));
			if (!more)
				return -ENOMEM;
			r->line = more;
		}
		if (parse_line(&r->line[r->nlines++], start))
			return number;
	}
	return feof(f) ? 0 : errno ? -errno : -EIO;
}

/* --- counting --------------------------------------------------------------------------------- */

/* The daemon keeps pcs until they are written: 8 MiB of them at most. */
#define RAW_MAX (1u << 20)

static void hit(struct replayed *e, uint64_t pc, uint32_t n)
{
	uint64_t entry = profil_entry((uint32_t)e->target->tgid, 0);

	if (profil_hit(&e->kernel, entry, pc, n) == PROFIL_OUTCOME_MISSED)
		profil_miss(&e->kernel, entry, pc, n);
}

/* Each tick is a sample of its own for PROFIL_START_PCS. Those beyond the buffer are lost. */
static void play_raw(struct replayed *e, const struct line *line)
{
	uint32_t nbins = e->target->region[0].x.nbins, room = nbins < RAW_MAX ? nbins : RAW_MAX;
	uint32_t n = line->count < room ? line->count : room;

	e->kernel.total += line->count - n;
	e->kernel.lost += line->count - n;
	for (; n; n--)
		hit(e, line->pc, 1);
}

/* Counts the next line. Returns false if there is none. */
static bool play_line(struct replayed *e)
{
	const struct line *line = &e->of->line[e->at];

	if (e->at == e->of->nlines)
		return false;
	e->at++;
	if (e->target->flags & PROFIL_TARGET_RAW)
		play_raw(e, line);
	else
		hit(e, line->pc, line->count);
	return true;
}

/*
 * If a saturated counter ends the profile, each line waits for the outcome of the one before,
 * because its samples may be of this profile no longer.
 */
static int replay_take(struct sampler *s, struct target *t, struct counts *out)
{
	struct replayed *e = replayed_of(s, t);
	bool one_by_one = t->profile->flags & PROFIL_START_STOP_AT_CAP;

	if (!e)
		return 0;
	if (one_by_one && t->in_flight)
		return -EAGAIN;
	while (!counters_take(e->chunk, t, out)) {
		bool played = play_line(e);

		while (!one_by_one && play_line(e))
			;
		t->cursor.region = 0;
		t->cursor.at = 0;
		if (!played)
			return 0;
	}
	return 1;
}

/* --- targets ---------------------------------------------------------------------------------- */

static struct replayed *replayed_free(struct replayed *e)
{
	if (e && e->chunks_bytes)
		munmap(e->chunk[0], e->chunks_bytes);
	free(e);
	return NULL;
}

static int replayed_new(struct replayed **out, struct sampler_replay *r, struct target *t)
{
	size_t n = (t->ncounters + PROFIL_CHUNK_COUNTERS - 1) / PROFIL_CHUNK_COUNTERS;
	struct replayed *e = calloc(1, sizeof(*e) + n * sizeof(*e->chunk));
	struct profil_chunk *chunk = NULL;

	if (!e)
		return -ENOMEM;
	if (n) {
		chunk = mmap(NULL, n * sizeof(*chunk), PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (chunk == MAP_FAILED) {
			free(e);
			return -ENOMEM;
		}
		e->chunks_bytes = n * sizeof(*chunk);
	}
	for (size_t i = 0; i < n; i++)
		e->chunk[i] = &chunk[i];
	e->kernel.nregions = (__u16)t->nregions;
	e->kernel.flags = (__u16)t->flags;
	e->of = r;
	e->target = t;
	*out = e;
	return 0;
}

static struct sampler *replay_close(struct sampler *s)
{
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++)
		replayed_free(self(s)->target[i]);
	free(self(s)->line);
	free(s);
	return NULL;
}

/* take() returns all samples after the start. */
static int replay_start(struct sampler *s, struct target *t, const struct target *old,
			uint32_t generation)
{
	struct sampler_replay *r = self(s);
	int err;

	while (t->index < PROFIL_MAX_TARGETS && r->target[t->index])
		t->index++;
	if (t->index == PROFIL_MAX_TARGETS)
		return -EAGAIN;
	err = replayed_new(&r->target[t->index], r, t);
	t->placed = !err;
	return err;
}

static void replay_samples(struct sampler *s, const struct target *t, struct samples *out)
{
	const struct replayed *e = replayed_of(s, t);

	*out = t->replayed;
	if (!e)
		return;
	out->total = e->kernel.total - e->kernel.raw; /* the ledger counts raw samples */
	out->unmatched = e->kernel.unmatched;
	out->lost = e->kernel.lost;
}

static void replay_release(struct sampler *s, struct target *t)
{
	if (!t->placed)
		return;
	replay_samples(s, t, &t->replayed);
	self(s)->target[t->index] = replayed_free(self(s)->target[t->index]);
}

static void replay_region_off(struct sampler *s, struct target *t, uint32_t owner)
{
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (t->region[i].owner == owner)
			t->region[i].x.nbins = 0;
	}
}

/* Only the process that has started a replayed profile is in it. */
static struct target *replay_find(struct sampler *s, pid_t tgid, bool *unbound,
				  uint32_t *generation)
{
	*unbound = false;
	*generation = 0;
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++) {
		struct target *t = self(s)->target[i] ? self(s)->target[i]->target : NULL;

		if (t && t->tgid == tgid && t->profile->state != OWN_PROFILE_ENDED)
			return t;
	}
	return NULL;
}

static struct target *replay_next(struct sampler *s, uint32_t *at)
{
	while (*at < PROFIL_MAX_TARGETS) {
		const struct replayed *e = self(s)->target[(*at)++];

		if (e) {
			e->target->profile->probe = true;
			return e->target;
		}
	}
	return NULL;
}

/*
 * There is one process for each target, nothing that must be reserved, no sample in flight and no
 * store. Counts are put back only for another process that shares the memory. No event announces
 * the end of a process: each pass probes its memory instead.
 */
#define REPLAY(type, name, answer, ...)        \
	static type replay_##name(__VA_ARGS__) \
	{                                      \
		return answer;                 \
	}
REPLAY(int, reserve, 0, struct sampler *s, struct target *t, void (*done)(void *arg, int err),
       void *a)
REPLAY(void, unreserve, , struct sampler *s, struct target *t)
REPLAY(void, stop, , struct sampler *s, struct target *t)
REPLAY(bool, settled, true, struct sampler *s, struct target *t, bool last)
REPLAY(pid_t, other, 0, struct sampler *s, const struct target *t, pid_t tgid)
REPLAY(bool, leave, false, struct sampler *s, struct target *t, pid_t tgid)
REPLAY(bool, orphan, false, struct sampler *s, struct target *t)
REPLAY(bool, rests, false, struct sampler *s)
REPLAY(bool, ended, false, struct sampler *s, const struct target *t)
REPLAY(void, put_back, , struct sampler *s, struct target *t, uint32_t owner, uint32_t bin,
       const uint32_t *count, uint32_t n)
REPLAY(void, count, , struct sampler *s, struct target *t, uint32_t owner, uint32_t bin, uint32_t n)
REPLAY(unsigned int, chunk_count, 0, struct sampler *s)
REPLAY(unsigned int, children, 0, struct sampler *s, uid_t uid, bool root)
REPLAY(void, recover, , struct sampler *s)
REPLAY(bool, keeps, false, struct sampler *s)

static const struct sampler_ops replay_ops = {
	.close = replay_close,
	.reserve = replay_reserve,
	.unreserve = replay_unreserve,
	.start = replay_start,
	.stop = replay_stop,
	.release = replay_release,
	.next = replay_next,
	.rests = replay_rests,
	.take = replay_take,
	.put_back = replay_put_back,
	.count = replay_count,
	.settled = replay_settled,
	.orphan = replay_orphan,
	.region_off = replay_region_off,
	.samples = replay_samples,
	.ended = replay_ended,
	.recover = replay_recover,
	.keeps = replay_keeps,
	.find = replay_find,
	.other = replay_other,
	.leave = replay_leave,
	.chunk_count = replay_chunk_count,
	.children = replay_children,
};

int sampler_replay_open(struct sampler **out, const struct config *config,
			const struct sampler_sink *sink)
{
	__cleanup(fclosep) FILE *f = fopen(config->replay_path, "re");
	struct sampler_replay *r;
	long bad;

	if (!f) {
		int err = -errno;

		log_err("cannot read the replay file %s: %s", config->replay_path, strerror(-err));
		return err;
	}
	r = calloc(1, sizeof(*r));
	bad = r ? read_lines(r, f) : -ENOMEM;
	if (bad) {
		if (bad > 0)
			log_err("%s:%ld: not \"PC [COUNT]\" with a count up to 4294967295",
				config->replay_path, bad);
		else
			log_err("cannot read the replay file %s: %s", config->replay_path,
				strerror((int)-bad));
		if (r)
			replay_close(&r->s);
		return bad > 0 ? -EINVAL : (int)bad;
	}
	r->s.ops = &replay_ops;
	r->s.counts_at_start = true;
	r->s.sink = sink;
	*out = &r->s;
	return 0;
}
