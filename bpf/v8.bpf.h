/* v8.bpf.h - V8: the function is in the machine frame */
#ifndef PROFIL_BPF_V8_BPF_H
#define PROFIL_BPF_V8_BPF_H

/*
 * Frames of JavaScript functions, whether interpreted, compiled by Sparkplug or by TurboFan, have
 * the function and its context at fixed places below the frame pointer. Frames of stubs have a
 * small integer instead of the context. A function of a script takes the place of its machine
 * frame; one without a script is a builtin, which the file's symbols name. What TurboFan has
 * inlined is in its outer function. The function is known by its SharedFunctionInfo, whose type is
 * checked when it is first met.
 */

#include "functions.bpf.h"

static __always_inline bool v8_is_pointer(__u64 word)
{
	return word & 1;
}

static __always_inline __u16 v8_type(const struct profil_v8 *v, __u64 object)
{
	__u64 map = 0;
	__u16 type = 0;

	if (!v8_is_pointer(object) ||
	    bpf_probe_read_user(&map, sizeof(map), (void *)(object - 1)) ||
	    bpf_probe_read_user(&type, sizeof(type), (void *)(map - 1 + v->map_type)))
		return 0xffff;
	return type;
}

#define TEXT_UNREADABLE 0xff /* now: its memory is not there */

enum v8_string_kind {		     /* bits of a string's type */
		      V8_CONS = 1,   /* two strings, the second of which is empty once it is flat */
		      V8_SLICED = 3, /* a part of a string: that string and the start */
		      V8_THIN = 5,   /* another string */
};

#define V8_HOPS 3

/*
 * The string that holds the characters of @string, which is of @type. If they are in two, @left is
 * the first of them, and the second is returned; else @left is 0.
 */
static __always_inline __u64 v8_last_part(struct interpreting *in, __u64 string, __u16 *type,
					  __u64 *left)
{
	const struct profil_v8 *v = &in->d.v8;
	__u64 *part = in->words;

	*left = 0;
	for (int i = 0; i < V8_HOPS && *type < v->type_nonstring; i++) {
		__u32 kind = *type & v->string_kind_mask, length = 0;

		if ((kind != V8_CONS && kind != V8_THIN) ||
		    bpf_probe_read_user(part, 16, (void *)(string - 1 + v->string_chars)))
			break;
		if (kind == V8_CONS &&
		    bpf_probe_read_user(&length, sizeof(length),
					(void *)(part[1] - 1 + v->string_length)))
			break;
		if (length && *left)
			break;
		if (length)
			*left = part[0];
		string = length ? part[1] : part[0];
		*type = v8_type(v, string);
	}
	return string;
}

/*
 * Reads the string @string, or its last part if it is not flat, whose rest is then @left. Returns
 * the bytes of a character; 0: it is no string, or not sequential; TEXT_UNREADABLE.
 */
static __always_inline __u8 v8_part(struct interpreting *in, __u64 string, char *to, __u64 most,
				    bool end, __u16 *bytes, __u64 *left)
{
	const struct profil_v8 *v = &in->d.v8;
	__u64 at, n, *slice = in->words;
	__u16 type = v8_type(v, string);
	__u32 length = 0, width;

	string = v8_last_part(in, string, &type, left);
	if (type == 0xffff && v8_is_pointer(string))
		return TEXT_UNREADABLE;
	if (type >= v->type_nonstring)
		return 0;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)(string - 1 + v->string_length)))
		return TEXT_UNREADABLE;
	at = string - 1 + v->string_chars;
	width = type & v->string_one_byte ? 1 : 2;
	if ((type & v->string_kind_mask) == V8_SLICED) {
		if (bpf_probe_read_user(slice, 16, (void *)at))
			return TEXT_UNREADABLE;
		type = v8_type(v, slice[0]);
		at = slice[0] - 1 + v->string_chars + (slice[1] >> 32) * width;
	}
	if (type >= v->type_nonstring || type & v->string_kind_mask)
		return 0;
	n = (__u64)length * width;
	if (n > most) {
		at += end ? n - most : 0;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most || n > PROFIL_FUNCTION_FILE)
		return 0;
	if (bpf_probe_read_user(to, (__u32)n, (void *)at))
		return TEXT_UNREADABLE;
	*bytes = (__u16)n;
	return (__u8)width;
}

/* Likewise of a flat string: 0 also if it is not flat. */
static __always_inline __u8 v8_text(struct interpreting *in, __u64 string, char *to, __u64 most,
				    __u16 *bytes)
{
	__u64 left;
	__u8 width = v8_part(in, string, to, most, false, bytes, &left);

	if (!left || width == TEXT_UNREADABLE)
		return width;
	*bytes = 0;
	return 0;
}

#define V8_FILE_PARTS 8

/*
 * Puts the last part of the path in->file_rest in front of what in->fresh has of it, in f->lines.
 * Returns as v8_part(). Global, so that the verifier checks it once.
 */
__attribute__((noinline)) int v8_file_part(void)
{
	struct interpreting *in = interpreting_here();
	__u64 free = in ? in->file_free : 0, bytes;
	struct profil_function *f;
	__u16 n = 0;
	__u8 width;

	if (!in || free > PROFIL_FUNCTION_FILE)
		return 0;
	f = &in->fresh;
	width = v8_part(in, in->file_rest, f->file, free, true, &n, &in->file_rest);
	bytes = n;
	free -= bytes;
	asm volatile("" : "+r"(free), "+r"(bytes));
	if (free > PROFIL_FUNCTION_FILE || bytes > PROFIL_FUNCTION_FILE)
		return 0;
	bpf_probe_read_kernel(&f->lines[free], (__u32)bytes, f->file);
	in->file_free = free;
	return width;
}

/*
 * Begins in->fresh with the process and the file, the end of its path, of the function whose fields
 * are in->object. One that was put together and is not flat yet has its last parts joined, in
 * f->lines: so it is the same later. Global, and not called by v8_function(), whose stack would be
 * below its own.
 */
__attribute__((noinline)) int v8_file(void)
{
	struct interpreting *in = interpreting_here();
	struct profil_function *f;
	const struct profil_v8 *v;
	__u8 width = 0, part;
	__u64 free, bytes;

	if (!in)
		return 0;
	v = &in->d.v8;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	f->tgid = tgid_of((void *)bpf_get_current_task_btf());
	in->file_free = PROFIL_FUNCTION_FILE;
	in->file_rest = 0;
	bpf_probe_read_user(&in->file_rest, sizeof(in->file_rest),
			    (void *)(in->object[v->shared_script / 8 & 31] - 1 + v->script_name));
	for (int i = 0; i < V8_FILE_PARTS && in->file_rest && in->file_free; i++) {
		part = (__u8)v8_file_part();
		if (!part || part == TEXT_UNREADABLE || (width && part != width)) {
			width = part == TEXT_UNREADABLE ? part : 0;
			break;
		}
		width = part;
	}
	free = in->file_free;
	f->file_encoding = width;
	bytes = width && width != TEXT_UNREADABLE ? PROFIL_FUNCTION_FILE - free : 0;
	f->file_bytes = (__u16)bytes;
	asm volatile("" : "+r"(free), "+r"(bytes));
	if (free > PROFIL_FUNCTION_FILE || bytes > PROFIL_FUNCTION_FILE)
		return 0;
	bpf_probe_read_kernel(f->file, (__u32)bytes, &f->lines[free]);
	__builtin_memset(f->lines, 0, PROFIL_FUNCTION_FILE);
	return 0;
}

#define V8_LOCALS_INLINE 75 /* kScopeInfoMaxInlinedLocalNamesSize */

/*
 * Reads into in->text what can be names in ScopeInfo @scope: behind the context's locals, whose
 * names are in a table elsewhere if they are many, are, each if the function has it, the function's
 * own variable (a name and a slot), an inferred name, and before V8 13 its position in the script.
 */
static __always_inline void v8_scope(struct interpreting *in, const struct profil_v8 *v,
				     struct profil_function *f, __u64 scope)
{
	__u64 locals = 0, names, position = 0, *w = in->text;

	if (bpf_probe_read_user(&locals, sizeof(locals), (void *)(scope - 1 + v->scope_locals)))
		return;
	locals >>= 32;
	names = locals < V8_LOCALS_INLINE ? locals : 1;
	if (locals > 4096 ||
	    bpf_probe_read_user(w, 32, (void *)(scope - 1 + v->scope_first + 8 * (names + locals))))
		return;
	if (v->scope_position)
		bpf_probe_read_user(&position, 8, (void *)(scope - 1 + v->scope_position));
	else
		position = v8_is_pointer(w[2])	 ? w[3]
			   : v8_is_pointer(w[1]) ? w[2]
			   : v8_is_pointer(w[0]) ? w[2]
						 : w[0];
	f->line = (__u32)(position >> 32);
}

#define V8_NAMES 3

/*
 * Meets the SharedFunctionInfo whose fields are in->object for the first time, after v8_file().
 * Returns the start of its offsets; 0: it has none.
 */
__attribute__((noinline)) __u32 v8_function(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	const struct profil_v8 *v;
	struct profil_function *f;
	__u64 name;
	struct table t;

	if (!in)
		return 0;
	v = &in->d.v8;
	f = &in->fresh;
	name = in->object[v->shared_name / 8 & 31];
	f->language = PROFIL_LANGUAGE_JAVASCRIPT;
	f->line_format = PROFIL_LINES_POSITION;
	f->length = 1;
	in->text[0] = name;
	in->text[1] = in->text[2] = 0;
	if (v8_type(v, name) >= v->type_nonstring)
		v8_scope(in, v, f, name);
	for (int i = 0; i < V8_NAMES && !f->name_bytes; i++) {
		if (v8_is_pointer(in->text[i]))
			f->name_encoding =
				v8_text(in, in->text[i], f->name, sizeof(f->name), &f->name_bytes);
	}
	if (f->name_encoding == TEXT_UNREADABLE || f->file_encoding == TEXT_UNREADABLE) {
		if (table_of(&t, slot))
			TABLE_ADD(&t, function_unread, 1);
		return 0;
	}
	return function_number(slot);
}

static __always_inline bool v8_is_function(const struct profil_v8 *v, __u64 function, __u64 shared)
{
	__u16 type = v8_type(v, function);

	return type >= v->type_function && type <= v->type_function_last &&
	       v8_type(v, shared) == v->type_shared;
}

#define SCRIPT_ID_BEFORE \
	40 /* a script's id, which no other one gets, is behind so many bytes, ... */
#define SCRIPT_ID_BYTES 40 /* ... among these, in every version */

/* A collection of garbage gives new code the addresses of old: what tells the script at @at from others. */
static __always_inline __u64 v8_content(struct interpreting *in, __u64 at)
{
	const __u64 *w = in->text;

	if (bpf_probe_read_user(in->text, SCRIPT_ID_BYTES, (void *)(at - 1 + SCRIPT_ID_BEFORE)))
		return 0;
	return mix(w[0] ^ mix(w[1] ^ mix(w[2] ^ mix(w[3] ^ mix(w[4])))));
}

/*
 * The place of the function whose machine frame is at @fp, into in->place: enum next. NEXT_END: it
 * is none, or a builtin. interpreter_find() has returned FOUND_FRAME. Global, as it.
 */
__attribute__((noinline)) int v8_place(__u64 fp)
{
	struct interpreting *in = interpreting_here();
	__u64 function = 0, context = 0, shared = 0, id, check;
	const struct profil_v8 *v;
	__u32 start, length;

	if (!in || fp & 7)
		return NEXT_END;
	v = &in->d.v8;
	if (bpf_probe_read_user(&function, 8, (void *)(fp + (__u64)(__s64)v->frame_function)) ||
	    bpf_probe_read_user(&context, 8, (void *)(fp + (__u64)(__s64)v->frame_context)) ||
	    !v8_is_pointer(function) || !v8_is_pointer(context) ||
	    bpf_probe_read_user(&shared, 8, (void *)(function - 1 + v->function_shared)) ||
	    !v8_is_pointer(shared) || bpf_probe_read_user(in->object, 64, (void *)(shared - 1)))
		return NEXT_END;
	id = mix(shared ^ mix(in->owner ^ (__u64)in->epoch << 40));
	check = mix(in->object[v->shared_name / 8 & 31] ^
		    mix(in->object[v->shared_script / 8 & 31])) ^
		v8_content(in, in->object[v->shared_script / 8 & 31]);
	if (!function_known(in, id, check, &start, &length)) {
		if (!v8_is_function(v, function, shared))
			return NEXT_END;
		in->met = id;
		in->met_length = 1;
		in->met_start = 0;
		if (v8_type(v, in->object[v->shared_script / 8 & 31]) == v->type_script)
			return NEXT_UNMET;
		in->met_length = FUNCTION_IS_NONE;
		function_known(in, id, check, &start, &length);
	}
	in->place = profil_place(0, in->image, start);
	return length == FUNCTION_IS_NONE ? NEXT_END : NEXT_PLACE;
}

#endif
