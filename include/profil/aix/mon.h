/* mon.h - AIX's profil, monitor, monstartup and moncontrol */
#ifndef PROFIL_AIX_MON_H
#define PROFIL_AIX_MON_H

#include "../kr.h"
#pragma GCC system_header

#include <sys/types.h>
/* Declares glibc's profil, so it must come before the name becomes a macro. */
#include <unistd.h>

#ifndef __caddr_t_defined
typedef char *caddr_t;
#define __caddr_t_defined
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define MON_OUT "mon.out"

typedef unsigned short HISTCOUNTER;

/* One counter for each 4 bytes of text, as AIX's instructions have. */
#define HIST_SCALE_1_TO_1 0x8000u

/* A range of text and its counters. An array ends with a p_high of 0. */
struct prof {
	caddr_t p_low;	      /* the lowest address */
	caddr_t p_high;	      /* the one above the highest */
	HISTCOUNTER *p_buff;  /* the range's counters */
	int p_bufsize;	      /* bytes for profil(), counters for monitor() */
	unsigned int p_scale; /* (unsigned)-1: as fine as the counters allow */
};

/* A range for monstartup(). An array ends with a p_high of 0. */
struct frag {
	caddr_t p_low;
	caddr_t p_high;
};

/* The state of moncontrol(); a program sets prof_type to the kind of profiling. */
struct monglobal {
	int prof_type;
	void *ProfBuf;
	int ProfBufSiz;
	caddr_t ProfLoPC;
	unsigned int ProfScale;
};

#define _PROF_TYPE_IS_P (-1)
#define _PROF_TYPE_IS_PG 1
#define _PROF_TYPE_IS_NONE 0

#define _mondata mondata_aix
extern struct monglobal mondata_aix;

int profil_aix(void *buffer, unsigned int bytes, unsigned long offset, unsigned int scale);
int monitor_aix(caddr_t low, caddr_t high, void *buffer, int counters, int functions);
int monstartup_aix(caddr_t low, caddr_t high);
int moncontrol_aix(int mode);

#define profil profil_aix
#define profil_aix(...)                                                                        \
	PROFIL_KR_PICK_(__VA_ARGS__, profil_as_declared_, PROFIL_AIX_PLAIN_, PROFIL_AIX_FOUR_, \
			PROFIL_AIX_PLAIN_, PROFIL_AIX_PLAIN_, profil_as_declared_, ~)          \
	(__VA_ARGS__)
#define PROFIL_AIX_FOUR_(a, b, c, d) \
	PROFIL_KR_FOUR_(profil_as_declared_, PROFIL_AIX_CALL_, a, b, c, d)
#define PROFIL_AIX_PLAIN_(...) profil_aix(__VA_ARGS__)
#define PROFIL_AIX_CALL_(buffer, bytes, offset, scale)                               \
	profil_aix((void *)(buffer), (unsigned int)(bytes), (unsigned long)(offset), \
		   (unsigned int)(scale))

#define monitor monitor_aix
#define monitor_aix(...)                                                                        \
	PROFIL_KR_PICK_(__VA_ARGS__, MONITOR_AIX_PLAIN_, MONITOR_AIX_FIVE_, MONITOR_AIX_PLAIN_, \
			MONITOR_AIX_PLAIN_, MONITOR_AIX_PLAIN_, MONITOR_AIX_ONE_, ~)            \
	(__VA_ARGS__)
#define MONITOR_AIX_PLAIN_(...) monitor_aix(__VA_ARGS__)
#define MONITOR_AIX_ONE_(low) \
	PROFIL_KR_IF_(PROFIL_KR_IS_NONE_(low))(monitor_as_declared_, MONITOR_AIX_END_)(low)
#define MONITOR_AIX_END_(low) \
	monitor_aix((caddr_t)(unsigned long)(low), (caddr_t)0, (void *)0, 0, 0)
#define MONITOR_AIX_FIVE_(low, high, buffer, counters, functions)          \
	PROFIL_KR_IF_(PROFIL_KR_DECLARES_(low, high, counters, functions)) \
	(monitor_as_declared_, MONITOR_AIX_CALL_)(low, high, buffer, counters, functions)
#define MONITOR_AIX_CALL_(low, high, buffer, counters, functions)                  \
	monitor_aix((caddr_t)(unsigned long)(low), (caddr_t)(unsigned long)(high), \
		    (void *)(buffer), (counters), (functions))

#define monstartup monstartup_aix
#define monstartup_aix(...)                                                                 \
	PROFIL_KR_PICK_(__VA_ARGS__, MONSTARTUP_AIX_PLAIN_, MONSTARTUP_AIX_PLAIN_,          \
			MONSTARTUP_AIX_PLAIN_, MONSTARTUP_AIX_PLAIN_, MONSTARTUP_AIX_CALL_, \
			monstartup_as_declared_, ~)                                         \
	(__VA_ARGS__)
#define MONSTARTUP_AIX_PLAIN_(...) monstartup_aix(__VA_ARGS__)
#define MONSTARTUP_AIX_CALL_(low, high) \
	monstartup_aix((caddr_t)(unsigned long)(low), (caddr_t)(unsigned long)(high))

#define moncontrol moncontrol_aix

#ifdef __cplusplus
}
#endif

#endif
