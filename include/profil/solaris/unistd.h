/* unistd.h - the system's own, with Solaris's profil and pcsample */
#ifndef PROFIL_SOLARIS_UNISTD_H
#define PROFIL_SOLARIS_UNISTD_H

#include "../kr.h"
#pragma GCC system_header

#include_next <unistd.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale);
long pcsample_solaris(uintptr_t samples[], long nsamples);

#define pcsample pcsample_solaris
#define profil profil_solaris
#define profil_solaris(...)                                                                 \
	PROFIL_KR_PICK_(__VA_ARGS__, profil_as_declared_, PROFIL_SOLARIS_PLAIN_,            \
			PROFIL_SOLARIS_FOUR_, PROFIL_SOLARIS_PLAIN_, PROFIL_SOLARIS_PLAIN_, \
			profil_as_declared_, ~)                                             \
	(__VA_ARGS__)
#define PROFIL_SOLARIS_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(profil_as_declared_, PROFIL_SOLARIS_CALL_, a, b, c, d)
#define PROFIL_SOLARIS_PLAIN_(...) profil_solaris(__VA_ARGS__)
#define PROFIL_SOLARIS_CALL_(buf, bytes, offset, scale)                                   \
	profil_solaris((unsigned short *)(buf), (size_t)(bytes), (unsigned long)(offset), \
		       (unsigned int)(scale))

#ifdef __cplusplus
}
#endif

#endif
