/* functions.bpf.h - functions of interpreted languages: their names, read once, and their offsets
 */
#ifndef PROFIL_BPF_FUNCTIONS_BPF_H
#define PROFIL_BPF_FUNCTIONS_BPF_H

/*
 * An interpreter executes functions that are data of the process. interpreter.bpf.h finds the ones
 * that a thread executes; this file turns each into a place, so that it is counted as machine code
 * is: an offset in the image of its language (PROFIL_IMAGE_FUNCTIONS).
 *
 * A function is what it is called: language, file, name, first line and length. The hash of these
 * is the id of a struct profil_function in the table, which the first sample that meets it claims
 * by compare-and-swap, as images are claimed. The same sample copies the names, so a process may
 * end before a client looks, and gives the function the next free range of offsets. So workers,
 * forks and restarted programs share their functions, and the table's size is constant. Without
 * room a function is the language's function 0, and function_full counts it.
 *
 * To read and hash the names of each frame would take a microsecond. Each CPU therefore caches the
 * functions that it has met by address space and address of the code object, together with a hash
 * of the object's pointers to its names and its line table: interpreters that generate code reuse
 * addresses.
 */

#include "core/interpreter_maps.h"
#include "image.bpf.h"
#include "table.bpf.h"

#define FUNCTION_CACHE 1024
#define FUNCTION_IS_NONE 0xffffffffu /* a length: code that is no function of the language */

struct cached_function {
	__u64 id; /* of the code's address, the address space and the attachment; 0: nothing */
	__u64 check;
	__u32 start;
	__u32 length;
};

/* The next function of a thread. */
enum next {
	NEXT_END,    /* there is none */
	NEXT_PLACE,  /* it is in in->place */
	NEXT_UNMET,  /* call interpreter_meet(), then ask again */
	NEXT_PASSED, /* between: this one is none */
};

#define CODE_HEAPS 4

/* A heap of HotSpot's code cache. */
struct code_heap {
	__u64 low;
	__u64 high;
	__u64 segments; /* the map of them */
	__u32 shift;	/* log2 of the bytes of one */
	__u32 zero;
};

/* What a CPU knows of the interpreter of the thread that it samples. */
struct interpreting {
	struct profil_interpreter d;
	__u32 epoch; /* d is descriptor `number` of the attachment with this epoch, */
	__u32 number;
	__u32 moment; /* read at this time */
	__u32 slot;
	__u32 busy;
	__u32 image;	/* number of the language's image; 0: there is no room */
	__u32 unit;	/* of the frame: unit of its code that it executes */
	__u32 language; /* whose image that is */
	__u64 owner;	/* the address space, as in owner_of() */
	__u64 next;	/* where the next outer stretch begins */
	__u64 frame;	/* the next frame of this stretch; 0: it has ended */
	__u64 place;	/* of the frame */
	__u64 low;	/* the machine frame of the loop is [low, high) */
	__u64 high;
	__u64 mark;	/* where this stretch began */
	__u32 depth;	/* of the stack, there */
	__u32 skip;	/* the next frame stands in the stack already */
	__u32 undo;	/* the stretch is not this loop's: its frames are to be taken back */
	__u32 seen;	/* Perl: functions of this stretch, */
	__u32 shared;	/* and whether the next one is also the first of the next stretch */
	__u64 contexts; /* Perl: the array that `next` is an index of */
	struct code_heap heap[CODE_HEAPS];
	__u64 heaps_of;	    /* the java_process whose they are; 0: none's */
	__u64 java_process; /* hash of the process */
	__u64 base;	    /* of libjvm.so */
	__u32 java_set;	    /* key of java_bases */
	__u32 known;	    /* the thread's frames were looked for; 2: and found */
	__u64 constant_of;  /* hash of the process and the address of ... */
	__u64 constant[2];  /* ... what process_constant() has read; 0: nothing */
	struct {
		__u64 base;
		__u64 of; /* as in spot_count() */
		__u32 number;
		__u32 image;
		__u32 offset;
		__u32 at; /* the offset, or ANY_OFFSET */
		__u32 n;
		__u32 zero;
	} leaf;		 /* samples whose function is to be found */
	__u64 met;	 /* the code that interpreter_meet() is to read, then has read; ... */
	__u32 met_start; /* ... the start of its offsets */
	__u32 met_length;
	__u64 met_check; /* PHP: the check of the function at hand */
	__u64 file_rest; /* V8: the string of a file's path before what is read of it */
	__u64 file_free; /* of the bytes for the path */
	struct spot spot;
	__u64 words[16];  /* a frame's first ones */
	__u64 object[32]; /* a code object's */
	__u64 text[5];	  /* a string's */
	/* This walk's part in the share of its user: the stack has no room to ask at each claim. */
	__u32 no_share;
	__u32 claimed;
	struct profil_function fresh;
	struct cached_function cache[FUNCTION_CACHE];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct interpreting);
} interpreting SEC(".maps");

static __always_inline struct interpreting *interpreting_here(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&interpreting, &zero);
}

/*
 * What stands at @at, 4, 8 or 16 bytes of which the first word is not 0 once it is final: it is the
 * same for all threads until the process executes another program. Its page is touched for nothing
 * else as a rule, so reading it takes as long as finding the function. NULL: it cannot be read.
 */
static __always_inline const __u32 *process_constant(struct interpreting *in, __u64 at, __u32 bytes)
{
	__u64 of = mix(in->owner ^ mix(at));

	if (in->constant_of == of)
		return (__u32 *)in->constant;
	in->constant_of = 0;
	if (bpf_probe_read_user(in->constant, bytes, (void *)at))
		return NULL;
	in->constant_of = (__u32)in->constant[0] ? of : 0;
	return (__u32 *)in->constant;
}

/* A walk of the running thread begins: may it claim functions? */
static __always_inline void functions_begin(const struct table *t, __u32 slot)
{
	struct interpreting *in = t->observer->functions ? interpreting_here() : NULL;

	if (in) {
		in->claimed = 0;
		in->no_share = !share_take(slot, SHARE_FUNCTIONS, payer(), 0);
	}
}

static __always_inline void functions_end(const struct table *t, __u32 slot)
{
	const struct interpreting *in = t->observer->functions ? interpreting_here() : NULL;

	if (in && in->claimed)
		share_take(slot, SHARE_FUNCTIONS, payer(), (int)in->claimed);
}

/* Words of struct profil_function whose hash is its id: from `language` to the end of the name. */
#define FUNCTION_ID_FROM 2
#define FUNCTION_ID_TO 34
_Static_assert(__builtin_offsetof(struct profil_function, language) == FUNCTION_ID_FROM * 8 &&
		       __builtin_offsetof(struct profil_function, lines_bytes) ==
			       FUNCTION_ID_TO * 8,
	       "the identity of a function");

/* Fills in the function that this sample has claimed. */
static __always_inline __u32 function_fill(const struct table *t, struct profil_function *f,
					   const struct profil_function *fresh)
{
	struct profil_table *header = table_page(t, 0);
	__u32 before;

	if (!header)
		return 0;
	__builtin_memcpy((__u64 *)f + FUNCTION_ID_FROM, (const __u64 *)fresh + FUNCTION_ID_FROM,
			 sizeof(*f) - FUNCTION_ID_FROM * 8);
	before = __sync_fetch_and_add(&header->used_offsets, fresh->length + 1);
	/* Counted as full below: the range would wrap. */
	if (before > ~0u - 2 * PROFIL_FUNCTION_UNITS_MAX) {
		__sync_fetch_and_sub(&header->used_offsets, fresh->length + 1);
		before = ~0u;
	}
	f->start = before + 1;
	__sync_fetch_and_add(&header->used_functions, 1);
	__sync_lock_test_and_set(&f->ready, 1);
	return f->start;
}

/*
 * Finds or adds the function `fresh` of this CPU. Returns the start of its offsets; 0: there is no
 * room, or another CPU is about to fill it in.
 */
static __always_inline __u32 function_number(__u32 slot)
{
	struct interpreting *in = interpreting_here();
	const struct profil_function *fresh;
	struct table table, *t = &table;
	__u64 id = 0, h;

	if (!in || !table_of(t, slot) || !t->observer->functions)
		return 0;
	fresh = &in->fresh;
	for (int i = FUNCTION_ID_FROM; i < FUNCTION_ID_TO; i++)
		id = mix(id ^ ((const __u64 *)fresh)[i]);
	id |= 1;
	h = mix(id);
	for (int turn = 0; turn < 2; turn++) {
		__u32 page = (__u32)h & t->observer->function_mask;
		struct profil_function *f = table_page(t, t->observer->function_page + page);

		h >>= 32;
		for (__u32 i = 0; f && i < PROFIL_PAGE_FUNCTIONS; i++, f++) {
			__u64 seen = *(volatile __u64 *)&f->id;

			if (!seen && in->no_share)
				break;
			if (!seen)
				seen = __sync_val_compare_and_swap(&f->id, 0, id);
			if (!seen) {
				in->claimed++;
				return function_fill(t, f, fresh);
			}
			if (seen == id)
				return *(volatile __u32 *)&f->ready ? f->start : 0;
		}
	}
	TABLE_ADD(t, function_full, 1);
	return 0;
}

/* The cached function with @id, or what has just been met under it. False: it is to be met. */
static __always_inline bool function_known(struct interpreting *in, __u64 id, __u64 check,
					   __u32 *start, __u32 *length)
{
	struct cached_function *known = &in->cache[id % FUNCTION_CACHE];

	if (in->met == id) {
		*start = in->met_start;
		*length = in->met_length;
		in->met = 0;
		if (!*start && *length != FUNCTION_IS_NONE)
			return true; /* without room: tried again at the next sample */
		known->id = 0;
		known->check = check;
		known->start = *start;
		known->length = *length;
		known->id = id;
		return true;
	}
	*start = known->start;
	*length = known->length;
	return known->id == id && known->check == check;
}

/* The number of the image of @language's functions; 0: no room. */
static __always_inline __u32 functions_image(__u32 slot, struct interpreting *in, __u32 language)
{
	struct spot *s = &in->spot;
	struct table t;

	if (in->image && in->language == language)
		return in->image;
	__builtin_memset(s, 0, sizeof(*s));
	s->kind = PROFIL_IMAGE_FUNCTIONS;
	s->generation = language;
	s->epoch = in->epoch;
	image_number(slot, s);
	if (s->todo & IMAGE_FILL && table_of(&t, slot)) {
		struct profil_image *image = image_at(&t, s->image);

		/* Not by image_fill(), whose look-up of a path takes too much of the stack. */
		if (image) {
			image->generation = language;
			image->kind = PROFIL_IMAGE_FUNCTIONS;
			__sync_lock_test_and_set(&image->ready, 1);
			TABLE_ADD(&t, used_images, 1);
		}
	}
	in->image = s->image;
	in->language = language;
	return in->image;
}

#endif
