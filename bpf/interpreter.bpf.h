/* interpreter.bpf.h - the functions that an interpreter executes, between the frames of the machine
 */
#ifndef PROFIL_BPF_INTERPRETER_BPF_H
#define PROFIL_BPF_INTERPRETER_BPF_H

/*
 * An interpreter is a program whose image has a descriptor (core/interpreter_maps.h): where its
 * evaluation loop is, and how the structures lie that say which function it executes. A pc in the
 * loop is counted as the innermost function of the thread instead (interpreter_leaf()). A stack
 * walk that meets a frame of the loop emits the functions of that call of the loop, its stretch
 * (interpreter_enter(), then interpreter_frame() for each), and leaves the loop's own frame out.
 *
 * Which functions belong to a call of the loop follows from the machine frame: the loop's own
 * structure lies in it. In the loop's prologue and epilogue it does not, and the frame gets no
 * functions: the thread's innermost function has then called, or returned to, this loop. As the
 * leaf it is counted there all the same, and the next outer stretch leaves its first function out
 * (`skip`), which is that one.
 *
 * A loop that calls a function in C for each operation leaves the loop's code: what such functions
 * (d.operations) execute themselves is counted as the innermost function, too. As callers they stay
 * in the stack.
 *
 * Everything is read as the user's memory, in what the descriptor says. So it is read only if the
 * attachment's owner may read the task's memory itself; a wrong descriptor yields wrong names.
 */

#include "cpython.bpf.h"
#include "hotspot.bpf.h"
#include "linked_frames.bpf.h"
#include "perl.bpf.h"
#include "permission.bpf.h"
#include "unwind_rows.bpf.h"
#include "v8.bpf.h"

#define DESCRIPTOR_MOMENTS 954 /* of 2^20 ns: descriptors are read anew after a second */

/* The ranges of the interpreter's code that @offset is in, as bits. */
static __always_inline __u32 loops_of(const struct profil_interpreter *d, __u32 offset)
{
	__u32 bits = 0;

	for (int i = 0; i < PROFIL_INTERPRETER_LOOPS; i++)
		bits |= (__u32)(offset - d->loop[i].start < d->loop[i].end - d->loop[i].start) << i;
	return bits;
}

/* Finds where the functions of the running thread begin. */
static __always_inline bool thread_begin(struct interpreting *in, __u32 slot, __u64 base)
{
	switch (in->d.kind) {
	case PROFIL_INTERPRETER_V8:
		return true;
	case PROFIL_INTERPRETER_HOTSPOT:
		return hotspot_begin(in, slot, (__u32)base);
	case PROFIL_INTERPRETER_LINKED:
		return linked_begin(in, base);
	case PROFIL_INTERPRETER_PERL:
		return perl_begin(in, base);
	}
	return python_begin(in, base);
}

/*
 * Reads descriptor @number of the attachment in @slot, unless this CPU has it. Returns 0 if there
 * is no such interpreter. Global, so that the verifier checks it once.
 */
__attribute__((noinline)) int interpreter_load(__u32 slot, __u32 number)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	__u32 key = PROFIL_UNWIND_INTERPRETER_PAGE, now = (__u32)(bpf_ktime_get_ns() >> 20);
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	struct interpreting *in = interpreting_here();
	const struct profil_interpreter *page;

	if (!in || !o)
		return 0;
	if (in->number == number && in->epoch == o->epoch && now - in->moment <= DESCRIPTOR_MOMENTS)
		return in->image != 0;
	in->number = 0;
	in->constant_of = in->heaps_of = 0;
	page = map ? bpf_map_lookup_elem(map, &key) : NULL;
	if (!page || !o->functions)
		return 0;
	in->d = page[(number - 1) % PROFIL_INTERPRETERS];
	in->image = in->epoch == o->epoch ? in->image : 0;
	in->epoch = o->epoch;
	in->number = number;
	in->moment = now;
	if (!in->d.kind || in->d.kind >= PROFIL_INTERPRETER_KINDS)
		in->image = 0;
	else
		functions_image(slot, in, in->d.language);
	return in->image != 0;
}

#define ANY_OFFSET 0xffffffffu /* of memory without a file */

enum interpreter_found {
	FOUND_NOTHING,
	FOUND_STRETCH,	 /* interpreter_enter(), then interpreter_frame() */
	FOUND_OPERATION, /* interpreter_innermost() if it is the leaf, else nothing */
	FOUND_CODE,	 /* hotspot_step(), then hotspot_place() */
	FOUND_FRAME,	 /* v8_place() */
};

/*
 * Reads what the loaded descriptor says of the running thread. Its code is at @base + offset, or for
 * ANY_OFFSET in the memory that is image @base. Says how to find its functions if offset @at is in
 * the code of the interpreter: enum interpreter_found. Global, so that the verifier checks it once.
 */
__attribute__((noinline)) int interpreter_find(__u32 slot, __u64 base, __u32 at)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct interpreting *in = interpreting_here();
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	bool v8, hotspot;
	__u32 loops;

	if (!in || !o)
		return FOUND_NOTHING;
	v8 = in->d.kind == PROFIL_INTERPRETER_V8;
	hotspot = in->d.kind == PROFIL_INTERPRETER_HOTSPOT;
	loops = loops_of(&in->d, at);
	in->owner = interpreted_owner(task);
	if (at == ANY_OFFSET ? !v8 && !hotspot : !loops)
		return FOUND_NOTHING;
	if (!in->known) {
		in->known = 1;
		in->slot = slot;
		in->skip = in->undo = 0;
		if (may_read(o, task) && thread_begin(in, slot, base))
			in->known = 2;
	}
	if (in->known != 2)
		return FOUND_NOTHING;
	if (hotspot)
		return FOUND_CODE;
	return v8 ? FOUND_FRAME : loops & ~in->d.operations ? FOUND_STRETCH : FOUND_OPERATION;
}

/* Begins with the innermost function, without a proof that it belongs to the loop at hand. */
static __always_inline bool innermost_begin(struct interpreting *in)
{
	in->undo = 0;
	if (in->d.kind == PROFIL_INTERPRETER_PERL)
		return perl_stretch(in);
	if (in->d.kind == PROFIL_INTERPRETER_LINKED) {
		in->frame = in->next;
		return in->frame;
	}
	in->low = in->high = 0;
	return python_stretch(in);
}

/*
 * Begins the functions of the loop whose machine frame is [@low, @high). interpreter_find() has
 * returned FOUND_STRETCH. Returns 0 if the loop has none. Global, as interpreter_find().
 */
__attribute__((noinline)) int interpreter_enter(__u64 low, __u64 high)
{
	struct interpreting *in = interpreting_here();

	if (!in)
		return 0;
	if (in->d.kind == PROFIL_INTERPRETER_LINKED || in->d.kind == PROFIL_INTERPRETER_PERL)
		return innermost_begin(in);
	in->undo = 0;
	in->low = low;
	in->high = high;
	return python_stretch(in);
}

/* The next function of the stretch: enum next. Global, likewise. */
__attribute__((noinline)) int interpreter_frame(void)
{
	struct interpreting *in = interpreting_here();

	if (!in || !in->frame)
		return NEXT_END;
	if (in->d.kind == PROFIL_INTERPRETER_PERL)
		return perl_frame(in);
	return in->d.kind == PROFIL_INTERPRETER_LINKED ? linked_frame(in) : python_frame(in);
}

/*
 * Reads the names of the function that was met. It is not called by what meets it, and the
 * functions that it calls are global and call few others, because all of a call chain share 512
 * bytes of stack.
 */
static __always_inline void interpreter_meet(struct interpreting *in, __u32 slot)
{
	switch (in->d.kind) {
	case PROFIL_INTERPRETER_V8:
		v8_file();
		in->met_start = v8_function(slot);
		break;
	case PROFIL_INTERPRETER_LINKED:
		in->met_start = linked_function(slot);
		break;
	case PROFIL_INTERPRETER_PERL:
		in->met_start = perl_function(slot);
		break;
	case PROFIL_INTERPRETER_HOTSPOT:
		in->met_start = hotspot_function(slot);
		break;
	default:
		in->met_start = python_function(slot);
	}
}

/*
 * Finds the innermost function and leaves the walk where it was: enum next. Global, likewise.
 */
__attribute__((noinline)) int interpreter_innermost(void)
{
	struct interpreting *in = interpreting_here();
	int found = NEXT_END;
	__u64 next, low, high, contexts;

	if (!in)
		return NEXT_END;
	next = in->next;
	contexts = in->contexts;
	low = in->low;
	high = in->high;
	if (innermost_begin(in)) {
		found = interpreter_frame();
		/* A loop that has entered only its own frame: the function that has called it. */
		if (found == NEXT_END && in->d.kind == PROFIL_INTERPRETER_CPYTHON_ENTRY &&
		    in->next != next) {
			in->frame = in->next;
			found = interpreter_frame();
		}
	}
	in->frame = 0;
	in->next = next;
	in->contexts = contexts;
	in->low = low;
	in->high = high;
	return found;
}

/* --- samples without a stack ------------------------------------------------------------------ */

/*
 * Keeps a sample at @offset in the code of the interpreter at @s for leaf_count(). Returns false if
 * another sample of this CPU, which this one has interrupted, uses its state. Global, likewise.
 */
__attribute__((noinline)) int leaf_defer(const struct spot *s, __u32 offset, __u64 of, __u32 n)
{
	struct interpreting *in = interpreting_here();

	if (!in || !s || in->busy)
		return false;
	*(volatile __u32 *)&in->busy = 1;
	in->leaf.number = s->interpreter;
	in->leaf.base = s->base;
	in->leaf.image = s->image;
	in->leaf.offset = offset;
	in->leaf.at = s->anonymous ? ANY_OFFSET : offset;
	in->leaf.of = of;
	in->leaf.n = n;
	return true;
}

/* The next innermost function of the deferred sample: enum next. Global, likewise. */
__attribute__((noinline)) int leaf_next(int found)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	const struct arch_regs *regs = (void *)bpf_task_pt_regs(task);
	struct interpreting *in = interpreting_here();

	if (found == FOUND_FRAME)
		return v8_place(arch_fp(regs));
	if (found == FOUND_CODE && in) {
		in->mark = arch_pc(regs);
		in->low = arch_sp(regs);
		in->high = arch_fp(regs);
		hotspot_step(CODE_LEAF_ONLY);
		return hotspot_place();
	}
	return found == FOUND_NOTHING ? NEXT_END : interpreter_innermost();
}

/* Sets in->place to the innermost function of the deferred sample; 0: it has none. */
static __always_inline void leaf_find(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	int found, next;

	if (!in)
		return;
	in->known = 0;
	in->met = 0;
	found = FOUND_NOTHING;
	if (interpreter_load(slot, in->leaf.number)) {
		if (in->leaf.at != ANY_OFFSET)
			hotspot_note(in->leaf.base);
		found = interpreter_find(slot,
					 in->leaf.at == ANY_OFFSET ? in->leaf.image : in->leaf.base,
					 in->leaf.at);
	}
	next = leaf_next(found);
	if (next == NEXT_UNMET) {
		interpreter_meet(in, slot);
		next = leaf_next(found);
	}
	if (next != NEXT_PLACE)
		in->place = 0;
}

#endif
