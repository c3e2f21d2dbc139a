/* vectors_replay.c - the rows of tests/vectors through every dialect's public call */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "tests/vectors/vectors.h"
#include "base/cleanup.h"
#include "tests/system/lib/daemon.h"

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

/* Start a profile by row @v, with the counters at @buf. */
static int call_aix(const struct vector *v, void *buf)
{
	return profil_aix(buf, (unsigned int)v->bufsize, v->offset, (unsigned int)v->scale);
}

static int call_aix_array(const struct vector *v, void *buf)
{
	struct prof_aix array[2] = { { .p_low = (char *)v->offset,
				       .p_high = (char *)UINT64_MAX,
				       .p_buff = buf,
				       .p_bufsize = (int)v->bufsize,
				       .p_scale = (unsigned int)v->scale } };

	return profil_aix(array, (unsigned int)-1, 0, 0);
}

static int call_irix(const struct vector *v, void *buf)
{
	return profil_irix(buf, (unsigned int)v->bufsize, v->offset, (unsigned int)v->scale);
}

static int call_irix_sprofil(const struct vector *v, void *buf)
{
	struct prof_irix one = { buf, (unsigned int)v->bufsize, v->offset, (unsigned int)v->scale };

	return sprofil_irix(&one, 1, NULL, v->width == 4 ? PROF_UINT : 0);
}

static int call_darwin(const struct vector *v, void *buf)
{
	return profil_darwin(buf, v->bufsize, v->offset, (unsigned int)v->scale);
}

/* The first region contains no pc of any row. */
static int call_darwin_added(const struct vector *v, void *buf)
{
	static char elsewhere[2];

	if (profil_darwin(elsewhere, sizeof(elsewhere), 0x123456789000, 0x10000))
		return -1;
	return add_profil_darwin(buf, v->bufsize, v->offset, (unsigned int)v->scale);
}

static int call_solaris(const struct vector *v, void *buf)
{
	return profil_solaris(buf, v->bufsize, v->offset, (unsigned int)v->scale);
}

static int call_glibc(const struct vector *v, void *buf)
{
	return profil(buf, v->bufsize, v->offset, (unsigned int)v->scale);
}

static int call_glibc_sprofil(const struct vector *v, void *buf)
{
	struct prof_glibc one = { buf, v->bufsize, v->offset, v->scale };

	return sprofil(&one, 1, NULL, v->width == 4 ? PROF_UINT : 0);
}

static int call_v7(const struct vector *v, void *buf)
{
	return profil_v7(buf, (unsigned int)v->bufsize, v->offset, (unsigned int)v->scale);
}

/* Stop the profile of the corresponding call. */
static int stop_aix(void)
{
	return profil_aix(NULL, 0, 0, 0);
}

static int stop_aix_array(void)
{
	struct prof_aix end = { .p_high = NULL };

	return profil_aix(&end, (unsigned int)-1, 0, 0);
}

static int stop_irix(void)
{
	return profil_irix(NULL, 0, 0, 0);
}

static int stop_darwin(void)
{
	return profil_darwin(NULL, 0, 0, 0);
}

static int stop_solaris(void)
{
	return profil_solaris(NULL, 0, 0, 0);
}

static int stop_glibc(void)
{
	return sprofil(NULL, 0, NULL, 0);
}

static int stop_v7(void)
{
	return profil_v7(NULL, 0, 0, 0);
}

static const struct way {
	const char *name;
	int row;
	int (*start)(const struct vector *v, void *buf);
	int (*stop)(void);
} ways[] = {
	{ "profil_aix", DIALECT_AIX, call_aix, stop_aix },
	{ "profil_aix of an array", DIALECT_AIX, call_aix_array, stop_aix_array },
	{ "profil_irix", DIALECT_IRIX_USHORT, call_irix, stop_irix },
	{ "sprofil_irix", DIALECT_IRIX_USHORT, call_irix_sprofil, stop_irix },
	{ "sprofil_irix", DIALECT_IRIX_UINT, call_irix_sprofil, stop_irix },
	{ "profil_darwin", DIALECT_BSD, call_darwin, stop_darwin },
	{ "add_profil_darwin", DIALECT_BSD, call_darwin_added, stop_darwin },
	{ "profil_solaris", DIALECT_SOLARIS, call_solaris, stop_solaris },
	{ "profil", DIALECT_GLIBC, call_glibc, stop_glibc },
	{ "sprofil", DIALECT_GLIBC_SPROFIL_USHORT, call_glibc_sprofil, stop_glibc },
	{ "sprofil", DIALECT_GLIBC_SPROFIL_UINT, call_glibc_sprofil, stop_glibc },
	{ "profil_v7", DIALECT_V7, call_v7, stop_v7 },
};

/* Says whether the call gives these arguments another meaning than the row. */
static int has_other_meaning(const struct way *w, const struct vector *v)
{
	return w->start == call_aix_array &&
	       (v->scale == UINT32_MAX || v->offset == UINT64_MAX || v->pc == UINT64_MAX);
}

/* One tick at the row's pc was replayed: the row's bin is 1, or none. */
static void check_counters(const struct way *w, const struct vector *v, const void *buf)
{
	const uint16_t *u16 = buf;
	const uint32_t *u32 = buf;

	for (uint64_t i = 0; i < v->bufsize / v->width; i++) {
		uint32_t want = v->outcome == VECTOR_COUNT && i == v->bin;
		uint32_t got = v->width == 2 ? u16[i] : u32[i];

		cr_assert(got == want, "row %d by %s: counter %llu is %u, not %u", v->id, w->name,
			  (unsigned long long)i, got, want);
	}
	for (uint64_t i = v->bufsize / v->width * v->width; i < v->bufsize + 16; i++)
		cr_assert(!((const char *)buf)[i], "row %d by %s: byte %llu was written", v->id,
			  w->name, (unsigned long long)i);
}

static void check_row(const struct way *w, const struct vector *v)
{
	size_t bytes = v->bufsize + 16;
	void *buf = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ret;

	cr_assert(buf != MAP_FAILED);
	errno = 0;
	ret = w->start(v, buf);
	if (v->outcome == VECTOR_EINVAL)
		cr_assert(ret == -1 && errno == EINVAL, "row %d by %s: returns %d (%s), not EINVAL",
			  v->id, w->name, ret, strerror(errno));
	else
		cr_assert(ret == 0 && errno == 0, "row %d by %s: returns %d (%s)", v->id, w->name,
			  ret, strerror(errno));
	check_counters(w, v, buf);
	cr_assert(w->stop() == 0, "row %d by %s: stop: %s", v->id, w->name, strerror(errno));
	check_counters(w, v, buf);
	munmap(buf, bytes);
}

/* Replays one tick at @pc and checks all rows of @v with that pc, by every call of their dialect.
 */
static size_t check_pc(const struct vector *v, size_t n, uint64_t pc)
{
	size_t checked = 0;
	struct daemon d;
	char tick[32];

	snprintf(tick, sizeof(tick), "%#llx\n", (unsigned long long)pc);
	daemon_start(&d, tick, NULL);
	for (size_t i = 0; i < n; i++) {
		for (size_t way = 0; way < sizeof(ways) / sizeof(ways[0]); way++) {
			if (v[i].pc != pc || ways[way].row != v[i].row || !vector_binds(&v[i]) ||
			    has_other_meaning(&ways[way], &v[i]))
				continue;
			check_row(&ways[way], &v[i]);
			checked++;
		}
	}
	daemon_stop(&d);
	return checked;
}

static int by_pc(const void *a, const void *b)
{
	const struct vector *left = a, *right = b;

	if (left->pc != right->pc)
		return left->pc < right->pc ? -1 : 1;
	return left->id - right->id;
}

static void check_file(const char *path)
{
	__cleanup(freep) struct vector *v = NULL;
	size_t n = vectors_read(&v, path), bound = 0, checked = 0;

	for (size_t i = 0; i < n; i++)
		bound += (size_t)vector_binds(&v[i]);
	qsort(v, n, sizeof(*v), by_pc);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && v[end].pc == v[i].pc; end++)
			;
		checked += check_pc(&v[i], end - i, v[i].pc);
	}
	cr_assert(checked > bound, "%zu checks of %zu rows", checked, bound);
}

Test(replay_vectors, golden_rows_are_exact)
{
	check_file(VECTORS_GOLDEN);
}

Test(replay_vectors, own_rows_are_exact)
{
	check_file(VECTORS_OWN);
}
