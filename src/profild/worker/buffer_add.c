/* buffer_add.c - adds counts to the buffers of a process */
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "core/bin.h"
#include "buffer_add.h"
#include "base/sparse.h"

/* Counters in a process's memory need not be aligned. */
static uint32_t load(uint32_t width, const uint8_t *at)
{
	uint16_t u16;
	uint32_t u32;

	if (width == sizeof(u16)) {
		memcpy(&u16, at, sizeof(u16));
		return u16;
	}
	memcpy(&u32, at, sizeof(u32));
	return u32;
}

static void store(uint32_t width, uint8_t *at, uint32_t value)
{
	uint16_t u16 = (uint16_t)value;

	memcpy(at, width == sizeof(u16) ? (void *)&u16 : (void *)&value, width);
}

/* The index of the first count from @i on that is not 0, or @n. */
static uint32_t next_count(const uint32_t *count, uint32_t i, uint32_t n)
{
	while (n - i >= 8 && !any_of_eight(count + i))
		i += 8;
	while (i < n && !count[i])
		i++;
	return i;
}

/* Adds @count to the @n counters at @buf, saturating. Returns how many samples were dropped. */
static uint64_t add_counts(const struct work_profile *p, uint8_t *buf, const uint32_t *count,
			   uint32_t n)
{
	uint64_t saturated = 0;

	for (uint32_t i = next_count(count, 0, n); i < n; i = next_count(count, i + 1, n)) {
		uint8_t *at = buf + (size_t)i * p->width;
		uint32_t old = load(p->width, at), sum = profil_add(old, count[i], p->cap);

		saturated += count[i] - (sum - old);
		store(p->width, at, sum);
	}
	return saturated;
}

static int add_span(struct memory *m, const struct work_profile *p, struct work_span *span,
		    const uint32_t *count)
{
	uint8_t buf[PROFIL_SPAN * sizeof(uint32_t)];
	uint32_t n = span->n, first = next_count(count, 0, n);
	uint64_t addr = span->addr + (uint64_t)first * p->width, saturated;
	size_t bytes;
	int err;

	while (n > first && !count[n - 1])
		n--;
	if (first == n)
		return 0;
	bytes = (size_t)(n - first) * p->width;
	err = memory_read(m, addr, buf, bytes);
	if (err)
		return err;
	saturated = add_counts(p, buf, count + first, n - first);
	err = memory_write(m, addr, buf, bytes);
	span->saturated = err ? 0 : saturated;
	return err;
}

static void add_spans(struct memory *m, struct work_profile *p)
{
	struct work_span *span = (struct work_span *)(p + 1);
	bool over = false;

	for (uint32_t i = 0; i < p->nspans; i++) {
		uint8_t *counts = (uint8_t *)(span + 1);
		bool pcs = p->flags & PROFIL_START_PCS;

		if (over)
			span->err = -ECANCELED;
		else if (pcs)
			span->err = memory_write(m, span->addr, counts, span->n * sizeof(uint64_t));
		else
			span->err = add_span(m, p, span, (const uint32_t *)(void *)counts);
		if (span->err && p->flags & PROFIL_START_FAULT_ENDS)
			over = true;
		if (span->saturated && p->flags & PROFIL_START_STOP_AT_CAP)
			over = true;
		span = (struct work_span *)(counts + work_span_bytes(p, span->n));
	}
}

static int set_busy(struct memory *m, const struct work_profile *p, uint32_t busy)
{
	uint64_t addr = p->cookie_addr + offsetof(struct profil_cookie_area, busy);

	return memory_write(m, addr, &busy, sizeof(busy));
}

static int check_cookie(struct memory *m, const struct work_profile *p)
{
	uint8_t seen[PROFIL_COOKIE_BYTES];
	int err = memory_read(m, p->cookie_addr, seen, sizeof(seen));

	if (err == -ESRCH)
		return err;
	return err || memcmp(seen, p->cookie, sizeof(seen)) ? -ECANCELED : 0;
}

/*
 * The writer's side of the Dekker pairing in struct profil_cookie_area: stores busy, full barrier,
 * reads the cookie. It also reads the cookie first, because after a stop the memory may be in use
 * for something else, and must not be written to.
 */
static int begin_pass(struct memory *m, const struct work_profile *p)
{
	int err = check_cookie(m, p) ?: set_busy(m, p, 1);

	if (err)
		return err == -ESRCH ? err : -ECANCELED;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	err = check_cookie(m, p);
	if (err)
		set_busy(m, p, 0);
	return err;
}

struct work_profile *buffer_add(struct memory *m, struct work_profile *p)
{
	struct work_span *span = (struct work_span *)(p + 1);

	memory_forget(m);
	p->err = begin_pass(m, p);
	if (!p->err) {
		add_spans(m, p);
		__atomic_thread_fence(__ATOMIC_SEQ_CST);
		set_busy(m, p, 0);
	}
	for (uint32_t i = 0; i < p->nspans; i++)
		span = (struct work_span *)((uint8_t *)(span + 1) + work_span_bytes(p, span->n));
	return (struct work_profile *)span;
}
