/* linked_frames.bpf.h - PHP, Ruby: one list of frames for each thread, cut at calls of the loop */
#ifndef PROFIL_BPF_LINKED_FRAMES_BPF_H
#define PROFIL_BPF_LINKED_FRAMES_BPF_H

/*
 * The innermost call of the evaluation loop executes the frames from the innermost one to the first
 * with a mark, the next call of the loop those behind it, and so on. Frames of functions in C are
 * in the list, too, and are passed over: the machine's frames show them. No structure of the loop
 * lies in its machine frame, so there is no proof that a stretch is the loop's.
 */

#include "functions.bpf.h"
#include "thread_pointer.bpf.h"

#define LINKED_LINES 4095 /* units of a function: lines from its first one on */
#define LINKED_PASSES 16  /* frames in C that follow each other */

/* The variable of the running thread: the runtime's, or the thread's own copy of it. */
static __always_inline __u64 linked_variable(struct interpreting *in, __u64 base)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 vector = 0, block = 0, at = base + in->d.runtime;
	const __u64 *slot;

	if (!in->d.linked.is_thread_data)
		return at;
	/* glibc: the thread pointer's second word is the vector of modules' blocks. */
	slot = (const __u64 *)process_constant(in, at, 16);
	if (!slot || slot[0] > 4096 ||
	    bpf_probe_read_user(&vector, 8, (void *)(thread_pointer(task) + 8)) ||
	    bpf_probe_read_user(&block, 8, (void *)(vector + 16 * slot[0])) || !block ||
	    bpf_probe_read_user(&at, 8, (void *)(block + slot[1])))
		return 0;
	return at;
}

static __always_inline bool linked_begin(struct interpreting *in, __u64 base)
{
	const struct profil_linked *l = &in->d.linked;
	__u64 at = linked_variable(in, base), start = 0, words = 0;

	if (!at || bpf_probe_read_user(&in->next, 8, (void *)(at + l->head)) || !in->next)
		return false;
	in->low = 0;
	in->high = ~0ull;
	if (!l->frame_bytes)
		return true;
	if (bpf_probe_read_user(&start, 8, (void *)(at + l->list_start)) ||
	    bpf_probe_read_user(&words, 8, (void *)(at + l->list_words)) || words >> 32)
		return false;
	in->low = start;
	in->high = start + 8 * words;
	return true;
}

/* Where the characters of the string at @at are, and how many; 0: it is no string. */
static __always_inline __u64 linked_string(struct interpreting *in, __u64 at, __u64 *n)
{
	__u32 kind = in->d.linked.string;
	__u64 *w = in->text;

	*n = 0;
	if (!at || bpf_probe_read_user(w, 32, (void *)at))
		return 0;
	if (kind == PROFIL_STRING_ZEND) {
		*n = w[2];
		return at + 24;
	}
	if ((w[0] & 31) == 7) { /* Ruby's array of path and real path, embedded */
		at = w[2];
		if (!at || bpf_probe_read_user(w, 32, (void *)at))
			return 0;
	}
	if ((w[0] & 31) != 5)
		return 0;
	if (w[0] >> 13 & 1) {
		*n = w[2];
		return w[3];
	}
	if (kind == PROFIL_STRING_RUBY_3_3) {
		*n = w[2];
		return at + 24;
	}
	*n = w[0] >> 14 & 31;
	return at + 16;
}

/* Copies the string at @at to @to, which has room for @most bytes. Returns the number of bytes. */
static __always_inline __u32 linked_text(struct interpreting *in, __u64 at, char *to, __u64 most,
					 bool end)
{
	__u64 n, from = linked_string(in, at, &n);

	if (!from)
		return 0;
	if (n > most) {
		from += end ? n - most : 0;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most || bpf_probe_read_user(to, (__u32)n, (void *)from))
		return 0;
	return (__u32)n;
}

#define CLASS_BYTES 40

/*
 * Copies the name of a class at @at to @to, as linked_text(). PHP's ends at a NUL: what follows is the
 * place of a class without a name.
 */
static __always_inline __u32 linked_class(struct interpreting *in, __u64 at, char *to)
{
	long n = -1;
	__u32 bytes;

	if (in->d.linked.string == PROFIL_STRING_ZEND)
		n = bpf_probe_read_user_str(to, CLASS_BYTES, (void *)(at + 24));
	if (n <= 1 || n >= CLASS_BYTES)
		return linked_text(in, at, to, CLASS_BYTES, true);
	bytes = (__u32)n - 1;
	asm volatile("" : "+r"(bytes)); /* Linux 6.12 takes a bound of 32 bits for none of 64 */
	return bytes & 63;
}

/* Meets the function whose fields are in->object for the first time. */
__attribute__((noinline)) __u32 linked_function(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	const struct profil_linked *l;
	struct profil_function *f;
	__u64 class_at, name = 0;
	struct table t;
	__u32 n = 0;

	if (!in)
		return 0;
	l = &in->d.linked;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	f->language = in->d.language;
	f->line_format = PROFIL_LINES_UNITS;
	f->length = LINKED_LINES;
	f->line = ((__u32 *)in->object)[l->function_line / 4 & 63] >> (l->line_shift & 3);
	class_at = l->function_class == PROFIL_LINKED_NONE ? 0
							   : in->object[l->function_class / 8 & 31];
	if (class_at && !bpf_probe_read_user(&name, 8, (void *)(class_at + l->class_name)))
		n = linked_class(in, name, f->name);
	if (n && n <= CLASS_BYTES) {
		f->name[n & 63] = ':';
		f->name[(n + 1) & 63] = ':';
		n += 2;
	}
	f->name_bytes = (__u16)(n + linked_text(in, in->object[l->function_name / 8 & 31],
						f->name + (n & 63), 48, false));
	f->file_bytes = (__u16)linked_text(in, in->object[l->function_file / 8 & 31], f->file,
					   sizeof(f->file), true);
	if (f->name_bytes == n && !f->file_bytes) {
		if (table_of(&t, slot))
			TABLE_ADD(&t, function_unread, 1);
		return 0;
	}
	f->file_encoding = f->file_bytes ? 1 : 0;
	return function_number(slot);
}

/* Reads the function of the frame in in->words into in->object. False: it is one in C. */
static __always_inline bool linked_read(struct interpreting *in, __u64 *at)
{
	const struct profil_linked *l = &in->d.linked;

	*at = in->words[l->frame_function / 8 & 15];
	if (!*at)
		return false;
	if (l->function_body != PROFIL_LINKED_NONE &&
	    bpf_probe_read_user(at, 8, (void *)(*at + l->function_body)))
		return false;
	if (bpf_probe_read_user(in->object, PROFIL_LINKED_FUNCTION_BYTES, (void *)*at))
		return false;
	return l->function_kind == PROFIL_LINKED_NONE ||
	       ((__u8 *)in->object)[l->function_kind & 127] == l->kind_is;
}

/*
 * The line that @frame, which is in in->words, executes, from the function's first one on. PHP's
 * loop has the instruction in a register, and saves it in the frame before what may fail or call:
 * until the first time, the frame has that of an earlier call, which may be of any function. The
 * registers are the loop's if they have this frame, though a function that it calls may have
 * another value in the second.
 */
static __always_inline __u32 linked_unit(struct interpreting *in, __u64 frame)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct arch_regs *regs = (void *)bpf_task_pt_regs(task);
	const struct profil_linked *l = &in->d.linked;
	__u32 first = ((__u32 *)in->object)[l->function_line / 4 & 63], line = 0;
	__u32 last = ((__u32 *)in->object)[(l->function_line / 4 + 1) & 63];

	if (l->frame_instruction == PROFIL_LINKED_NONE)
		return 0;
	if (arch_zend_frame(regs) == frame &&
	    !bpf_probe_read_user(&line, 4,
				 (void *)(arch_zend_instruction(regs) + l->instruction_line)) &&
	    line - first < LINKED_LINES && line <= last)
		return line - first;
	if (bpf_probe_read_user(
		    &line, 4,
		    (void *)(in->words[l->frame_instruction / 8 & 15] + l->instruction_line)))
		return 0;
	return line - first < LINKED_LINES && line <= last ? line - first : 0;
}

/* The word of the frame in in->words that has its marks; with all of them if it is unreadable. */
static __always_inline __u64 linked_marks(struct interpreting *in)
{
	const struct profil_linked *l = &in->d.linked;
	__u64 word = in->words[l->frame_end / 8 & 15];

	if (l->end_is_behind && bpf_probe_read_user(&word, 8, (void *)word))
		return ~0ull;
	return !l->end_is_behind && l->frame_end & 4 ? word >> 32 : word;
}

/*
 * PHP frees what a request, or an evaluated string, has compiled, and gives the next one the same
 * addresses: adds hash and length of the string at @at, or its end where it has no hash yet, to
 * in->met_check. That and the text are in the map, because the stack has no room.
 */
static __always_inline void linked_content(struct interpreting *in, __u64 at)
{
	__u64 *w = in->text, n;

	if (in->d.linked.string != PROFIL_STRING_ZEND ||
	    bpf_probe_read_user(w, 16, (void *)(at + 8)))
		return;
	in->met_check = mix(in->met_check ^ w[0] ^ mix(w[1]));
	if (w[0])
		return;
	n = w[1];
	at += 24;
	if (n > sizeof(in->text)) {
		at += n - sizeof(in->text);
		n = sizeof(in->text);
	}
	__builtin_memset(w, 0, sizeof(in->text));
	asm volatile("" : "+r"(n));
	if (n > sizeof(in->text) || bpf_probe_read_user(w, (__u32)n, (void *)at))
		return;
	in->met_check = mix(in->met_check ^ w[0] ^ mix(w[1] ^ mix(w[2] ^ mix(w[3] ^ mix(w[4])))));
}

/* The place of the function whose fields are in->object, at @at, into in->place. */
static __always_inline int linked_place(struct interpreting *in, __u64 at, __u64 frame)
{
	const struct profil_linked *l = &in->d.linked;
	__u64 id = mix(at ^ mix(in->owner ^ (__u64)in->epoch << 40));
	__u32 start, length;

	in->met_check = mix(in->object[l->function_name / 8 & 31] ^
			    mix(in->object[l->function_file / 8 & 31] ^
				((__u32 *)in->object)[l->function_line / 4 & 63]));
	linked_content(in, in->object[l->function_name / 8 & 31]);
	linked_content(in, in->object[l->function_file / 8 & 31]);
	if (!function_known(in, id, in->met_check, &start, &length)) {
		in->met = id;
		in->met_length = LINKED_LINES;
		return NEXT_UNMET;
	}
	in->place = profil_place(0, in->image, start ? start + linked_unit(in, frame) : 0);
	return NEXT_PLACE;
}

/* The next function of the stretch, into in->place: enum next. */
static __always_inline int linked_frame(struct interpreting *in)
{
	const struct profil_linked *l = &in->d.linked;
	__u64 frame = in->frame, this, at, marks;

	in->frame = 0;
	for (int i = 0; i < LINKED_PASSES; i++) {
		bool is_function;

		this = frame;
		if (!frame || frame < in->low || frame >= in->high ||
		    bpf_probe_read_user(in->words, 64, (void *)frame))
			return NEXT_END;
		marks = linked_marks(in);
		is_function = (marks & l->native_mask) != l->native_is && linked_read(in, &at);
		frame = l->frame_bytes ? frame + l->frame_bytes : in->words[l->frame_next / 8 & 15];
		in->next = frame;
		if (!is_function)
			continue;
		if (linked_place(in, at, this) == NEXT_UNMET) {
			in->frame = this;
			return NEXT_UNMET;
		}
		if (!(marks & l->end_mask))
			in->frame = frame;
		return NEXT_PLACE;
	}
	return NEXT_END;
}

#endif
