/* profil.bpf.c - the tick, and the fork, exec and exit of those who are counted */
#include <stdbool.h>
#include <stddef.h>

#include <linux/types.h>
#include <linux/bpf.h>
#include <linux/bpf_perf_event.h>
#include <linux/sched.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "core/bin.h"
#include "core/layout.h"
#include "maps.bpf.h"

/* See profil_bucket_of(). */
const volatile __u32 bucket_seed;

/* See PROFIL_ENTRY_LIFE. */
__u32 lives;

/* What we need of the kernel's structures, wherever this kernel keeps it. */
struct atomic_t {
	int counter;
} __attribute__((preserve_access_index));

struct signal_struct {
	struct atomic_t live;
} __attribute__((preserve_access_index));

struct linux_binprm {
	unsigned int secureexec : 1;
	unsigned int interp_flags;
} __attribute__((preserve_access_index));

/* linux/binfmts.h: the caller may not read what it executes. */
#define BINPRM_FLAGS_ENFORCE_NONDUMP 1

struct task_struct {
	int tgid;
	struct signal_struct *signal;
} __attribute__((preserve_access_index));

#if defined(__TARGET_ARCH_x86)
#define regs_pc(regs) ((regs)->rip)
#define regs_user_mode(regs) ((regs)->cs & 3)
typedef struct pt_regs saved_regs;
#elif defined(__TARGET_ARCH_arm64)
#define regs_pc(regs) ((regs)->pc)
#define regs_user_mode(regs) (!((regs)->pstate & 0xf))
typedef struct user_pt_regs saved_regs;
#else
#error "name this architecture's saved user registers here"
#endif

static __always_inline __u32 current_tgid(void)
{
	return bpf_get_current_pid_tgid() >> 32;
}

static __always_inline struct profil_bucket *bucket_of(__u32 tgid)
{
	__u32 key = profil_bucket_of(tgid, bucket_seed);

	return bpf_map_lookup_elem(&processes, &key);
}

static __always_inline struct profil_target *target_of(__u64 entry)
{
	__u32 key = profil_entry_target(entry);

	return bpf_map_lookup_elem(&targets, &key);
}

/* Entries change under our feet: each is read exactly once. */
static __always_inline __u64 read_entry(const struct profil_bucket *bucket, int i)
{
	return *(const volatile __u64 *)&bucket->entry[i];
}

static __always_inline bool entry_is(__u64 entry, __u32 tgid)
{
	return (entry & PROFIL_ENTRY_LIVE) && profil_entry_tgid(entry) == tgid;
}

/* Returns false where the ring is full. */
static __always_inline bool tell(__u32 kind, __u64 entry, __u64 pc)
{
	struct profil_event *event = bpf_ringbuf_reserve(&events, sizeof(*event), 0);

	if (!event)
		return false;
	event->pc = pc;
	event->tgid = profil_entry_tgid(entry);
	event->target = profil_entry_target(entry);
	event->kind = kind;
	event->life = profil_entry_life(entry);
	bpf_ringbuf_submit(event, 0);
	return true;
}

/* A tick without a counter goes out as it is, or is counted as what it is. */
static __always_inline void miss(struct profil_target *target, __u64 entry, __u64 pc)
{
	if (!(entry & PROFIL_ENTRY_NEWBORN) && !(target->flags & PROFIL_TARGET_RAW))
		__sync_fetch_and_add(&target->unmatched, 1);
	else if (tell(PROFIL_EVENT_RAW, entry, pc))
		__sync_fetch_and_add(&target->raw, 1);
	else
		__sync_fetch_and_add(&target->lost, 1);
}

/* Returns the last of the target's regions that begins at or below @pc. */
static __always_inline struct profil_region *find(const struct profil_target *target, __u64 pc)
{
	struct profil_region *found = NULL;
	__u32 low = 0, high = target->nregions;

	for (int i = 0; i < PROFIL_REGION_STEPS && low < high; i++) {
		__u32 middle = (low + high) / 2;
		__u32 key = target->region_first + middle;
		struct profil_region *region = bpf_map_lookup_elem(&regions, &key);

		if (!region)
			return NULL;
		if (region->lo <= pc) {
			found = region;
			low = middle + 1;
		} else {
			high = middle;
		}
	}
	return found;
}

/*
 * Adds 1, never past the top; false where the counter is full. Far from the top, where every
 * counter of a lifetime is, a plain atomic add cannot pass it: fewer CPUs add at once than are
 * left. Near it each step is compared, and a try fails only where another CPU's succeeded.
 */
#define COUNTER_NEAR_TOP 0xffff0000u
#define COUNTER_TRIES 16

static __always_inline bool add_one(__u32 *counter)
{
	__u32 old = *(volatile __u32 *)counter;

	if (old < COUNTER_NEAR_TOP) {
		__sync_fetch_and_add(counter, 1);
		return true;
	}
	for (int i = 0; i < COUNTER_TRIES && old != ~(__u32)0; i++) {
		__u32 seen = __sync_val_compare_and_swap(counter, old, old + 1);

		if (seen == old)
			return true;
		old = seen;
	}
	return false;
}

/* Adds 1 to @counter, marks its group dirty; false where it is gone or full. */
static __always_inline bool count(__u32 counter)
{
	__u32 chunk_key = counter / PROFIL_CHUNK_COUNTERS, dirty_key = 0;
	__u32 place = counter % PROFIL_CHUNK_COUNTERS;
	__u32 page_key = 1 + place / PROFIL_PAGE_COUNTERS;
	void *chunk = bpf_map_lookup_elem(&chunks, &chunk_key);
	struct profil_dirty *dirty;
	struct profil_page *page;

	if (!chunk)
		return false;
	page = bpf_map_lookup_elem(chunk, &page_key);
	dirty = bpf_map_lookup_elem(chunk, &dirty_key);
	if (!page || !dirty)
		return false;

	if (!add_one(&page->count[place % PROFIL_PAGE_COUNTERS]))
		return false;
	dirty->group[place / PROFIL_GROUP_COUNTERS] = 1;
	return true;
}

/*
 * Counts one tick of @entry's process at @pc. Not static: so the verifier reads it once, not once
 * for each place in a bucket.
 */
__attribute__((noinline)) int hit(__u64 entry, __u64 pc)
{
	struct profil_target *target = target_of(entry);
	struct profil_region *region = NULL;
	__u32 bin = PROFIL_NO_BIN;

	if (!target)
		return 0;
	__sync_fetch_and_add(&target->total, 1);
	if (!(entry & PROFIL_ENTRY_NEWBORN))
		region = find(target, pc);
	if (region)
		bin = profil_bin(&region->x, pc);

	if (bin == PROFIL_NO_BIN)
		miss(target, entry, pc);
	else if (!count(region->first + bin))
		__sync_fetch_and_add(&target->lost, 1);
	return 0;
}

/*
 * The pc at which the thread left user mode, whatever it does now; 0 for a thread that never was
 * there, as an io_uring worker.
 */
static __always_inline __u64 user_pc(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	saved_regs *regs = (void *)bpf_task_pt_regs(task);

	return regs_pc(regs);
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	__u32 tgid = current_tgid();
	struct profil_bucket *bucket = bucket_of(tgid);
	bool user_mode = regs_user_mode(&ctx->regs);
	__u64 pc = regs_pc(&ctx->regs);

	if (!bucket)
		return 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!target || target->period_ns != ctx->sample_period)
			continue;
		if (!user_mode && (target->flags & PROFIL_TARGET_USER_ONLY))
			continue;
		if (!user_mode)
			pc = user_pc();
		if (pc)
			hit(entry, pc);
	}
	return 0;
}

static __always_inline bool insert(__u64 entry)
{
	struct profil_bucket *bucket = bucket_of(profil_entry_tgid(entry));

	if (!bucket)
		return false;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		if (!read_entry(bucket, i) &&
		    !__sync_val_compare_and_swap(&bucket->entry[i], 0, entry))
			return true;
	}
	return false;
}

/* Takes @entry out of its place, and notes when it was its target's last. */
static __always_inline void take_out(struct profil_bucket *bucket, int i, __u64 entry,
				     struct profil_target *target)
{
	if (__sync_val_compare_and_swap(&bucket->entry[i], entry, 0) != entry)
		return;
	if (__sync_fetch_and_add(&target->members, -1) == 1)
		target->ended = 1;
}

/*
 * A child with the parent's memory counts where the parent does; one with a copy is a target of
 * its own, from its first tick on.
 */
SEC("tp_btf/task_newtask")
int task_newtask(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];
	__u64 clone_flags = args[1];
	__u32 tgid = current_tgid();
	struct profil_bucket *bucket = bucket_of(tgid);

	if (!bucket || (clone_flags & CLONE_THREAD))
		return 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		__u32 bits = (__u32)entry & (PROFIL_ENTRY_TARGET | PROFIL_ENTRY_NEWBORN);
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!target || !(target->flags & PROFIL_TARGET_INHERIT))
			continue;
		bits |= __sync_fetch_and_add(&lives, PROFIL_ENTRY_LIFE) & PROFIL_ENTRY_LIVES;
		if (!(clone_flags & CLONE_VM))
			bits |= PROFIL_ENTRY_NEWBORN;
		__sync_fetch_and_add(&target->members, 1);
		if (!insert(profil_entry(task->tgid, bits)))
			__sync_fetch_and_add(&target->members, -1);
	}
	return 0;
}

/* Is this an image that whoever called execve() may not look into? */
static __always_inline bool is_secret(const struct linux_binprm *bprm)
{
	return BPF_CORE_READ_BITFIELD(bprm, secureexec) ||
	       (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP);
}

/* The new image is none of the target's business, unless its owner follows it and may. */
SEC("tp_btf/sched_process_exec")
int sched_process_exec(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];
	bool secret = is_secret((void *)args[2]);
	__u32 tgid = task->tgid;
	struct profil_bucket *bucket = bucket_of(tgid);

	if (!bucket)
		return 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!target)
			continue;
		if ((target->flags & PROFIL_TARGET_FOLLOW) &&
		    !(secret && (target->flags & PROFIL_TARGET_UNPRIVILEGED))) {
			__u64 next = profil_entry_exec(entry);

			__sync_val_compare_and_swap(&bucket->entry[i], entry, next);
			tell(PROFIL_EVENT_EXEC, next, 0);
		} else {
			take_out(bucket, i, entry, target);
		}
	}
	return 0;
}

SEC("tp_btf/sched_process_exit")
int sched_process_exit(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];
	__u32 tgid = task->tgid;
	struct profil_bucket *bucket = bucket_of(tgid);

	if (!bucket || task->signal->live.counter)
		return 0;
	for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
		__u64 entry = read_entry(bucket, i);
		struct profil_target *target;

		if (!entry_is(entry, tgid))
			continue;
		target = target_of(entry);
		if (!target)
			continue;
		if (target->flags & PROFIL_TARGET_RAW)
			tell(PROFIL_EVENT_EXIT, entry, 0);
		take_out(bucket, i, entry, target);
	}
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
