/* sampler_replay.c - ticks from a file of pcs: no kernel, no root, exact counts */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"
#include "core/log.h"
#include "core/scope.h"
#include "memory.h"
#include "sampler.h"
#include "session.h"

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

/* "PC [COUNT]" with nothing else behind it; -EINVAL otherwise. */
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

/* Raw pcs, for a profile that has asked for these; more than its buffer holds are lost. */
static void play_raw(struct sampler_replay *r, struct target *t, const struct line *line)
{
	struct profil_event event = {
		.pc = line->pc,
		.tgid = (__u32)t->tgid,
		.kind = PROFIL_EVENT_RAW,
	};
	uint32_t n = line->count < t->region[0].x.nbins ? line->count : t->region[0].x.nbins;

	for (t->replayed.lost += line->count; n && !t->session->over; n--) {
		t->replayed.lost--;
		t->replayed.raw++; /* the sink counts them again, as events */
		r->s.sink->event(t, &event);
	}
}

/* As many ticks as @line says: one after the other in effect, in one go as they are alike. */
static void play_line(struct sampler_replay *r, struct target *t, const struct line *line)
{
	uint32_t owner, bin = target_bin(t, line->pc, &owner);

	t->replayed.total += line->count;
	if (bin != PROFIL_NO_BIN) {
		t->ledger->drained += line->count;
		r->s.sink->counts(t, owner, bin, &line->count, 1, NULL);
	} else if (t->flags & PROFIL_TARGET_RAW) {
		play_raw(r, t, line);
	} else {
		t->replayed.unmatched += line->count;
	}
}

/* A profile gets all ticks when it starts; who attaches to a process gets none. */
static int replay_start(struct sampler *s, struct target *t, const struct target *old,
			uint32_t life)
{
	struct sampler_replay *r = self(s);

	(void)old;
	(void)life;
	if (t->session->reader)
		return 0;
	while (t->index < PROFIL_MAX_TARGETS && r->target[t->index])
		t->index++;
	if (t->index == PROFIL_MAX_TARGETS)
		return -EAGAIN;
	r->target[t->index] = t;
	t->held = true;
	for (size_t i = 0; i < r->nlines && !t->session->over; i++)
		play_line(r, t, &r->line[i]);
	return 0;
}

static void replay_release(struct sampler *s, struct target *t)
{
	if (t->held)
		self(s)->target[t->index] = NULL;
}

static void replay_nothing(struct sampler *s, struct target *t)
{
	(void)s;
	(void)t;
}

static void replay_region_off(struct sampler *s, struct target *t, uint32_t owner)
{
	(void)s;
	for (uint32_t i = 0; i < t->nregions; i++) {
		if (t->region[i].owner == owner)
			t->region[i].x.nbins = 0;
	}
}

static void replay_ticks(struct sampler *s, const struct target *t, struct ticks *out)
{
	(void)s;
	*out = t->replayed;
}

/* Without a kernel to tell, the memory does: when it is gone, so is the process. */
static bool replay_ended(struct sampler *s, const struct target *t)
{
	char byte;

	(void)s;
	return t->session->memory && memory_read(t->session->memory, 0, &byte, 1) == -ESRCH;
}

static int replay_chunks(struct sampler *s, const struct target *t, int *fds, unsigned int *nfds)
{
	(void)s;
	(void)t;
	(void)fds;
	*nfds = 0;
	return 0;
}

/* Nobody but who started it is in a replayed profile. */
static struct target *replay_find(struct sampler *s, pid_t tgid, bool *newborn)
{
	*newborn = false;
	for (uint32_t i = 0; i < PROFIL_MAX_TARGETS; i++) {
		struct target *t = self(s)->target[i];

		if (t && t->tgid == tgid)
			return t;
	}
	return NULL;
}

static pid_t replay_other(struct sampler *s, const struct target *t, pid_t tgid)
{
	(void)s;
	(void)t;
	(void)tgid;
	return 0;
}

static bool replay_leave(struct sampler *s, struct target *t, pid_t tgid)
{
	(void)s;
	(void)t;
	(void)tgid;
	return false;
}

static void replay_recover(struct sampler *s)
{
	(void)s;
}

static bool replay_keeps(struct sampler *s)
{
	(void)s;
	return false;
}

static unsigned int replay_chunk_count(struct sampler *s)
{
	(void)s;
	return 0;
}

static struct target *replay_next(struct sampler *s, uint32_t *at)
{
	while (*at < PROFIL_MAX_TARGETS) {
		struct target *t = self(s)->target[(*at)++];

		if (t && replay_ended(s, t))
			return t;
	}
	return NULL;
}

/* That a process has gone, nobody says. */
static bool replay_rests(struct sampler *s)
{
	(void)s;
	return false;
}

static const struct sampler_ops replay_ops = {
	.close = replay_close,
	.start = replay_start,
	.stop = replay_nothing,
	.release = replay_release,
	.next = replay_next,
	.rests = replay_rests,
	.drain = replay_nothing,
	.region_off = replay_region_off,
	.ticks = replay_ticks,
	.ended = replay_ended,
	.recover = replay_recover,
	.keeps = replay_keeps,
	.find = replay_find,
	.other = replay_other,
	.leave = replay_leave,
	.chunks = replay_chunks,
	.chunk_count = replay_chunk_count,
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
