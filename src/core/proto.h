/* proto.h - every message between profild and its clients */
#ifndef PROFIL_PROTO_H
#define PROFIL_PROTO_H

#include <linux/types.h>

#include "bin.h"

/*
 * SOCK_SEQPACKET: a message is a packet, host byte order, a header first. The daemon speaks first
 * (HELLO); after that each request gets exactly one REPLY, in order. Only a reader's connection
 * carries anything else: EVENTS, unasked, once its ATTACH has been answered.
 */
#define PROFIL_PROTO_MAGIC 0x6c667270u /* "prfl" */
#define PROFIL_PROTO_VERSION 1
#define PROFIL_SOCKET_DEFAULT "/run/profil/profil.sock"
#define PROFIL_SOCKET_ENV "PROFIL_SOCKET"
#define PROFIL_COOKIE_BYTES 16
#define PROFIL_MSG_MAX 65536
#define PROFIL_MSG_FDS 253 /* SCM_MAX_FD */

enum profil_msg_type {
	PROFIL_MSG_HELLO = 1,
	PROFIL_MSG_REPLY,
	PROFIL_MSG_EVENTS,

	/* A process, for itself. */
	PROFIL_MSG_START = 16, /* profile me so, instead of what was */
	PROFIL_MSG_EXTEND,     /* the same, all regions again and more; ESRCH if nothing is on */
	PROFIL_MSG_STOP,
	PROFIL_MSG_SYNC,    /* bring my buffers up to date */
	PROFIL_MSG_REGIONS, /* more regions for the START, EXTEND or IMAGE before it */

	/* A reader, for others. */
	PROFIL_MSG_ATTACH = 32, /* fds: pidfd, and /proc/PID/maps opened by the reader */
	PROFIL_MSG_IMAGE,	/* the regions of one process of my session */
	PROFIL_MSG_DETACH,	/* count no more; the maps stay */
	PROFIL_MSG_STATS,

	/* Anyone. */
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
 * The client puts @cookie at an address that its request names: whoever can do that owns the
 * memory, and the daemon reads it back through the descriptor that it will write through.
 */
struct profil_msg_hello {
	struct profil_header h;
	__u8 cookie[PROFIL_COOKIE_BYTES];
};

/* One piece of a histogram; see struct profil_region, of which this is the asked half. */
struct profil_msg_region {
	__u64 lo;
	struct profil_xform x;
	__u64 addr;
	__u32 owner;
	__u32 zero;
};
_Static_assert(sizeof(struct profil_msg_region) == 56, "on the wire");

/* As many regions as one message of START, EXTEND, IMAGE or REGIONS carries. */
#define PROFIL_MSG_REGION_MAX 1024

enum profil_start_flags {
	PROFIL_START_FAST = 1 << 0,	   /* at the fast rate: EACCES where that is restricted */
	PROFIL_START_STOP_AT_CAP = 1 << 1, /* a tick on a full counter ends the profile (Solaris) */
	PROFIL_START_FAULT_ENDS = 1 << 2,  /* a fault ends the profile, not just its region */
	PROFIL_START_CHECK = 1 << 3,	   /* every buffer must be writable now: EFAULT */
	PROFIL_START_PCS = 1 << 4,	   /* one region's buffer takes pcs, u64 each (pcsample) */
};

/* START and EXTEND. What h.count leaves of @nregions follows in REGIONS messages. */
struct profil_msg_start {
	struct profil_header h;
	__u64 cookie_addr;
	__u32 flags;
	__u32 width; /* bytes of a counter: 2 or 4 (8 with PCS) */
	__u32 cap;   /* at which a counter stays */
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

enum profil_attach_flags {
	PROFIL_ATTACH_INHERIT = 1 << 0,	  /* and the children that it forks from now on */
	PROFIL_ATTACH_FOLLOW = 1 << 1,	  /* and what it execs */
	PROFIL_ATTACH_USER_ONLY = 1 << 2, /* but not while it is in the kernel */
};

/*
 * From the reply on, every tick of the process comes as a RAW event, until an IMAGE says where to
 * count. The descriptors prove that the caller may read the process; for an own child that is
 * about to exec, as for any other process, the caller opens them itself.
 */
struct profil_msg_attach {
	struct profil_header h;
	__u64 period_ns; /* 0: the daemon's rate */
	__u32 flags;
	__u32 zero;
};

/*
 * Counts process @tgid by these regions from now on, instead of those before; their counters start
 * at 0. addr is 0 in each. The reply carries the chunks' descriptors, to be mapped read-only, and
 * @nregions regions lie in them one after the other, each on profil_counters_for() counters.
 */
struct profil_msg_image {
	struct profil_header h;
	__u32 tgid;
	__u32 nregions;
	__u32 execs; /* as its last event said, 0 before the first: -ESTALE where that is over */
	__u32 zero;
	struct profil_msg_region region[];
};
_Static_assert(sizeof(struct profil_msg_image) == 32, "on the wire");

/* DETACH, STATS, LIST and STATUS say nothing but their header. */

/*
 * @error is 0 or a positive errno. The ticks are those of the caller's profile so far: of a
 * process's own (START, STOP, SYNC), or of a reader's session. @raw of a reader's are those that
 * went out as RAW events; for the others it is 0. total = binned + unmatched + lost + raw; a
 * reader sums up what it maps and so gets binned itself.
 */
struct profil_msg_reply {
	struct profil_header h;
	__u32 error;
	__u32 tgid; /* ATTACH, IMAGE: of the process, in the daemon's pid namespace */
	__u64 tick_ns;
	__u64 total;
	__u64 unmatched;
	__u64 lost;
	__u64 raw;
	__u64 stored; /* pcs since the last call (PCS) */
};
_Static_assert(sizeof(struct profil_msg_reply) == 72, "on the wire");

struct profil_msg_event {
	__u64 pc;
	__u32 tgid;
	__u16 kind;  /* enum profil_event_kind */
	__u16 execs; /* one more with each exec, from whatever its fork began with */
	__u32 tid;   /* the thread that was there */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_msg_event) == 24, "on the wire");

struct profil_msg_events {
	struct profil_header h;
	struct profil_msg_event event[];
};
#define PROFIL_MSG_EVENT_MAX 1024

/* Answers LIST, in the place of a REPLY: h.count profiles. */
struct profil_msg_profile {
	__u32 tgid;
	__u32 uid;
	__u64 tick_ns;
	__u64 total;
	__u64 unmatched;
	__u64 lost;
	__u32 nregions;
	__u32 reader; /* 0: the process's own */
	__u64 nbins;
};
_Static_assert(sizeof(struct profil_msg_profile) == 56, "on the wire");

struct profil_msg_list {
	struct profil_header h;
	struct profil_msg_profile profile[];
};
#define PROFIL_MSG_LIST_MAX 1024

/* Answers STATUS. */
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
	__u32 zero;
};
_Static_assert(sizeof(struct profil_msg_status) == 64, "on the wire");

#endif
