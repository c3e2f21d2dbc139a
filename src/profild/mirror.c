/* mirror.c - counts from the maps into a process's buffer */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "core/log.h"
#include "mirror.h"

/*
 * Adds @count to the @n counters at @buf. Returns how many ticks found no room below the cap.
 * Counters in a process's memory need not be aligned.
 */
static uint64_t add_span(const struct session *s, uint8_t *buf, const uint32_t *count, uint32_t n)
{
	uint64_t spilt = 0;

	for (uint32_t i = 0; i < n; i++, buf += s->width) {
		uint16_t u16 = 0;
		uint32_t u32 = 0, sum;

		if (!count[i])
			continue;
		if (s->width == sizeof(u16)) {
			memcpy(&u16, buf, sizeof(u16));
			u32 = u16;
		} else {
			memcpy(&u32, buf, sizeof(u32));
		}
		sum = profil_add(u32, count[i], s->cap);
		spilt += count[i] - (sum - u32);
		u16 = (uint16_t)sum;
		memcpy(buf, s->width == sizeof(u16) ? (void *)&u16 : (void *)&sum, s->width);
	}
	return spilt;
}

/* A fault turns off what the dialect says. The process itself never notices. */
static void fault(struct target *t, uint32_t owner, int err)
{
	struct session *s = t->session;

	if (err == -ESRCH)
		return; /* it has gone altogether; the kernel says when its last member has */
	if (s->flags & PROFIL_START_FAULT_ENDS)
		s->over = true;
	else
		s->daemon->sampler->ops->region_off(s->daemon->sampler, t, owner);
}

static void mirror_span(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
			uint32_t n)
{
	struct session *s = t->session;
	uint64_t addr = t->region[owner].addr + (uint64_t)bin * s->width;
	uint8_t buf[SAMPLER_SPAN * sizeof(uint32_t)];
	uint64_t sum = 0, spilt = 0;
	int err;

	for (uint32_t i = 0; i < n; i++)
		sum += count[i];
	err = s->over ? -ECANCELED : memory_read(s->memory, addr, buf, (size_t)n * s->width);
	if (!err) {
		spilt = add_span(s, buf, count, n);
		err = memory_write(s->memory, addr, buf, (size_t)n * s->width);
	}
	t->spilt += err ? sum : spilt;
	if (err && err != -ECANCELED)
		fault(t, owner, err);
	if (spilt && s->flags & PROFIL_START_STOP_AT_CAP)
		s->over = true;
}

void mirror_counts(struct target *t, uint32_t owner, uint32_t bin, const uint32_t *count,
		   uint32_t n)
{
	while (n && !count[n - 1])
		n--;
	for (; n && !*count; n--, count++)
		bin++;
	if (n)
		mirror_span(t, owner, bin, count, n);
}

static void store_pc(struct target *t, uint64_t pc)
{
	struct session *s = t->session;
	const struct profil_region *r = &t->region[0];

	if (s->pcs >= r->x.nbins ||
	    memory_write(s->memory, r->addr + s->pcs * sizeof(pc), &pc, sizeof(pc)))
		t->spilt++;
	else
		s->pcs++;
}

void mirror_pc(struct target *t, uint64_t pc)
{
	const uint32_t one = 1;
	uint32_t owner, bin;

	t->events++;
	if (t->session->flags & PROFIL_START_PCS) {
		store_pc(t, pc);
		return;
	}
	bin = target_bin(t, pc, &owner);
	if (bin == PROFIL_NO_BIN)
		t->unmatched++;
	else
		mirror_counts(t, owner, bin, &one, 1);
}

void mirror_session(struct session *s)
{
	struct sampler *sampler = s->daemon->sampler;

	memory_forget(s->memory);
	for (struct target *t = s->targets; t; t = t->next)
		sampler->ops->drain(sampler, t);
}

/* Returns whether there is anything left for a next pass. */
static bool mirror_pass(struct profild *d)
{
	struct session *s, *next;

	for (s = d->sessions; s; s = next) {
		next = s->next;
		if (s->reader)
			continue;
		mirror_session(s);
		if (d->sampler->ops->ended(d->sampler, s->targets))
			session_end(s);
		else if (s->over && s->tgid)
			session_leave(s, s->tgid);
	}
	for (s = d->sessions; s && s->reader; s = s->next)
		;
	return s;
}

#define TIMER_SLACK_US 1000

static int on_timer(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct profild *d = userdata;

	(void)usec;
	if (!mirror_pass(d))
		return sd_event_source_set_enabled(source, SD_EVENT_OFF);
	sd_event_source_set_time_relative(source, d->config.mirror_interval_ns / 1000);
	return sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
}

void mirror_arm(struct profild *d)
{
	int err = 0, enabled = SD_EVENT_OFF;

	if (!d->mirror_timer)
		err = sd_event_add_time_relative(d->event, &d->mirror_timer, CLOCK_MONOTONIC,
						 d->config.mirror_interval_ns / 1000,
						 TIMER_SLACK_US, on_timer, d);
	else if (sd_event_source_get_enabled(d->mirror_timer, &enabled) == 0 ||
		 enabled == SD_EVENT_OFF) {
		sd_event_source_set_time_relative(d->mirror_timer,
						  d->config.mirror_interval_ns / 1000);
		err = sd_event_source_set_enabled(d->mirror_timer, SD_EVENT_ONESHOT);
	}
	if (err < 0)
		log_err("cannot arm the mirror's timer: %s; counts will reach buffers only when "
			"asked for",
			strerror(-err));
}
