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
 *	1. finds the image of the pc, as for places (place.bpf.h), and stores the frame's place;
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
#include "place.bpf.h"
#include "unwind_rows.bpf.h"

/* Frames of the kernel's stack, the clock's own interrupt included. A power of two. */
#define KERNEL_STACK 128
/* Frames of the clock's own interrupt, at most. */
#define CLOCK_FRAMES 32

/* Words of the user's stack that are read at once. A power of two. */
#define STACK_WORDS 32

/*
 * A cache of rows by image and offset, because return addresses repeat. A row expires after a
 * second, so that the client's changes take effect.
 */
#define FOUND_ROWS 256
#define FOUND_MOMENTS 954 /* of 2^20 ns */

struct found_row {
	__u64 row;
	__u32 epoch;
	__u32 image;
	__u32 offset;
	__u32 moment;
};

/*
 * The nodes of this CPU's latest stack, from the outermost frame inwards. Stacks that follow each
 * other have most outer frames in common, and no node is released while the table exists.
 */
struct latest_stack {
	__u32 epoch;
	__u32 root;
	__u32 frames;
	__u32 common; /* the frames of the stack that is entered have been the same so far */
	__u32 node[PROFIL_FRAMES_MAX + 1];
	__u64 place[PROFIL_FRAMES_MAX + 1];
};

struct unwind {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 link;  /* arm64: return address of a function that has not saved it yet */
	__u64 start; /* the range of addresses that the latest pc was in, ... */
	__u64 bytes;
	__u64 base; /* ... as in struct spot */
	__u32 image;
	__u32 slot;
	__u32 epoch;
	__u32 mode; /* enum profil_stack_mode */
	__u32 depth;
	__u32 frames;  /* at most: PROFIL_FRAMES_MAX, or 1 */
	__u32 limited; /* walk_begin() says so */
	__u32 root;    /* enum profil_stack_root */
	__u32 exact;   /* pc is an interrupted instruction, not a return address */
	__u32 next;    /* added to the offset that is stored for pc; see above */
	__u32 leaf;    /* the first frame is the sample's place */
	__u32 node;    /* the innermost frame's so far */
	__u32 left;    /* frames still to be entered into the tree */
	__u32 busy;
	__u32 kernel_left; /* likewise, of the kernel */
	__u32 kernel_from; /* index of the sample's own frame; those before it are the interrupt's
			    */
	__u32 kernel_image;
	__u32 interpreter; /* as in struct spot, of the latest pc */
	__u32 anonymous;   /* likewise */
	__u32 reads;	   /* interpreters' functions */
	__u32 native;	   /* keep the frames of evaluation loops */
	__u32 stretch;	   /* the next frames are functions: 1 */
	__u32 zero;
	__u64 leaf_place; /* the innermost frame's; 0: it has no image */
	__u64 kernel_window;
	__u32 moment;
	__u32 nwords;
	__u64 pair[2]; /* words of the stack that stack_read() has found */
	__u64 words_at;
	__u64 words[STACK_WORDS]; /* of the stack, from words_at on */
	struct walk_budget everyones;
	__u64 began_ns;
	__u32 user; /* of the attachment: its slot in tables.user */
	struct task_memory memory;
	struct spot spot; /* of a step; here because the BPF stack is full */
	struct found_row found[FOUND_ROWS];
	__u64 place[PROFIL_FRAMES_MAX + 1];
	__u64 kernel[KERNEL_STACK]; /* addresses */
	struct latest_stack latest;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind);
} unwinds SEC(".maps");

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

/* Finds the image of u->pc and stores the place. Returns false if the pc has no image. */
static __always_inline bool step_place(struct unwind *u)
{
	__u64 pc = u->exact ? u->pc : u->pc - 1;
	__u32 at = u->depth, offset;

	if (pc - u->start >= u->bytes) {
		struct spot *s = &u->spot;

		__builtin_memset(s, 0, sizeof(*s));
		s->epoch = u->epoch;
		s->todo = u->exact ? 0 : IMAGE_CALLER;
		s->memory = u->memory;
		spot_of(u->slot, s, owner_of((void *)bpf_get_current_task_btf()), pc);
		if (!s->image)
			return false;
		u->start = s->bytes ? s->start : pc;
		u->bytes = s->bytes ? s->bytes : 1;
		u->base = s->base;
		u->image = s->image;
		u->interpreter = s->interpreter;
		u->anonymous = s->anonymous;
	}
	if (at >= PROFIL_FRAMES_MAX)
		return false;
	offset = (__u32)(u->pc - u->base) + u->next;
	u->place[at] = profil_place(0, u->image, offset);
	u->depth = at + 1;
	return true;
}

/*
 * Reads @words words of the stack, one or two, into u->pair. A call of bpf_probe_read_user() takes
 * as long as the rest of a frame, so it reads STACK_WORDS at once, which later frames find here.
 */
static __always_inline bool stack_read(struct unwind *u, __u64 address, __u32 words)
{
	__u64 at = (address - u->words_at) / sizeof(u->pair[0]);

	if (address & 7 || at + words > u->nwords) {
		u->nwords = 0;
		if (bpf_probe_read_user(u->words, sizeof(u->words), (void *)address))
			return !bpf_probe_read_user(u->pair, words * sizeof(u->pair[0]),
						    (void *)address);
		u->words_at = address;
		u->nwords = STACK_WORDS;
		at = 0;
	}
	u->pair[0] = u->words[at & (STACK_WORDS - 1)];
	u->pair[1] = u->words[(at + 1) & (STACK_WORDS - 1)];
	return true;
}

static __always_inline bool user_word(struct unwind *u, __u64 *out, __u64 address)
{
	if (!stack_read(u, address, 1))
		return false;
	*out = u->pair[0];
	return true;
}

/* Continues at the registers that the kernel saved when it delivered a signal. */
static __always_inline int step_signal(struct unwind *u)
{
	__u64 sp = u->sp;

	if (!user_word(u, &u->fp, sp + ARCH_SIGNAL_FP) ||
	    !user_word(u, &u->pc, sp + ARCH_SIGNAL_PC) ||
	    !user_word(u, &u->link, sp + ARCH_SIGNAL_LINK) ||
	    !user_word(u, &u->sp, sp + ARCH_SIGNAL_SP))
		return PROFIL_STACK_UNREADABLE;
	u->exact = u->next = 1;
	return PROFIL_STACK_GOES_ON;
}

/* Continues in the caller, whose return address is @ra. A thread's first frame has 0. */
static __always_inline int step_to(struct unwind *u, __u64 ra, __u64 sp)
{
	u->sp = sp;
	u->link = 0;
	u->exact = u->next = 0;
	u->pc = arch_return_address(ra);
	return u->pc ? PROFIL_STACK_GOES_ON : PROFIL_STACK_WHOLE;
}

/* Steps by the frame pointer: [fp] is the caller's frame pointer, [fp + 8] the return address. */
static __always_inline int step_fp(struct unwind *u)
{
	__u64 fp = u->fp;

	if (u->mode == PROFIL_STACK_CFI)
		return PROFIL_STACK_NO_TABLE;
	if (!fp)
		return u->mode == PROFIL_STACK_FP ? PROFIL_STACK_WHOLE : PROFIL_STACK_NO_TABLE;
	if (fp & 7 || fp < u->sp)
		return PROFIL_STACK_NO_TABLE;
	if (!stack_read(u, fp, 2))
		return PROFIL_STACK_UNREADABLE;
	/* A caller with rules may use the register for anything; one without ends the walk here. */
	if (u->mode == PROFIL_STACK_FP && u->pair[0] && u->pair[0] <= fp)
		return PROFIL_STACK_NO_TABLE;
	u->fp = u->pair[0];
	return step_to(u, u->pair[1], fp + sizeof(u->pair));
}

/*
 * Steps out of code without rules that returns at once: "add $N, %rsp; ret" at a return address
 * says where the frame ends, whatever made the code. So do the trampolines of Python 3.12 and
 * later with -X perf, which have no frame pointer.
 */
static __always_inline int step_return(struct unwind *u)
{
	__u64 code, ra;

	if (!ARCH_RA_ON_STACK || u->exact || u->mode == PROFIL_STACK_FP ||
	    bpf_probe_read_user(&code, sizeof(code), (void *)u->pc) ||
	    (code & 0xff80ffffff) != 0xc300c48348)
		return PROFIL_STACK_NO_TABLE;
	u->sp += code >> 24 & 0x7f;
	if (!user_word(u, &ra, u->sp))
		return PROFIL_STACK_UNREADABLE;
	return step_to(u, ra, u->sp + 8);
}

/* Steps by @row, whose CFA is @cfa; the caller's frame pointer may be saved at @fp_at. */
static __always_inline int step_saved(struct unwind *u, __u64 row, __u64 cfa, __u64 fp_at)
{
	bool fp_saved = row_rule(row) & PROFIL_UNWIND_FP_SAVED;
	__u64 ra = u->link;

	/* Only the innermost frame, or one that a signal has interrupted, may be empty. */
	if (cfa < u->sp || (cfa == u->sp && !u->exact))
		return PROFIL_STACK_UNREADABLE;
	/* If both words are adjacent, one read halves the time of a frame. */
	if (fp_saved && (ARCH_RA_ON_STACK || row_rule(row) & PROFIL_UNWIND_RA_SAVED) &&
	    arch_ra_at(cfa, fp_at, fp_saved) == fp_at + 8) {
		if (!stack_read(u, fp_at, 2))
			return PROFIL_STACK_UNREADABLE;
		u->fp = u->pair[0];
		return step_to(u, u->pair[1], cfa);
	}
	if ((ARCH_RA_ON_STACK || row_rule(row) & PROFIL_UNWIND_RA_SAVED) &&
	    !user_word(u, &ra, arch_ra_at(cfa, fp_at, fp_saved)))
		return PROFIL_STACK_UNREADABLE;
	if (fp_saved && !user_word(u, &u->fp, fp_at))
		return PROFIL_STACK_UNREADABLE;
	return step_to(u, ra, cfa);
}

/*
 * Steps by a row of a kind that has a CFA. SP_WORD is hand-written assembly that aligns its stack
 * and saves the original stack pointer on it; FP_WORD is what compilers emit for that.
 */
static __always_inline int step_row(struct unwind *u, __u64 row, __u32 kind)
{
	__u64 base = kind == PROFIL_UNWIND_SP ? u->sp : u->fp, cfa = base + row_cfa(row);

	switch (kind) {
	case PROFIL_UNWIND_PLT:
		cfa = u->sp + 8 + ((u->pc & 15) * 8 >= row_cfa(row) ? 8 : 0);
		break;
	case PROFIL_UNWIND_SP_WORD:
		if (!user_word(u, &cfa, u->sp + (__u64)((__s64)(__s16)(row >> 32) * 8)))
			return PROFIL_STACK_UNREADABLE;
		cfa += 8;
		break;
	case PROFIL_UNWIND_FP_WORD:
		if (!user_word(u, &cfa, base + (__u64)row_word(row)))
			return PROFIL_STACK_UNREADABLE;
		cfa += row_more(row);
		break;
	case PROFIL_UNWIND_SWITCH:
		u->sp = 0; /* the other stack can be below this one */
		break;
	}
	return step_saved(u, row, cfa, row_saved_at(row, cfa, base));
}

/* row_of() with the CPU's cache of rows. */
static __always_inline __u64 row_at(struct unwind *u, __u32 offset)
{
	__u32 at = offset ^ offset >> 8 ^ offset >> 16 ^ u->image << 3;
	struct found_row *f = &u->found[at % FOUND_ROWS];
	__u64 row;

	if (f->offset == offset && f->image == u->image && f->epoch == u->epoch &&
	    u->moment - f->moment <= FOUND_MOMENTS)
		return f->row;
	row = row_of(u->slot, u->image, offset);
	if ((row_rule(row) & PROFIL_UNWIND_KIND) == PROFIL_UNWIND_NOT_YET)
		return row;
	f->epoch = 0;
	f->row = row;
	f->image = u->image;
	f->offset = offset;
	f->moment = u->moment;
	f->epoch = u->epoch;
	return row;
}

/* A machine frame with the function in it, which takes its place. */
static __always_inline void step_framed(struct unwind *u, struct interpreting *in, bool is_leaf)
{
	int next = v8_place(u->fp);
	__u32 at = u->depth - !u->native;

	if (next == NEXT_UNMET) {
		interpreter_meet(u->slot);
		next = v8_place(u->fp);
	}
	if (next != NEXT_PLACE || at >= PROFIL_FRAMES_MAX)
		return;
	u->place[at] = in->place + !is_leaf;
	u->depth = at + 1;
}

/* Replaces the leaf by the innermost function, which a later stretch leaves out. */
static __always_inline void step_innermost(struct unwind *u, struct interpreting *in)
{
	int next = interpreter_innermost();

	if (next == NEXT_UNMET) {
		interpreter_meet(u->slot);
		next = interpreter_innermost();
	}
	if (next != NEXT_PLACE)
		return;
	u->place[0] = in->place + !u->leaf;
	in->skip = 1;
}

/* The frame of an operation: innermost, it is replaced by the function that it is part of. */
static __always_inline void step_operation(struct unwind *u, struct interpreting *in)
{
	if (u->depth == 1)
		step_innermost(u, in);
	else if (u->depth == 2 && in->skip)
		u->depth = 1;
}

/*
 * The frame of an evaluation loop, with rule @row: its functions follow. As the leaf it is replaced
 * by the innermost function, as where the sample is counted without stacks; elsewhere it is left
 * out.
 */
static __always_inline void step_loop(struct unwind *u, __u64 row, __u32 offset)
{
	struct interpreting *in = interpreting_here();
	__u32 kind = row_rule(row) & PROFIL_UNWIND_KIND;
	__u64 high = kind == PROFIL_UNWIND_SP	? u->sp + row_cfa(row)
		     : kind == PROFIL_UNWIND_FP ? u->fp + row_cfa(row)
						: 0;
	bool is_leaf = u->depth == 1 && u->leaf;
	int found;

	if (!in || !interpreter_load(u->slot, u->interpreter))
		return;
	found = interpreter_find(u->slot, u->base, u->anonymous ? ANY_OFFSET : offset);
	if (found == FOUND_FRAME)
		step_framed(u, in, is_leaf);
	if (found == FOUND_OPERATION && !u->native)
		step_operation(u, in);
	if (found != FOUND_STRETCH)
		return;
	u->stretch = high && interpreter_enter(u->sp, high);
	if (is_leaf && !u->native && !u->stretch)
		step_innermost(u, in);
	/* The stretch's first function takes the place of the leaf. */
	if (u->stretch && !u->native)
		u->depth--;
	in->depth = u->depth;
}

/* The loop was in its prologue: takes the stretch back. */
static __always_inline void step_undo(struct unwind *u, struct interpreting *in)
{
	bool has_leaf = u->leaf && !u->native && !in->depth;

	/* The leaf stays; the next stretch begins with it. */
	u->depth = has_leaf && u->depth ? 1 : in->depth;
	in->skip = has_leaf && u->depth;
}

/* The next function of the stretch. */
static __always_inline void step_function(struct unwind *u)
{
	struct interpreting *in = interpreting_here();
	int next = in ? interpreter_frame() : NEXT_END;
	__u32 at = u->depth;

	if (!in || next == NEXT_END) {
		u->stretch = 0;
		if (in && in->undo)
			step_undo(u, in);
		return;
	}
	if (next == NEXT_UNMET) {
		interpreter_meet(u->slot);
		return;
	}
	if (in->skip) {
		in->skip = 0;
		return;
	}
	if (at >= PROFIL_FRAMES_MAX)
		return;
	/* As a return address: behind its unit. The leaf is no caller. */
	u->place[at] = in->place + (at || !u->leaf);
	u->depth = at + 1;
}

/* Steps to the caller: PROFIL_STACK_GOES_ON, or the root that says why the walk ends. */
static __always_inline int step_caller(struct unwind *u)
{
	__u32 offset = (__u32)(u->pc - !u->exact - u->base);
	__u64 row = u->mode == PROFIL_STACK_FP ? 0 : row_at(u, offset);
	__u32 kind = row_rule(row) & PROFIL_UNWIND_KIND;
	int root;

	if (u->interpreter && u->reads)
		step_loop(u, row, offset);
	switch (kind) {
	case PROFIL_UNWIND_SP:
	case PROFIL_UNWIND_FP:
	case PROFIL_UNWIND_PLT:
	case PROFIL_UNWIND_SP_WORD:
	case PROFIL_UNWIND_FP_WORD:
	case PROFIL_UNWIND_SWITCH:
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
	u->bytes = 0;
	u->nwords = 0;
	u->moment = (__u32)(bpf_ktime_get_ns() >> 20);
	u->exact = 1;
	u->leaf = !in_kernel;
	u->next = in_kernel && !arch_in_syscall(regs);
	/* The kernel emulates the functions of this page, which has no VMA and no rules. */
	if (in_kernel && arch_in_vsyscall(user_pc) &&
	    !bpf_probe_read_user(&u->pc, sizeof(u->pc), (void *)u->sp)) {
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
