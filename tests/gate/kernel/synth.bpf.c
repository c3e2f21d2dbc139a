/* synth.bpf.c - the product's programs, and programs that give samples to its functions */
#include "profil.bpf.c"

#include "synth.h"

SEC("syscall")
int synth_hit(struct synth_hit *a)
{
	__u64 entry = a->entry ? a->entry : first_entry(a->tgid, a->flags);

	a->entry = entry;
	a->none = !entry;
	if (entry && a->n)
		hit(entry, a->pc, a->n);
	return 0;
}

/* The sample of synth_count(): not on the stack, of which the product's calls need all 512 bytes.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct sample);
} synth_sample SEC(".maps");

SEC("syscall")
int synth_count(struct synth_count *a)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u32 key = 0;
	struct sample *s = bpf_map_lookup_elem(&synth_sample, &key);

	if (!s)
		return 1;
	s->user_pc = a->user_pc;
	s->kernel_pc = a->kernel_pc;
	s->time.ns = a->ns;
	s->time.since = ~0ull;
	s->time.clock_ns = a->clock_ns;
	s->time.periods = a->periods;
	s->flags = a->flags;
	s->user_mode = a->user_mode;
	a->tgid = tgid_of(task);
	count_all(s, a->tgid);
	if (a->wide)
		observe_wide(s, task);
	return 0;
}

SEC("syscall")
int synth_branches(struct synth_branches *a)
{
	__u32 zero = 0;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);

	if (!u)
		return 1;
	*(volatile __u32 *)&u->busy = a->busy;
	branches_all(a->flags, a->n);
	*(volatile __u32 *)&u->busy = 0;
	return 0;
}

SEC("syscall")
int synth_inherit(struct synth_inherit *a)
{
	return inherit(a->entry, a->child, a->bits);
}

SEC("syscall")
int synth_exec(struct synth_exec *a)
{
	return exec_of(a->tgid, a->exec_id, a->secret);
}

SEC("syscall")
int synth_exit(struct synth_exec *a)
{
	return take_out_all(a->tgid, 0);
}

SEC("syscall")
int synth_take_out(struct synth_take_out *a)
{
	return take_out(a->entry, a->at);
}

SEC("syscall")
int synth_event(struct synth_event *a)
{
	struct cpu_time t;
	__u64 account_ns = a->credit_ns;

	event_begin(&t);
	event_settle(&t, &account_ns, a->ran_ns);
	a->credit_ns = account_ns;
	a->ns = t.ns;
	a->periods = t.periods;
	return 0;
}

SEC("syscall")
int synth_tick(struct synth_tick *a)
{
	struct profil_thread thread = { .ticked_ns = a->ticked_ns, .tick_epoch = a->tick_epoch };
	struct cpu_time t;

	tick_settle(&t, &thread, a->ran_ns);
	a->ticked_ns = thread.ticked_ns;
	a->tick_epoch = thread.tick_epoch;
	a->ns = t.ns;
	a->since = t.since;
	return 0;
}

SEC("syscall")
int synth_first(struct synth_first *a)
{
	a->ns = first_time(a->ran_ns, a->born_ns, a->started_ns, a->now_ns);
	return 0;
}

SEC("syscall")
int synth_rest(struct synth_rest *a)
{
	struct profil_thread thread = { .ticked_ns = a->ticked_ns };

	a->ns = rest_settle(&thread, a->ran_ns);
	a->ticked_ns = thread.ticked_ns;
	return 0;
}

SEC("syscall")
int synth_sleep(struct synth_sleep *a)
{
	struct profil_thread thread = { .out_ns = a->out_ns,
					.out_ran_ns = a->out_ran_ns,
					.slept_ns = a->slept_ns,
					.overlap_ns = a->overlap_ns };

	sleep_opens(&thread, a->ran_ns, a->from_ns);
	a->taken_ns = sleep_closes(&thread, a->to_ns);
	a->out_ns = thread.out_ns;
	a->out_ran_ns = thread.out_ran_ns;
	a->slept_ns = thread.slept_ns;
	a->overlap_ns = thread.overlap_ns;
	return 0;
}

SEC("syscall")
int synth_wait(struct synth_wait *a)
{
	__u64 asleep_ns, runnable_ns;

	wait_divide(&asleep_ns, &runnable_ns, a->since_ns, a->woken_ns, a->now_ns, a->taken_ns);
	a->asleep_ns = asleep_ns;
	a->runnable_ns = runnable_ns;
	return 0;
}

SEC("syscall")
int synth_weight(struct synth_weight *a)
{
	struct event_seen seen = { .count = a->seen_count, .cookie = a->seen_cookie };

	a->weight = event_weight(&seen, a->cookie, a->period, a->count);
	a->seen_cookie = seen.cookie;
	a->seen_count = seen.count;
	return 0;
}

SEC("syscall")
int synth_pc(struct synth_pc *a)
{
	a->shown = pc_shown(a->user_pc, a->user_mode, a->target_flags, a->new_image);
	return 0;
}

SEC("syscall")
int synth_thin(struct synth_thin *a)
{
	struct profil_target *target = target_of(profil_entry(0, a->target & PROFIL_ENTRY_TARGET));
	struct cpu_running *here = running_here();
	struct cpu_time t = {
		.ns = a->ns, .since = a->since, .clock_ns = a->clock_ns, .periods = a->periods
	};

	if (here)
		here->n = a->running;
	a->n = samples_for(target, &t, a->clock_ns);
	return 0;
}

/* Counts @count samples at each of the stacks from number @from on. See synth.h. */
struct synth_walk {
	__u32 slot;
	__u32 from;
	__u32 count;
	__u32 counted;
	__u32 top;
};

static long synth_stack(__u32 i, struct synth_walk **context)
{
	struct synth_walk *w = *context;
	__u32 stack = w->from + i, node;

	node = (__u32)node_number(w->slot, w->top, profil_place(0, 1, SYNTH_OUTER + stack % 16));
	if (node)
		node = (__u32)node_number(w->slot, node,
					  profil_place(0, 1, SYNTH_MIDDLE + stack % 1000));
	if (node)
		node = (__u32)node_number(w->slot, node, profil_place(0, 1, SYNTH_LEAF + stack));
	if (!node)
		return 0;
	node_count(w->slot, node, w->count);
	w->counted++;
	return 0;
}

/* Unlike those of SEC("syscall"), it is waited for by a grace period, as programs on samples. */
SEC("raw_tp")
int synth_stacks(struct bpf_raw_tracepoint_args *a)
{
	struct synth_walk walk = { .slot = (__u32)a->args[0],
				   .from = (__u32)a->args[1],
				   .count = (__u32)a->args[3],
				   .top = (__u32)a->args[4] };
	struct synth_walk *w = &walk;

	bpf_loop((__u32)a->args[2], synth_stack, &w, 0);
	return (int)walk.counted;
}

SEC("raw_tp")
int synth_waits(struct bpf_raw_tracepoint_args *a)
{
	__u32 zero = 0;
	struct switched_in *in = bpf_map_lookup_elem(&switched_in, &zero);

	if (!in)
		return 0;
	in->wait = a->args[2];
	wait_count((__u32)a->args[0], 0, 0,
		   waited_at((__u32)a->args[1], (__u32)a->args[3], PROFIL_WAKER_INTERRUPT),
		   a->args[4]);
	return 0;
}

/* Not of SEC("syscall"), in which a task's parent is no trusted pointer. */
SEC("raw_tp")
int synth_execs(struct bpf_raw_tracepoint_args *a)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (a->args[0])
		thread_execs(task, a->args[0]);
	else
		thread_of(task);
	return 0;
}

SEC("raw_tp")
int synth_exits(struct bpf_raw_tracepoint_args *a)
{
	thread_exits((void *)bpf_get_current_task_btf(), a->args[0]);
	return 0;
}

SEC("syscall")
int synth_running(struct synth_running *a)
{
	const struct cpu_running *here = running_here();

	running_count();
	a->n = here ? here->n : 0;
	a->tgid = here ? here->tgid : 0;
	return 0;
}
