/* profil.bpf.c - the BPF programs: on samples, and on fork, exec and exit of targets */
#include <stdbool.h>

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "core/shared_maps.h"
#include "branches.bpf.h"
#include "kernel.bpf.h"
#include "off_cpu.bpf.h"
#include "process_table.bpf.h"
#include "sample.bpf.h"
#include "thread_end.bpf.h"
#include "fold.bpf.h"

/* --- samples ---------------------------------------------------------------------------------- */

/* The counter of an event on this CPU at its latest sample. */
struct event_seen {
	__u64 count;
	__u64 cookie; /* of its link */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1 + PROFIL_TARGET_EVENTS / PROFIL_TARGET_EVENT);
	__type(key, __u32);
	__type(value, struct event_seen);
} events_seen SEC(".maps");

/*
 * The number of events that one sample stands for. @count is the event's counter, if the kernel
 * changes the event's @period: the events since this CPU's latest sample then.
 */
static __always_inline __u64 event_weight(struct event_seen *seen, __u64 cookie, __u64 period,
					  __u64 count)
{
	__u64 since = count - (seen->cookie == cookie ? seen->count : 0);

	if (cookie & PROFIL_COOKIE_FREQUENCY)
		return 1;
	if (!(cookie & PROFIL_COOKIE_ADAPTED))
		return period;
	seen->cookie = cookie;
	seen->count = count;
	return since;
}

/* Not inlined, because all functions of a call chain share 512 bytes of stack. */
static __attribute__((noinline)) __u64 sample_weight(struct bpf_perf_event_data *ctx, __u64 cookie)
{
	__u32 key = ((__u32)cookie & PROFIL_TARGET_EVENTS) / PROFIL_TARGET_EVENT;
	struct event_seen *seen = bpf_map_lookup_elem(&events_seen, &key);
	struct bpf_perf_event_value now = { 0 };

	if (!seen ||
	    (cookie & PROFIL_COOKIE_ADAPTED && bpf_perf_prog_read_value(ctx, &now, sizeof(now))))
		return 1;
	return event_weight(seen, cookie, ctx->sample_period, now.counter);
}

/*
 * Counts @n events in the current thread; @cookie says which event. Called for all processes, most
 * of which have no target for it.
 */
static __always_inline void event_count(struct sample *s, struct task_struct *task, __u64 cookie,
					__u64 n)
{
	s->flags = (__u32)cookie & PROFIL_TARGET_EVENTS;
	s->time = (struct cpu_time){ .ns = n, .since = ~0ull, .clock_ns = (__u32)n, .periods = 1 };
	count_all(s, tgid_of(task));
	if (*(volatile __u32 *)&tables.wide.n)
		observe_wide(s, task);
}

SEC("tracepoint")
int observed_tracepoint(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct sample s = { 0 };

	sample_tracepoint(&s, task, ctx);
	event_count(&s, task, bpf_get_attach_cookie(ctx), 1);
	return 1; /* 0 would drop the event for other users of perf */
}

/* The kernel links uprobes to programs of another type than other tracepoints. */
SEC("uprobe")
int observed_uprobe(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct arch_regs *user = (void *)bpf_task_pt_regs(task);
	struct sample s = { .user_mode = true };

	s.user_pc = arch_pc(user);
	event_count(&s, task, bpf_get_attach_cookie(ctx), 1);
	return 1;
}

/* A program of its own: other samples do not pay for its test. */
SEC("perf_event")
int branch_event(struct bpf_perf_event_data *ctx)
{
	struct branches *b = branches_here();
	long bytes = b ? bpf_read_branch_records(ctx, b->record, sizeof(b->record), 0) : 0;

	if (bytes > 0)
		branches_all((__u32)bpf_get_attach_cookie(ctx) & PROFIL_TARGET_EVENTS,
			     (__u32)bytes / sizeof(b->record[0]));
	return 0;
}

/* Read again rather than kept: tick_event() has no room on the stack for it. */
static __always_inline __u32 wide_attachments(void)
{
	return *(volatile __u32 *)&tables.wide.n;
}

/* The daemon that has loaded these programs. */
const volatile __u32 clock_owner;

/*
 * The clock: one perf event per CPU, at the rate of tables.clock. For wide scopes an event stands
 * for its period, because over all CPUs the events are an unbiased choice of threads. The events of
 * an earlier daemon end some 100 ms after their links have been closed, and do not count then.
 *
 * Other events have a cookie, and a period of their own, which the kernel adapts if the event has a
 * frequency.
 */
SEC("perf_event")
int tick_event(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 entry, cookie;
	struct sample s = { 0 };

	if (*(volatile __u32 *)&tables.latency)
		running_count();
	cookie = *(volatile __u32 *)&tables.events ? bpf_get_attach_cookie(ctx) : 0;
	if (cookie) {
		sample_event(&s, task, ctx);
		event_count(&s, task, cookie, sample_weight(ctx, cookie));
		return 0;
	}
	if (*(volatile __u32 *)&tables.clock.owner != clock_owner)
		return 0;
	entry = only_entry(tgid_of(task));
	if (!entry && !wide_attachments())
		return 0;
	sample_event(&s, task, ctx);
	if (entry == SEVERAL_ENTRIES)
		count_all(&s, tgid_of(task));
	else if (is_on_clock(entry, tgid_of(task), 0))
		count_entry(&s, task, entry);
	if (wide_attachments()) {
		event_begin(&s.time);
		s.time.since = ~0ull;
		observe_wide(&s, task);
	}
	return 0;
}

/*
 * True if @function is the tick's timer function, which it then stores in tables.clock. The name is
 * compared, since the address is not known; 6.9 renamed the function. Global, so that its stack is
 * not part of the caller's.
 */
__attribute__((noinline)) int is_tick(__u64 function)
{
	char name[24] = { 0 }; /* 6.1 takes no buffer that has never been written to */

	if (bpf_snprintf(name, sizeof(name), "%ps", &function, sizeof(function)) < 0)
		return false;
	if (bpf_strncmp(name, sizeof(name), "tick_sched_timer") &&
	    bpf_strncmp(name, sizeof(name), "tick_nohz_handler"))
		return false;
	tables.clock.tick_function = function;
	return true;
}

/*
 * The timer interrupt that a busy CPU takes anyway, after the kernel's own work in it. Runs for
 * every hrtimer that has expired. Its function may have freed one that is not the tick's, so what
 * is read of it may be anything.
 */
static __always_inline void timer_expired(struct task_struct *task, __u64 timer)
{
	const volatile __u32 *wide = &tables.wide.n;
	struct sample s = { 0 };
	__u64 entry;

	if (bpf_probe_read_kernel(&s.user_pc, sizeof(s.user_pc),
				  &((struct hrtimer *)timer)->function) ||
	    (s.user_pc != tables.clock.tick_function &&
	     (tables.clock.tick_function || !is_tick(s.user_pc))))
		return;
	entry = first_entry(tgid_of(task), PROFIL_TARGET_TICK);
	if (!entry && !(counts_places && *wide))
		return;
	sample_tick(&s, task, timer);
	exit_notice(task, s.kernel_pc);
	tick_time(&s.time, task);
	if (entry)
		count_all(&s, tgid_of(task));
	if (counts_places && *wide)
		observe_wide(&s, task);
}

static __always_inline void thread_ends(struct task_struct *task)
{
	thread_exits(task, ran_until_now(task));
	if (!BPF_CORE_READ(task, signal, live.counter))
		take_out_all(tgid_of(task), pid_ns ? 0 : PROFIL_TARGET_OBSERVE);
}

/*
 * Attached to two tracepoints, because the verifier takes a quarter of a second for each program
 * that can count a place with its stack: hrtimer_expire_exit, whose argument is the timer, and
 * sched_process_exit, whose argument is the thread that runs. One without places is replaced where
 * it is attached: a tick runs the one or the other.
 */
SEC("raw_tp")
int tick_or_exit(__u64 *args)
{
	struct task_struct *task;

	if (!counts_places)
		bpf_tail_call(args, &tick_places, 0); /* returns if there is none */
	task = (void *)bpf_get_current_task_btf();
	if (args[0] == (__u64)task)
		thread_ends(task);
	else
		timer_expired(task, args[0]);
	return 0;
}

/* --- off-CPU time ------------------------------------------------------------------------------
 */

/*
 * The state of @task, which loses its CPU; 0: it does not count. Kernel threads do not, nor threads
 * that are about to end: the process may end, with its entries in the process table, before such a
 * thread wakes up.
 */
static __always_inline __u32 state_without_cpu(const struct task_struct *task, bool preempted,
					       __u32 state)
{
	if (state & TASK_DEAD || !task->mm || task->flags & PF_EXITING)
		return 0;
	return preempted || !state ? PROFIL_STATE_RUNNABLE : PROFIL_STATE_ASLEEP;
}

/*
 * Attached while an attachment counts the time of threads without a CPU, or divides that of threads
 * that run at the same time.
 */
SEC("tp_btf/sched_switch")
int sched_switch(__u64 *args)
{
	struct task_struct *prev = (void *)args[1], *next = (void *)args[2];
	struct sample s = { .flags = state_without_cpu(prev, args[0], (__u32)args[3]) };

	if (*(volatile __u32 *)&tables.latency)
		running_note(tgid_of(next));
	if (!*(volatile __u32 *)&tables.waits)
		return 0;
	sleep_end_unseen(prev);
	if (s.flags) {
		s.user_pc = arch_pc((struct arch_regs *)bpf_task_pt_regs(prev));
		/* 0: a kernel thread of io_uring, with the process's memory */
		if (s.user_pc && wait_all(&s, prev, WAIT_BEGINS))
			sleep_account(s.flags);
	}
	if (next->mm && arch_pc((struct arch_regs *)bpf_task_pt_regs(next))) {
		sleep_settle(next);
		wait_all(NULL, next, WAIT_ENDS);
	}
	return 0;
}

SEC("tp_btf/sched_wakeup")
int sched_wakeup(__u64 *args)
{
	struct task_struct *task = (void *)args[0];

	if (*(volatile __u32 *)&tables.states && task->mm)
		wait_all(NULL, task, WAIT_WAKES);
	return 0;
}

/* Attached with them. Unlike the former, it runs where the waker does. */
SEC("tp_btf/sched_waking")
int sched_waking(__u64 *args)
{
	struct task_struct *task = (void *)args[0];

	if (*(volatile __u32 *)&tables.wakers && task->mm)
		wait_all(NULL, task, WAIT_IS_WOKEN);
	return 0;
}

#define CONTENTION_SPINS 1 /* trace/events/lock.h: the thread does not sleep */

/*
 * Attached with them. The kernel's lock of a thread is known from its second sleep on, when it has
 * an account.
 */
SEC("tp_btf/contention_begin")
int contention_begin(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread;

	if ((__u32)args[1] & CONTENTION_SPINS || !task->mm)
		return 0;
	thread = bpf_task_storage_get(&threads, task, NULL, 0);
	if (!thread)
		return 0;
	thread->lock = args[0];
	thread->lock_epoch = tables.clock.epoch;
	return 0;
}

SEC("tp_btf/contention_end")
int contention_end(__u64 *args)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct profil_thread *thread;

	thread = task->mm ? bpf_task_storage_get(&threads, task, NULL, 0) : NULL;
	if (thread && thread->lock == args[0])
		thread->lock = 0;
	return 0;
}

/* --- fork, exec and exit ---------------------------------------------------------------------- */

/*
 * A child that shares the parent's memory counts in the parent's target; one with a copy is UNBOUND
 * until its first sample.
 *
 * The kernel skips a program that is already running on the same CPU, for instance in a task that
 * was preempted in it. At this tracepoint interrupts are off; at task_newtask forks were missed
 * since Linux 7.0.
 */
SEC("tp_btf/sched_wakeup_new")
int sched_wakeup_new(__u64 *args)
{
	const struct task_struct *child = (void *)args[0];
	const struct task_struct *parent = (void *)bpf_get_current_task_btf();
	__u32 tgid = tgid_of(parent), childs_tgid = tgid_of(child), end = buckets();
	__u32 bits = PROFIL_ENTRY_FORKED | profil_entry_exec_id(child->self_exec_id);

	if (childs_tgid == tgid)
		return 0;
	if (BPF_CORE_READ(child, mm) != BPF_CORE_READ(parent, mm))
		bits |= PROFIL_ENTRY_UNBOUND;
	take_out_all(childs_tgid, 0); /* stale entries of an earlier process with this pid */
	for (__u32 which = 0; which < 2 && which < end; which++) {
		const struct profil_bucket *bucket = bucket_of(tgid, which);

		for (int i = 0; i < PROFIL_BUCKET_ENTRIES; i++) {
			__u64 entry = read_entry(bucket, i);

			if (entry_is(entry, tgid))
				inherit(entry, childs_tgid, bits);
		}
	}
	return 0;
}

/* True if the caller of execve() may not read the new image. */
static __always_inline bool is_secret(const struct linux_binprm *bprm)
{
	return BPF_CORE_READ_BITFIELD(bprm, secureexec) ||
	       (bprm->interp_flags & BINPRM_FLAGS_ENFORCE_NONDUMP);
}

static __always_inline int execd(__u64 *args)
{
	const struct task_struct *task = (void *)args[0];

	return exec_of(tgid_of(task), profil_entry_exec_id(task->self_exec_id),
		       is_secret((void *)args[2]));
}

SEC("tp_btf/sched_process_exec")
int sched_process_exec(__u64 *args)
{
	struct task_struct *task = (void *)args[0];

	thread_execs(task, ran_until_now(task));
	return execd(args);
}

/*
 * A task can be preempted at this tracepoint, and at every other one in execve(). Hence two
 * programs: an exec is missed only while tasks are preempted in both. Then the next sample finds an
 * exec_id that differs from the entry's (is_missed()).
 */
SEC("tp_btf/sched_process_exec")
int sched_process_exec_again(__u64 *args)
{
	return execd(args);
}

/*
 * An exit may be missed as well. At this tracepoint no task is preempted, so the entries are gone
 * when the task is freed. By then the pid has been free for an RCU grace period; the kernel hands
 * out all other pids before it reuses one.
 */
SEC("tp_btf/sched_process_free")
int sched_process_free(__u64 *args)
{
	struct task_struct *task = (void *)args[0];

	thread_is_freed(task);
	if (task->pid == task->tgid)
		take_out_all(tgid_of(task), 0);
	return 0;
}

/* Run by the daemon: how deep its pid namespace is below the initial one. */
SEC("?syscall")
int find_pid_ns_level(void *ctx)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	tables.pid_ns_level = BPF_CORE_READ(task, thread_pid, level);
	return 0;
}

/* Run by the daemon: the exec_id of process *@tgid, as in entries; 0: no such process. */
SEC("?syscall")
int exec_id_of(const __u32 *tgid)
{
	struct task_struct *task = bpf_task_from_pid((int)*tgid);
	__u32 exec_id;

	if (!task)
		return 0;
	exec_id = profil_entry_exec_id(task->self_exec_id);
	bpf_task_release(task);
	return (int)exec_id;
}

/* For the daemon: which mapping samples would find at an address of the daemon. */
SEC("syscall")
int mapping_query(struct profil_mapping_query *q)
{
	struct spot s = { 0 };

	task_memory_read(&s.memory);
	spot_find(&s, q->address);
	q->start = s.m.start;
	q->end = s.m.end;
	q->offset = s.m.offset;
	q->kind = s.inode ? PROFIL_IMAGE_FILE : s.kind; /* own code can be in a file, too */
	return 0;
}

/* For the daemon: a step of folding a tree. */
SEC("syscall")
int tree_fold(struct profil_fold *f)
{
	return fold_all(f->slot, f->epoch, f->op, f->n);
}

struct bpf_map {
	__u32 id;
	char name[16];
} __attribute__((preserve_access_index));

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
} __attribute__((preserve_access_index));

struct bpf_iter__bpf_map {
	struct bpf_iter_meta *meta;
	struct bpf_map *map;
} __attribute__((preserve_access_index));

/* For the daemon: the ids of all tables that exist, in ascending order. */
SEC("iter/bpf_map")
int table_ids(struct bpf_iter__bpf_map *ctx)
{
	struct bpf_map *map = ctx->map;
	char name[8] = { 0 };
	__u32 id;

	if (!map)
		return 0;
	bpf_probe_read_kernel(name, sizeof(name) - 1, map->name);
	if (bpf_strncmp(name, 7, "profil_"))
		return 0;
	id = map->id;
	bpf_seq_write(ctx->meta->seq, &id, sizeof(id));
	return 0;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
