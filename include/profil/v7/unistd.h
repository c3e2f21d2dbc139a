/* unistd.h - the system's own, with profil as the seventh edition has it */
#ifndef PROFIL_V7_UNISTD_H
#define PROFIL_V7_UNISTD_H

/*
 * V7 itself declared its system calls nowhere: a program that includes nothing is compiled with
 * «-include unistd.h» besides -I.
 */
#include "../kr.h"
#pragma GCC system_header

#include_next <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

int profil_v7(void *buf, unsigned int bytes, unsigned long offset, unsigned int scale);

#define profil profil_v7
#define profil_v7(...)                                                                    \
	PROFIL_KR_PICK_(__VA_ARGS__, PROFIL_V7_PLAIN_, PROFIL_V7_CALL_, PROFIL_V7_PLAIN_, \
			PROFIL_V7_PLAIN_, PROFIL_V7_PLAIN_, ~)                            \
	(__VA_ARGS__)
#define PROFIL_V7_PLAIN_(...) profil_v7(__VA_ARGS__)
#define PROFIL_V7_CALL_(buf, bytes, offset, scale)                               \
	profil_v7((void *)(buf), (unsigned int)(bytes), (unsigned long)(offset), \
		  (unsigned int)(scale))

#ifdef __cplusplus
}
#endif

#endif
