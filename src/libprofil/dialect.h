/* dialect.h - the parameters of each dialect */
#ifndef PROFIL_LIBPROFIL_DIALECT_H
#define PROFIL_LIBPROFIL_DIALECT_H

#include <linux/types.h>

/* Whether a scale of 2 puts every pc into the first counter, instead of scaling. */
enum dialect_clock {
	DIALECT_CLOCK_NEVER,
	DIALECT_CLOCK_AT_0, /* with an offset of 0: the overflow bin */
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
 * How a dialect interprets (offset, scale, bytes), and how its counters behave. The shifts are
 * those of struct profil_xform. For the meaning of each row see profil(3), "THE DIALECTS".
 */
struct dialect {
	const char *name;	  /* as in tests/vectors */
	__u32 width;		  /* bytes of a counter */
	__u32 cap;		  /* the value at which a counter saturates */
	__u32 flags;		  /* enum profil_start_flags */
	__u32 mask;		  /* the bits of a scale that are used */
	__u32 least;		  /* smaller scales turn profiling off */
	__u32 most;		  /* larger scales are EINVAL */
	enum dialect_clock clock; /* the meaning of scale 2 */
	__u8 drop;		  /* low bits of a scale that are dropped */
	__u8 pre;
	__u8 shift;
	__u8 round;
	__u8 post;
};

extern const struct dialect dialects[DIALECTS];

#endif
