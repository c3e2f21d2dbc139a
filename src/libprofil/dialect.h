/* dialect.h - what tells the dialects' numbers apart: a row each */
#ifndef PROFIL_DIALECT_H
#define PROFIL_DIALECT_H

#include <linux/types.h>

/* Where scale 2 puts every pc into the first counter instead of scaling it. */
enum dialect_clock {
	DIALECT_CLOCK_NEVER,
	DIALECT_CLOCK_AT_0, /* an overflow bin: offset 0, any pc that no other region takes */
	DIALECT_CLOCK_ALWAYS,
};

enum dialect_name {
	DIALECT_AIX,
	DIALECT_IRIX_USHORT,
	DIALECT_IRIX_UINT,
	DIALECT_BSD,
	DIALECT_SOLARIS,
	DIALECT_GLIBC,
	DIALECT_GLIBC_SPROFIL_USHORT,
	DIALECT_GLIBC_SPROFIL_UINT,
	DIALECT_V7,
	DIALECTS,
};

/*
 * How a dialect reads (offset, scale, bytes), and what becomes of its counters. The shifts are
 * those of struct profil_xform; SEMANTICS of each row: profil(3), "THE DIALECTS".
 */
struct dialect {
	const char *name;	  /* as tests/vectors calls it */
	__u32 width;		  /* bytes of a counter */
	__u32 cap;		  /* where a counter stays */
	__u32 flags;		  /* enum profil_start_flags */
	__u32 mask;		  /* the bits of a scale that are looked at */
	__u32 least;		  /* smaller scales are off */
	__u32 most;		  /* larger ones EINVAL */
	enum dialect_clock clock; /* what scale 2 means */
	__u8 drop;		  /* low bits of a scale that do not multiply */
	__u8 pre;
	__u8 shift;
	__u8 round;
	__u8 post;
};

extern const struct dialect dialects[DIALECTS];

#endif
