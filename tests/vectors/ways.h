/* ways.h - every public call by which a row of tests/vectors can be had */
#ifndef PROFIL_VECTORS_WAYS_H
#define PROFIL_VECTORS_WAYS_H

#include <sys/time.h>
#include <unistd.h>

#include "vectors.h"

/* From profil(3): the headers of the dialects cannot be included together. */
struct prof_glibc {
	void *pr_base;
	size_t pr_size;
	size_t pr_off;
	unsigned long pr_scale;
};

struct prof_irix {
	void *pr_base;
	unsigned int pr_size;
	unsigned long pr_off;
	unsigned int pr_scale;
};

struct prof_aix {
	char *p_low;
	char *p_high;
	unsigned short *p_buff;
	int p_bufsize;
	unsigned int p_scale;
};

int sprofil(struct prof_glibc *profp, int profcnt, struct timeval *tvp, unsigned int flags);
int profil_aix(void *buffer, unsigned int bytes, unsigned long offset, unsigned int scale);
int profil_irix(unsigned short *buf, unsigned int bytes, unsigned long offset, unsigned int scale);
int sprofil_irix(struct prof_irix *profp, int profcnt, struct timeval *tvp, unsigned int flags);
int profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int add_profil_darwin(char *samples, size_t bytes, unsigned long offset, unsigned int scale);
int profil_solaris(unsigned short *buf, size_t bytes, unsigned long offset, unsigned int scale);
int profil_v7(void *buf, unsigned int bytes, unsigned long offset, unsigned int scale);

#define PROF_UINT 1

struct way {
	const char *name;
	int row; /* of dialects[] */
	/* Starts a profile by row @v, with the counters at @buf. */
	int (*start)(const struct vector *v, void *buf);
	int (*stop)(void);
};

extern const struct way ways[];
extern const size_t nways;

/* Says whether row @v binds libprofil, and can be had by call @w. */
int way_has(const struct way *w, const struct vector *v);

/* Starts a profile by @w; it returns what the row says. */
void way_start(const struct way *w, const struct vector *v, void *buf);

/*
 * There was one sample, at the row's pc: the row's bin is 1, or none, and the 16 bytes behind the
 * buffer are not written.
 */
#define WAY_SPARE 16
void way_check(const struct way *w, const struct vector *v, const void *buf);

#endif
