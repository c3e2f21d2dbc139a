/* perl.bpf.h - Perl: stacks of contexts, of which subs, files and evaluated strings are functions
 */
#ifndef PROFIL_BPF_PERL_BPF_H
#define PROFIL_BPF_PERL_BPF_H

/*
 * An interpreter has a stack of contexts: an array with an element for each sub, eval, loop and
 * block that has been entered. What the interpreter calls by itself (comparisons of sort,
 * overloaded operators, destructors) has a stack of its own, a "stack info", linked to the one
 * before it. A context has the statement (COP) that was executed when it was entered, which has
 * file and line.
 *
 * The loop calls a C function for each operation. A call of the loop executes the contexts from
 * the innermost one to the first without an operation to return to. Loops and blocks are passed
 * over. The block of a sort has a stack info without a sub: it is the sub's that has called sort,
 * which is then a function of two calls of the loop. Below all contexts is the program's file.
 *
 * A sub is entered before its first statement begins: until then, and once its context has been
 * restored, the interpreter's statement is the caller's, which is the context's own. Such a sub is in
 * its first line. Where a sub may have called itself the statement can be its own, and stays.
 *
 * In struct interpreting, `low` is the stack info, `high` the statement that the next function
 * executes, `mark` that of the latest context, and `next` and `frame` the contexts that are left,
 * plus 1.
 */

#include "functions.bpf.h"
#include "thread_pointer.bpf.h"

#define PERL_LINES 4095	      /* units of a sub: lines from its first one on */
#define PERL_FILE_LINES 65535 /* of the program, a file or an evaluated string */
#define PERL_PASSES 16	      /* contexts that follow each other and are no functions */
#define PERL_PACKAGE_BYTES 46
#define INFO_HAS_ENDED 1ull /* in `low`: a call of the loop has ended in this stack info */

/* Goes to the stack info at @at, innermost context first. */
static __always_inline bool perl_info(struct interpreting *in, __u64 at)
{
	__s32 innermost = 0;

	if (!at || bpf_probe_read_user(&innermost, 4, (void *)(at + in->d.perl.info_innermost)) ||
	    bpf_probe_read_user(&in->contexts, 8, (void *)(at + in->d.perl.info_contexts)) ||
	    innermost < -1 || innermost > 1 << 24)
		return false;
	in->low = at;
	in->mark = 0;
	in->next = (__u64)(__s64)innermost + 2;
	return true;
}

static __always_inline bool perl_begin(struct interpreting *in, __u64 base)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 state = 0, info = 0;
	const __u32 *key = process_constant(in, base + in->d.runtime, 4);

	return key && thread_specific(&state, p->specific, *key) &&
	       !bpf_probe_read_user(&info, 8, (void *)(state + p->state_info)) &&
	       !bpf_probe_read_user(&in->high, 8, (void *)(state + p->state_statement)) &&
	       perl_info(in, info);
}

/*
 * Copies the hash key at @key, a length and characters, to @to: its end, where it has more than @most
 * and @end is true. Returns the number of bytes.
 */
static __always_inline __u32 perl_key(__u64 key, char *to, __u64 most, bool end)
{
	__u32 length = 0;
	__u64 n;

	if (!key || bpf_probe_read_user(&length, 4, (void *)(key + 4)))
		return 0;
	key += 8;
	n = length;
	if (n > most) {
		key += end ? n - most : 0;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most || bpf_probe_read_user(to, (__u32)n, (void *)key))
		return 0;
	return (__u32)n;
}

/* The name of the package whose symbol table is the hash @at, as perl_key(). */
static __always_inline __u32 perl_package(struct interpreting *in, __u64 at, char *to)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 body = 0, key = 0;
	__u32 count = 0;

	if (!at || bpf_probe_read_user(&body, 8, (void *)at) ||
	    bpf_probe_read_user(&key, 8, (void *)(body + p->hash_name)) ||
	    bpf_probe_read_user(&count, 4, (void *)(body + p->hash_name_count)) ||
	    (count && bpf_probe_read_user(&key, 8, (void *)key)))
		return 0;
	return perl_key(key, to, PERL_PACKAGE_BYTES, true);
}

/* Copies the path at @at, which a NUL ends. in->object is overwritten. */
static __always_inline void perl_file(struct interpreting *in, struct profil_function *f, __u64 at)
{
	long n = bpf_probe_read_user_str(in->object, sizeof(in->object), (void *)at);
	__u64 bytes;

	if (n <= 1)
		return;
	bytes = (__u64)n - 1;
	if (bytes > sizeof(f->file)) {
		at += bytes - sizeof(f->file);
		bytes = sizeof(f->file);
	}
	asm volatile("" : "+r"(bytes));
	if (bytes > sizeof(f->file) || bpf_probe_read_user(f->file, (__u32)bytes, (void *)at))
		return;
	f->file_bytes = (__u16)bytes;
	f->file_encoding = 1;
}

/* The line of the sub's first statement; 0: it has none. */
static __always_inline __u32 perl_first_line(struct interpreting *in, __u64 op)
{
	const struct profil_perl *p = &in->d.perl;
	__u32 line = 0;
	__u16 type = 0;

	if (!op || bpf_probe_read_user(&type, 2, (void *)(op + p->op_type)) ||
	    (type & 511u) - p->op_statement > 1 ||
	    bpf_probe_read_user(&line, 4, (void *)(op + p->statement_line)))
		return 0;
	return line;
}

/* Reads package and name of the sub whose body is in->object. */
static __always_inline void perl_sub(struct interpreting *in, struct profil_function *f)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 glob = in->object[p->sub_glob / 8 & 15],
	      package = in->object[p->sub_package / 8 & 15];
	__u64 of[2] = { glob, package }, body = 0;
	__u32 n;

	/* A sub without a glob has its own name there. */
	if (!(((__u32 *)in->object)[p->sub_flags / 4 & 31] & p->sub_is_named) &&
	    (bpf_probe_read_user(&body, 8, (void *)glob) ||
	     bpf_probe_read_user(of, sizeof(of), (void *)(body + p->glob_name))))
		return;
	n = perl_package(in, of[1], f->name);
	if (n && n <= PERL_PACKAGE_BYTES) {
		f->name[n & 63] = ':';
		f->name[(n + 1) & 63] = ':';
		n += 2;
	}
	body = perl_key(of[0], f->name + (n & 63), 48, false);
	f->name_bytes = body ? (__u16)(n + body) : 0;
}

/* Meets the sub whose body, or the statement of a file that, is in->object for the first time. */
__attribute__((noinline)) __u32 perl_function(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	const struct profil_perl *p;
	struct profil_function *f;
	struct table t;

	if (!in)
		return 0;
	p = &in->d.perl;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	f->language = in->d.language;
	f->line_format = PROFIL_LINES_UNITS;
	f->length = in->met_length;
	f->line = 1;
	if (f->length == PERL_LINES) {
		f->line = perl_first_line(in, in->object[p->sub_start / 8 & 15]);
		perl_sub(in, f);
		perl_file(in, f, in->object[p->sub_file / 8 & 15]);
	} else {
		perl_file(in, f, in->object[p->statement_file / 8 & 15]);
	}
	if (f->length == PERL_LINES ? !f->name_bytes : !f->file_bytes) {
		if (table_of(&t, slot))
			TABLE_ADD(&t, function_unread, 1);
		return 0;
	}
	return function_number(slot);
}

/*
 * The place of statement @cop of the function at @at, with @lines lines, into in->place. 0: not
 * known, it is in its first line.
 */
static __always_inline int perl_place(struct interpreting *in, __u64 at, __u32 lines, __u64 cop)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 id = mix(at ^ mix(in->owner ^ (__u64)in->epoch << 40)), check;
	__u32 start, length, first = 1, line = 0;

	if (lines == PERL_LINES) {
		/* A sub that is defined anew can have the memory of the one before. */
		first = perl_first_line(in, in->object[p->sub_start / 8 & 15]);
		check = first ^ in->object[p->sub_glob / 8 & 15] ^
			mix(in->object[p->sub_start / 8 & 15] ^
			    mix(in->object[p->sub_file / 8 & 15]));
	} else {
		check = in->object[p->statement_file / 8 & 15];
	}
	if (!function_known(in, id, mix(check), &start, &length)) {
		in->met = id;
		in->met_length = lines;
		return NEXT_UNMET;
	}
	bpf_probe_read_user(&line, 4, (void *)(cop + p->statement_line));
	in->place = profil_place(0, in->image,
				 start ? start + (line - first < lines ? line - first : 0) : 0);
	return NEXT_PLACE;
}

/* The program, file or evaluated string that in->high is a statement of. */
static __always_inline int perl_text(struct interpreting *in)
{
	if (bpf_probe_read_user(in->object, 96, (void *)in->high))
		return NEXT_END;
	return perl_place(in, in->high, PERL_FILE_LINES, in->high);
}

/* What the context in in->words is: a function, with its place in in->place, or NEXT_PASSED. */
static __always_inline int perl_context(struct interpreting *in)
{
	const struct profil_perl *p = &in->d.perl;
	__u32 type = (__u32)in->words[0] & 15;
	__u64 sub, body = 0, cop = in->high;

	if (type == p->context_eval && !(in->words[0] & p->eval_is_block))
		return perl_text(in);
	if (type != p->context_sub && type != p->context_format)
		return NEXT_PASSED;
	sub = in->words[p->context_code / 8 & 15];
	if (bpf_probe_read_user(&body, 8, (void *)sub) ||
	    bpf_probe_read_user(in->object, 96, (void *)body))
		return NEXT_END;
	if (cop == in->mark && !((__u32 *)in->words)[p->context_depth / 4 & 31])
		cop = 0;
	return perl_place(in, sub, PERL_LINES, cop);
}

/*
 * Behind the last context of a stack info: goes to the one before it, whose innermost function is
 * also this loop's if it has no other; or ends with the program.
 */
static __always_inline int perl_bottom(struct interpreting *in)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 before = 0, at = in->low & ~INFO_HAS_ENDED;
	__u32 type = 0;
	bool is_own;

	if (bpf_probe_read_user(&type, 4, (void *)(at + p->info_type)) ||
	    bpf_probe_read_user(&before, 8, (void *)(at + p->info_before)))
		return NEXT_END;
	if (type == p->info_is_program) {
		int next = perl_text(in);

		if (next == NEXT_PLACE)
			in->next = in->frame = 0;
		return next;
	}
	if (in->mark)
		in->high = in->mark;
	is_own = !in->seen && !(in->low & INFO_HAS_ENDED);
	in->shared |= is_own;
	return perl_info(in, before) && !in->seen ? NEXT_PASSED : NEXT_END;
}

/* One context: enum next. */
static __always_inline int perl_step(struct interpreting *in)
{
	const struct profil_perl *p = &in->d.perl;
	__u64 left = in->next;
	int next;

	if (left <= 1)
		return left ? perl_bottom(in) : NEXT_END;
	if (bpf_probe_read_user(in->words, 112,
				(void *)(in->contexts + (left - 2) * p->context_bytes)))
		return NEXT_END;
	in->mark = in->words[p->context_statement / 8 & 15];
	next = perl_context(in);
	if (next == NEXT_UNMET || next == NEXT_END)
		return next;
	in->next = left - 1;
	if (next == NEXT_PLACE) {
		in->high = in->mark;
		in->frame = in->words[p->context_return / 8 & 15];
		in->low |= in->frame ? 0 : INFO_HAS_ENDED;
	}
	return next;
}

static __always_inline bool perl_stretch(struct interpreting *in)
{
	in->seen = in->shared = 0;
	in->frame = in->next;
	return in->frame;
}

/* The next function of the stretch, into in->place: enum next. */
static __always_inline int perl_frame(struct interpreting *in)
{
	__u64 left, high;
	int next = NEXT_END;

	for (int i = 0; i < PERL_PASSES; i++) {
		left = in->next;
		high = in->high;
		next = perl_step(in);
		if (next != NEXT_PASSED)
			break;
	}
	if (next == NEXT_PASSED || next == NEXT_END) {
		in->frame = 0;
		return NEXT_END;
	}
	if (next == NEXT_PLACE && in->shared) {
		in->next = left;
		in->high = high;
		in->low &= ~INFO_HAS_ENDED;
		in->frame = 0;
	}
	in->seen += next == NEXT_PLACE;
	return next;
}

#endif
