/* cpython.bpf.h - CPython: stretches of frames, one for each call of the evaluation loop */
#ifndef PROFIL_BPF_CPYTHON_BPF_H
#define PROFIL_BPF_CPYTHON_BPF_H

/*
 * A thread's state is found by the key of thread-specific data that the runtime keeps, not by the
 * runtime's current state: that one is the thread that holds the lock of the interpreter, and
 * threads compute without it. From the state, frames are linked from the innermost outwards.
 */

#include "functions.bpf.h"
#include "thread_pointer.bpf.h"

/* The thread's state: by the key that the runtime has for it, or where it is itself thread-local. */
static __always_inline bool python_state(struct interpreting *in, __u64 base, __u64 *state)
{
	const struct profil_cpython *c = &in->d.cpython;
	const __u32 *key;

	if (!c->key)
		return thread_local_word(state, c->specific);
	key = process_constant(in, base + in->d.runtime + c->key, 8);
	return key && key[0] && thread_specific(state, c->specific, key[1]);
}

/* Finds the thread's state, and in it the innermost frame. */
static __always_inline bool python_begin(struct interpreting *in, __u64 base)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 state = 0;

	if (!python_state(in, base, &state))
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
 * start of its offsets; 0: it has none.
 */
__attribute__((noinline)) __u32 python_function(__u32 slot)
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
	f->length = in->met_length;
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

/*
 * The function of the code object at @code: its offsets in *@start and *@length. Returns
 * NEXT_PLACE, NEXT_UNMET or NEXT_END.
 */
static __always_inline int python_code(struct interpreting *in, __u64 code, __u32 *start,
				       __u32 *length)
{
	const struct profil_cpython *c = &in->d.cpython;
	__u64 id = mix(code ^ mix(in->owner ^ (__u64)in->epoch << 40)), check;
	__u32 units;

	if (bpf_probe_read_user(in->object, 160, (void *)code))
		return NEXT_END;
	check = mix(in->object[c->code_file / 8 & 31] ^
		    mix(in->object[c->code_name / 8 & 31] ^
			mix(in->object[c->code_lines / 8 & 31] ^ in->object[2] ^
			    mix(((__u32 *)in->object)[c->code_line / 4 & 63]))));
	if (function_known(in, id, check, start, length))
		return NEXT_PLACE;
	units = c->code_units ? ((__u32 *)in->object)[c->code_units / 4 & 63] : 0xffff;
	in->met = id;
	in->met_length = units < PROFIL_FUNCTION_UNITS_MAX ? units : PROFIL_FUNCTION_UNITS_MAX;
	return NEXT_UNMET;
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
	__u32 start = 0, length = 0;
	bool is_end;
	int next;

	in->frame = 0;
	if (bpf_probe_read_user(in->words, 112, (void *)frame))
		return NEXT_END;
	is_end = ((__u8 *)in->words)[c->frame_end & 127] == c->end_value;
	if (is_end && !c->end_is_frame) {
		if (in->d.kind != PROFIL_INTERPRETER_CPYTHON_ENTRY)
			return NEXT_END;
		in->undo = in->high && (frame < in->low || frame >= in->high);
		in->next = in->undo ? in->mark : in->words[c->frame_previous / 8 & 15];
		return NEXT_END;
	}
	code = in->words[c->frame_code / 8 & 15] & ~(c->tagged ? 7ull : 0ull);
	next = python_code(in, code, &start, &length);
	if (next == NEXT_UNMET)
		in->frame = frame;
	if (next != NEXT_PLACE)
		return next;
	in->place = profil_place(0, in->image, start ? start + python_unit(in, code, length) : 0);
	frame = in->words[c->frame_previous / 8 & 15];
	if (in->d.kind == PROFIL_INTERPRETER_CPYTHON_CALLS)
		in->next = frame;
	else if (!is_end || !c->end_is_frame)
		in->frame = frame;
	return NEXT_PLACE;
}

#endif
