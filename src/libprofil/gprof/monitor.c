/* monitor.c - AIX's monitor, monstartup and moncontrol, which use its profil */
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "profil/aix/mon.h"
#include "libprofil/entry.h"
#include "mon_file.h"

/* The casts are for callers. */
#undef profil_aix
#undef monitor_aix
#undef monstartup_aix

#define FORM_TWO ((unsigned int)-1)
#define FINEST ((unsigned int)-1)
#define WHOLE_PROGRAM ((caddr_t)-1)
#define RANGES_MAX 4095
#define COUNTERS_MAX (INT_MAX / (int)sizeof(HISTCOUNTER))

PROFIL_PUBLIC struct monglobal mondata_aix = { .prof_type = _PROF_TYPE_IS_P };
PROFIL_PUBLIC int monitor_aix(caddr_t low, caddr_t high, void *buffer, int counters, int functions);
PROFIL_PUBLIC int monstartup_aix(caddr_t low, caddr_t high);
PROFIL_PUBLIC int moncontrol_aix(int mode);

/* The header of mon.out. prof(1) reads the counts of calls after it, then the histogram. */
struct hdr {
	caddr_t lpc;
	caddr_t hpc;
	size_t nfns;
};

/* The profiled ranges, terminated by an empty one, as profil's second form wants them. */
static struct prof *ranges;
/* Counters that monstartup() has allocated for them. */
static HISTCOUNTER *own_counters;
static int on;

/*
 * An empty PROFDIR turns off both the profile and the file. secure_getenv(): a set-id program must
 * not trust its environment.
 */
static int wanted(void)
{
	const char *dir = secure_getenv("PROFDIR");

	return !dir || *dir;
}

int moncontrol_aix(int mode)
{
	static struct prof end;
	int was = on;

	if (!ranges && mode) {
		errno = EINVAL;
		return -1;
	}
	if (profil_aix(mode ? ranges : &end, FORM_TWO, 0, 0) < 0)
		return -1;
	on = mode != 0;
	return was;
}

/* mon.out, or PROFDIR/PID.PROGRAM; with a number appended for all ranges except the first. */
static void name_file(char *out, size_t bytes, unsigned int range)
{
	const char *dir = secure_getenv("PROFDIR");
	int n;

	if (dir)
		n = snprintf(out, bytes, "%s/%d.%s", dir, getpid(), program_invocation_short_name);
	else
		n = snprintf(out, bytes, "%s", MON_OUT);
	if (range && n > 0 && (size_t)n < bytes)
		snprintf(out + n, bytes - (size_t)n, ".%u", range);
}

/* As many counters as the scale can reach: prof(1) divides the range by what it finds. */
static size_t used_counters(const struct prof *p)
{
	size_t finest = ((size_t)(p->p_high - p->p_low) + 1) / 2;
	size_t given = (size_t)p->p_bufsize / sizeof(HISTCOUNTER);

	return given < finest ? given : finest;
}

static int write_range(const struct prof *p, unsigned int range)
{
	struct hdr hdr = { p->p_low, p->p_high, 0 };
	size_t n = used_counters(p);
	__cleanup(closep) int fd = -1;
	__cleanup(fclosep) FILE *f = NULL;
	char path[4096];

	name_file(path, sizeof(path), range);
	fd = mon_file_create(path, getauxval(AT_SECURE));
	if (fd < 0)
		return fd;
	f = fdopen(fd, "w");
	if (!f)
		return -errno;
	steal_fd(fd);
	if (fwrite(&hdr, sizeof(hdr), 1, f) != 1 ||
	    fwrite(p->p_buff, sizeof(HISTCOUNTER), n, f) != n || fflush(f))
		return -errno;
	return 0;
}

/* Stops the profile and frees the ranges; with @out it writes them to their files first. */
static int finish(int out)
{
	int err = 0;

	if (!ranges)
		return 0;
	if (moncontrol_aix(0) < 0)
		err = -errno;
	for (unsigned int i = 0; out && wanted() && !err && ranges[i].p_high; i++)
		err = write_range(&ranges[i], i);
	free(ranges);
	free(own_counters);
	ranges = NULL;
	own_counters = NULL;
	return err;
}

/* An exit ends the profile as a monitor(0) does. */
__attribute__((__destructor__)) static void finish_at_exit(void)
{
	finish(1);
}

/* Takes over @r, and @counters, on success only. */
static int begin(struct prof *r, HISTCOUNTER *counters)
{
	int err = finish(0);

	if (err)
		return err;
	ranges = r;
	if (moncontrol_aix(1) < 0) {
		ranges = NULL;
		return -errno;
	}
	own_counters = counters;
	mondata_aix.ProfBuf = ranges;
	mondata_aix.ProfBufSiz = -1;
	return 0;
}

/* A copy of the caller's ranges, with sizes in bytes; NULL: no memory. */
static struct prof *copy_ranges(const struct prof *from)
{
	size_t n = 0;
	struct prof *to;

	while (from[n].p_high)
		n++;
	to = calloc(n + 1, sizeof(*to));
	for (size_t i = 0; to && i < n; i++) {
		to[i] = from[i];
		to[i].p_bufsize *= (int)sizeof(HISTCOUNTER);
	}
	return to;
}

static int check_ranges(const struct prof *given)
{
	if (!given || !given->p_high)
		return -EINVAL;
	for (unsigned int n = 0; given->p_high; given++) {
		if (++n > RANGES_MAX || given->p_bufsize < 0 || given->p_bufsize > COUNTERS_MAX)
			return -EINVAL;
	}
	return 0;
}

static int monitor_ranges(const struct prof *given)
{
	__cleanup(freep) struct prof *r = NULL;
	int err;

	if (!wanted())
		return 0;
	err = check_ranges(given);
	if (err)
		return err;
	r = copy_ranges(given);
	if (!r)
		return -ENOMEM;
	err = begin(r, NULL);
	if (!err)
		r = NULL;
	return err;
}

static int answer(int err)
{
	if (!err)
		return 0;
	errno = -err;
	return -1;
}

int monitor_aix(caddr_t low, caddr_t high, void *buffer, int counters, int functions)
{
	struct prof range[2] = { { low, high, buffer, counters, FINEST } };

	(void)functions; /* nothing here counts calls */
	if (!low)
		return answer(finish(1));
	if (counters == -1)
		return answer(monitor_ranges(buffer));
	if (low >= high)
		return answer(-EINVAL);
	return answer(monitor_ranges(range));
}

/* Ranges whose counters are still to be allocated. */
struct ranges {
	struct prof *at;
	unsigned int n;
	int err;
};

static void add_range(struct ranges *r, caddr_t low, caddr_t high)
{
	struct prof *more;

	if (r->err || low >= high)
		return;
	if (r->n == RANGES_MAX || high - low > COUNTERS_MAX) {
		r->err = -E2BIG;
		return;
	}
	more = reallocarray(r->at, r->n + 2, sizeof(*more));
	if (!more) {
		r->err = -ENOMEM;
		return;
	}
	r->at = more;
	more[r->n++] = (struct prof){ .p_low = low, .p_high = high, .p_scale = FINEST };
	more[r->n] = (struct prof){ 0 };
}

/* The executable segments of one object. */
static int add_object(struct dl_phdr_info *object, size_t bytes, void *userdata)
{
	for (unsigned int i = 0; i < object->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &object->dlpi_phdr[i];
		uintptr_t low = object->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_LOAD && p->p_flags & PF_X)
			add_range(userdata, (caddr_t)low, (caddr_t)(low + p->p_memsz));
	}
	return 0;
}

static int ascending(const void *a, const void *b)
{
	const struct prof *left = a, *right = b;

	return left->p_high < right->p_high ? -1 : left->p_high > right->p_high;
}

/* Allocates a counter for each two bytes of text, the finest that a scale can express. */
static HISTCOUNTER *allocate(struct ranges *r)
{
	size_t sum = 0;
	HISTCOUNTER *counters;

	for (unsigned int i = 0; i < r->n; i++) {
		r->at[i].p_bufsize = (int)(r->at[i].p_high - r->at[i].p_low + 1) & ~1;
		sum += (size_t)r->at[i].p_bufsize;
	}
	counters = calloc(sum ? sum : 1, 1);
	for (unsigned int i = 0, at = 0; counters && i < r->n; i++) {
		r->at[i].p_buff = counters + at;
		at += (unsigned int)r->at[i].p_bufsize / 2;
	}
	return counters;
}

static int start_ranges(struct ranges *r)
{
	HISTCOUNTER *counters;
	int err;

	if (!r->n)
		return -EINVAL;
	qsort(r->at, r->n, sizeof(*r->at), ascending);
	counters = allocate(r);
	if (!counters)
		return -ENOMEM;
	err = begin(r->at, counters);
	if (err)
		free(counters);
	else
		r->at = NULL;
	return err;
}

int monstartup_aix(caddr_t low, caddr_t high)
{
	const struct frag *frag = (const struct frag *)(const void *)high;
	struct ranges r = { NULL, 0, 0 };

	if (!wanted())
		return 0;
	if (low != WHOLE_PROGRAM)
		add_range(&r, low, high);
	else if (!high)
		dl_iterate_phdr(add_object, &r);
	else
		for (; frag->p_high; frag++)
			add_range(&r, frag->p_low, frag->p_high);
	if (!r.err)
		r.err = start_ranges(&r);
	free(r.at);
	return answer(r.err);
}
