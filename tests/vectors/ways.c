/* ways.c - every public call by which a row of tests/vectors can be had */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "ways.h"

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

const struct way ways[] = {
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
const size_t nways = sizeof(ways) / sizeof(ways[0]);

/* The call gives the arguments of some rows another meaning than the row. */
static int has_other_meaning(const struct way *w, const struct vector *v)
{
	return w->start == call_aix_array &&
	       (v->scale == UINT32_MAX || v->offset == UINT64_MAX || v->pc == UINT64_MAX);
}

int way_has(const struct way *w, const struct vector *v)
{
	return w->row == v->row && vector_binds(v) && !has_other_meaning(w, v);
}

void way_start(const struct way *w, const struct vector *v, void *buf)
{
	int ret;

	errno = 0;
	ret = w->start(v, buf);
	if (v->outcome == VECTOR_EINVAL)
		cr_assert(ret == -1 && errno == EINVAL, "row %d by %s: returns %d (%s), not EINVAL",
			  v->id, w->name, ret, strerror(errno));
	else
		cr_assert(ret == 0 && errno == 0, "row %d by %s: returns %d (%s)", v->id, w->name,
			  ret, strerror(errno));
}

void way_check(const struct way *w, const struct vector *v, const void *buf)
{
	const uint16_t *u16 = buf;
	const uint32_t *u32 = buf;

	for (uint64_t i = 0; i < v->bufsize / v->width; i++) {
		uint32_t want = v->outcome == VECTOR_COUNT && i == v->bin;
		uint32_t got = v->width == 2 ? u16[i] : u32[i];

		cr_assert(got == want, "row %d by %s: counter %llu is %u, not %u", v->id, w->name,
			  (unsigned long long)i, got, want);
	}
	for (uint64_t i = v->bufsize / v->width * v->width; i < v->bufsize + WAY_SPARE; i++)
		cr_assert(!((const char *)buf)[i], "row %d by %s: byte %llu was written", v->id,
			  w->name, (unsigned long long)i);
}
