/* interpreter_maps.h - where interpreters keep the functions that they execute: client to kernel */
#ifndef PROFIL_CORE_INTERPRETER_MAPS_H
#define PROFIL_CORE_INTERPRETER_MAPS_H

#include <linux/types.h>

/*
 * A descriptor of an interpreter's binary. The client makes it from the file and writes it into the
 * map of unwind rules; an image's entry there has its number. The kernel does not trust it: it
 * bounds every offset, reads the target's memory as the user's, and only where the attachment's
 * owner may trace the target. A wrong descriptor yields wrong names of the owner's own processes.
 */
#define PROFIL_INTERPRETERS 32 /* of one attachment, numbered from 1 */
#define PROFIL_INTERPRETER_LOOPS 4

/* How the frames of functions lie between those of the machine. */
enum profil_interpreter_kind {
	PROFIL_INTERPRETER_NONE,
	/*
	 * CPython: the evaluation loop executes a stretch of linked frames. A stretch ends
	 *	_CALLS	(3.8 to 3.10) after each frame, for each has a call of the loop,
	 *	_CFRAME	(3.11, 3.12) by a mark in the frame; the loop's own struct _PyCFrame lies on
	 *		its machine frame,
	 *	_ENTRY	(3.13 on) at the loop's own entry frame, which lies on its machine frame.
	 */
	PROFIL_INTERPRETER_CPYTHON_CALLS,
	PROFIL_INTERPRETER_CPYTHON_CFRAME,
	PROFIL_INTERPRETER_CPYTHON_ENTRY,
	/*
	 * V8: functions have machine frames, in compiled code or in the interpreter's, linked by
	 * frame pointers; the function is in the frame. The loops are the code of all builtins.
	 * Code that V8 has compiled is in memory without a file.
	 */
	PROFIL_INTERPRETER_V8,
	/*
	 * Linked frames, one list for each thread: PHP, Ruby. Each call of the evaluation loop
	 * executes a stretch of it, whose last frame has a mark.
	 */
	PROFIL_INTERPRETER_LINKED,
	/*
	 * Perl: a stack of contexts, of which some are functions. The loop calls a function in C
	 * for each operation.
	 */
	PROFIL_INTERPRETER_PERL,
	/*
	 * HotSpot: methods have machine frames in memory without a file, the code cache, which
	 * says how large they are.
	 */
	PROFIL_INTERPRETER_HOTSPOT,
	PROFIL_INTERPRETER_KINDS
};

/* Code of the evaluation loop, in offsets of the file; unused ones are empty. */
struct profil_interpreter_loop {
	__u32 start;
	__u32 end;
};

/* Offsets in bytes, of CPython's structures. Frames and code objects are read as a whole. */
struct profil_cpython {
	__s16 specific;	   /* the blocks of thread-specific data, from the thread pointer */
	__u16 key;	   /* in _PyRuntime: autoTSSkey; 0: the state itself is at specific */
	__u16 state_frame; /* PyThreadState: its frame, or its _PyCFrame */
	__u16 cframe_frame;
	__u16 cframe_previous;
	__u16 frame_code;
	__u16 frame_previous;
	__u16 frame_instruction;
	__u16 frame_end; /* a byte: at a stretch's end it is end_value */
	__u16 code_file;
	__u16 code_name;
	__u16 code_line;
	__u16 code_lines;
	__u16 code_units;
	__u16 code_bytes;   /* the code; 0: frame_instruction is an index */
	__u16 string_ascii; /* characters of a compact ASCII string, and of another compact one */
	__u16 string_compact;
	__u8 end_value;
	__u8 end_is_frame; /* the frame with the mark is the last of its stretch, not behind it */
	__u8 instruction_shift; /* log2 of the bytes of a unit of frame_instruction */
	__u8 line_format;	/* enum profil_line_format */
	__u8 tagged;		/* pointers in frames have tags in their low bits */
	__u8 zero;
};

/* Offsets of V8's objects from their pointers, which are tagged: an object is at pointer - 1. */
struct profil_v8 {
	__s16 frame_function; /* from the frame pointer, as the next */
	__s16 frame_context;  /* a small integer in frames of stubs */
	__u16 function_shared;
	__u16 shared_name; /* a string, or the function's ScopeInfo */
	__u16 shared_script;
	__u16 script_name;
	__u16 map_type;
	__u16 string_length;
	__u16 string_chars;
	__u16 scope_locals; /* ScopeInfo: the number of context locals, then the first of them */
	__u16 scope_first;
	__u16 type_nonstring; /* types of strings are below it */
	__u16 type_shared;
	__u16 type_script;
	__u16 type_function; /* the first of the types of functions */
	__u16 type_function_last;
	__u16 string_kind_mask; /* bits of a string's type, which are 0 in a sequential one */
	__u16 string_one_byte;
	__u16 scope_position; /* the function's first character; 0: behind its names */
};

enum profil_linked_string {
	PROFIL_STRING_ZEND = 1,
	PROFIL_STRING_RUBY_3_1, /* the length of an embedded string is in its flags */
	PROFIL_STRING_RUBY_3_3, /* it is before the characters */
};

#define PROFIL_LINKED_NONE 0xffff	 /* instead of an offset: there is no such field */
#define PROFIL_LINKED_FUNCTION_BYTES 192 /* that are read of a function, or of its body */

/* Offsets in bytes. */
struct profil_linked {
	__u8 string;	     /* enum profil_linked_string */
	__u8 is_thread_data; /* runtime is the slot of thread-local data, module and offset */
	__u8 end_is_behind;  /* frame_end is a pointer to the word with the mark */
	__u8 kind_is;	     /* of function_kind: a function of the language */
	__u32 end_mask;	     /* bits of the word at frame_end: the last frame of its stretch */
	__u32 native_mask;   /* bits of this word, which are native_is in a frame that has */
	__u32 native_is;     /* another structure instead of a function, of one in C */
	__u16 head;	     /* the innermost frame, in the variable */
	__u16 list_start;    /* likewise, of frames in one piece: the start of it, */
	__u16 list_words;    /* and its size in words */
	__u16 frame_bytes;   /* of frames in one piece; 0: they are linked by frame_next */
	__u16 frame_next;
	__u16 frame_function;
	__u16 frame_end;
	__u16 frame_instruction; /* of the instruction, which has its line at instruction_line */
	__u16 instruction_line;
	__u16 function_body; /* the next are in what this points to, else in the function itself */
	__u16 function_kind; /* a byte */
	__u16 function_name;
	__u16 function_file;
	__u16 function_line;  /* the first one; with frame_instruction, the last one follows */
	__u16 function_class; /* which has its name at class_name */
	__u16 class_name;
	__u16 line_shift; /* lines are shifted left so many bits: Ruby's small integers */
	__u16 zero;
};

/* Offsets in bytes. */
struct profil_perl {
	__s16 specific;	       /* as in struct profil_cpython; the runtime's variable is the key */
	__u16 state_info;      /* of the interpreter: its stack info, */
	__u16 state_statement; /* and the statement that it executes */
	__u16 info_contexts;
	__u16 info_before;
	__u16 info_innermost; /* index */
	__u16 info_type;
	__u16 info_is_program;
	__u16 context_bytes;
	__u16 context_statement;
	__u16 context_code;
	__u16 context_return;
	__u16 context_depth; /* of a sub: how many calls of it there were before this one */
	__u16 context_sub;   /* types */
	__u16 context_format;
	__u16 context_eval;
	__u16 eval_is_block; /* in the first word of a context */
	__u16 sub_package;   /* of the body, which a sub points to first, as all values do */
	__u16 sub_start;
	__u16 sub_glob;
	__u16 sub_file;
	__u16 sub_flags;
	__u16 sub_is_named;
	__u16 glob_name; /* then its package */
	__u16 hash_name;
	__u16 hash_name_count; /* not 0: the name is behind a further pointer */
	__u16 op_type;
	__u16 op_statement; /* this one and the next are statements */
	__u16 statement_line;
	__u16 statement_file;
};

/* Offsets in bytes; a blob is a piece of the code cache. */
struct profil_hotspot {
	__u16 heap_memory; /* its first and its last reserved address + 1 */
	__u16 heap_segments;
	__u16 heap_shift;
	__u16 block_bytes; /* of the header before a blob */
	__u16 blob_name;
	__u16 blob_frame;    /* words of a frame */
	__u16 blob_complete; /* bytes of code, behind which the frame is made */
	__u16 blob_code;     /* address of the code */
	__u16 blob_method;
	__u16 is_short;	    /* the two before it: 16 bits; offset from the blob in 32 bits */
	__u16 method_fixed; /* what is the same for all of its code: ConstMethod */
	__u16 method_name;  /* there: index of a constant */
	__u16 fixed_constants;
	__u16 pool_holder; /* the class */
	__u16 pool_source; /* index of the name of the source file */
	__u16 pool_bytes;  /* before the constants */
	__u16 class_name;
	__u16 symbol_length;
	__u16 symbol_bytes;
};

struct profil_interpreter {
	__u8 kind;     /* enum profil_interpreter_kind */
	__u8 language; /* enum profil_language */
	__u16 zero;
	__u32 operations; /* bits of loop[]: code of operations, which as the leaf is the function's
			   */
	__u64 runtime;	  /* address of the interpreter's variable, minus (address - file offset) of
			     its code */
	struct profil_interpreter_loop loop[PROFIL_INTERPRETER_LOOPS];
	union {
		struct profil_cpython cpython;
		struct profil_v8 v8;
		struct profil_linked linked;
		struct profil_perl perl;
		struct profil_hotspot hotspot;
		__u8 bytes[80];
	};
};
_Static_assert(sizeof(struct profil_interpreter) == 128, "32 of them are a page");

/* Whether the interpreter has code in memory without a file. */
static inline int profil_interpreter_compiles(const struct profil_interpreter *d)
{
	return d->kind == PROFIL_INTERPRETER_V8 || d->kind == PROFIL_INTERPRETER_HOTSPOT;
}

#endif
