/* sync_timer.c - when counts are drained to the buffers
 *
 * Dirty flags and wake-ups
 *
 * Most of a thousand profiles have no new samples in a pass. Two levels of dirty flags make a pass
 * cheap, and a wake-up request lets the daemon sleep while nothing is counted:
 *
 *	block flag	a byte for each 64 counters (struct profil_chunk): they have new counts
 *	target flag	a byte for each target (tables.dirty.target): it has new samples, or ended
 *	wakeup		a word (tables.dirty.wakeup): post an event with the next target flag
 *
 * A sample (bpf/sample.bpf.h) adds to target->total, sets the block flag, adds to the counter, sets
 * the block flag again if it has been cleared, then tests the target flag. Only if that is 0 does
 * it set the flag and exchange wakeup with 0; if wakeup was 1, it posts a DIRTY event. A full ring
 * needs no event: it has others, for which the daemon is awake.
 *
 * A pass (sync_run(), each mirror interval) clears each target flag that is set, and queues the
 * profile. The writer then exchanges its block flags with 0, and the counters of these blocks
 * (counters.c). A pass without any target flag sets wakeup and stops the timer. Every turn of
 * the event loop starts it again (sync_arm()), because the event may have brought samples.
 *
 * Which barriers pair:
 *
 *	target flag	pass: clears the flag, full barrier, reads total
 *			sample: adds to total (full barrier), tests the flag
 *	block flag	pass: exchanges the flag, reads the counters
 *			sample: sets the flag, adds to the counter (full barrier), tests the flag
 *	wakeup		pass: sets wakeup, full barrier, scans the target flags (bpf_rests())
 *			sample: sets the target flag, exchanges wakeup (full barrier)
 *
 * All three are Dekker pairs: the pass sees the sample, or the sample sees that the flag is clear
 * (that wakeup is set). So a pass that clears a block flag takes the count, or the sample sets the
 * flag again, and then the target flag, which was cleared before: the next pass takes the count.
 *
 * Flags of attachments are always set, so that their samples take the short path; a pass skips
 * them, because their counts are read in place.
 */
#include "base/clocks.h"
#include "buffer_writer.h"
#include "own_profile.h"
#include "sync_timer.h"
#include "sampler.h"

/* Returns whether there were new samples. */
static bool sync_pass(struct profild *d)
{
	struct target *t;
	uint32_t at = 0;
	bool any = false;

	while ((t = d->sampler->ops->next(d->sampler, &at))) {
		struct own_profile *own = own_profile_ref(t->profile);

		own_profile_check(own);
		if (own->state != OWN_PROFILE_ENDED)
			writer_queue(own);
		own_profile_unref(own);
		any = true;
	}
	writers_kick(d);
	return any;
}

/* After a pass with new samples the next one is due; after one without, the next event arms it. */
uint64_t sync_run(struct profild *d)
{
	uint64_t now;
	bool any;

	if (!d->sync_at_ns)
		return UINT64_MAX;
	now = now_ns();
	if (now < d->sync_at_ns)
		return d->sync_at_ns - now;
	any = sync_pass(d);
	d->sync_at_ns = 0;
	if (!d->profiles || (!any && d->sampler->ops->rests(d->sampler)))
		return UINT64_MAX;
	d->sync_at_ns = now + d->config.mirror_interval_ns;
	return d->config.mirror_interval_ns;
}

void sync_arm(struct profild *d)
{
	if (!d->sync_at_ns && d->profiles)
		d->sync_at_ns = now_ns() + d->config.mirror_interval_ns;
}
