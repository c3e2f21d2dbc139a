/* profil.h - IRIX's profil and sprofil */
#ifndef PROFIL_IRIX_SYS_PROFIL_H
#define PROFIL_IRIX_SYS_PROFIL_H

#include "../../kr.h"
#pragma GCC system_header

#include <sys/time.h>
#include <sys/types.h>
/* Declares glibc's profil, so it must come before the name becomes a macro. */
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PROFIL_MAX 4096

/* flags, with glibc's values; 0 is 16-bit counters */
#define PROF_USHORT 0 /* counters are unsigned short */
#define PROF_UINT 1   /* ... unsigned int */
#define PROF_FAST 2   /* profild's fast rate: by default a sample each millisecond */

typedef unsigned long __psunsigned_t;

struct prof {
	void *pr_base;	       /* the counters */
	unsigned int pr_size;  /* their bytes */
	__psunsigned_t pr_off; /* the pc of the first one */
	unsigned int pr_scale; /* bytes of counters per byte of text, 16 bits of it a fraction */
};

int profil_irix(unsigned short *buf, unsigned int bytes, unsigned long offset, unsigned int scale);
int sprofil_irix(struct prof *profp, int profcnt, struct timeval *tvp, unsigned int flags);

#define sprofil sprofil_irix
#define profil profil_irix
#define profil_irix(...)                                                                         \
	PROFIL_KR_PICK_(__VA_ARGS__, profil_as_declared_, PROFIL_IRIX_PLAIN_, PROFIL_IRIX_FOUR_, \
			PROFIL_IRIX_PLAIN_, PROFIL_IRIX_PLAIN_, profil_as_declared_, ~)          \
	(__VA_ARGS__)
#define PROFIL_IRIX_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(profil_as_declared_, PROFIL_IRIX_CALL_, a, b, c, d)
#define PROFIL_IRIX_PLAIN_(...) profil_irix(__VA_ARGS__)
#define PROFIL_IRIX_CALL_(buf, bytes, offset, scale)                                         \
	profil_irix((unsigned short *)(buf), (unsigned int)(bytes), (unsigned long)(offset), \
		    (unsigned int)(scale))

#ifdef __cplusplus
}
#endif

#endif
