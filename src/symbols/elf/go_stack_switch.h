/* go_stack_switch.h - functions of Go's runtime whose unwind rules describe another stack */
#ifndef PROFIL_SYMBOLS_ELF_GO_STACK_SWITCH_H
#define PROFIL_SYMBOLS_ELF_GO_STACK_SWITCH_H

/*
 * Go's runtime moves to the stack of its scheduler, and to those of signal handlers and of C, in a
 * few functions of assembly. Their rules in .debug_frame are relative to the stack pointer and so
 * are true only before the switch; after it they find words that earlier calls left on the other
 * stack.
 */
enum go_switch {
	GO_SWITCH_NONE,
	GO_SWITCH_KEPT,	  /* no frame; the frame pointer stays that of the caller's frame */
	GO_SWITCH_FRAMED, /* once it has a frame, the frame pointer is right on both stacks */
	GO_SWITCH_TOP,	  /* never returns to its caller: outermost, also in Go's own traces */
	GO_SWITCH_SIGNAL, /* signal handlers return to it */
};

/* What the function @name of Go's runtime does. */
enum go_switch go_switch_of(const char *name);

#endif
