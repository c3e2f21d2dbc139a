/* unistd.h - the system's own, with the Seventh Edition's profil */
#ifndef PROFIL_V7_UNISTD_H
#define PROFIL_V7_UNISTD_H

/*
 * V7 had no header that declares its system calls: compile a program that includes nothing with
 * «-include unistd.h» in addition to -I.
 */
#include "../kr.h"
#pragma GCC system_header

#include_next <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

int profil_v7(void *buf, unsigned int bytes, unsigned long offset, unsigned int scale);

#define profil profil_v7
#define profil_v7(...)                                                                       \
	PROFIL_KR_PICK_(__VA_ARGS__, profil_as_declared_, PROFIL_V7_PLAIN_, PROFIL_V7_FOUR_, \
			PROFIL_V7_PLAIN_, PROFIL_V7_PLAIN_, profil_as_declared_, ~)          \
	(__VA_ARGS__)
#define PROFIL_V7_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(profil_as_declared_, PROFIL_V7_CALL_, a, b, c, d)
#define PROFIL_V7_PLAIN_(...) profil_v7(__VA_ARGS__)
#define PROFIL_V7_CALL_(buf, bytes, offset, scale)                               \
	profil_v7((void *)(buf), (unsigned int)(bytes), (unsigned long)(offset), \
		  (unsigned int)(scale))

#ifdef __cplusplus
}
#endif

#endif
