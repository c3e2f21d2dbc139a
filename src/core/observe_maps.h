/* observe_maps.h - the table of places: the kernel counts in it, an observer reads it */
#ifndef PROFIL_CORE_OBSERVE_MAPS_H
#define PROFIL_CORE_OBSERVE_MAPS_H

#include <linux/types.h>

/*
 * A table belongs to one attachment, or to the whole machine. It is a BPF array of 4 KiB pages,
 * which the daemon creates, freezes and passes to the client as a file descriptor. The client maps
 * it read-only and reads it while the kernel counts. Its size is constant.
 *
 *	page 0			struct profil_table
 *	page 1			CPU time of ended threads that waits for a place (profil_unseen)
 *	image_page ...		images, 8 to a page: what was executed
 *	group_page ...		groups, 32 to a page: by which process, command, thread or cgroup
 *	place_page ...		lines of 5 places, 64 lines to a page
 *	node_page ...		nodes, 170 to a page: with call graphs, callers and callees
 *	sleeper_page ...	sleepers, 64 to a page: with off-CPU time
 *	function_page ...	functions, 8 to a page: of interpreted languages
 *
 * A sample is counted as a place: (group, image, offset). The kernel claims images, groups and
 * places by compare-and-swap of their first word and never removes them, so a free element ends a
 * search. An image or a group is complete once its `ready` is 1. Each sample is in one part of the
 * total:
 *
 *	total = sum of all places that are neither FOLDED nor SUM
 *	      + sum of image.coarse[0] + unmatched + image_full + lost
 *
 * A sample in kernel mode is one sample and two counts: its kernel pc as a place of a KERNEL image,
 * and the user's pc at which it entered the kernel as a FOLDED place. The historical view
 * (--fold-kernel) shows the FOLDED places instead of those of KERNEL images.
 */
#define PROFIL_TABLE_VERSION 9
#define PROFIL_TABLE_PAGE 4096

#define PROFIL_LINE_PLACES 5
#define PROFIL_PAGE_LINES (PROFIL_TABLE_PAGE / 64)

struct profil_line {
	__u64 key[PROFIL_LINE_PLACES]; /* 0: free */
	__u32 count[PROFIL_LINE_PLACES];
	__u32 zero;
};
_Static_assert(sizeof(struct profil_line) == 64, "one cache line in a map");

/* A key: FOLDED | SUM | group (14 bits) | image (16 bits, never 0) | offset from the image's base.
 */
#define PROFIL_PLACE_FOLDED (1ull << 63) /* the user's pc of a sample in kernel mode */
#define PROFIL_PLACE_SUM (1ull << 62)	 /* all of a group's samples in an image; offset 0 */
#define PROFIL_PLACE_GROUPS (1u << 14)

static inline __u64 profil_place(__u32 group, __u32 image, __u32 offset)
{
	return (__u64)(group & (PROFIL_PLACE_GROUPS - 1)) << 48 | (__u64)(image & 0xffff) << 32 |
	       offset;
}

static inline __u32 profil_place_group(__u64 key)
{
	return (__u32)(key >> 48) & (PROFIL_PLACE_GROUPS - 1);
}

static inline __u32 profil_place_image(__u64 key)
{
	return (__u32)(key >> 32) & 0xffff;
}

static inline __u32 profil_place_offset(__u64 key)
{
	return (__u32)key;
}

enum profil_image_kind {
	PROFIL_IMAGE_FILE = 1,
	/*
	 * The kernel, its modules and BPF programs. Offsets are addresses minus the base, which is
	 * a multiple of 4 GiB. They are all 0 for an observer that is neither root nor in group
	 * profil, because it may not learn kernel addresses.
	 */
	PROFIL_IMAGE_KERNEL,
	PROFIL_IMAGE_VDSO, /* offsets are from the vdso's start */
	PROFIL_IMAGE_ANON, /* code that process tgid made: offsets are addresses */
	/*
	 * The functions of all interpreters of one language, `generation` of the image (enum
	 * profil_language). Offsets are in the address space of struct profil_function.
	 */
	PROFIL_IMAGE_FUNCTIONS,
};

#define PROFIL_BUILD_ID_BYTES 20
#define PROFIL_IMAGE_PATH 384

/* An image is a file (4 GiB of it, from base on), the vdso, a process's own code or the kernel. */
struct profil_image {
	__u64 id;   /* hash of what identifies it; 0: free */
	__u64 base; /* a key's offset is from here: an offset in the file, or an address */
	__u64 ino;
	__u32 dev; /* as the kernel has it: major << 20 | minor */
	__u32 generation;
	__u32 tgid; /* the process of its first sample; of ANON: its process */
	__u16 kind; /* enum profil_image_kind */
	__u8 build_id_bytes;
	__u8 deleted; /* the file had been unlinked */
	__u64 start;  /* the mapping of its first sample: /proc/TGID/map_files/START-END */
	__u64 end;
	__u64 coarse[2]; /* samples without room for their place; [1]: FOLDED ones */
	__u8 build_id[PROFIL_BUILD_ID_BYTES];
	__u32 ready;
	__u64 mount_ns; /* inode of the mount namespace in which the path is to be read */
	__u8 path_cut;	/* outermost components are missing */
	__u8 tries;	/* private to the kernel: attempts to read the build id */
	__u8 zero[22];
	/* The path's components, last one first, each with its NUL; an empty one ends them. */
	char path[PROFIL_IMAGE_PATH];
};
_Static_assert(sizeof(struct profil_image) == 512, "eight of them are a page");
#define PROFIL_PAGE_IMAGES (PROFIL_TABLE_PAGE / 512)

/*
 * Which fields distinguish groups. PROCESS and THREAD distinguish all that a group shows of a
 * process, since names, cgroup and user may change. Otherwise the other fields are those of its
 * first sample.
 */
enum profil_group_by {
	PROFIL_GROUP_COMMAND = 1 << 0,
	PROFIL_GROUP_CGROUP = 1 << 1,
	PROFIL_GROUP_PROCESS = 1 << 2,
	PROFIL_GROUP_THREAD = 1 << 3,
	/*
	 * Places have group 0, and each group has one SUM place for each image. For profiles that
	 * run for days: the table does not need groups times places. Stacks have groups.
	 */
	PROFIL_GROUP_SUMS = 1 << 4,
};

struct profil_group {
	__u64 id;	/* hash of what identifies it; 0: free */
	__u64 cgroup;	/* inode of its directory in cgroup2 */
	__u64 start_ns; /* of the process, CLOCK_BOOTTIME */
	__u32 tgid;	/* in the client's pid namespace; 0: not in that namespace */
	__u32 tid;
	char command[16]; /* the process's comm (its first thread's) */
	char thread[16];  /* the thread's own */
	__u32 uid;
	__u32 ready;
	__u64 zero[7];
};
_Static_assert(sizeof(struct profil_group) == 128, "32 of them are a page");
#define PROFIL_PAGE_GROUPS (PROFIL_TABLE_PAGE / 128)

/*
 * Call graphs: a tree of calling contexts. A node is a frame: a place (without group) whose parent
 * is the node of its caller. The outermost frame's parent is a root, which says how the walk of the
 * stack ended. The number of a node is PROFIL_STACK_ROOTS + its page * PROFIL_PAGE_NODES + its
 * position there. A node is complete once its place is not 0. The innermost frame's place is the
 * same as without call graphs, kernel places included:
 *
 *	total = sum of node.count + stack_lost
 */
enum profil_stack_root {
	PROFIL_STACK_WHOLE,	 /* complete: reaches the start of its thread */
	PROFIL_STACK_NO_TABLE,	 /* code without unwind rules or a plausible frame pointer */
	PROFIL_STACK_BEYOND,	 /* a rule that a row cannot express */
	PROFIL_STACK_UNREADABLE, /* the stack could not be read, or does not grow */
	PROFIL_STACK_NOWHERE,	 /* the return address is not in executable memory */
	PROFIL_STACK_DEEP,	 /* more frames than PROFIL_FRAMES_MAX */
	PROFIL_STACK_NOT_YET,	 /* the client had not looked at the image yet */
	PROFIL_STACK_NO_ROOM,	 /* like NO_TABLE: the image's rules found no room in the map */
	PROFIL_STACK_GOES_ON,	 /* private to the kernel: there is another frame */
	PROFIL_STACK_ROOTS = 16
};
#define PROFIL_FRAMES_MAX 255
#define PROFIL_KERNEL_FRAMES_MAX 64 /* of the kernel, in addition */

enum profil_stack_mode {
	PROFIL_STACK_NONE,
	PROFIL_STACK_AUTO, /* tables, and frame pointers for code without a table */
	PROFIL_STACK_CFI,  /* tables only */
	PROFIL_STACK_FP,   /* frame pointers only */
};

/*
 * What the samples of a node have in common besides their stack is in nodes below it: a note, whose
 * place has its kind in place of the group, and image 0.
 */
enum profil_note {
	PROFIL_NOTE_STATE = 1, /* offset: enum profil_cpu_state; without one: running */
	PROFIL_NOTE_WAKER,     /* below ASLEEP. Offset: the waker's node, or enum profil_waker */
	PROFIL_NOTE_WAIT,      /* of a sleep, above the waker. Offset: enum profil_wait */
	/*
	 * In place of WAIT, of a FUTEX or KERNEL_LOCK that is a variable: the place has its image
	 * and offset.
	 */
	PROFIL_NOTE_LOCK,
	/*
	 * Not below the stack, but between the root and the outermost frame: the group of the
	 * samples, where groups distinguish threads or have sums. Offset: its number.
	 */
	PROFIL_NOTE_GROUP,
};

/* What a thread sleeps for. */
enum profil_wait {
	PROFIL_WAIT_UNKNOWN,
	PROFIL_WAIT_FUTEX,
	PROFIL_WAIT_KERNEL_LOCK, /* a mutex or semaphore in the kernel */
	PROFIL_WAIT_MMAP_LOCK,	 /* that of the process's mappings */
	PROFIL_WAIT_TIMER,
	PROFIL_WAIT_POLL,
	PROFIL_WAIT_DISK, /* files, folders, block devices; swapped or mapped pages */
	PROFIL_WAIT_PIPE,
	PROFIL_WAIT_SOCKET,
	PROFIL_WAIT_DEVICE, /* a character device: a terminal, for instance */
	PROFIL_WAIT_EVENT,  /* eventfd, timerfd, signalfd, inotify and the like */
	PROFIL_WAIT_ASYNC_IO,
	PROFIL_WAIT_FILE_LOCK,
	PROFIL_WAIT_IPC, /* System V semaphores and messages, POSIX message queues */
	PROFIL_WAIT_PROCESS,
	PROFIL_WAIT_SIGNAL,
	PROFIL_WAIT_STOPPED, /* by a signal or a debugger */
	PROFIL_WAIT_FAULT,   /* a fault or interrupt of user mode, without a disk */
	PROFIL_WAIT_OTHER,   /* another system call */
	PROFIL_WAITS,
	PROFIL_WAIT_FD = PROFIL_WAITS /* private to the kernel: by the kind of the file */
};

/* What has woken up a thread, if not a thread whose stack is known. */
enum profil_waker {
	PROFIL_WAKER_UNKNOWN,
	PROFIL_WAKER_INTERRUPT, /* of a timer, a disk, the network ... */
	PROFIL_WAKER_KERNEL,	/* a thread of the kernel */
	PROFIL_WAKER_HIDDEN,	/* a process that the observer has no permission to see */
	PROFIL_WAKERS		/* at most PROFIL_STACK_ROOTS */
};

/* What a thread does: with PROFIL_OBSERVE_WAITS. */
enum profil_cpu_state {
	PROFIL_STATE_RUNNING = 1,
	PROFIL_STATE_RUNNABLE, /* it waits for a CPU */
	PROFIL_STATE_ASLEEP,
	PROFIL_STATES
};

struct profil_node {
	__u64 id;     /* hash of parent and place, bit 0 set unless it is to be freed; 0: free */
	__u64 place;  /* a key without group, or a note; of a caller: the return address */
	__u32 parent; /* the number of a node, or enum profil_stack_root */
	__u32 count;  /* samples whose innermost frame it is */
};
_Static_assert(sizeof(struct profil_node) == 24, "170 of them are a page");
#define PROFIL_PAGE_NODES (PROFIL_TABLE_PAGE / 24)

/*
 * Off-CPU time: a thread without a CPU, and where its time will be counted. Clients add the time
 * of those that still have none.
 */
struct profil_sleeper {
	__u64 since_ns; /* CLOCK_MONOTONIC; 0: not complete */
	__u64 woken_ns; /* when it became runnable; 0: it is asleep, or that is not distinguished */
	__u32 tid;	/* with a random number added by XOR; 0: free */
	__u32 node;	/* below PROFIL_STACK_ROOTS: none */
	__u64 key[2];	/* a place; with kernel stacks also the FOLDED one. 0: none */
	__u32 waker;	/* a node, or enum profil_waker */
	__u32 zero;
	__u64 wait; /* a note: what it waits for; 0: not known */
	__u64 zero2;
};
_Static_assert(sizeof(struct profil_sleeper) == 64, "one cache line in a map");
#define PROFIL_PAGE_SLEEPERS (PROFIL_TABLE_PAGE / 64)
#define PROFIL_LINE_SLEEPERS 16 /* a thread's element is in one of two such lines */
#define PROFIL_PAGE_SLEEPER_LINES (PROFIL_PAGE_SLEEPERS / PROFIL_LINE_SLEEPERS)

/*
 * The CPU time of threads that ended without a sample (tick clock) waits here for a thread of the
 * same name and cgroup that ends with one, and is counted at its place: see bpf/thread_end.bpf.h. A
 * cell is a tag of the name and cgroup, and the time. 0: free. The table's client reports what is
 * left.
 */
#define PROFIL_UNSEEN_PAGE 1
#define PROFIL_UNSEEN_CELLS (PROFIL_TABLE_PAGE / 8)
#define PROFIL_UNSEEN_BITS 40 /* of the time, in ns; the tag is above */
#define PROFIL_UNSEEN_MOST ((1ull << PROFIL_UNSEEN_BITS) - 1)

/* Off-CPU time as an event: in place of perf_event_attr's type; config 0, periods in ns. */
#define PROFIL_EVENT_OFF_CPU 0x100
#define PROFIL_OFF_CPU_LEAST_NS 1000 /* the shortest period */

/* A uprobe as an event: in place of perf_event_attr's type; config as a tracepoint's. */
#define PROFIL_EVENT_UPROBE 0x101

/*
 * Branches as an event: in place of perf_event_attr's type; config 0. A sample is one of the CPU's
 * records of taken branches; what its frames are: bpf/branches.bpf.h.
 */
#define PROFIL_EVENT_BRANCHES 0x102

/* Bytes of code that can have run without a taken branch, less one. */
#define PROFIL_BRANCH_RUN_MAX (1u << 16)

/* Interpreted languages. */
enum profil_language {
	PROFIL_LANGUAGE_NONE,
	PROFIL_LANGUAGE_PYTHON,
	PROFIL_LANGUAGE_JAVASCRIPT,
	PROFIL_LANGUAGE_PHP,
	PROFIL_LANGUAGE_RUBY,
	PROFIL_LANGUAGE_PERL,
	PROFIL_LANGUAGE_JAVA,
	PROFIL_LANGUAGE_THREADS, /* none: threads, as the outermost frames of their stacks */
	PROFIL_LANGUAGES,
};

#define PROFIL_FUNCTION_FILE 144
#define PROFIL_FUNCTION_NAME 96
#define PROFIL_FUNCTION_LINES 232

/*
 * A function of an interpreted language: what it is, not where a process has it, so that workers
 * and restarted programs share it. The kernel gives it `length` offsets of its image from `start`
 * on, one for each unit of its code (start + length is the last one + 1), and copies names and line
 * table when it first sees it. Texts are raw: `encoding` bytes for each character, 0 for UTF-8; a
 * longer name is cut, of a longer file the end is kept. A line table that is longer than the room
 * for it is left out. Offset 0 is a function that has found no room or could not be read.
 */
struct profil_function {
	__u64 id; /* hash of the fields from language to name; 0: free */
	__u32 start;
	__u32 ready;
	__u8 language;	  /* enum profil_language */
	__u8 line_format; /* enum profil_line_format */
	__u8 file_encoding;
	__u8 name_encoding;
	__u16 file_bytes;
	__u16 name_bytes;
	__u32 line; /* the first one */
	__u32 length;
	char file[PROFIL_FUNCTION_FILE];
	char name[PROFIL_FUNCTION_NAME];
	__u32 lines_bytes; /* of the whole line table, also where it is left out */
	__u32 tgid; /* of PROFIL_LINES_POSITION: a process that sees the file; 0: not known */
	__u8 lines[PROFIL_FUNCTION_LINES];
};
_Static_assert(sizeof(struct profil_function) == 512, "eight of them are a page");
#define PROFIL_PAGE_FUNCTIONS (PROFIL_TABLE_PAGE / 512)
#define PROFIL_FUNCTION_UNITS_MAX (1u << 20)

enum profil_line_format {
	PROFIL_LINES_NONE,
	PROFIL_LINES_LNOTAB,   /* CPython up to 3.9: co_lnotab, pairs of bytes */
	PROFIL_LINES_PEP_626,  /* CPython 3.10: co_linetable, pairs of signed bytes */
	PROFIL_LINES_PEP_657,  /* CPython from 3.11 on: entries of variable length */
	PROFIL_LINES_POSITION, /* none; `line` is a position in the text of the file */
	PROFIL_LINES_UNITS,    /* none; units are lines, from the first one on */
};

/* Page 0. Written by the daemon before it freezes the map, except for the counters. */
struct profil_table {
	__u32 version; /* PROFIL_TABLE_VERSION */
	__u32 pages;
	__u32 image_page;
	__u32 images; /* a power of two, as the next two; images and groups are numbered from 1 */
	__u32 group_page;
	__u32 groups;
	__u32 place_page;
	__u32 lines;
	__u32 reserved;
	__u32 group_by;
	__u64 period_ns;  /* of CPU time, or events for each sample; see event_type */
	__u32 event_type; /* as in perf_event_attr; PERF_TYPE_SOFTWARE, CPU_CLOCK for CPU time */
	__u32 flags;	  /* enum profil_observe_flags */
	__u64 event_config;
	__u64 started_ns;      /* CLOCK_BOOTTIME */
	__u64 started_real_ns; /* CLOCK_REALTIME */
	__u64 kernel_text;     /* 0; reserved: only root may learn kernel addresses */

	/* Counters. */
	__u64 unmatched;  /* the pc was in no mapping */
	__u64 image_full; /* no room for another image */
	__u64 group_full; /* counted in group 0: no room for another group */
	__u64 lost;	  /* dropped for other reasons */
	__u64 unfollowed; /* child processes without room in the process table */
	__u64 secret;	  /* processes removed by an exec of what the observer may not read */
	__u64 unseen_ns; /* CPU time of ended threads without a place (tick), besides unseen_page */
	__u64 hidden_ns; /* CPU time of selected processes of the owner that it may not observe */
	__u32 used_images;
	__u32 used_groups;
	__u64 used_places;

	/* Call graphs. Written by the daemon, except the last three, which are counters. */
	__u32 stack_mode; /* enum profil_stack_mode */
	__u32 node_page;
	__u32 nodes;
	__u32 unwind_pages; /* of the map of unwind rules; 0: no such map */
	__u32 used_nodes;
	__u32 zero;
	__u64 node_full;  /* counted at an outer frame: no room for another node */
	__u64 stack_lost; /* samples in no node */

	/* Off-CPU time. */
	__u32 sleeper_page;
	__u32 sleepers;
	__u64 sleepers_full; /* sleeps that are not counted: no room for another sleeper */

	/* Functions of interpreted languages. The last four are counters. */
	__u32 function_page;
	__u32 functions;
	__u32 used_functions;
	__u32 used_offsets;
	__u64 function_full;   /* frames of functions without room, at offset 0 */
	__u64 function_unread; /* frames whose function could not be read, at offset 0 */

	__u32 unseen_page; /* PROFIL_UNSEEN_PAGE; 0: none */

	/* Of the machine's tree, see bpf/fold.bpf.h. Counters. */
	__u32 folds;  /* odd while nodes are being freed; differs after each time */
	__u64 folded; /* samples that were moved to a caller's node, or to stack_lost */
};

/* A look-up of a place or node ends at a free one, so half of them are kept free. */
static inline int profil_tree_fills_up(const struct profil_table *t)
{
	return t->used_nodes > t->nodes / 2;
}

/*
 * Says whether a long-lived table should be replaced, unless its tree is folded. Images and groups
 * are looked up in 16 elements of a page or two.
 */
static inline int profil_table_fills_up(const struct profil_table *t)
{
	return t->used_places > (__u64)t->lines * PROFIL_LINE_PLACES / 2 ||
	       t->used_images > t->images / 4 * 3 || t->used_groups > t->groups / 4 * 3;
}

#endif
