/* sprofil.c - several histograms at once, by IRIX's and glibc's rules */
#include <errno.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "libprofil/entry.h"
#include "libprofil/overlap.h"
#include "libprofil/daemon_call.h"
#include "sprofil.h"
#include "libprofil/xform.h"

static const struct dialect *row_of(enum sprofil_rules rules, unsigned int flags)
{
	if (rules == SPROFIL_IRIX)
		return &dialects[flags & SPROFIL_UINT ? DIALECT_IRIX_UINT : DIALECT_IRIX_USHORT];
	return &dialects[flags & SPROFIL_UINT ? DIALECT_GLIBC_SPROFIL_UINT
					      : DIALECT_GLIBC_SPROFIL_USHORT];
}

/* Writes the period of a sample, rounded to a microsecond. */
static int tell_tick(struct timeval *tvp, __u64 tick_ns)
{
	__u64 us = (tick_ns + 500) / 1000;
	struct timeval tick = { .tv_sec = (time_t)(us / 1000000),
				.tv_usec = (suseconds_t)(us % 1000000) };

	return tvp && us ? call_copy_out(tvp, &tick, sizeof(tick)) : 0;
}

/* Checks that @tvp is writable before the start, because a failing call must change nothing. */
static int check_tvp(struct timeval *tvp)
{
	struct timeval was;
	int err = tvp ? call_copy_in(&was, tvp, sizeof(was)) : 0;

	return err || !tvp ? err : call_copy_out(tvp, &was, sizeof(was));
}

/* Regions rank by offset, the largest first; the overflow bin is last. */
static __u64 rank_of(const struct prof *p, int overflow)
{
	return overflow ? UINT64_MAX : UINT64_MAX - 1 - p->pr_off;
}

/*
 * IRIX's rule: only the region with the largest offset decides, even if it is off; a pc without a
 * counter there is counted by the overflow bin. Returns 1 for an entry that is on, 0 for one that
 * is off, or -EINVAL.
 */
static int add_irix(struct regions *r, const struct dialect *d, struct prof *p, int last)
{
	struct profil_xform x = { .base = p->pr_off };
	int off = xform_reduce(&x, d, p->pr_off, (uint32_t)p->pr_scale, (uint32_t)p->pr_size) ==
		  XFORM_OFF;
	int overflow = !off && !x.mul && !p->pr_off;
	struct region *in;

	if (overflow && !last)
		return -EINVAL;
	if (overflow && x.span)
		r->overflow = r->n;
	in = regions_add(r, &x, p->pr_base, rank_of(p, overflow));
	if (!overflow)
		in->kind = off ? REGION_SHUT : REGION_ALONE;
	return !off;
}

/* glibc's rule: a pc without a counter in a region is left to the next smaller offset. */
static int add_glibc(struct regions *r, const struct dialect *d, const struct prof *p)
{
	struct profil_xform x;

	if (xform_reduce(&x, d, p->pr_off, p->pr_scale, p->pr_size) == XFORM_OFF)
		return 0;
	regions_add(r, &x, p->pr_base, rank_of(p, !x.mul));
	return 1;
}

/* Adds all entries; *@on is how many are on. Copies the array into the space of the message. */
static int add_entries(struct regions *r, enum sprofil_rules rules, const struct dialect *d,
		       const struct prof *profp, int profcnt, int *on)
{
	struct prof *p = (struct prof *)(void *)r->m.space;
	int ret;

	_Static_assert(sizeof(r->m.space) >= REGIONS_MAX * sizeof(*p), "room for a caller's array");
	*on = 0;
	ret = call_copy_in(p, profp, (size_t)profcnt * sizeof(*p));
	for (int i = 0; ret >= 0 && i < profcnt; i++) {
		ret = rules == SPROFIL_IRIX ? add_irix(r, d, &p[i], i == profcnt - 1)
					    : add_glibc(r, d, &p[i]);
		*on += ret > 0;
	}
	return ret < 0 ? ret : 0;
}

int sprofil_start(enum sprofil_rules rules, const struct prof *profp, int profcnt,
		  struct timeval *tvp, unsigned int flags)
{
	const struct dialect *d = row_of(rules, flags);
	__cleanup(regions_freep) struct regions *r = NULL;
	struct profil_msg_reply reply;
	int on, err;

	if (profcnt < 0 || profcnt > REGIONS_MAX)
		return -E2BIG;
	if (flags & ~(unsigned int)(SPROFIL_UINT | SPROFIL_FAST))
		return -EINVAL;
	r = regions_new();
	if (!r)
		return -ENOMEM;
	err = check_tvp(tvp) ?: add_entries(r, rules, d, profp, profcnt, &on);
	if (err)
		return err;

	regions_cut(r, d);
	if (flags & SPROFIL_FAST)
		r->m.start.flags |= PROFIL_START_FAST;
	err = on ? request_start(&r->m.start, REQUEST_ON, &reply) : request_stop(&reply);
	return err ? err : tell_tick(tvp, reply.tick_ns);
}
