/* gmon_file.h - the histogram and call counts of a -pg program, in memory and in gmon.out */
#ifndef PROFIL_CORE_GMON_FILE_H
#define PROFIL_CORE_GMON_FILE_H

#include <stddef.h>
#include <linux/types.h>

/* gmon.out: the header, then histograms and arcs, each with its tag first, without padding. */
struct gmon_header {
	char magic[4];
	__u32 version;
	char spare[12];
} __attribute__((packed));
_Static_assert(sizeof(struct gmon_header) == 20, "in the file");

struct gmon_histogram {
	__u8 tag; /* 0 */
	__u64 low;
	__u64 high;
	__u32 bins; /* u16 each, behind this */
	__u32 rate;
	char dimension[15];
	char abbreviation;
} __attribute__((packed));
_Static_assert(sizeof(struct gmon_histogram) == 41, "in the file");

struct gmon_arc {
	__u8 tag; /* 1 */
	__u64 from;
	__u64 self;
	__u32 calls;
} __attribute__((packed));
_Static_assert(sizeof(struct gmon_arc) == 21, "in the file");

#define GMON_HEADER ((struct gmon_header){ .magic = { 'g', 'm', 'o', 'n' }, .version = 1 })
#define GMON_FILE "gmon.out"
#define GMON_PREFIX_ENV "GMON_OUT_PREFIX"

/* The number of calls from one address to one function. */
struct profil_arc {
	__u64 calls;
	__u32 from; /* offsets from the start of the text */
	__u32 self;
	__u32 next; /* 1 + the index of the next arc in the list of the same head; 0: the last */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_arc) == 24, "shared with another process");

#define PROFIL_GRAPH_BIN 4 /* bytes of text for each bin */

/*
 * The header of the memory in which a -pg program counts. A hash table of calls and the histogram
 * follow: @heads list heads (u32, as profil_arc.next), @arcs_max arcs, @bins counters (u32).
 * Another process may read it at any time; only an arc that is being added may be incomplete.
 */
struct profil_graph {
	__u64 low; /* of the text, where it is loaded */
	__u64 text_bytes;
	__u64 load;  /* load address minus link address */
	__u32 heads; /* a power of two */
	__u32 arcs_max;
	__u32 arcs; /* in use */
	__u32 bins;
	__u32 rate_hz;	 /* of the samples in the bins */
	__u32 pid;	 /* of the process, in its own pid namespace */
	__u64 uncounted; /* calls without room for their arc */
	__u64 elsewhere; /* samples outside of the text */
	__u64 lost;	 /* samples that the daemon has lost */
	__u64 inherited; /* graph_counts() of a fork child at its start */
	__u32 forked;	 /* contains the parent's counts, but not its @elsewhere and @lost */
	__u32 failed;	 /* errno of the failed profil(), so there are no samples; or 0 */
	__u32 written;	 /* the process has written gmon.out itself */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_graph) == 96, "shared with another process");

static inline size_t graph_bytes(const struct profil_graph *g)
{
	return sizeof(*g) + sizeof(__u32) * g->heads + sizeof(struct profil_arc) * g->arcs_max +
	       sizeof(__u32) * g->bins;
}

static inline __u32 *graph_heads(struct profil_graph *g)
{
	return (__u32 *)(g + 1);
}

static inline struct profil_arc *graph_arcs(struct profil_graph *g)
{
	return (struct profil_arc *)(graph_heads(g) + g->heads);
}

static inline __u32 *graph_bins(struct profil_graph *g)
{
	return (__u32 *)(graph_arcs(g) + g->arcs_max);
}

/* Lays out a graph of the text from @low to @high in @g. -EINVAL for an impossible range. */
int graph_shape(struct profil_graph *g, __u64 low, __u64 high);

/* The sum of its bins, and the same plus the calls of all arcs. */
__u64 graph_samples(struct profil_graph *g);
__u64 graph_counts(struct profil_graph *g);

/* Writes gmon.out to @fd. Async-signal-safe; returns 0 or a negative errno. */
int graph_write(int fd, struct profil_graph *g);

/*
 * Creates the file of process @pid, like glibc: PREFIX.PID if @prefix is not NULL and that can be
 * created, else gmon.out. Sets *@name, which may be in @space. Async-signal-safe.
 */
#define GRAPH_NAME_MAX 4096
int graph_create(const char **name, char space[GRAPH_NAME_MAX], const char *prefix, int pid);

#endif
