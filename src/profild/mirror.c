/* mirror.c - counts from the maps into a process's buffer */
#include <errno.h>
#include <string.h>

#include "clock_link.h"
#include "counts.h"
#include "mirror.h"

/* Counters in a process's memory need not be aligned. */
static uint32_t load(const struct session *s, const uint8_t *at)
{
	uint16_t u16;
	uint32_t u32;

	if (s->width == sizeof(u16)) {
		memcpy(&u16, at, sizeof(u16));
		return u16;
	}
	memcpy(&u32, at, sizeof(u32));
	return u32;
}

static void store(const struct session *s, uint8_t *at, uint32_t value)
{
	uint16_t u16 = (uint16_t)value;

	memcpy(at, s->width == sizeof(u16) ? (void *)&u16 : (void *)&value, s->width);
}

/* The first from @i on that is not 0, or @n. */
static uint32_t next_count(const uint32_t *count, uint32_t i, uint32_t n)
{
	while (n - i >= 8 && !any_of_eight(count + i))
		i += 8;
	while (i < n && !count[i])
		i++;
	return i;
}

/*
 * Adds @count to the @n counters at @buf, and notes down in @before, if not NULL, what those were.
 * Returns how many ticks found no room below the cap.
 */
static uint64_t add_span(const struct session *s, uint8_t *buf, const uint32_t *count,
			 uint32_t *before, uint32_t n)
{
	uint64_t spilt = 0;

	for (uint32_t i = next_count(count, 0, n); i < n; i = next_count(count, i + 1, n)) {
		uint8_t *at = buf + (size_t)i * s->width;
		uint32_t old = load(s, at), sum;

		if (before)
			before[i] = old;
		sum = profil_add(old, count[i], s->cap);
		spilt += count[i] - (sum - old);
		store(s, at, sum);
	}
	return spilt;
}

static uint64_t sum_of(const uint32_t *count, uint32_t n)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < n; i++)
		sum += count[i];
	return sum;
}

static void end_soon(struct session *s)
{
	s->over = true;
	s->daemon->anyone_over = true;
}

/* A fault turns off what the dialect says. The process itself never notices. */
static void fault(struct target *t, uint32_t owner, int err)
{
	struct session *s = t->session;

	if (err == -ESRCH)
		return; /* it has gone altogether; the kernel says when its last member has */
	if (s->flags & PROFIL_START_FAULT_ENDS)
		end_soon(s);
	else
		s->daemon->sampler->ops->region_off(s->daemon->sampler, t, owner);
}

static int writable(struct session *s, uint64_t addr, size_t bytes)
{
	int err = memory_writable(s->memory, addr, bytes);

	if (err == -ESRCH && session_lead(s))
		err = memory_writable(s->memory, addr, bytes);
	return err;
}

/* @before, if not NULL, is where the counters of the buffer are noted down; then @journal says so.
 */
static void mirror_span(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
			uint32_t n, uint32_t *before, struct profil_journal *journal)
{
	struct session *s = t->session;
	uint64_t addr = t->region[owner].addr + (uint64_t)bin * s->width;
	uint8_t buf[PROFIL_SPAN * sizeof(uint32_t)];
	uint64_t spilt = 0;
	int err;

	err = s->over ? -ECANCELED : writable(s, addr, (size_t)n * s->width);
	if (!err)
		err = memory_read(s->memory, addr, buf, (size_t)n * s->width);
	if (!err) {
		spilt = add_span(s, buf, count, before, n);
		if (journal)
			__atomic_store_n(&journal->phase, PROFIL_JOURNAL_WRITING, __ATOMIC_RELEASE);
		err = memory_write(s->memory, addr, buf, (size_t)n * s->width);
	}
	t->ledger->spilt += err ? sum_of(count, n) : spilt;
	if (err && err != -ECANCELED)
		fault(t, owner, err);
	if (spilt && s->flags & PROFIL_START_STOP_AT_CAP)
		end_soon(s);
}

void mirror_counts(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
		   uint32_t n, struct profil_journal *journal)
{
	uint32_t first = next_count(count, 0, n);

	while (n > first && !count[n - 1])
		n--;
	if (first < n)
		mirror_span(t, owner, bin + first, count + first, n - first,
			    journal ? journal->before + first : NULL, journal);
}

/* Says whether @j is of @t, and within one of its buffers. */
static bool is_on_its_way(const struct profil_journal *j, const struct target *t)
{
	const struct profil_region *r = t->region + j->owner;

	if (j->phase == PROFIL_JOURNAL_IDLE || j->target != t->index || !t->ncounters ||
	    j->owner >= t->nregions)
		return false;
	return r->owner == j->owner && j->n <= PROFIL_SPAN && j->bin <= r->x.nbins &&
	       j->n <= r->x.nbins - j->bin;
}

void mirror_redo(struct target *t, const struct profil_journal *j)
{
	const struct session *s = t->session;
	uint32_t count[PROFIL_SPAN], n = j->n;
	uint8_t buf[PROFIL_SPAN * sizeof(uint32_t)];
	uint64_t addr;

	if (!is_on_its_way(j, t))
		return;
	addr = t->region[j->owner].addr + (uint64_t)j->bin * s->width;
	memcpy(count, j->count, sizeof(count));
	t->ledger->drained = j->drained + sum_of(count, n);
	t->ledger->spilt = j->spilt;
	/* What no longer is as it was before has its count already. */
	for (uint32_t i = 0; j->phase == PROFIL_JOURNAL_WRITING && i < n; i++) {
		uint32_t now;

		if (!count[i] ||
		    memory_read(s->memory, addr + (uint64_t)i * s->width, buf, s->width))
			continue;
		now = load(s, buf);
		if (now == j->before[i])
			continue;
		t->ledger->spilt +=
			count[i] - (profil_add(j->before[i], count[i], s->cap) - j->before[i]);
		count[i] = 0;
	}
	mirror_counts(t, j->owner, j->bin, count, n, NULL);
}

static void store_pc(struct target *t, uint64_t pc)
{
	struct session *s = t->session;
	const struct profil_region *r = &t->region[0];
	struct profil_ledger *l = t->ledger;
	int err;

	if (s->over || l->pcs >= r->x.nbins) {
		l->spilt++;
		return;
	}
	err = writable(s, r->addr + l->pcs * sizeof(pc), sizeof(pc));
	if (!err)
		err = memory_write(s->memory, r->addr + l->pcs * sizeof(pc), &pc, sizeof(pc));
	if (err) {
		l->spilt++;
		fault(t, 0, err);
		return;
	}
	l->pcs++;
}

void mirror_pc(struct target *t, uint64_t pc)
{
	const uint32_t one = 1;
	uint32_t owner, bin;

	t->ledger->events++;
	if (t->session->flags & PROFIL_START_PCS) {
		store_pc(t, pc);
		return;
	}
	bin = target_bin(t, pc, &owner);
	if (bin == PROFIL_NO_BIN)
		t->ledger->unmatched++;
	else
		mirror_counts(t, owner, bin, &one, 1, NULL);
}

void mirror_session(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;

	memory_forget(s->memory);
	for (struct target *t = s->targets; t; t = t->next)
		sampler->ops->drain(sampler, t);
}

/* Says whether there is anybody whose buffer is to be kept up to date. */
static bool anyone_waits(const struct profild *d)
{
	const struct session *s = d->sessions;

	while (s && s->reader)
		s = s->next;
	return s;
}

/* Returns whether there was any news. */
static bool mirror_pass(struct profild *d)
{
	struct session *s, *next;
	struct target *t;
	uint32_t at = 0;
	bool news = false;

	while ((t = d->sampler->ops->next(d->sampler, &at))) {
		s = t->session;
		mirror_session(s);
		session_check(s);
		news = true;
	}
	for (s = d->anyone_over ? d->sessions : NULL; s; s = next) {
		next = s->next;
		if (s->over)
			session_check(s);
	}
	d->anyone_over = false;
	return news;
}

/* As long as there is news with every pass, the next one is due; then an event says when. */
uint64_t mirror_run(struct profild *d)
{
	uint64_t now;
	bool news;

	if (!d->mirror_at_ns)
		return UINT64_MAX;
	now = clock_now_ns();
	if (now < d->mirror_at_ns)
		return d->mirror_at_ns - now;
	news = mirror_pass(d);
	d->mirror_at_ns = 0;
	if (!anyone_waits(d) || (!news && d->sampler->ops->rests(d->sampler)))
		return UINT64_MAX;
	d->mirror_at_ns = now + d->config.mirror_interval_ns;
	return d->config.mirror_interval_ns;
}

void mirror_arm(struct profild *d)
{
	if (!d->mirror_at_ns && anyone_waits(d))
		d->mirror_at_ns = clock_now_ns() + d->config.mirror_interval_ns;
}
