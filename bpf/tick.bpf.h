/* tick.bpf.h - one tick: find the region, bin the pc, count */
#ifndef PROFIL_TICK_BPF_H
#define PROFIL_TICK_BPF_H

#include <stddef.h>

#include <bpf/bpf_tracing.h>

#include "core/bin.h"
#include "kernel.bpf.h"
#include "processes.bpf.h"

/* The period of the timer that a busy CPU takes anyway. */
const volatile __u64 tick_ns;

/* The programs on an exec may not have been run: see sched_process_exec_again. */
const volatile bool execs_missed;

/* More ticks than that at once nobody is owed who was not out of the clocks' sight for long. */
#define OWED_MAX 256

/* Notes in its place that the daemon is told of @entry's process from now on. */
static __always_inline void mark_told(__u64 entry)
{
	struct profil_bucket *bucket = bucket_of(profil_entry_tgid(entry));

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (read_entry(bucket, i) == entry)
			__sync_val_compare_and_swap(&bucket->entry[i], entry,
						    entry | PROFIL_ENTRY_TOLD);
	}
}

/*
 * Ticks without a counter go out as they are, or are counted as what they are. Not inline: the code
 * of those that have one lies closer together. Not static, as take_out_all().
 */
__attribute__((noinline)) int miss(struct profil_target *target, __u64 entry, __u64 pc, __u32 n)
{
	if (!target)
		return 0;
	if (!(entry & PROFIL_ENTRY_NEWBORN) && !(target->flags & PROFIL_TARGET_RAW)) {
		__sync_fetch_and_add(&target->unmatched, n);
		return 0;
	}
	if (!profil_entry_known(entry))
		mark_told(entry);
	for (__u32 i = 0; i < OWED_MAX && i < n; i++) {
		if (tell(PROFIL_EVENT_RAW, entry, pc))
			__sync_fetch_and_add(&target->raw, 1);
		else
			__sync_fetch_and_add(&target->lost, 1);
	}
	return 0;
}

/* Says whether @pc is in @target's region @at: from its beginning on, before the next one's. */
static __always_inline bool is_in(const struct profil_target *target, __u32 at, __u64 pc)
{
	__u32 place = at - target->region_first;

	if (place >= target->nregions || tables.start[at % PROFIL_MAX_REGIONS] > pc)
		return false;
	return place + 1 == target->nregions || pc < tables.start[(at + 1) % PROFIL_MAX_REGIONS];
}

/*
 * Returns the region that counts @pc if any does: the last that begins at or below it. That is
 * often the one that the last search found. If the verifier knew that target->zero is just that, it
 * would follow each of the ways down by itself.
 */
static __attribute__((noinline)) const struct profil_region *find(struct profil_target *target,
								  __u64 pc)
{
	__u32 first = target->region_first, low = target->found, high = first + target->nregions;
	__u32 zero = target->zero;

	if (is_in(target, low, pc))
		return bpf_map_lookup_elem(&regions, &low);
	low = first;
	for (int i = PROFIL_REGION_STEPS; i && low < high; i--) {
		__u32 middle = (low + high) / 2 ^ zero;

		if (tables.start[middle % PROFIL_MAX_REGIONS] <= pc) {
			low = middle + 1;
			asm volatile("");
		} else {
			high = middle;
		}
	}
	if (low == first)
		return NULL;
	low--;
	target->found = low;
	return bpf_map_lookup_elem(&regions, &low);
}

/* Neither inline nor static, as miss(): most ticks are in the first region. */
__attribute__((noinline)) __u32 counter_far(struct profil_target *target, __u64 pc)
{
	const struct profil_region *region = NULL;
	__u32 bin;

	if (target && (target->nregions > 1 || !target->near.span))
		region = find(target, pc);
	if (!region)
		return PROFIL_NO_BIN;
	bin = profil_bin(&region->x, pc);
	return bin == PROFIL_NO_BIN ? PROFIL_NO_BIN : region->first + bin;
}

/* The counter of @pc, or PROFIL_NO_BIN. */
static __always_inline __u32 counter_of(struct profil_target *target, __u64 pc)
{
	__u32 bin = profil_bin(&target->near, pc);

	if (bin == PROFIL_NO_BIN)
		return counter_far(target, pc);
	return target->near_first + bin;
}

/*
 * Adds @n, never past the top; returns how many found room. Far from the top, where every counter
 * of a lifetime is, a plain atomic add cannot pass it: fewer CPUs add at once than would have to.
 * Near it each step is compared, and a try fails only where another CPU's succeeded.
 */
#define COUNTER_NEAR_TOP 0xff000000u
#define COUNTER_TRIES 16

static __attribute__((noinline)) __u32 add_near_top(__u32 *counter, __u32 n)
{
	__u32 old = *(volatile __u32 *)counter;

	for (int i = 0; i < COUNTER_TRIES; i++) {
		__u32 new = profil_add(old, n, ~(__u32)0);
		__u32 seen = __sync_val_compare_and_swap(counter, old, new);

		if (seen == old)
			return new - old;
		old = seen;
	}
	return 0;
}

static __always_inline __u32 add(__u32 *counter, __u32 n)
{
	if (*(volatile __u32 *)counter >= COUNTER_NEAR_TOP)
		return add_near_top(counter, n);
	__sync_fetch_and_add(counter, n);
	return n;
}

/* Not inline: where one look-up serves two maps, no kernel makes it part of the program. */
static __attribute__((noinline)) struct profil_chunk *chunk_added(__u32 key)
{
	void *map = bpf_map_lookup_elem(&chunks, &key);
	__u32 element = 0;

	return map ? bpf_map_lookup_elem(map, &element) : NULL;
}

/* Adds @n to @counter, marks its group dirty; returns how many found room. */
static __always_inline __u32 count(__u32 counter, __u32 n)
{
	__u32 key = counter / PROFIL_CHUNK_COUNTERS, element = 0;
	__u32 place = counter % PROFIL_CHUNK_COUNTERS;
	struct profil_chunk *chunk;

	chunk = key ? chunk_added(key) : bpf_map_lookup_elem(&chunk_0, &element);
	if (!chunk)
		return 0;
	n = add(&chunk->count[place], n);
	chunk->dirty[place / PROFIL_GROUP_COUNTERS] = 1;
	return n;
}

/* An atomic add whose result is asked for is one that nothing after it can pass. */
static __always_inline void add_ordered(__u64 *sum, __u64 n)
{
	__u64 before = __sync_fetch_and_add(sum, n);

	asm volatile("" : : "r"(before));
}

/* Counts @n ticks of @entry's process at @pc. */
static __always_inline int hit(struct profil_target *target, __u64 entry, __u64 pc, __u32 n)
{
	__u32 counter = PROFIL_NO_BIN;

	/* Who closes the target either sees this tick in its total, or is seen here. */
	add_ordered(&target->total, n);
	if (*(const volatile __u16 *)&target->flags & PROFIL_TARGET_CLOSED) {
		add_ordered(&target->total, -(__u64)n);
		return 0;
	}
	if (!(entry & PROFIL_ENTRY_NEWBORN))
		counter = counter_of(target, pc);

	if (counter == PROFIL_NO_BIN) {
		miss(target, entry, pc, n);
	} else {
		__u32 counted = count(counter, n);

		if (counted < n)
			__sync_fetch_and_add(&target->lost, n - counted);
	}
	mark_news(entry);
	return 0;
}

/*
 * The pc at which the thread left user mode, whatever it does now; 0 for a thread that never was
 * there, as an io_uring worker. While execve() works, it is the new image's before the exec is
 * seen: whoever may not look into that one is not told.
 */
static __attribute__((noinline)) __u64 user_pc(struct task_struct *task, __u64 entry,
					       const struct profil_target *target)
{
	struct arch_regs *regs = (void *)bpf_task_pt_regs(task);
	__u64 pc = arch_pc(regs);

	if (pc && (target->flags & PROFIL_TARGET_UNPRIVILEGED) &&
	    BPF_CORE_READ_BITFIELD(task, in_execve) && !is_image(task, entry))
		return PROFIL_PC_NOWHERE;
	return pc;
}

/*
 * Where an exec may be missed (see sched_process_exec_again), each tick looks for itself which
 * image it is of. This one's is another than the table's, and its exec is over: that is seen to
 * now. What the kernel knew of the new image it has forgotten, so it is taken for a secret one.
 */
static __attribute__((noinline)) bool is_missed(struct task_struct *task, __u64 entry)
{
	if (is_image(task, entry) || BPF_CORE_READ_BITFIELD(task, in_execve))
		return false;
	exec_of(task->tgid, profil_entry_image(task->self_exec_id), true);
	return true;
}

/* --- perf events ------------------------------------------------------------------------------ */

/*
 * How many ticks one event stands for: 1, as long as the events and the scheduler, who looks at
 * the time with every tick of the timer, agree on what a thread has run. Where threads take turns,
 * who is on the CPU when an event comes is no fair choice; so who has more ticks than time is
 * passed over, and who has less gets what he is owed: not all of it at one pc.
 */
#define OWED_PART 16

/* Where they disagree by more than the slack: the thread is @ahead of the scheduler's time. */
static __attribute__((noinline)) __u32 redress(const struct profil_target *target, __s64 ahead)
{
	__s64 slack = target->slack_ns;
	__u64 n = 2;

	if (ahead > 0)
		return 0;
	if (target->period_ns)
		n += (__u64)(-slack - ahead) / target->period_ns / OWED_PART;
	return n < OWED_MAX ? n : OWED_MAX;
}

/* @charged_ns is how much of @ran_ns, what a thread has run, its target's events stand for. */
static __always_inline __u32 charge(const struct profil_target *target, __u64 *charged_ns,
				    __u64 ran_ns)
{
	__s64 slack = target->slack_ns, ahead = *charged_ns - ran_ns;
	__u32 n = 1;

	if ((__u64)(ahead + slack) > 2 * (__u64)slack)
		n = redress(target, ahead);
	*charged_ns += (__u64)n * target->period_ns;
	return n;
}

/* By an account of the thread's own, which begins with its first event for the target. */
static __attribute__((noinline)) __u32 owed_thread(struct task_struct *task, __u64 entry,
						   struct profil_target *target)
{
	__u32 index = profil_entry_target(entry);
	__u64 ran_ns = task->se.sum_exec_runtime;
	struct profil_thread *thread =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		return 1;
	if (thread->began != target->began || thread->target != index) {
		thread->began = target->began;
		thread->target = index;
		thread->charged_ns = ran_ns;
	}
	return charge(target, &thread->charged_ns, ran_ns);
}

/*
 * Most threads that are counted are a target's first, whose account is at hand: a thread's storage
 * is a few cache misses away.
 */
static __always_inline __u32 owed(struct task_struct *task, __u64 entry,
				  struct profil_target *target)
{
	__u64 ran_ns = task->se.sum_exec_runtime;

	if ((__u32)task->pid != profil_entry_tgid(entry) ||
	    (entry & (PROFIL_ENTRY_NEWBORN | PROFIL_ENTRY_FORKED)))
		return owed_thread(task, entry, target);
	if (!target->time_ns)
		target->time_ns = ran_ns;
	return charge(target, &target->time_ns, ran_ns);
}

static __always_inline int event_of(struct bpf_perf_event_data *ctx, struct task_struct *task,
				    __u64 entry, __u32 period_ns)
{
	__u64 pc = arch_pc(&ctx->regs);
	bool user_mode = arch_user_mode(&ctx->regs);
	struct profil_target *target = target_of(entry);
	__u32 n = 1;

	if ((target->flags & PROFIL_TARGET_TICK) || target->period_ns != period_ns)
		return 0;
	if (execs_missed && is_missed(task, entry))
		return 0;
	if (!user_mode)
		pc = user_pc(task, entry, target);
	if (!pc)
		return 0;
	if (target->slack_ns)
		n = owed(task, entry, target);
	if (!user_mode && (target->flags & PROFIL_TARGET_USER_ONLY))
		return 0;
	return n ? hit(target, entry, pc, n) : 0;
}

/* Neither inline nor static, as miss(). */
__attribute__((noinline)) int event_of_one(struct bpf_perf_event_data *ctx, __u64 entry,
					   __u32 period_ns)
{
	return event_of(ctx, (void *)bpf_get_current_task_btf(), entry, period_ns);
}

/* Of a process with several entries, or whose entry is not its bucket's first. */
static __attribute__((noinline)) int events_of(struct bpf_perf_event_data *ctx, __u32 tgid,
					       const struct profil_bucket *bucket, __u32 period_ns)
{
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);

		if (entry_is(entry, tgid))
			event_of_one(ctx, entry, period_ns);
	}
	return 0;
}

/*
 * The event's cookie says its period and, above that, the seed: what lies beside the event is at
 * hand, a variable is a cache miss away. Nearly every process that is counted has one entry, the
 * first of its bucket: all that its ticks run through lies in this function.
 */
SEC("perf_event")
int tick_event(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 cookie = bpf_get_attach_cookie(ctx), entry;
	__u32 tgid = task->tgid;
	struct profil_bucket *bucket = bucket_by(tgid, cookie >> 32);

	for (int i = 1; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (entry_is(read_entry(bucket, i), tgid))
			return events_of(ctx, tgid, bucket, (__u32)cookie);
	}
	entry = read_entry(bucket, 0);
	return entry_is(entry, tgid) ? event_of(ctx, task, entry, (__u32)cookie) : 0;
}

/* --- the timer that a busy CPU takes anyway --------------------------------------------------- */

/* What a thread has run since the timer last saw it. */
struct stretch {
	__u64 ns;
	__u32 from; /* profil_moment() */
	bool known;
};

/*
 * Where threads take turns, who is on the CPU when the timer comes is no fair choice: turns begin
 * and end with it. So a thread is charged what the scheduler says that it ran, not a tick.
 */
static __always_inline struct stretch stretch_of(struct task_struct *task)
{
	__u64 ran_ns = task->se.sum_exec_runtime;
	struct stretch s = { .ns = tick_ns };
	struct profil_thread *thread =
		bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!thread)
		return s;
	s.known = thread->moment;
	s.from = thread->moment;
	if (s.known)
		s.ns = ran_ns - thread->ran_ns;
	if (s.ns > (OWED_MAX - 1) * tick_ns)
		s.ns = (OWED_MAX - 1) * tick_ns;
	thread->ran_ns = ran_ns;
	thread->moment = profil_moment(bpf_ktime_get_ns()) | 1;
	return s;
}

/*
 * How many of its ticks a target has had when it has run @ns. Of each period one moment counts:
 * not always the same, or threads that take turns would not each get their share, but one that
 * moves on by the golden ratio, which no rhythm keeps step with.
 */
#define GOLDEN_RATIO 2654435769u /* of 2^32 */

static __always_inline __u64 ticks_until(__u64 ns, __u32 period_ns)
{
	__u64 periods = ns / period_ns;
	__u64 moment = (__u64)((__u32)periods * GOLDEN_RATIO) * period_ns >> 32;

	return periods + (ns - periods * period_ns > moment);
}

/* How many ticks @target is due for @s. Of a stretch that began before it, the timer's own. */
static __always_inline __u64 due(struct profil_target *target, const struct stretch *s)
{
	__u64 ns = s->known && (__s32)(s->from - target->began) >= 0 ? s->ns : tick_ns, from;

	if (!target->period_ns)
		return 0;
	from = __sync_fetch_and_add(&target->time_ns, ns);
	return ticks_until(from + ns, target->period_ns) - ticks_until(from, target->period_ns);
}

/* Neither inline nor static, as miss(). */
__attribute__((noinline)) int hit_by_tick(struct profil_target *target, __u64 entry, __u64 pc,
					  __u32 n)
{
	return target ? hit(target, entry, pc, n) : 0;
}

static __always_inline int tick_of(struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct profil_bucket *bucket = bucket_of(tgid);
	struct stretch stretch = { 0 };
	bool looked = false;

	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i), pc, n;
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!(target->flags & PROFIL_TARGET_TICK))
			continue;
		if (execs_missed && is_missed(task, entry))
			continue;
		if (!looked)
			stretch = stretch_of(task);
		looked = true;
		pc = user_pc(task, entry, target);
		if (!pc)
			break;
		n = due(target, &stretch);
		if (n)
			hit_by_tick(target, entry, pc, n);
	}
	return 0;
}

/*
 * The timer of the tick is known by its function, and that by its name: 6.9 renamed it. Returns
 * whether @function is it, and remembers.
 */
static __always_inline bool is_tick(__u64 function)
{
	char name[24] = { 0 }; /* 6.1 takes no buffer that has never been written to */

	if (bpf_snprintf(name, sizeof(name), "%ps", &function, sizeof(function)) < 0)
		return false;
	if (bpf_strncmp(name, sizeof(name), "tick_sched_timer") &&
	    bpf_strncmp(name, sizeof(name), "tick_nohz_handler"))
		return false;
	tables.tick_function = function;
	return true;
}

/* Every timer that expires comes here; those of other profilers' clocks, too. */
SEC("tp_btf/hrtimer_expire_entry")
int tick_timer(__u64 *args)
{
	const struct hrtimer *timer = (void *)args[0];
	__u64 function = (__u64)timer->function;

	if (function != tables.tick_function && (tables.tick_function || !is_tick(function)))
		return 0;
	return tick_of((void *)bpf_get_current_task_btf());
}

#endif
