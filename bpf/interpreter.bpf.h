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
 * Everything is read as the user's memory, in what the descriptor says. So it is read only for
 * owners who may read the task's memory themselves; a wrong descriptor yields wrong names.
 */

#include "functions.bpf.h"
#include "permission.bpf.h"
#include "unwind_rows.bpf.h"

#define DESCRIPTOR_MOMENTS 954 /* of 2^20 ns: descriptors are read anew after a second */

static __always_inline bool loop_holds(const struct profil_interpreter *d, __u32 offset)
{
	bool holds = false;

	for (int i = 0; i < PROFIL_INTERPRETER_LOOPS; i++)
		holds |= offset - d->loop[i].start < d->loop[i].end - d->loop[i].start;
	return holds;
}

/*
 * Reads descriptor @number of the attachment in @slot, and what it says of the running thread,
 * whose code is at @base + offset. Returns 1 if offset @at is in the evaluation loop and the thread
 * executes functions. Global, so that the verifier checks it once.
 */

/* The thread pointer of the running thread. */
static __always_inline __u64 thread_pointer(struct task_struct *task)
{
	if (bpf_core_field_exists(struct thread_struct___x86, fsbase))
		return BPF_CORE_READ((struct task_struct___x86 *)task, thread.fsbase);
	if (bpf_core_field_exists(struct thread_struct___arm64, uw))
		return BPF_CORE_READ((struct task_struct___arm64 *)task, thread.uw.tp_value);
	return 0;
}

/* --- CPython ---------------------------------------------------------------------------------- */

#define PYTHON_KEYS_MAX 1024 /* PTHREAD_KEYS_MAX */
#define PYTHON_KEYS 32	     /* of a block */

/* Finds the thread's state by the key that the runtime has for it, and in it the innermost frame.
 */
static __always_inline bool python_begin(struct interpreting *in, __u64 base)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_cpython *c = &in->d.cpython;
	__u64 at, block = 0, state = 0;
	__u32 key[2];

	at = base + in->d.runtime + c->key;
	if (bpf_probe_read_user(key, sizeof(key), (void *)at) || !key[0] ||
	    key[1] >= PYTHON_KEYS_MAX)
		return false;
	at = thread_pointer(task) + (__u64)(__s64)c->specific + key[1] / PYTHON_KEYS * 8;
	if (bpf_probe_read_user(&block, sizeof(block), (void *)at) || !block)
		return false;
	at = block + key[1] % PYTHON_KEYS * 16 + 8;
	if (bpf_probe_read_user(&state, sizeof(state), (void *)at) || !state)
		return false;
	return !bpf_probe_read_user(&in->next, sizeof(in->next),
				    (void *)(state + c->state_frame)) &&
	       in->next;
}

/* Begins the stretch of the loop whose machine frame is [low, high); 0, 0: not known. */
static __always_inline bool python_stretch(struct interpreting *in)
{
	const struct profil_cpython *c = &in->d.cpython;

	in->mark = in->next;
	in->frame = in->next;
	if (in->d.kind != PROFIL_INTERPRETER_CPYTHON_CFRAME)
		return in->frame;
	if (in->high && (in->next < in->low || in->next >= in->high))
		return false;
	if (bpf_probe_read_user(in->words, 24, (void *)in->next))
		return false;
	in->frame = in->words[c->cframe_frame / 8 & 1];
	in->next = in->words[c->cframe_previous / 8 & 3];
	return in->frame;
}

/* Reads the str object at @at into @to. Returns the bytes of a character; 0: it was not read. */
static __always_inline __u8 python_text(struct interpreting *in, __u64 at, char *to, __u64 most,
					bool end, __u16 *bytes)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 n, kind, ascii;

	if (bpf_probe_read_user(in->text, sizeof(in->text), (void *)at))
		return 0;
	kind = in->text[4] >> 2 & 7;
	ascii = in->text[4] >> 6 & 1;
	if (!(in->text[4] >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	at += ascii ? c->string_ascii : c->string_compact;
	n = in->text[2] * kind;
	if (n > most) {
		at += end ? n - most : 0;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most)
		return 0;
	if (bpf_probe_read_user(to, (__u32)n, (void *)at))
		return 0;
	*bytes = (__u16)n;
	return (__u8)kind;
}

/*
 * Meets the code object @code, whose first words are in->object, for the first time. Returns the
 * start of its offsets; 0: it has none. Global, as interpreter_find().
 */
__attribute__((noinline)) __u32 python_function(__u32 slot, __u32 length)
{
	struct interpreting *in = interpreting_here();
	const struct profil_cpython *c;
	struct profil_function *f;
	__u64 at, n = 0;
	struct table t;

	if (!in)
		return 0;
	c = &in->d.cpython;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	f->language = PROFIL_LANGUAGE_PYTHON;
	f->line_format = c->line_format;
	f->length = length;
	f->line = ((__u32 *)in->object)[c->code_line / 4 & 63];
	f->file_encoding = python_text(in, in->object[c->code_file / 8 & 31], f->file,
				       sizeof(f->file), true, &f->file_bytes);
	f->name_encoding = python_text(in, in->object[c->code_name / 8 & 31], f->name,
				       sizeof(f->name), false, &f->name_bytes);
	if (!f->name_encoding) {
		if (table_of(&t, slot))
			TABLE_ADD(&t, function_unread, 1);
		return 0;
	}
	at = in->object[c->code_lines / 8 & 31];
	if (!bpf_probe_read_user(&n, sizeof(n), (void *)(at + 16))) {
		f->lines_bytes = n < ~0u ? (__u32)n : ~0u;
		asm volatile("" : "+r"(n));
		if (n <= sizeof(f->lines))
			bpf_probe_read_user(f->lines, (__u32)n, (void *)(at + 32));
	}
	return function_number(slot);
}

/* The function of the code object at @code: its offsets in *@start and *@length. */
static __always_inline bool python_code(struct interpreting *in, __u64 code, __u32 *start,
					__u32 *length)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 id = mix(code ^ mix(in->owner ^ (__u64)in->epoch << 40)), check;
	struct cached_function *known;
	__u32 units;

	if (bpf_probe_read_user(in->object, 160, (void *)code))
		return false;
	check = mix(in->object[c->code_file / 8 & 31] ^
		    mix(in->object[c->code_name / 8 & 31] ^
			mix(in->object[c->code_lines / 8 & 31] ^ in->object[2])));
	known = &in->cache[id % FUNCTION_CACHE];
	if (known->id == id && known->check == check) {
		*start = known->start;
		*length = known->length;
		return true;
	}
	units = c->code_units ? ((__u32 *)in->object)[c->code_units / 4 & 63] : 0xffff;
	*length = units < PROFIL_FUNCTION_UNITS_MAX ? units : PROFIL_FUNCTION_UNITS_MAX;
	*start = python_function(in->slot, *length);
	if (!*start)
		return true;
	known->id = 0;
	known->check = check;
	known->start = *start;
	known->length = *length;
	known->id = id;
	return true;
}

/* The unit of its code that the frame in in->words executes; 0: it has not begun. */
static __always_inline __u32 python_unit(struct interpreting *in, __u64 code, __u32 length)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 at;

	if (c->code_bytes)
		at = in->words[c->frame_instruction / 8 & 15] - (code + c->code_bytes);
	else
		at = (__u64)(__s64)((__s32 *)in->words)[c->frame_instruction / 4 & 31];
	at = (__u64)((__s64)at >> (c->instruction_shift & 7));
	return at < length ? (__u32)at : 0;
}

static __always_inline int python_frame(struct interpreting *in)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 frame = in->frame, code;
	__u32 start = 0, length = 0, image;
	bool is_end;

	in->frame = 0;
	if (bpf_probe_read_user(in->words, 112, (void *)frame))
		return 0;
	is_end = ((__u8 *)in->words)[c->frame_end & 127] == c->end_value;
	if (is_end && !c->end_is_frame) {
		if (in->d.kind != PROFIL_INTERPRETER_CPYTHON_ENTRY)
			return 0;
		in->undo = in->high && (frame < in->low || frame >= in->high);
		in->next = in->undo ? in->mark : in->words[c->frame_previous / 8 & 15];
		return 0;
	}
	code = in->words[c->frame_code / 8 & 15] & ~(c->tagged ? 7ull : 0ull);
	if (!python_code(in, code, &start, &length))
		return 0;
	image = in->image;
	in->place = profil_place(0, image, start ? start + python_unit(in, code, length) : 0);
	frame = in->words[c->frame_previous / 8 & 15];
	if (in->d.kind == PROFIL_INTERPRETER_CPYTHON_CALLS)
		in->next = frame;
	else if (!is_end || !c->end_is_frame)
		in->frame = frame;
	return 1;
}

/* --- all of them ------------------------------------------------------------------------------ */

static __always_inline bool descriptor_read(struct interpreting *in, __u32 slot, __u32 number)
{
	void *map = bpf_map_lookup_elem(&unwind_tables, &slot);
	const struct profil_interpreter *page;
	__u32 key = PROFIL_UNWIND_INTERPRETER_PAGE, now = (__u32)(bpf_ktime_get_ns() >> 20);
	struct table t;

	if (!table_of(&t, slot))
		return false;
	if (in->number == number && in->epoch == t.observer->epoch &&
	    now - in->moment <= DESCRIPTOR_MOMENTS)
		return in->image;
	in->number = 0;
	page = map ? bpf_map_lookup_elem(map, &key) : NULL;
	if (!page || !t.observer->functions)
		return false;
	in->d = page[(number - 1) % PROFIL_INTERPRETERS];
	in->image = in->epoch == t.observer->epoch ? in->image : 0;
	in->epoch = t.observer->epoch;
	in->number = number;
	in->moment = now;
	return in->d.kind && in->d.kind < PROFIL_INTERPRETER_KINDS &&
	       functions_image(slot, in, in->d.language);
}

__attribute__((noinline)) int interpreter_find(__u32 slot, __u32 number, __u64 base, __u32 at)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct interpreting *in = interpreting_here();
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);

	if (!in || !o || !descriptor_read(in, slot, number) || !loop_holds(&in->d, at))
		return 0;
	if (in->known)
		return in->known == 2;
	in->known = 1;
	in->slot = slot;
	in->skip = in->undo = 0;
	in->owner = (__u64)(__u32)task->tgid << 32 | (__u32)task->self_exec_id;
	if (may_read(o, task) && python_begin(in, base))
		in->known = 2;
	return in->known == 2;
}

/*
 * Begins the functions of the loop whose machine frame is [@low, @high). interpreter_find() has
 * returned 1. Returns 0 if the loop has none. Global, as interpreter_find().
 */
__attribute__((noinline)) int interpreter_enter(__u64 low, __u64 high)
{
	struct interpreting *in = interpreting_here();

	if (!in)
		return 0;
	in->low = low;
	in->high = high;
	in->undo = 0;
	return python_stretch(in);
}

/* The next function: 1 if it is in in->place; 0: the stretch has ended. Global, likewise. */
__attribute__((noinline)) int interpreter_frame(void)
{
	struct interpreting *in = interpreting_here();

	return in && in->frame ? python_frame(in) : 0;
}

/*
 * Finds the innermost function without a proof that it belongs to the loop at hand, and leaves the
 * walk where it was: 1 if it is in in->place. Global, likewise.
 */
__attribute__((noinline)) int interpreter_innermost(void)
{
	struct interpreting *in = interpreting_here();
	int found = 0;
	__u64 next;

	if (!in)
		return 0;
	next = in->next;
	in->low = in->high = 0;
	if (python_stretch(in)) {
		found = interpreter_frame();
		/* A loop that has entered only its own frame: the function that has called it. */
		if (!found && in->d.kind == PROFIL_INTERPRETER_CPYTHON_ENTRY && in->next != next) {
			in->frame = in->next;
			found = interpreter_frame();
		}
	}
	in->frame = 0;
	in->next = next;
	return found;
}

/*
 * The place of the innermost function, if @offset of the image with descriptor @number is in an
 * evaluation loop; 0: count the machine's. Global, likewise.
 */
__attribute__((noinline)) __u64 interpreter_leaf(__u32 slot, __u32 number, __u64 base, __u32 offset)
{
	struct interpreting *in = interpreting_here();
	__u64 place = 0;

	if (!in || in->busy)
		return 0;
	*(volatile __u32 *)&in->busy = 1;
	in->known = 0;
	if (interpreter_find(slot, number, base, offset) && interpreter_innermost())
		place = in->place;
	*(volatile __u32 *)&in->busy = 0;
	return place;
}

#endif
