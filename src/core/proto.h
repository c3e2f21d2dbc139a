/* proto.h - every message between profild and its clients */
#ifndef PROFIL_CORE_PROTO_H
#define PROFIL_CORE_PROTO_H

#include <linux/types.h>

#include "bin.h"

/*
 * SOCK_SEQPACKET: a message is one packet in host byte order and starts with a header. The daemon
 * sends the first message: HELLO, or a REPLY with an error before it closes the connection, if it
 * has no room for the client. After that each request gets exactly one answer, in order.
 */
#define PROFIL_PROTO_MAGIC 0x6c667270u /* "prfl" */
#define PROFIL_PROTO_VERSION 3
#define PROFIL_SOCKET_DEFAULT "/run/profil/profil.sock"
#define PROFIL_SOCKET_ENV "PROFIL_SOCKET"
#define PROFIL_COOKIE_BYTES 16
#define PROFIL_MSG_MAX 65536
#define PROFIL_MSG_FDS 253 /* SCM_MAX_FD */

enum profil_msg_type {
	PROFIL_MSG_HELLO = 1,
	PROFIL_MSG_REPLY,

	/* From a process, about itself. */
	PROFIL_MSG_START = 16, /* start a profile, which replaces the present one */
	PROFIL_MSG_EXTEND,     /* likewise, with all regions and more; ESRCH if no profile is on */
	PROFIL_MSG_STOP,
	PROFIL_MSG_SYNC,    /* bring the buffers up to date */
	PROFIL_MSG_REGIONS, /* more regions for the START or EXTEND before it */

	/* From an observer, about others. */
	PROFIL_MSG_DETACH = 32, /* stop counting; the table stays */
	PROFIL_MSG_STATS,
	PROFIL_MSG_OBSERVE = 64, /* reply: the table's fd; one attachment for each connection */
	PROFIL_MSG_ADD,		 /* fds: pidfd, and /proc/PID/maps opened by the client */
	PROFIL_MSG_MACHINE,	 /* the whole machine's table: on, off, or query */
	PROFIL_MSG_BEGIN,	 /* start counting after an OBSERVE with LATER */

	/* From any client. */
	PROFIL_MSG_LIST = 48, /* every profile that the caller may see */
	PROFIL_MSG_STATUS,
};

struct profil_header {
	__u32 magic;
	__u16 version;
	__u16 type;
	__u32 bytes; /* of the whole message */
	__u32 count; /* elements of the array at its end */
};
_Static_assert(sizeof(struct profil_header) == 16, "on the wire");

/*
 * A profiled process keeps this at the address that its request names (cookie_addr, a multiple of
 * 8; else -EINVAL), as long as the profile is on. The process writes @cookie, which proves that the
 * memory is its own: the daemon reads it back through the descriptor that it will write through.
 *
 * A process may stop its profile without a connection. For each pass that writes to the process's
 * buffers, the daemon stores 1 to @busy, executes a full barrier and reads @cookie. If it is the
 * profile's, it writes the buffers, else it ends the profile; then it stores 0 to @busy. A stop
 * clears @cookie, executes a full barrier and waits until @busy is 0, with a time limit in case the
 * daemon was killed. One of the two sees the other (Dekker pairing): after the stop nothing is
 * written to the buffers again.
 */
struct profil_cookie_area {
	__u8 cookie[PROFIL_COOKIE_BYTES];
	__u32 busy;
	__u32 zero;
} __attribute__((aligned(8)));
_Static_assert(sizeof(struct profil_cookie_area) == 24, "lies in the memory of clients");

struct profil_msg_hello {
	struct profil_header h;
	union {
		__u8 cookie[PROFIL_COOKIE_BYTES];
		struct profil_cookie_area area; /* busy is 0: may be used where it was received */
	};
};
_Static_assert(sizeof(struct profil_msg_hello) == 40, "on the wire");

/* One piece of a histogram: the client's part of struct profil_region. */
struct profil_msg_region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;
	__u32 owner;
	__u32 zero;
};
_Static_assert(sizeof(struct profil_msg_region) == 56, "on the wire");

/* Regions in one START, EXTEND or REGIONS message, at most. */
#define PROFIL_MSG_REGION_MAX 1024

enum profil_start_flags {
	PROFIL_START_FAST = 1 << 0,	   /* at the fast rate: EACCES if that is restricted */
	PROFIL_START_STOP_AT_CAP = 1 << 1, /* a saturated counter ends the profile (Solaris) */
	PROFIL_START_FAULT_ENDS = 1 << 2,  /* a fault ends the profile, not only its region */
	PROFIL_START_CHECK = 1 << 3,	   /* every buffer must be writable now: EFAULT */
	PROFIL_START_PCS = 1 << 4,	   /* one region's buffer takes pcs, u64 each (pcsample) */
};

/* START and EXTEND. Regions beyond h.count follow in REGIONS messages, up to @nregions. */
struct profil_msg_start {
	struct profil_header h;
	__u64 cookie_addr;
	__u32 flags;
	__u32 width; /* bytes of a counter: 2 or 4 (8 with PCS) */
	__u32 cap;   /* the value at which a counter saturates */
	__u32 nregions;
	struct profil_msg_region region[];
};
_Static_assert(sizeof(struct profil_msg_start) == 40, "on the wire");

/* STOP and SYNC. */
struct profil_msg_self {
	struct profil_header h;
	__u64 cookie_addr;
};

struct profil_msg_regions {
	struct profil_header h;
	struct profil_msg_region region[];
};

/* KERNEL_STACKS is for callers that may observe others: the table's flags say if it was granted. */
enum profil_observe_flags {
	PROFIL_OBSERVE_INHERIT = 1 << 0,       /* also children of the added processes */
	PROFIL_OBSERVE_FOLLOW = 1 << 1,	       /* also after an exec */
	PROFIL_OBSERVE_USER_ONLY = 1 << 2,     /* samples in kernel mode are dropped */
	PROFIL_OBSERVE_KERNEL_STACKS = 1 << 3, /* stacks have the kernel's frames, too */
	PROFIL_OBSERVE_LATER = 1 << 4,	       /* count from BEGIN on; not with scope PROCESSES */
	PROFIL_OBSERVE_EVENT = 1 << 5,	       /* count @event_type instead of CPU time */
	PROFIL_OBSERVE_CPU_CLOCK = 1 << 6, /* CPU time by perf events, at any rate; not the tick */
	/*
	 * Functions of interpreted languages: the table has room for them, and there is a map of
	 * unwind rules, for the client's descriptors of interpreters, also without stacks.
	 * Functions are read only from tasks whose memory the caller may read.
	 */
	PROFIL_OBSERVE_FUNCTIONS = 1 << 7,
	PROFIL_OBSERVE_NATIVE = 1 << 8, /* with FUNCTIONS: interpreters' own frames as well */
	/*
	 * CPU time, and the time that threads are asleep or runnable, each below a note of its
	 * state. It needs a stack_mode; not with EVENT or USER_ONLY.
	 */
	PROFIL_OBSERVE_WAITS = 1 << 9,
	PROFIL_OBSERVE_WAKERS = 1 << 10, /* with WAITS: what wakes up threads, below a note of it */
	/*
	 * A sample of CPU time stands for its part of the process's time: divided by the number of
	 * the process's threads that run at that moment. It needs CPU_CLOCK; not with EVENT or
	 * WAITS.
	 */
	PROFIL_OBSERVE_LATENCY = 1 << 11,
};

/* Which samples an attachment counts. All scopes except PROCESSES are tested at each sample. */
enum profil_scope {
	PROFIL_SCOPE_PROCESSES = 0, /* those of ADD messages, and their children */
	PROFIL_SCOPE_USER,    /* processes of @uid; of another user only for a privileged caller */
	PROFIL_SCOPE_CGROUP,  /* below cgroup2 directory @cgroup (its inode) */
	PROFIL_SCOPE_COMMAND, /* whose first thread's comm is @command */
	PROFIL_SCOPE_EXE,     /* that execute file @ino of @dev, or @former_ino unless it is 0 */
	PROFIL_SCOPE_MACHINE, /* all; kernel threads and interrupts as well */
};

/*
 * Starts an attachment, which ends with the connection. For a caller that may not observe others,
 * every scope is narrowed to processes that the caller may trace, and MACHINE is refused. The reply
 * carries the fd of the table (struct profil_table), to be mapped read-only. If stacks are unwound
 * by tables, or with FUNCTIONS, it also carries the fd of the map of unwind rules (unwind_maps.h),
 * to be mapped writable.
 */
struct profil_msg_observe {
	struct profil_header h;
	__u64 period_ns; /* 0: the daemon's rate. For an event: events for each sample */
	__u32 flags;	 /* enum profil_observe_flags */
	__u32 scope;	 /* enum profil_scope */
	__u32 uid;
	__u32 group_by; /* enum profil_group_by */
	union {
		__u64 cgroup;
		__u64 former_ino;
	};
	__u64 ino;
	__u64 dev; /* as in the kernel: major << 20 | minor */
	char command[16];
	__u32 zero;
	__u32 places; /* the table's size; 0: the default. Likewise: */
	__u32 images;
	__u32 groups;
	/*
	 * With PROFIL_OBSERVE_EVENT: perf_event_attr's type and config. PROFIL_EVENT_OFF_CPU, 0:
	 * the time that threads sleep; it needs a stack_mode, and period_ns is of that time.
	 * PROFIL_EVENT_UPROBE, and the number of a tracepoint that is a uprobe.
	 * PROFIL_EVENT_BRANCHES, 0: taken branches; it needs a stack_mode and a frequency.
	 */
	__u32 event_type;
	__u32 frequency; /* not 0: samples of an event in a second, instead of period_ns */
	__u64 event_config;
	__u32 stack_mode; /* enum profil_stack_mode: with call graphs */
	__u32 nodes;	  /* the table's size; 0: the default. Likewise: */
	__u32 unwind_rows;
	__u32 sleepers; /* of off-CPU time */
};
_Static_assert(sizeof(struct profil_msg_observe) == 128, "on the wire");

/* ADD is only a header: its descriptors name the process. The reply has its tgid. */

enum profil_machine_ask {
	PROFIL_MACHINE_QUERY = 0,
	PROFIL_MACHINE_ON,
	PROFIL_MACHINE_OFF,
	PROFIL_MACHINE_FEED,
};

/*
 * The whole machine's profile, which belongs to no connection: for root, CAP_SYS_PTRACE and group
 * profil. The reply carries the table's fd while it is on; ENOENT to a QUERY while it is off. Its
 * tgid is the process that feeds it; 0: none.
 *
 * With stacks, a client feeds the profile its unwind rules: the reply to FEED carries also the fd
 * of their map (unwind_maps.h), to be mapped writable. One connection at a time is the feeder,
 * until it ends; EBUSY to others. The map also has the descriptors of interpreters, by which the
 * kernel reads memory, so the feeder needs CAP_SYS_PTRACE. ENOTSUP: the profile has no stacks.
 */
struct profil_msg_machine {
	struct profil_header h;
	__u32 ask;	  /* enum profil_machine_ask */
	__u32 stack_mode; /* ON: enum profil_stack_mode; NONE: as it is, at first without */
	__u64 period_ns;  /* ON: 0: as it is, at first the daemon's rate */
};
_Static_assert(sizeof(struct profil_msg_machine) == 32, "on the wire");

/* BEGIN, DETACH, STATS, LIST and STATUS are only a header. */

/*
 * @error is 0 or a positive errno. The counts are those of the caller's profile (START, STOP, SYNC)
 * so far: total = binned + unmatched + lost. Of an attachment only the total is here; its table has
 * the rest.
 */
struct profil_msg_reply {
	struct profil_header h;
	__u32 error;
	__u32 tgid; /* ADD: of the process, in the daemon's pid namespace */
	__u64 tick_ns;
	__u64 total;
	__u64 unmatched;
	__u64 lost;
	__u64 stored; /* pcs so far (PCS) */
};
_Static_assert(sizeof(struct profil_msg_reply) == 64, "on the wire");

/* The answer to LIST, instead of a REPLY: h.count profiles. */
struct profil_msg_profile {
	__u32 tgid; /* of an attachment: the first process that was added; 0: none */
	__u32 uid;
	__u64 tick_ns;
	__u64 total;
	__u64 unmatched;
	__u64 lost;
	__u64 unfollowed; /* fork children without room in the process table */
	__u32 nregions;
	__u32 attachment; /* 0: a process's own profile; else 1 + enum profil_scope */
	__u64 nbins;
};
_Static_assert(sizeof(struct profil_msg_profile) == 64, "on the wire");

struct profil_msg_list {
	struct profil_header h;
	struct profil_msg_profile profile[];
};
#define PROFIL_MSG_LIST_MAX 1024

/*
 * A user's use and limit (UINT64_MAX: none) of each enum resource. Resources that this daemon does
 * not know are 0. @uid -1: the machine.
 */
#define PROFIL_MSG_RESOURCES 16
struct profil_msg_user {
	__u32 uid;
	__u32 root;
	__u64 used[PROFIL_MSG_RESOURCES];
	__u64 limit[PROFIL_MSG_RESOURCES];
};
_Static_assert(sizeof(struct profil_msg_user) == 264, "on the wire");
#define PROFIL_MSG_USER_MAX 128

/* The answer to STATUS; h.count users: the machine and the caller, or all if it is privileged. */
struct profil_msg_status {
	struct profil_header h;
	__u32 pid;
	__u32 profiles;
	__u32 regions;
	__u32 chunks;
	__u64 rate_period_ns;
	__u64 fast_period_ns;
	__u64 uptime_ns;
	__u32 replay;
	__u32 image_lookup; /* enum profil_image_lookup; 0: it observes nothing */
	struct profil_msg_user user[];
};
_Static_assert(sizeof(struct profil_msg_status) == 64, "on the wire");

#endif
