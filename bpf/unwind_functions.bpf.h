/* unwind_functions.bpf.h - the functions of interpreters among the frames of a walk */
#ifndef PROFIL_BPF_UNWIND_FUNCTIONS_BPF_H
#define PROFIL_BPF_UNWIND_FUNCTIONS_BPF_H

#include "interpreter.bpf.h"
#include "unwind_step.bpf.h"

/* A machine frame with the function in it, which takes its place. */
static __always_inline void step_framed(struct unwind *u, struct interpreting *in, bool is_leaf)
{
	int next = v8_place(u->fp);
	__u32 at = u->depth - !u->native;

	if (next == NEXT_UNMET) {
		interpreter_meet(in, u->slot);
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
		interpreter_meet(in, u->slot);
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
 * A frame of HotSpot's code cache: its method, if it has one, takes the place of the machine frame.
 * Returns the root of the step to its caller; PROFIL_STACK_NO_TABLE: it is none.
 */
static __always_inline int step_code(struct unwind *u)
{
	struct interpreting *in = interpreting_here();
	__u32 at = u->depth - !u->native;
	int next, step;

	if (!in || !interpreter_load(u->slot, u->interpreter) ||
	    interpreter_find(u->slot, u->image, ANY_OFFSET) != FOUND_CODE)
		return PROFIL_STACK_NO_TABLE;
	in->mark = u->pc;
	in->low = u->sp;
	in->high = u->fp;
	step = hotspot_step(u->exact ? CODE_LEAF : CODE_CALLER);
	next = hotspot_place();
	if (next == NEXT_UNMET) {
		interpreter_meet(in, u->slot);
		next = hotspot_place();
	}
	if (next == NEXT_PLACE && at < PROFIL_FRAMES_MAX) {
		u->place[at] = in->place + !(u->depth == 1 && u->leaf);
		u->depth = at + 1;
	}
	if (step != CODE_STEPPED)
		return PROFIL_STACK_NO_TABLE;
	u->fp = in->high;
	return step_to(u, in->mark, in->low);
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
	if (!u->anonymous)
		hotspot_note(u->base);
	found = interpreter_find(u->slot, u->anonymous ? u->image : u->base,
				 u->anonymous ? ANY_OFFSET : offset);
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
		interpreter_meet(in, u->slot);
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

#endif
