/* hotspot.bpf.h - HotSpot: Java's methods, and the frames of its code cache */
#ifndef PROFIL_BPF_HOTSPOT_BPF_H
#define PROFIL_BPF_HOTSPOT_BPF_H

/*
 * All code that the virtual machine makes is in its code cache: a few heaps of segments, each with
 * a map of bytes that leads from a segment back to the first one of its block. A block is a code
 * blob: a compiled method, the interpreter, or a stub. A blob has the size of its frames: compiled
 * code keeps no frame pointer. Frames of the interpreter and of most stubs have one.
 *
 * The cache is found by a variable of libjvm.so. Code in the cache does not say where the library
 * is. The client says so when it has met the process; until then, each walk or sample that meets
 * code of the library notes its base for the process. Each attachment notes its own, because its
 * descriptor says which file the library is, and may be wrong.
 *
 * What the compiler has inlined is part of the method that contains it.
 */

#include "core/java_bases.h"
#include "functions.bpf.h"
#include "permission.bpf.h"
#include "unwind_rows.bpf.h"

#define SEGMENT_HOPS 16
#define SEGMENT_UNUSED 255
#define JAVA_CLASS_BYTES 56

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, JAVA_SETS);
	__type(key, __u32); /* in->java_set */
	__type(value, struct java_set);
} java_bases SEC(".maps");

static __always_inline __u64 interpreted_owner(const struct task_struct *task)
{
	return (__u64)(__u32)task->tgid << 32 | (__u32)task->self_exec_id;
}

/* The set of a process, to one attachment. */
static __always_inline struct java_set *java_set(struct interpreting *in)
{
	in->java_process = mix(in->owner ^ mix(in->epoch));
	in->java_set = in->java_process % JAVA_SETS;
	return bpf_map_lookup_elem(&java_bases, &in->java_set);
}

/*
 * Notes where the library is, if the loaded descriptor is HotSpot's, whose code the running process
 * executes. Global, as interpreter_find().
 */
__attribute__((noinline)) int hotspot_note(__u64 base)
{
	struct interpreting *in = interpreting_here();
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct java_set *s;

	if (!in || in->d.kind != PROFIL_INTERPRETER_HOTSPOT)
		return 0;
	in->owner = interpreted_owner(task);
	s = java_set(in);
	if (s && java_base_find(s, in->java_process) != base)
		java_base_keep(s, account_of(task), in->java_process, base);
	return 0;
}

/* Reads heap @i of the array at @heaps. */
static __always_inline void hotspot_heap(struct interpreting *in, __u64 heaps, __u32 i)
{
	const struct profil_hotspot *h = &in->d.hotspot;
	struct code_heap *to = &in->heap[i % CODE_HEAPS];
	__u64 heap = 0;

	to->low = to->high = 0;
	if (bpf_probe_read_user(&heap, 8, (void *)(heaps + 8 * i)) ||
	    bpf_probe_read_user(&to->segments, 8, (void *)(heap + h->heap_segments)) ||
	    bpf_probe_read_user(&to->shift, 4, (void *)(heap + h->heap_shift)) ||
	    bpf_probe_read_user(&to->low, 16, (void *)(heap + h->heap_memory)))
		to->low = to->high = 0;
}

/*
 * The client says with @image where the library is. A process's heaps keep their addresses, so a CPU
 * keeps those of the last process until code is in none of them.
 */
static __always_inline bool hotspot_begin(struct interpreting *in, __u32 slot, __u32 image)
{
	struct java_set *s = java_set(in);
	__u64 seen, array = 0, heaps = 0;
	__u32 n = 0;

	if (in->heaps_of == in->java_process)
		return true;
	in->heaps_of = 0;
	seen = s ? java_base_find(s, in->java_process) : 0;
	in->base = seen ? seen : image_base(slot, image);
	if (!in->base || bpf_probe_read_user(&array, 8, (void *)(in->base + in->d.runtime)) ||
	    bpf_probe_read_user(&n, 4, (void *)array) ||
	    bpf_probe_read_user(&heaps, 8, (void *)(array + 8)))
		return false;
	for (__u32 i = 0; i < CODE_HEAPS; i++) {
		in->heap[i].low = in->heap[i].high = 0;
		if (i < n)
			hotspot_heap(in, heaps, i);
	}
	in->heaps_of = n ? in->java_process : 0;
	return n;
}

/* The blob with the code at @pc; 0: there is none. Global, as interpreter_find(). */
__attribute__((noinline)) __u64 hotspot_blob(__u64 pc)
{
	struct interpreting *in = interpreting_here();
	const struct code_heap *heap = NULL;
	const struct profil_hotspot *h;
	__u8 back = 0;
	__u64 at;

	if (!in)
		return 0;
	h = &in->d.hotspot;
	for (int i = 0; i < CODE_HEAPS; i++) {
		if (pc - in->heap[i].low < in->heap[i].high - in->heap[i].low)
			heap = &in->heap[i];
	}
	if (!heap)
		return 0;
	at = (pc - heap->low) >> (heap->shift & 31);
	for (int i = 0; i < SEGMENT_HOPS; i++) {
		if (bpf_probe_read_user(&back, 1, (void *)(heap->segments + at)) ||
		    back == SEGMENT_UNUSED)
			return 0;
		if (!back)
			return heap->low + (at << (heap->shift & 31)) + h->block_bytes;
		at -= back;
	}
	return 0;
}

#define NAME_NMETHOD 0x00646f6874656d6eull     /* "nmethod" */
#define NAME_NATIVE 0x6e2065766974616eull      /* "native nmethod", its first eight */
#define NAME_INTERPRETER 0x6572707265746e49ull /* "Interpreter" */

/* Continues with the return address at @at, and the stack above it. */
static __always_inline int hotspot_return(struct interpreting *in, __u64 at)
{
	in->low = at + 8;
	return !bpf_probe_read_user(&in->mark, 8, (void *)at);
}

/* Steps out of a frame with a frame pointer, which the interpreter's have at @sender. */
static __always_inline int hotspot_framed(struct interpreting *in, bool interpreted)
{
	__u64 fp = in->high, pair[2], sender = fp + 16;

	if (fp & 7 || fp < in->low || bpf_probe_read_user(pair, sizeof(pair), (void *)fp))
		return 0;
	/* The stub of the barrier at the entry of methods has a cookie before the return address.
	 */
	if (!~pair[1]) {
		in->high = pair[0];
		return hotspot_return(in, fp + 16);
	}
	/* What calls the interpreter may have made room for arguments, which are below its frame.
	 */
	if (interpreted && bpf_probe_read_user(&sender, 8, (void *)(fp - 8)))
		return 0;
	if (sender < fp + 16 || sender > fp + (1 << 20))
		sender = fp + 16;
	in->low = sender;
	in->high = pair[0];
	in->mark = pair[1];
	return 1;
}

enum code_step {
	CODE_ELSEWHERE, /* not in the code cache */
	CODE_CUT,	/* its stack cannot be read */
	CODE_STEPPED,
};

/* Where compiled code at @pc is: before its frame is made, in it, or behind. */
enum frame_part {
	FRAME_BEFORE, /* the return address is at the stack pointer */
	FRAME_PUSHED, /* behind the saved frame pointer */
	FRAME_MADE,
	FRAME_UNSAVED, /* made, but the frame pointer is not in it yet */
};

#define PROLOGUE_BYTES 32 /* from making room on the stack to the end of the barrier at entries */

/*
 * Says whether sub $N,%rsp is among the instructions of the prologue, @code. Forward: Linux 7.2
 * takes a pointer that was decremented below a map's value for an unbounded one.
 */
static __always_inline bool hotspot_has_room(const __u8 *code)
{
	for (int i = 0; i <= PROLOGUE_BYTES - 4; i++) {
		const __u8 *at = code + i;

		if (at[0] == 0x48 && at[2] == 0xec &&
		    (at[1] == 0x83 || (at[1] == 0x81 && i <= PROLOGUE_BYTES - 7)))
			return true;
	}
	return false;
}

/* The instructions around @pc, of x86-64, by what the compilers emit for prologue and epilogue. */
static __always_inline int hotspot_part(struct interpreting *in, __u64 pc, bool in_prologue)
{
	const __u8 *code = (__u8 *)in->words + PROLOGUE_BYTES;

	if (bpf_probe_read_user(in->words, PROLOGUE_BYTES + 16, (void *)(pc - PROLOGUE_BYTES)))
		return FRAME_MADE;
	if (in_prologue) {
		/* mov %rbp,N(%rsp) */
		if (code[0] == 0x48 && code[1] == 0x89 && (code[2] == 0x6c || code[2] == 0xac))
			return FRAME_UNSAVED;
		if (code[-1] == 0x55)
			return FRAME_PUSHED;
		return hotspot_has_room(code - PROLOGUE_BYTES) ? FRAME_MADE : FRAME_BEFORE;
	}
	/* pop %rbp */
	if (code[0] == 0x5d)
		return FRAME_PUSHED;
	/* ret; ja STUB, ret; cmp N(%r15),%rsp, ja STUB, ret */
	if (code[0] == 0xc3 || (code[0] == 0x0f && code[1] == 0x87 && code[6] == 0xc3) ||
	    (code[0] == 0x49 && code[1] == 0x3b &&
	     ((code[2] == 0x67 && code[10] == 0xc3) || (code[2] == 0xa7 && code[13] == 0xc3))))
		return FRAME_BEFORE;
	return FRAME_MADE;
}

static __always_inline int hotspot_compiled(struct interpreting *in, __u64 blob, __u64 pc,
					    bool exact, __u64 bytes)
{
	const struct profil_hotspot *h = &in->d.hotspot;
	__u64 sp = in->low, code = in->object[h->blob_code / 8 & 15], complete;
	int part = FRAME_MADE;

	complete = ((__u32 *)in->object)[h->blob_complete / 4 & 31];
	if (h->is_short) {
		code = blob + ((__u32 *)in->object)[h->blob_code / 4 & 31];
		complete = ((__u16 *)in->object)[h->blob_complete / 2 & 63];
	}
	if (exact)
		part = hotspot_part(in, pc, pc - code < (__u32)complete);
	if (part == FRAME_BEFORE)
		return hotspot_return(in, sp);
	if (part == FRAME_PUSHED)
		bytes = 16;
	if (part != FRAME_UNSAVED && bpf_probe_read_user(&in->high, 8, (void *)(sp + bytes - 16)))
		return 0;
	return hotspot_return(in, sp + bytes - 8);
}

/*
 * Steps out of code that is interrupted where it has no frame, as adapters between interpreted and
 * compiled code, which leave the return address at the stack pointer.
 */
static __always_inline bool hotspot_frameless(struct interpreting *in)
{
	__u64 sp = in->low, word = 0;

	return !bpf_probe_read_user(&word, 8, (void *)sp) && hotspot_blob(word) &&
	       hotspot_return(in, sp);
}

enum code_at {
	CODE_CALLER,
	CODE_LEAF,	/* the code is interrupted there */
	CODE_LEAF_ONLY, /* and its caller is not asked for */
};

/*
 * Finds the code at in->mark and steps to its caller: in->low is the stack pointer, in->high the
 * frame pointer. in->frame becomes the method that the frame executes, or 0, and in->next the name
 * of the blob. @at: enum code_at. Returns enum code_step. Global, as interpreter_find().
 */
__attribute__((noinline)) int hotspot_step(int at)
{
	struct interpreting *in = interpreting_here();
	__u64 pc, blob, name = 0, words;
	bool exact = at != CODE_CALLER, is_framed;
	const struct profil_hotspot *h;

	if (!in)
		return CODE_ELSEWHERE;
	h = &in->d.hotspot;
	pc = in->mark;
	in->frame = in->next = 0;
	blob = hotspot_blob(exact ? pc : pc - 1);
	in->heaps_of = blob ? in->heaps_of : 0;
	if (!blob || bpf_probe_read_user(in->object, 128, (void *)blob))
		return CODE_ELSEWHERE;
	in->next = in->object[h->blob_name / 8 & 15];
	if (bpf_probe_read_user(&name, 8, (void *)in->next))
		return CODE_ELSEWHERE;
	words = ((__u32 *)in->object)[h->blob_frame / 4 & 31];
	is_framed = name == NAME_INTERPRETER || !words || words >= 1 << 20;
	if (name == NAME_NMETHOD || name == NAME_NATIVE)
		in->frame = in->object[h->blob_method / 8 & 15];
	if (exact && is_framed && hotspot_frameless(in))
		return CODE_STEPPED;
	if (name == NAME_INTERPRETER && bpf_probe_read_user(&in->frame, 8, (void *)(in->high - 24)))
		in->frame = 0;
	if (at == CODE_LEAF_ONLY)
		return CODE_STEPPED;
	return (is_framed ? hotspot_framed(in, name == NAME_INTERPRETER)
			  : hotspot_compiled(in, blob, pc, exact, 8 * words))
		       ? CODE_STEPPED
		       : CODE_CUT;
}

/* --- methods ---------------------------------------------------------------------------------- */

/* Copies the symbol at @at to @to. Returns the number of bytes; its end is kept if it is longer. */
static __always_inline __u32 hotspot_symbol(struct interpreting *in, __u64 at, char *to, __u64 most)
{
	const struct profil_hotspot *h = &in->d.hotspot;
	__u16 length = 0;
	__u64 n;

	if (!at || bpf_probe_read_user(&length, 2, (void *)(at + h->symbol_length)))
		return 0;
	at += h->symbol_bytes;
	n = length;
	if (n > most) {
		at += n - most;
		n = most;
	}
	asm volatile("" : "+r"(n));
	if (n > most || bpf_probe_read_user(to, (__u32)n, (void *)at))
		return 0;
	return (__u32)n;
}

/* The symbol with the index at @index in the pool of constants at @pool. */
static __always_inline __u64 hotspot_constant(struct interpreting *in, __u64 pool, __u64 index)
{
	__u64 symbol = 0;
	__u16 i = 0;

	if (bpf_probe_read_user(&i, 2, (void *)index) || !i ||
	    bpf_probe_read_user(&symbol, 8, (void *)(pool + in->d.hotspot.pool_bytes + 8ull * i)))
		return 0;
	return symbol;
}

/* Copies the name of a stub at @at, which a NUL ends. */
static __always_inline void hotspot_stub(struct profil_function *f, __u64 at)
{
	long n = bpf_probe_read_user_str(f->name, sizeof(f->name), (void *)at);

	f->name_bytes = n > 1 ? (__u16)(n - 1) : 0;
}

/*
 * Meets the method whose constants are at in->object[2], or the stub with the name at
 * in->object[1], for the first time.
 */
__attribute__((noinline)) __u32 hotspot_function(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	__u64 class_at = 0, pool, fixed;
	const struct profil_hotspot *h;
	struct profil_function *f;
	struct table t;
	__u32 n, more;

	if (!in)
		return 0;
	h = &in->d.hotspot;
	f = &in->fresh;
	__builtin_memset(f, 0, sizeof(*f));
	f->language = PROFIL_LANGUAGE_JAVA;
	f->length = 1;
	fixed = in->object[1];
	pool = in->object[2];
	if (!pool) {
		hotspot_stub(f, fixed);
		return f->name_bytes ? function_number(slot) : 0;
	}
	bpf_probe_read_user(&class_at, 8, (void *)(pool + h->pool_holder));
	bpf_probe_read_user(&class_at, 8, (void *)(class_at + h->class_name));
	n = hotspot_symbol(in, class_at, f->name, JAVA_CLASS_BYTES);
	f->name[n & 63] = '.';
	more = hotspot_symbol(in, hotspot_constant(in, pool, fixed + h->method_name),
			      f->name + (n & 63) + 1, 32);
	if (!n || !more) {
		if (table_of(&t, slot))
			TABLE_ADD(&t, function_unread, 1);
		return 0;
	}
	f->name_bytes = (__u16)(n + 1 + more);
	f->file_bytes = (__u16)hotspot_symbol(in, hotspot_constant(in, pool, pool + h->pool_source),
					      f->file, sizeof(f->file));
	f->file_encoding = f->file_bytes ? 1 : 0;
	return function_number(slot);
}

/* Whether in->frame is a method, by the structures that it points to. */
static __always_inline bool hotspot_is_method(struct interpreting *in)
{
	return in->frame && !(in->frame & 7) &&
	       !bpf_probe_read_user(&in->object[1], 8,
				    (void *)(in->frame + in->d.hotspot.method_fixed)) &&
	       !bpf_probe_read_user(&in->object[2], 8,
				    (void *)(in->object[1] + in->d.hotspot.fixed_constants)) &&
	       in->object[2] && !(in->object[2] & 7);
}

/*
 * The hash and the first characters of the name of the class whose constants are at in->object[2]:
 * a class that is loaded can have all addresses of one that was unloaded.
 */
static __always_inline __u64 hotspot_content(struct interpreting *in)
{
	const struct profil_hotspot *h = &in->d.hotspot;
	__u64 at = 0, w[2] = { 0, 0 };

	if (!in->object[2] ||
	    bpf_probe_read_user(&at, 8, (void *)(in->object[2] + h->pool_holder)) ||
	    bpf_probe_read_user(&at, 8, (void *)(at + h->class_name)) ||
	    bpf_probe_read_user(w, sizeof(w), (void *)at))
		return 0;
	return mix(w[0] >> 16 ^ mix(w[1])); /* without the count of references */
}

/*
 * The place of the method in->frame, or of the stub with the name in->next, into in->place: enum
 * next. Global, as interpreter_find().
 */
__attribute__((noinline)) int hotspot_place(void)
{
	struct interpreting *in = interpreting_here();
	__u64 method, id, check;
	__u32 start, length;

	if (!in || !in->next)
		return NEXT_END;
	method = in->frame;
	if (!hotspot_is_method(in)) {
		method = in->object[1] = in->next;
		in->object[2] = 0;
	}
	id = mix(method ^ mix(in->owner ^ (__u64)in->epoch << 40));
	check = mix(in->object[1] ^ mix(in->object[2]) ^ hotspot_content(in));
	if (!function_known(in, id, check, &start, &length)) {
		in->met = id;
		in->met_length = 1;
		return NEXT_UNMET;
	}
	in->place = profil_place(0, in->image, start);
	return NEXT_PLACE;
}

#endif
