/* sprofil.c - many histograms at once, as IRIX and glibc have it */
#include <errno.h>
#include <stdint.h>

#include "core/scope.h"
#include "call.h"
#include "regions.h"
#include "request.h"
#include "sprofil.h"
#include "xform.h"

static const struct dialect *row_of(enum sprofil_rules rules, unsigned int flags)
{
	if (rules == SPROFIL_IRIX)
		return &dialects[flags & SPROFIL_UINT ? DIALECT_IRIX_UINT : DIALECT_IRIX_USHORT];
	return &dialects[flags & SPROFIL_UINT ? DIALECT_GLIBC_SPROFIL_UINT
					      : DIALECT_GLIBC_SPROFIL_USHORT];
}

/* The time of a tick, to the microsecond. */
static int tell_tick(struct timeval *tvp, __u64 tick_ns)
{
	__u64 us = (tick_ns + 500) / 1000;
	struct timeval tick = { .tv_sec = (time_t)(us / 1000000),
				.tv_usec = (suseconds_t)(us % 1000000) };

	return tvp && us ? call_copy_out(tvp, &tick, sizeof(tick)) : 0;
}

/* A failing call changes nothing, so it is seen beforehand whether @tvp can be written. */
static int check_tvp(struct timeval *tvp)
{
	struct timeval was;
	int err = tvp ? call_copy_in(&was, tvp, sizeof(was)) : 0;

	return err || !tvp ? err : call_copy_out(tvp, &was, sizeof(was));
}

/*
 * The region with the largest offset goes first, the first of equal ones; the overflow bin, which
 * glibc's callers may put anywhere, takes what is left. Returns 1 for an entry that is on, 0 for
 * one that is off, or -EINVAL.
 */
static int add_entry(struct regions *r, enum sprofil_rules rules, const struct dialect *d,
		     struct prof *p, int last)
{
	struct profil_xform x;

	if (rules == SPROFIL_IRIX)
		p->pr_size = (uint32_t)p->pr_size;
	if (xform_reduce(&x, d, p->pr_off, p->pr_scale, p->pr_size) == XFORM_OFF)
		return 0;
	if (!x.mul && rules == SPROFIL_IRIX && !last)
		return -EINVAL;
	regions_add(r, &x, p->pr_base, x.mul ? UINT64_MAX - 1 - x.base : UINT64_MAX);
	return 1;
}

/* Adds all entries; counts in @on those that are on. */
static int add_entries(struct regions *r, enum sprofil_rules rules, const struct dialect *d,
		       const struct prof *profp, int profcnt, int *on)
{
	struct prof p[64];
	int here, ret;

	*on = 0;
	for (int done = 0; done < profcnt; done += here) {
		here = profcnt - done < 64 ? profcnt - done : 64;
		ret = call_copy_in(p, profp + done, (size_t)here * sizeof(p[0]));
		for (int i = 0; ret >= 0 && i < here; i++) {
			ret = add_entry(r, rules, d, &p[i], done + i == profcnt - 1);
			*on += ret > 0;
		}
		if (ret < 0)
			return ret;
	}
	return 0;
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
	err = check_tvp(tvp);
	if (!err)
		err = add_entries(r, rules, d, profp, profcnt, &on);
	if (err)
		return err;

	regions_cut(r, d);
	if (flags & SPROFIL_FAST)
		r->m.start.flags |= PROFIL_START_FAST;
	err = on ? request_start(&r->m.start, REQUEST_ON, &reply) : request_stop(&reply);
	return err ? err : tell_tick(tvp, reply.tick_ns);
}
