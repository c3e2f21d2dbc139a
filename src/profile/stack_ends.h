/* stack_ends.h - how many stacks are complete; why and where the others are truncated */
#ifndef PROFIL_PROFILE_STACK_ENDS_H
#define PROFIL_PROFILE_STACK_ENDS_H

#include <stdbool.h>

#include "profile.h"

/* Samples whose stacks are truncated in one object, for one reason. */
struct stack_cut {
	enum call_root end;
	__u32 object; /* of the outermost known frame */
	__u64 samples;
};

struct stack_ends {
	__u64 sum;		/* of all stacks */
	__u64 ended[CALL_ENDS]; /* by enum call_root */
	__u64 without;		/* samples without a stack that are not lost */
	struct stack_cut *cut;	/* most samples first */
	size_t ncuts;
	size_t nshown; /* the cuts that a report lists: the first ones, with a notable share */
};

/* Returns 0 or -ENOMEM. stack_ends_fini() in any case. */
int stack_ends_init(struct stack_ends *e, const struct profile *p);
void stack_ends_fini(struct stack_ends *e);

/* Says whether @p has stacks. */
bool has_stacks(const struct profile *p);

/* Says whether @node of a tree of @p's is no function, but the thread whose stacks are below it. */
bool stack_is_thread(const struct profile *p, const struct call_tree *t, __u32 node);

/* The share of @samples in all stacks, in per cent. */
double stack_ends_percent(const struct stack_ends *e, __u64 samples);

/* What those of @p are that are not truncated, in words. */
const char *stack_whole_text(const struct profile *p);

/* The reason for which walks ended, in words and as a JSON key; its remedy, NULL: none. */
const char *stack_end_text(enum call_root end);
const char *stack_end_key(enum call_root end);
const char *stack_end_cure(enum call_root end, const struct object *o);

/*
 * The name of the outermost frame of stacks below @root, as "[cut: no unwind rules]" or "[asleep]";
 * NULL: complete, without a state.
 */
const char *stack_root_frame(__u32 root);

/* The name of a state, as in options and JSON, and in words; CALL_STATES: no such name. */
const char *stack_state_key(enum call_state state);
const char *stack_state_text(enum call_state state);
enum call_state stack_state_of(const char *key);

/* The name of what a thread waits for, an enum profil_wait; and by it, unknown:
 * PROFIL_WAIT_UNKNOWN.
 */
const char *stack_wait_key(__u32 wait);
__u32 stack_wait_of(const char *key);

/*
 * A line with the share of complete stacks of @p, where and why most others are truncated, and the
 * remedy. Names are not sanitized. Returns @out.
 */
const char *stack_ends_summary(char *out, size_t bytes, const struct profile *p);

/* Writes the name of a frame, or object+0xOFFSET; of a kernel without addresses, its object. */
const char *call_frame_name(const struct profile *p, __u32 frame, char *out, size_t bytes);

#endif
