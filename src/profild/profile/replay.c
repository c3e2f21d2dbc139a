/* replay.c - the replay sampler: samples from a file of pcs, without the kernel; exact counts */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profild/config.h"
#include "base/log.h"
#include "base/cleanup.h"
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
	struct target *target[PROFIL_MAX_TARGETS];
};

static struct sampler_replay *self(struct sampler *s)
{
	return (struct sampler_replay *)s;
}

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

static struct sampler *replay_close(struct sampler *s)
{
	free(self(s)->line);
	free(s);
	return NULL;
}

/* The daemon keeps pcs until they are written: 8 MiB of them at most. */
#define RAW_MAX (1u << 20)

/*
 * Sends the pcs themselves, for PROFIL_START_PCS; those beyond the size of the buffer, or RAW_MAX,
 * are lost.
 */
static void play_raw(struct sampler_replay *r, struct target *t, const struct line *line)
{
	struct profil_event event = {
		.pc = line->pc,
		.tgid = (__u32)t->tgid,
		.kind = PROFIL_EVENT_RAW,
	};
	uint32_t room = t->region[0].x.nbins < RAW_MAX ? (uint32_t)t->region[0].x.nbins : RAW_MAX;
	uint32_t n = line->count < room ? line->count : room;

	t->replayed.total += line->count - n;
	t->replayed.lost += line->count - n;
	for (; n; n--)
		r->s.sink->pc(t, &event);
}

/*
 * Takes all samples of a line at once, which has the same effect as one by one. If a saturated
 * counter ends the profile, the next line waits for the outcome of this one, because its samples
 * are then not of this profile.
 */
static int replay_take(struct sampler *s, struct target *t, struct counts *out)
{
	struct sampler_replay *r = self(s);

	if (t->profile->flags & PROFIL_START_STOP_AT_CAP && t->in_flight)
		return -EAGAIN;
	for (; t->cursor.at < r->nlines; t->cursor.at++) {
		const struct line *line = &r->line[t->cursor.at];
		uint32_t bin = target_bin(t, line->pc, &out->owner);

		if (bin == PROFIL_NO_BIN && t->flags & PROFIL_TARGET_RAW) {
			play_raw(r, t, line);
			continue;
		}
		t->replayed.total += line->count;
		if (bin == PROFIL_NO_BIN) {
			t->replayed.unmatched += line->count;
		} else if (line->count) {
			out->bin = bin;
			out->n = 1;
			out->sum = line->count;
			*out->count = line->count;
			t->cursor.at++;
			return 1;
		}
	}
	return 0;
}

/* take() returns all samples after the start. */
static int replay_start(struct sampler *s, struct target *t, const struct target *old,
			uint32_t generation)
{
	struct sampler_replay *r = self(s);

	while (t->index < PROFIL_MAX_TARGETS && r->target[t->index])
		t->index++;
	if (t->index == PROFIL_MAX_TARGETS)
		return -EAGAIN;
	r->target[t->index] = t;
	t->placed = true;
	return 0;
}

static void replay_release(struct sampler *s, struct target *t)
{
	if (t->placed)
		self(s)->target[t->index] = NULL;
}

static void replay_region_off(struct sampler *s, struct target *t, uint32_t owner)
{
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (t->region[i].owner == owner)
			t->region[i].x.nbins = 0;
	}
}

static void replay_samples(struct sampler *s, const struct target *t, struct samples *out)
{
	*out = t->replayed;
}

/* Only the process that has started a replayed profile is in it. */
static struct target *replay_find(struct sampler *s, pid_t tgid, bool *unbound,
				  uint32_t *generation)
{
	*unbound = false;
	*generation = 0;
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++) {
		struct target *t = self(s)->target[i];

		if (t && t->tgid == tgid && t->profile->state != OWN_PROFILE_ENDED)
			return t;
	}
	return NULL;
}

static struct target *replay_next(struct sampler *s, uint32_t *at)
{
	while (*at < PROFIL_MAX_TARGETS) {
		struct target *t = self(s)->target[(*at)++];

		if (t) {
			t->profile->probe = true;
			return t;
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
	r->s.sink = sink;
	*out = &r->s;
	return 0;
}
