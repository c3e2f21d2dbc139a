/* observers.h - the attachments as the BPF programs see them: shared with the daemon */
#ifndef PROFIL_CORE_OBSERVERS_H
#define PROFIL_CORE_OBSERVERS_H

#include <linux/types.h>

/* Attachments at one time. Two slots are the machine's: its next profile begins before it ends. */
#define PROFIL_MAX_OBSERVERS 512
#define PROFIL_MACHINE_SLOTS 2

enum profil_observer_flags {
	/* Kernel addresses are counted as offset 0: they would reveal the kernel's random base. */
	PROFIL_OBSERVER_HIDES_KERNEL = 1 << 0,
	/* A wide scope counts only tasks that its owner may trace; see may_trace(). */
	PROFIL_OBSERVER_NARROW = 1 << 1,
	/* Stacks have all frames of the kernel, not only the innermost. */
	PROFIL_OBSERVER_KERNEL_STACKS = 1 << 2,
	/* Interpreters' own frames are kept beside those of the functions that they execute. */
	PROFIL_OBSERVER_NATIVE = 1 << 3,
	/* The wakers of threads are counted. */
	PROFIL_OBSERVER_WAKERS = 1 << 4,
};

/* How the BPF programs find the image of a user pc: the first of these that works in this kernel.
 */
enum profil_image_lookup {
	PROFIL_LOOKUP_WALK = 1, /* walk the VMA tree without mmap_lock */
	PROFIL_LOOKUP_FIND_VMA, /* bpf_find_vma(), which fails if mmap_lock is taken */
	PROFIL_LOOKUP_PROCESS,	/* none: samples are counted by process, without an image */
};

/* Argument of the BPF program mapping_query(): which mapping of the caller has @address. */
struct profil_mapping_query {
	__u64 address;
	__u64 start;
	__u64 end;
	__u64 offset; /* of start, in the file */
	__u32 kind;   /* enum profil_image_kind; 0: nothing is mapped there */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_mapping_query) == 40, "no padding");

/*
 * Written by the daemon before the first sample, never changed while the slot is in use. The slot
 * is the index of this element and of the table in the array of tables.
 */
struct profil_observer {
	/* The first page of each part of the table, and masks for its pages or lines. */
	__u32 image_page;
	__u32 image_mask; /* of pages */
	__u32 group_page;
	__u32 group_mask; /* of pages */
	__u32 place_page;
	__u32 line_mask;
	__u32 group_by; /* enum profil_group_by */

	__u32 epoch; /* differs for each attachment that uses the slot; never 0 */
	__u32 flags; /* enum profil_observer_flags */
	__u32 scope; /* enum profil_scope */
	__u32 dev;   /* EXE */
	__u64 ino;   /* EXE */
	union {
		__u64 cgroup;
		__u64 former_ino; /* EXE: of the file that was there before; 0: none */
	};
	char command[16];

	/* The client: its pid namespace, for process numbers, and what it may trace. */
	__u32 pid_ns;
	__u32 pid_ns_level;
	__u32 user_ns;
	__u32 uid; /* of scope USER; the client's own if NARROW */
	__u32 gid;
	__u32 sleeper_mask; /* of pages */
	__u64 caps;	    /* its permitted capabilities */

	__u32 stack_mode; /* enum profil_stack_mode */
	__u32 node_page;
	__u32 node_pages;
	__u32 sleeper_page; /* 0: none; the attachment does not count off-CPU time */
	__u32 function_page;
	__u32 function_mask; /* of pages */
	__u32 functions;     /* 0: none; interpreters are programs like others */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_observer) == 144, "in a map");

/* Attachments with a wide scope: each sample is tested, instead of a look-up by process. */
#define PROFIL_MAX_WIDE 16

struct profil_wide {
	__u32 n;
	__u32 zero;
	/* The index of its target, and in the upper half the only uid that it counts. */
	__u64 of[PROFIL_MAX_WIDE];
};

#define PROFIL_WIDE_ANY ((__u32)-1) /* processes of all users */

static inline __u64 profil_wide(__u32 target, __u32 uid)
{
	return (__u64)uid << 32 | target;
}

static inline __u32 profil_wide_target(__u64 wide)
{
	return (__u32)wide;
}

/* Whether it may count a process of @uid: its real user id. */
static inline int profil_wide_is_for(__u64 wide, __u32 uid)
{
	return (__u32)(wide >> 32) == PROFIL_WIDE_ANY || (__u32)(wide >> 32) == uid;
}

#endif
