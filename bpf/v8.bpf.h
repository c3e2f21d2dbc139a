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

#define V8_CONS                                                                                   \
	1	  /* of the kinds of strings: two strings, the second of which is empty once flat \
		   */
#define V8_THIN 5 /* another string */

/* The string that holds the characters of @string, which is of @type. */
static __always_inline __u64 v8_flat(const struct profil_v8 *v, __u64 string, __u16 *type)
{
	__u32 kind = *type & v->string_kind_mask, length = 0;
	__u64 part[2];

	if (*type >= v->type_nonstring || (kind != V8_CONS && kind != V8_THIN) ||
	    bpf_probe_read_user(part, sizeof(part), (void *)(string - 1 + v->string_chars)))
		return string;
	if (kind == V8_CONS && (bpf_probe_read_user(&length, sizeof(length),
						    (void *)(part[1] - 1 + v->string_length)) ||
				length))
		return string;
	*type = v8_type(v, part[0]);
	return part[0];
}

/*
 * Reads the string @string, if it is sequential. Returns the bytes of a character; 0: it is not;
 * TEXT_UNREADABLE.
 */
static __always_inline __u8 v8_text(const struct profil_v8 *v, __u64 string, char *to, __u64 most,
				    bool end, __u16 *bytes)
{
	__u16 type = v8_type(v, string);
	__u32 length = 0, width;
	__u64 at, n;

	string = v8_flat(v, string, &type);
	at = string - 1 + v->string_chars;

	if (type == 0xffff && v8_is_pointer(string))
		return TEXT_UNREADABLE;
	if (type >= v->type_nonstring || type & v->string_kind_mask)
		return 0;
	if (bpf_probe_read_user(&length, sizeof(length), (void *)(string - 1 + v->string_length)))
		return TEXT_UNREADABLE;
	width = type & v->string_one_byte ? 1 : 2;
	n = (__u64)length * width;
	if (n > most) {
		at += end ? n - most : 0;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most)
		return 0;
	if (bpf_probe_read_user(to, (__u32)n, (void *)at))
		return TEXT_UNREADABLE;
	*bytes = (__u16)n;
	return (__u8)width;
}

/*
 * The name in ScopeInfo @scope: behind the context's locals are, each if the function has it, the
 * function's own variable (a name and a slot), an inferred name, and its position in the script.
 */
static __always_inline void v8_scope(struct interpreting *in, const struct profil_v8 *v,
				     struct profil_function *f, __u64 scope)
{
	__u64 locals = 0, *w = in->text;

	if (bpf_probe_read_user(&locals, sizeof(locals), (void *)(scope - 1 + v->scope_locals)))
		return;
	locals >>= 32;
	if (locals > 4096 ||
	    bpf_probe_read_user(w, 32, (void *)(scope - 1 + v->scope_first + 16 * locals)))
		return;
	if (v8_is_pointer(w[0]))
		f->name_encoding =
			v8_text(v, w[0], f->name, sizeof(f->name), false, &f->name_bytes);
	if (!f->name_bytes && v8_is_pointer(w[1]))
		f->name_encoding =
			v8_text(v, w[1], f->name, sizeof(f->name), false, &f->name_bytes);
	if (!f->name_bytes && v8_is_pointer(w[2]))
		f->name_encoding =
			v8_text(v, w[2], f->name, sizeof(f->name), false, &f->name_bytes);
	f->line = (__u32)((v8_is_pointer(w[2])	 ? w[3]
			   : v8_is_pointer(w[1]) ? w[2]
			   : v8_is_pointer(w[0]) ? w[2]
						 : w[0]) >>
			  32);
}

/*
 * Meets the SharedFunctionInfo whose fields are in->object for the first time. Returns the start of
 * its offsets; 0: it has none.
 */
__attribute__((noinline)) __u32 v8_function(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	const struct profil_v8 *v;
	struct profil_function *f;
	__u64 name, script, file = 0;
	struct table t;

	if (!in)
		return 0;
	v = &in->d.v8;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	name = in->object[v->shared_name / 8 & 31];
	script = in->object[v->shared_script / 8 & 31];
	f->language = PROFIL_LANGUAGE_JAVASCRIPT;
	f->line_format = PROFIL_LINES_POSITION;
	f->length = 1;
	if (v8_type(v, name) < v->type_nonstring)
		f->name_encoding =
			v8_text(v, name, f->name, sizeof(f->name), false, &f->name_bytes);
	else
		v8_scope(in, v, f, name);
	if (!bpf_probe_read_user(&file, sizeof(file), (void *)(script - 1 + v->script_name)))
		f->file_encoding = v8_text(v, file, f->file, sizeof(f->file), true, &f->file_bytes);
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
		    mix(in->object[v->shared_script / 8 & 31]));
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
