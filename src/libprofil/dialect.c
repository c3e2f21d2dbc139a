/* dialect.c - the table of dialects */
#include "core/proto.h"
#include "dialect.h"

#define ALL 0xffffffffu
#define ENDS PROFIL_START_FAULT_ENDS
#define CHECK PROFIL_START_CHECK
#define STOP PROFIL_START_STOP_AT_CAP
#define NEVER DIALECT_CLOCK_NEVER
#define AT_0 DIALECT_CLOCK_AT_0
#define ALWAYS DIALECT_CLOCK_ALWAYS

/*
 * AIX rounds up to the next half-word, as V7 did; it pins the buffer: the call fails if it cannot.
 * "bsd" is Darwin's as well. glibc halves the distance before the multiplication; halving the
 * product differs. V7 ran on the PDP-11, whose int has 16 bits; its kernel halves both factors and
 * rounds up.
 */
/* clang-format off */
const struct dialect dialects[DIALECTS] = {
	/* name, width, cap, flags, mask, least, most, clock, drop, pre, shift, round, post */
	[DIALECT_AIX] = { "aix", 2, 65535, ENDS | CHECK, 0xffff, 2, ALL, ALWAYS, 0, 0, 16, 1, 1 },
	[DIALECT_IRIX_USHORT] = { "irix_ushort", 2, 65535, 0, ALL, 2, ALL, ALWAYS, 0, 0, 16, 0, 1 },
	[DIALECT_IRIX_UINT] = { "irix_uint", 4, ALL, 0, ALL, 2, ALL, ALWAYS, 0, 0, 16, 0, 2 },
	[DIALECT_BSD] = { "bsd", 2, 65535, ENDS | CHECK, ALL, 1, 0x10000, NEVER, 0, 0, 16, 0, 1 },
	[DIALECT_SOLARIS] = { "solaris", 2, 32767, ENDS | STOP, ALL, 2, ALL, ALWAYS, 0, 0, 16, 0, 1 },
	[DIALECT_GLIBC] = { "glibc", 2, 65535, ENDS, ALL, 1, ALL, NEVER, 0, 1, 16, 0, 0 },
	[DIALECT_GLIBC_SPROFIL_USHORT] = {
		"glibc_sprofil_ushort", 2, 65535, 0, ALL, 2, ALL, AT_0, 0, 1, 16, 0, 0 },
	[DIALECT_GLIBC_SPROFIL_UINT] = {
		"glibc_sprofil_uint", 4, ALL, 0, ALL, 2, ALL, AT_0, 0, 2, 16, 0, 0 },
	[DIALECT_V7] = { "v7", 2, 65535, ENDS, 0xffff, 1, ALL, NEVER, 1, 1, 14, 1, 1 },
};
