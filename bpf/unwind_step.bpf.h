/* unwind_step.bpf.h - one step of a walk from a machine's frame to its caller */
#ifndef PROFIL_BPF_UNWIND_STEP_BPF_H
#define PROFIL_BPF_UNWIND_STEP_BPF_H

/* unwind.bpf.h says how steps become a walk. */

#include <stdbool.h>

#include "core/arch.h"
#include "core/walk_budget.h"
#include "place.bpf.h"
#include "unwind_rows.bpf.h"

/* Frames of the kernel's stack, the clock's own interrupt included. A power of two. */
#define KERNEL_STACK 128
/* Frames of the clock's own interrupt, at most. */
#define CLOCK_FRAMES 32

/* Words of the user's stack that are read at once. A power of two. */
#define STACK_WORDS 32

/*
 * A cache of rows by image and offset, because return addresses repeat. A row expires after a
 * second, so that the client's changes take effect.
 */
#define FOUND_ROWS 256
#define FOUND_MOMENTS 954 /* of 2^20 ns */

struct found_row {
	__u64 row;
	__u32 epoch;
	__u32 image;
	__u32 offset;
	__u32 moment;
};

/*
 * The nodes of this CPU's latest stack, from the outermost frame inwards. Stacks that follow each
 * other have most outer frames in common, and no node is released while the epoch lasts.
 */
struct latest_stack {
	__u32 epoch;
	__u32 root;
	__u32 frames;
	__u32 common; /* the frames of the stack that is entered have been the same so far */
	__u32 node[PROFIL_FRAMES_MAX + 1];
	__u64 place[PROFIL_FRAMES_MAX + 1];
};

struct unwind {
	__u64 pc;
	__u64 sp;
	__u64 fp;
	__u64 link;   /* arm64: return address of a function that has not saved it yet */
	__u64 popped; /* the return address if the kernel has popped it already; 0: it has not */
	__u64 signal; /* the signal frame with the registers of an exact pc; 0: pt_regs has them */
	__u64 start;  /* the range of addresses that the latest pc was in, ... */
	__u64 bytes;
	__u64 base; /* ... as in struct spot */
	__u32 image;
	__u32 slot;
	__u32 epoch;
	__u32 mode; /* enum profil_stack_mode */
	__u32 depth;
	__u32 frames;  /* at most: PROFIL_FRAMES_MAX, or 1 */
	__u32 limited; /* walk_begin() says so */
	__u32 root;    /* enum profil_stack_root */
	__u32 exact;   /* pc is an interrupted instruction, not a return address */
	__u32 next;    /* added to the offset that is stored for pc; see above */
	__u32 leaf;    /* the first frame is the sample's place */
	__u32 top;     /* the node above the outermost frame: the root, or the thread's */
	__u32 node;    /* the innermost frame's so far */
	__u32 left;    /* frames still to be entered into the tree */
	__u32 busy;
	__u32 kernel_left; /* likewise, of the kernel */
	__u32 kernel_from; /* index of the sample's own frame; those before it are the interrupt's
			    */
	__u32 kernel_image;
	__u32 interpreter; /* as in struct spot, of the latest pc */
	__u32 anonymous;   /* likewise */
	__u32 reads;	   /* interpreters' functions */
	__u32 native;	   /* keep the frames of evaluation loops */
	__u32 stretch;	   /* the next frames are functions: 1 */
	__u64 leaf_place;  /* the innermost frame's; 0: it has no image */
	__u64 kernel_window;
	__u32 moment;
	__u32 nwords;
	__u64 pair[2]; /* words of the stack that stack_read() has found */
	__u64 words_at;
	__u64 words[STACK_WORDS]; /* of the stack, from words_at on */
	struct walk_budget everyones;
	__u64 began_ns;
	__u32 user; /* of the attachment: its slot in tables.user */
	struct task_memory memory;
	struct spot spot; /* of a step; here because the BPF stack is full */
	struct found_row found[FOUND_ROWS];
	__u64 place[PROFIL_FRAMES_MAX + 1];
	__u64 kernel[KERNEL_STACK]; /* addresses */
	struct latest_stack latest;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct unwind);
} unwinds SEC(".maps");

/* Finds the image of u->pc and stores the place. Returns false if the pc has no image. */
static __always_inline bool step_place(struct unwind *u)
{
	__u64 pc = u->exact ? u->pc : u->pc - 1;
	__u32 at = u->depth, offset;

	if (pc - u->start >= u->bytes) {
		struct spot *s = &u->spot;

		__builtin_memset(s, 0, sizeof(*s));
		s->epoch = u->epoch;
		s->todo = u->exact ? 0 : IMAGE_CALLER;
		s->memory = u->memory;
		spot_of(u->slot, s, owner_of((void *)bpf_get_current_task_btf()), pc);
		if (!s->image)
			return false;
		u->start = s->bytes ? s->start : pc;
		u->bytes = s->bytes ? s->bytes : 1;
		u->base = s->base;
		u->image = s->image;
		u->interpreter = s->interpreter;
		u->anonymous = s->anonymous;
	}
	if (at >= PROFIL_FRAMES_MAX)
		return false;
	offset = (__u32)(u->pc - u->base) + u->next;
	u->place[at] = profil_place(0, u->image, offset);
	u->depth = at + 1;
	return true;
}

/*
 * Reads @words words of the stack, one or two, into u->pair. A call of bpf_probe_read_user() takes
 * as long as the rest of a frame, so it reads STACK_WORDS at once, which later frames find here.
 */
static __always_inline bool stack_read(struct unwind *u, __u64 address, __u32 words)
{
	__u64 at = (address - u->words_at) / sizeof(u->pair[0]);

	if (address & 7 || at + words > u->nwords) {
		u->nwords = 0;
		if (bpf_probe_read_user(u->words, sizeof(u->words), (void *)address))
			return !bpf_probe_read_user(u->pair, words * sizeof(u->pair[0]),
						    (void *)address);
		u->words_at = address;
		u->nwords = STACK_WORDS;
		at = 0;
	}
	u->pair[0] = u->words[at & (STACK_WORDS - 1)];
	u->pair[1] = u->words[(at + 1) & (STACK_WORDS - 1)];
	return true;
}

static __always_inline bool user_word(struct unwind *u, __u64 *out, __u64 address)
{
	if (!stack_read(u, address, 1))
		return false;
	*out = u->pair[0];
	return true;
}

/* Continues at the registers that the kernel saved when it delivered a signal. */
static __always_inline int step_signal(struct unwind *u)
{
	__u64 sp = u->sp;

	if (!user_word(u, &u->fp, sp + ARCH_SIGNAL_FP) ||
	    !user_word(u, &u->pc, sp + ARCH_SIGNAL_PC) ||
	    !user_word(u, &u->link, sp + ARCH_SIGNAL_LINK) ||
	    !user_word(u, &u->sp, sp + ARCH_SIGNAL_SP))
		return PROFIL_STACK_UNREADABLE;
	u->signal = sp;
	u->exact = u->next = 1;
	return PROFIL_STACK_GOES_ON;
}

/* Continues in the caller, whose return address is @ra. A thread's first frame has 0. */
static __always_inline int step_to(struct unwind *u, __u64 ra, __u64 sp)
{
	u->sp = sp;
	u->link = 0;
	u->exact = u->next = 0;
	u->pc = arch_return_address(ra);
	return u->pc ? PROFIL_STACK_GOES_ON : PROFIL_STACK_WHOLE;
}

/* Steps by the frame pointer: [fp] is the caller's frame pointer, [fp + 8] the return address. */
static __always_inline int step_fp(struct unwind *u)
{
	__u64 fp = u->fp;

	if (u->mode == PROFIL_STACK_CFI)
		return PROFIL_STACK_NO_TABLE;
	if (!fp)
		return u->mode == PROFIL_STACK_FP ? PROFIL_STACK_WHOLE : PROFIL_STACK_NO_TABLE;
	if (fp & 7 || fp < u->sp)
		return PROFIL_STACK_NO_TABLE;
	if (!stack_read(u, fp, 2))
		return PROFIL_STACK_UNREADABLE;
	/* A caller with rules may use the register for anything; one without ends the walk here. */
	if (u->mode == PROFIL_STACK_FP && u->pair[0] && u->pair[0] <= fp)
		return PROFIL_STACK_NO_TABLE;
	u->fp = u->pair[0];
	return step_to(u, u->pair[1], fp + sizeof(u->pair));
}

/*
 * Steps out of code without rules that returns at once: "add $N, %rsp; ret" at a return address
 * says where the frame ends, whatever made the code. So do the trampolines of Python 3.12 and
 * later with -X perf, which have no frame pointer.
 */
static __always_inline int step_return(struct unwind *u)
{
	__u64 code, ra;

	if (!ARCH_RA_ON_STACK || u->exact || u->mode == PROFIL_STACK_FP ||
	    bpf_probe_read_user(&code, sizeof(code), (void *)u->pc) ||
	    (code & 0xff80ffffff) != 0xc300c48348)
		return PROFIL_STACK_NO_TABLE;
	u->sp += code >> 24 & 0x7f;
	if (!user_word(u, &ra, u->sp))
		return PROFIL_STACK_UNREADABLE;
	return step_to(u, ra, u->sp + 8);
}

static __always_inline bool row_saves_ra(__u64 row)
{
	__u32 rule = row_rule(row);

	return ARCH_RA_ON_STACK ? !(rule & PROFIL_UNWIND_RA_LINK) : rule & PROFIL_UNWIND_RA_SAVED;
}

/* Steps by @row, whose CFA is @cfa; the caller's frame pointer may be saved at @fp_at. */
static __always_inline int step_saved(struct unwind *u, __u64 row, __u64 cfa, __u64 fp_at)
{
	bool fp_saved = row_rule(row) & PROFIL_UNWIND_FP_SAVED;
	__u64 ra = u->link;

	/* Only the innermost frame, or one that a signal has interrupted, may be empty. */
	if (cfa < u->sp || (cfa == u->sp && !u->exact))
		return PROFIL_STACK_UNREADABLE;
	/* If both words are adjacent, one read halves the time of a frame. */
	if (fp_saved && row_saves_ra(row) && arch_ra_at(cfa, fp_at, fp_saved) == fp_at + 8) {
		if (!stack_read(u, fp_at, 2))
			return PROFIL_STACK_UNREADABLE;
		u->fp = u->pair[0];
		return step_to(u, u->pair[1], cfa);
	}
	if (row_saves_ra(row) && !user_word(u, &ra, arch_ra_at(cfa, fp_at, fp_saved)))
		return PROFIL_STACK_UNREADABLE;
	if (fp_saved && !user_word(u, &u->fp, fp_at))
		return PROFIL_STACK_UNREADABLE;
	return step_to(u, ra, cfa);
}

/*
 * Reads the register @number of an interrupted frame into u->pair[0]. Returns false if the frame is
 * another, or it cannot be read.
 */
static __always_inline bool exact_register(struct unwind *u, __u32 number)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();

	if (!u->exact)
		return false;
	if (u->signal)
		return stack_read(u, u->signal + ARCH_SIGNAL_REGISTER(number), 1);
	return !bpf_probe_read_kernel(u->pair, sizeof(u->pair[0]),
				      (const char *)bpf_task_pt_regs(task) + ARCH_REGISTER(number));
}

/* ld.so's trampolines save the vector registers below rbx: up to 11 KiB. */
#define RBX_FRAME_MAX 16384

/* Reads the register to which the CFA is relative, likewise. */
static __always_inline bool cfa_register(struct unwind *u, __u64 row)
{
	if (u->exact)
		return exact_register(u, row_register(row));
	return row_register(row) == (__u32)ARCH_DWARF_RBX && row_saved(row) &&
	       !(row_rule(row) & PROFIL_UNWIND_FP_SAVED) &&
	       stack_read(u, u->sp - row_saved(row), 1) && u->pair[0] - u->sp <= RBX_FRAME_MAX;
}

/* Reads the word from which the CFA is, above or below @base, likewise. */
static __always_inline bool cfa_word(struct unwind *u, __u64 row, __u64 base)
{
	base += (__u64)((__s64)(__s8)(row >> 32) * 8);
	if (row_register(row) != PROFIL_UNWIND_NO_REGISTER) {
		if (!exact_register(u, row_register(row)))
			return false;
		base += u->pair[0] * 8;
	}
	return stack_read(u, base, 1);
}

/* Steps by a row of a kind that has a CFA. */
static __always_inline int step_row(struct unwind *u, __u64 row, __u32 kind)
{
	bool by_sp = kind == PROFIL_UNWIND_SP || kind == PROFIL_UNWIND_SP_WORD;
	__u64 base = by_sp ? u->sp : u->fp, cfa = base + row_cfa(row);

	switch (kind) {
	case PROFIL_UNWIND_PLT:
		cfa = u->sp + 8 + ((u->pc & 15) * 8 >= row_cfa(row) ? 8 : 0);
		break;
	case PROFIL_UNWIND_SP_WORD:
	case PROFIL_UNWIND_FP_WORD:
		if (!cfa_word(u, row, base))
			return PROFIL_STACK_UNREADABLE;
		cfa = u->pair[0] + (row >> 40 & 0xf) * 8;
		break;
	case PROFIL_UNWIND_REGISTER:
		if (!cfa_register(u, row))
			return PROFIL_STACK_BEYOND;
		cfa = u->pair[0] + (row >> 32 & 0xfff) * 8;
		break;
	case PROFIL_UNWIND_SWITCH:
		u->sp = 0; /* the other stack can be below this one */
		break;
	}
	return step_saved(u, row, cfa, row_saved_at(row, cfa, base));
}

/* row_of() with the CPU's cache of rows. */
static __always_inline __u64 row_at(struct unwind *u, __u32 offset)
{
	__u32 at = offset ^ offset >> 8 ^ offset >> 16 ^ u->image << 3;
	struct found_row *f = &u->found[at % FOUND_ROWS];
	__u64 row;

	if (f->offset == offset && f->image == u->image && f->epoch == u->epoch &&
	    u->moment - f->moment <= FOUND_MOMENTS)
		return f->row;
	row = row_of(u->slot, u->image, offset);
	if ((row_rule(row) & PROFIL_UNWIND_KIND) == PROFIL_UNWIND_NOT_YET)
		return row;
	f->epoch = 0;
	f->row = row;
	f->image = u->image;
	f->offset = offset;
	f->moment = u->moment;
	f->epoch = u->epoch;
	return row;
}

#endif
