/* gmon.c - gmon.out for gprof: the histogram of one program */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "core/gmon_file.h"
#include "base/cleanup.h"

#include "format.h"

#define PAGE 4096u
#define BIN 2u /* bytes, the finest that gprof supports */
#define BINS (PAGE / BIN)
/*
 * Page for samples of all other objects: above every program, so that gprof counts their time
 * without a name.
 */
#define ELSEWHERE 0x700000000000u

#define DEPTH_MAX 1024 /* histograms of a page: enough for a week at 100 Hz in one instruction */

/* gprof prints it behind the time of a sample, and its beginning above columns. */
static const char *dimension_of(const struct profile *p)
{
	return profile_is_latency(p)   ? "latency seconds"
	       : profile_is_wall(p)    ? "thread seconds"
	       : profile_is_off_cpu(p) ? "seconds asleep"
				       : "seconds";
}

/*
 * A bin holds at most 65535, so larger counts are divided among several histograms of the same
 * addresses, which gprof adds up. Returns 0, or -EOVERFLOW beyond DEPTH_MAX.
 */
static int page_write(FILE *out, const struct profile *p, __u64 page, __u64 *count)
{
	struct gmon_histogram h = { .low = page,
				    .high = page + PAGE,
				    .bins = BINS,
				    .rate = p->tick_ns ? (__u32)(1e9 / (double)p->tick_ns + 0.5)
						       : 100,
				    .abbreviation = 's' };
	const char *of = dimension_of(p);
	bool more = true;

	memcpy(h.dimension, of, strnlen(of, sizeof(h.dimension)));
	for (int depth = 0; more; depth++) {
		if (depth == DEPTH_MAX)
			return -EOVERFLOW;
		more = false;
		fwrite(&h, sizeof(h), 1, out);
		for (size_t i = 0; i < BINS; i++) {
			__u16 now = count[i] > UINT16_MAX ? UINT16_MAX : (__u16)count[i];

			fwrite(&now, sizeof(now), 1, out);
			count[i] -= now;
			more |= count[i] > 0;
		}
	}
	return 0;
}

static int pages_write(FILE *out, const struct profile *p, const struct place *places, __u32 main)
{
	__u64 count[BINS] = { 0 }, page = 0, sum = 0;
	int err = 0;

	for (size_t i = 0; i < p->places.n && !err; i++) {
		__u64 at = object_address(&p->objects[main], places[i].offset);

		if (places[i].object != main)
			continue;
		if (sum && at / PAGE != page) {
			err = page_write(out, p, page * PAGE, count);
			memset(count, 0, sizeof(count));
		}
		page = at / PAGE;
		count[at % PAGE / BIN] += places[i].count;
		sum += places[i].count;
	}
	if (sum && !err)
		err = page_write(out, p, page * PAGE, count);
	for (size_t i = 0; i < BINS; i++)
		count[i] = (p->total - sum) / BINS + (i < (p->total - sum) % BINS);
	if (count[0] && !err)
		err = page_write(out, p, ELSEWHERE, count);
	return err;
}

int gmon_write(FILE *out, const struct profile *p)
{
	__cleanup(freep) struct place *places = places_sorted(&p->places);
	__u32 main = 0;
	int err = profile_is_of_events(p) ? -EDOM
		  : places		  ? profile_main_object(&main, p)
					  : -ENOMEM;

	if (err < 0)
		return err;
	fwrite(&GMON_HEADER, sizeof(GMON_HEADER), 1, out);
	return p->nobjects ? pages_write(out, p, places, main) : 0;
}
