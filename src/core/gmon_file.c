/* gmon_file.c - writes gmon.out from a histogram and call counts in memory */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "gmon_file.h"

#define TEXT_MAX (1ull << 30)
/* Bytes of text for each head and arc. */
#define BYTES_PER_ARC 16
#define ARCS_MIN 4096
#define FILE_MAX (4ull << 30) /* what claims to have counted more than that is no program */
#define CALLS_MAX INT32_MAX   /* gprof may read larger counts as negative */

int graph_shape(struct profil_graph *g, __u64 low, __u64 high)
{
	low &= ~(__u64)(PROFIL_GRAPH_BIN - 1);
	if (high <= low || high - low > TEXT_MAX)
		return -EINVAL;
	*g = (struct profil_graph){ .low = low, .heads = ARCS_MIN };
	g->bins = (__u32)((high - low + PROFIL_GRAPH_BIN - 1) / PROFIL_GRAPH_BIN);
	g->text_bytes = (__u64)g->bins * PROFIL_GRAPH_BIN;
	while (g->heads < g->text_bytes / BYTES_PER_ARC)
		g->heads *= 2;
	g->arcs_max = g->heads;
	return 0;
}

__u64 graph_samples(struct profil_graph *g)
{
	const __u32 *bins = graph_bins(g);
	__u64 sum = 0;

	for (__u32 i = 0; i < g->bins; i++)
		sum += bins[i];
	return sum;
}

static __u32 arcs_used(const struct profil_graph *g)
{
	return g->arcs < g->arcs_max ? g->arcs : g->arcs_max;
}

__u64 graph_counts(struct profil_graph *g)
{
	__u64 sum = graph_samples(g);

	for (__u32 i = 0; i < arcs_used(g); i++)
		sum += graph_arcs(g)[i].calls;
	return sum;
}

/* A file being written; after an error nothing more is written. */
struct out {
	int fd;
	int err;
	size_t n;
	__u64 total;
	char bytes[4096];
};

static void flush(struct out *o)
{
	size_t done = 0;

	o->total += o->n;
	if (o->total > FILE_MAX)
		o->err = -EFBIG;
	while (!o->err && done < o->n) {
		ssize_t n = write(o->fd, o->bytes + done, o->n - done);

		if (n >= 0)
			done += (size_t)n;
		else if (errno != EINTR)
			o->err = -errno;
	}
	o->n = 0;
}

static void put(struct out *o, const void *bytes, size_t n)
{
	if (n > sizeof(o->bytes) - o->n)
		flush(o);
	memcpy(o->bytes + o->n, bytes, n);
	o->n += n;
}

/* A bin of the file has 16 bits. Larger counts need further histograms, which gprof adds up. */
static void put_histograms(struct out *o, struct profil_graph *g)
{
	const struct gmon_histogram h = { .low = g->low - g->load,
					  .high = g->low - g->load + g->text_bytes,
					  .bins = g->bins,
					  .rate = g->rate_hz,
					  .dimension = "seconds",
					  .abbreviation = 's' };
	const __u32 *bins = graph_bins(g);
	__u32 before = 0;
	int more = 1;

	for (; more && !o->err; before += more ? UINT16_MAX : 0) {
		more = 0;
		put(o, &h, sizeof(h));
		for (__u32 i = 0; i < g->bins; i++) {
			__u32 left = bins[i] > before ? bins[i] - before : 0;
			__u16 now = left > UINT16_MAX ? UINT16_MAX : (__u16)left;

			put(o, &now, sizeof(now));
			more |= left > UINT16_MAX;
		}
	}
}

static void put_arc(struct out *o, const struct profil_graph *g, const struct profil_arc *a)
{
	struct gmon_arc arc = { .tag = 1,
				.from = g->low - g->load + a->from,
				.self = g->low - g->load + a->self };

	for (__u64 left = a->calls; left && !o->err; left -= arc.calls) {
		arc.calls = left > CALLS_MAX ? CALLS_MAX : (__u32)left;
		put(o, &arc, sizeof(arc));
	}
}

int graph_write(int fd, struct profil_graph *g)
{
	struct out o = { .fd = fd };
	__u32 n = arcs_used(g);

	put(&o, &GMON_HEADER, sizeof(GMON_HEADER));
	put_histograms(&o, g);
	for (__u32 i = 0; i < n && !o.err; i++)
		put_arc(&o, g, &graph_arcs(g)[i]);
	flush(&o);
	return o.err;
}

/* PREFIX.PID; snprintf() is not async-signal-safe. */
static int name_file(char name[GRAPH_NAME_MAX], const char *prefix, int pid)
{
	char digits[16], *at = digits + sizeof(digits);

	*--at = '\0';
	do {
		*--at = (char)('0' + pid % 10);
		pid /= 10;
	} while (pid);
	*--at = '.';
	if (strlen(prefix) + sizeof(digits) > GRAPH_NAME_MAX)
		return -ENAMETOOLONG;
	stpcpy(stpcpy(name, prefix), at);
	return 0;
}

static int create(const char *name)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);

	return fd < 0 ? -errno : fd;
}

int graph_create(const char **name, char space[GRAPH_NAME_MAX], const char *prefix, int pid)
{
	int fd = -ENOENT;

	*name = space;
	if (prefix && !name_file(space, prefix, pid))
		fd = create(space);
	if (fd >= 0)
		return fd;
	*name = GMON_FILE;
	return create(GMON_FILE);
}
