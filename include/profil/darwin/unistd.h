/* unistd.h - the system's own, with Darwin's profil and add_profil */
#ifndef PROFIL_DARWIN_UNISTD_H
#define PROFIL_DARWIN_UNISTD_H

#include "../kr.h"
#pragma GCC system_header

#include_next <unistd.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

int profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int add_profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);

#define profil profil_darwin
#define profil_darwin(...)                                                               \
	PROFIL_KR_PICK_(__VA_ARGS__, profil_as_declared_, PROFIL_DARWIN_PLAIN_,          \
			PROFIL_DARWIN_FOUR_, PROFIL_DARWIN_PLAIN_, PROFIL_DARWIN_PLAIN_, \
			profil_as_declared_, ~)                                          \
	(__VA_ARGS__)
#define PROFIL_DARWIN_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(profil_as_declared_, PROFIL_DARWIN_CALL_, a, b, c, d)
#define PROFIL_DARWIN_PLAIN_(...) profil_darwin(__VA_ARGS__)
#define PROFIL_DARWIN_CALL_(samples, bytes, offset, scale)                         \
	profil_darwin((char *)(samples), (size_t)(bytes), (unsigned long)(offset), \
		      (unsigned int)(scale))

#define add_profil add_profil_darwin
#define add_profil_darwin(...)                                                           \
	PROFIL_KR_PICK_(__VA_ARGS__, ADD_PROFIL_DARWIN_PLAIN_, ADD_PROFIL_DARWIN_PLAIN_, \
			ADD_PROFIL_DARWIN_FOUR_, ADD_PROFIL_DARWIN_PLAIN_,               \
			ADD_PROFIL_DARWIN_PLAIN_, add_profil_as_declared_, ~)            \
	(__VA_ARGS__)
#define ADD_PROFIL_DARWIN_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(add_profil_as_declared_, ADD_PROFIL_DARWIN_CALL_, a, b, c, d)
#define ADD_PROFIL_DARWIN_PLAIN_(...) add_profil_darwin(__VA_ARGS__)
#define ADD_PROFIL_DARWIN_CALL_(samples, bytes, offset, scale)                         \
	add_profil_darwin((char *)(samples), (size_t)(bytes), (unsigned long)(offset), \
			  (unsigned int)(scale))

#ifdef __cplusplus
}
#endif

#endif
