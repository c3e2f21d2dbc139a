/* unwind.bpf.h - walks the stack of a sample: by tables of unwind rules, or by frame pointers */
#ifndef PROFIL_BPF_UNWIND_BPF_H
#define PROFIL_BPF_UNWIND_BPF_H

/*
 * stack_count() in call_tree.bpf.h does two things for a sample: it walks the stack from the
 * innermost frame outwards, then enters the frames into the attachment's tree from the outermost
 * inwards.
 *
 * The walk begins at the registers with which the thread left user mode. Each step
 *
 *	1. finds the image of the pc, as for places (spot.bpf.h), and stores the frame's place;
 *	2. finds the row of unwind rules that covers the pc's offset (unwind_rows.bpf.h);
 *	3. by the row, computes the CFA from stack or frame pointer, reads the saved frame pointer
 *	   and the return address below it, and continues in the caller.
 *
 * A return address is the instruction after the call, so callers are looked up at pc - 1. Only the
 * innermost frame and one that a signal has interrupted have an exact pc (u->exact). Clients
 * take an outer frame's offset for a return address: where it is an interrupted instruction,
 * which can be the first one of its function, the offset is stored plus 1 (u->next). An image
 * without rows (JIT code, files without .eh_frame) is unwound by the frame pointer if that is
 * plausible: aligned and not below the stack pointer, which rises. The walk ends at the first frame
 * of the thread, at a frame without a rule, at memory that cannot be read, or after
 * PROFIL_FRAMES_MAX frames; enum profil_stack_root says which.
 *
 * The client makes the rows from .eh_frame and writes them into a map of the attachment
 * (core/unwind_maps.h). They are not trusted: indices are bounded, addresses are read as the user's
 * (bpf_probe_read_user()), steps are limited. Wrong rows spoil only their client's own profile.
 *
 * The state of a walk (struct unwind) is one per CPU, because all functions of a call chain share
 * 512 bytes of stack. A sample that interrupts a walk finds it busy, and is counted in stack_lost.
 */

#include <stdbool.h>

#include "core/arch.h"
#include "core/walk_budget.h"
#include "unwind_functions.bpf.h"
#include "unwind_step.bpf.h"

/* The budgets of users, by their slots in tables.user: an element for each 256 of them. */
#define WALK_PAGE_USERS 256

struct walk_budgets {
	struct walk_budget user[WALK_PAGE_USERS];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, PROFIL_MAX_TARGETS / WALK_PAGE_USERS);
	__type(key, __u32);
	__type(value, struct walk_budgets);
} walk_budgets SEC(".maps");

/* --- one step --------------------------------------------------------------------------------- */

/* Steps to the caller: PROFIL_STACK_GOES_ON, or the root that says why the walk ends. */
static __always_inline int step_caller(struct unwind *u)
{
	__u32 offset = (__u32)(u->pc - !u->exact - u->base);
	__u64 row = u->mode == PROFIL_STACK_FP ? 0 : row_at(u, offset);
	__u32 kind = row_rule(row) & PROFIL_UNWIND_KIND;
	int root;

	if (u->interpreter && u->reads) {
		root = u->anonymous ? step_code(u) : PROFIL_STACK_NO_TABLE;
		if (root != PROFIL_STACK_NO_TABLE)
			return root;
		step_loop(u, row, offset);
	}
	switch (kind) {
	case PROFIL_UNWIND_SP:
	case PROFIL_UNWIND_FP:
	case PROFIL_UNWIND_PLT:
	case PROFIL_UNWIND_SP_WORD:
	case PROFIL_UNWIND_FP_WORD:
	case PROFIL_UNWIND_SWITCH:
	case PROFIL_UNWIND_REGISTER:
		return step_row(u, row, kind);
	case PROFIL_UNWIND_SIGNAL:
		return step_signal(u);
	case PROFIL_UNWIND_END:
		return PROFIL_STACK_WHOLE;
	case PROFIL_UNWIND_BEYOND:
		return PROFIL_STACK_BEYOND;
	case PROFIL_UNWIND_NOT_YET:
		return PROFIL_STACK_NOT_YET;
	}
	root = step_return(u);
	if (root != PROFIL_STACK_NO_TABLE)
		return root;
	root = step_fp(u);
	return root == PROFIL_STACK_NO_TABLE && kind == PROFIL_UNWIND_NO_ROOM ? PROFIL_STACK_NO_ROOM
									      : root;
}

static long step(__u32 i __attribute__((unused)), struct unwind **context)
{
	struct unwind *u = *context;
	int root;

	if (u->depth >= PROFIL_FRAMES_MAX)
		return 1;
	if (u->stretch) {
		step_function(u);
		return 0;
	}
	root = step_place(u) ? step_caller(u) : PROFIL_STACK_NOWHERE;
	if (root == PROFIL_STACK_GOES_ON)
		return 0;
	if (root == PROFIL_STACK_NOWHERE && !u->depth && u->popped) {
		u->pc = u->popped;
		u->sp -= sizeof(u->pc);
		u->popped = 0;
		return 0;
	}
	u->root = (__u32)root;
	return 1;
}

/* --- the walk --------------------------------------------------------------------------------- */

static __always_inline struct walk_budget *walk_budget_of(__u32 user)
{
	__u32 page = user / WALK_PAGE_USERS;
	struct walk_budgets *b = bpf_map_lookup_elem(&walk_budgets, &page);

	return b ? &b->user[user % WALK_PAGE_USERS] : NULL;
}

/* Returns how many frames the walk for the attachment in @slot may have. */
static __attribute__((noinline)) __u32 walk_begin(struct unwind *u, __u32 slot)
{
	struct walk_budget *users;

	u->user = tables.owner[slot % PROFIL_MAX_OBSERVERS];
	users = walk_budget_of(u->user);
	u->began_ns = bpf_ktime_get_ns();
	walk_pay(&u->everyones, u->began_ns, WALK_SHARE);
	return users && walk_pay(users, u->began_ns, WALK_USERS_SHARE) ? PROFIL_FRAMES_MAX : 1;
}

static __attribute__((noinline)) void walk_end(struct unwind *u)
{
	struct walk_budget *users = walk_budget_of(u->user);

	if (users)
		walk_charge(&u->everyones, users, bpf_ktime_get_ns() - u->began_ns);
}

/* Walks the user's stack. */
static __always_inline void stack_walk(struct unwind *u, __u64 user_pc, bool in_kernel)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct arch_regs *regs = (void *)bpf_task_pt_regs(task);
	struct interpreting *in = interpreting_here();

	u->reads = in && !in->busy && u->frames > 1;
	if (in && u->reads) {
		*(volatile __u32 *)&in->busy = 1;
		in->known = 0;
		in->met = 0;
	}
	u->stretch = 0;
	u->interpreter = 0;
	u->pc = user_pc;
	u->sp = arch_sp(regs);
	u->fp = arch_fp(regs);
	u->link = arch_link(regs);
	u->signal = 0;
	u->bytes = 0;
	u->nwords = 0;
	u->moment = (__u32)(bpf_ktime_get_ns() >> 20);
	u->exact = 1;
	u->leaf = !in_kernel;
	u->next = in_kernel && arch_syscall(regs) < 0;
	u->popped = 0;
	/*
	 * The kernel emulates the functions of this page, which has no VMA and no rules. It returns
	 * by popping the address before it moves the pc: then what is on top is no code.
	 */
	if (in_kernel && arch_in_vsyscall(user_pc) &&
	    !bpf_probe_read_user(u->pair, sizeof(u->pair), (void *)(u->sp - sizeof(u->pc)))) {
		u->popped = u->pair[0];
		u->pc = u->pair[1];
		u->sp += sizeof(u->pc);
		u->exact = u->next = 0;
	}
	u->root = PROFIL_STACK_DEEP;
	/* A stretch takes a step for its end, a function that is met first one more. */
	bpf_loop(u->frames > 1 ? 3 * u->frames : 1, step, &u, 0);
	if (in && u->reads)
		*(volatile __u32 *)&in->busy = 0;
}

#endif
