/* graph.h - what a -pg program counts: its histogram and its calls, and gmon.out of them */
#ifndef PROFIL_GRAPH_H
#define PROFIL_GRAPH_H

#include <stddef.h>
#include <linux/types.h>

/* gmon.out: the header, then histograms and arcs, each behind its tag, without padding. */
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

#define GMON_HEADER ((struct gmon_header){ .magic = "gmon", .version = 1 })
#define GMON_FILE "gmon.out"
#define GMON_PREFIX_ENV "GMON_OUT_PREFIX"

/* From one place of the text to the start of a function: so many calls. */
struct profil_arc {
	__u64 calls;
	__u32 from; /* distances from the start of the text */
	__u32 self;
	__u32 next; /* the number of the arc behind it under the same head, and 1; 0: the last */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_arc) == 24, "shared with another process");

#define PROFIL_GRAPH_BIN 4 /* bytes of text that a bin counts */

/*
 * The start of the memory that holds all of it. @heads numbers of arcs, then @arcs_max arcs, then
 * @bins counters, u32 each, follow. Another process may read it at any time: what is there is
 * whole, but for an arc that is just being added.
 */
struct profil_graph {
	__u64 low; /* of the text, where it is loaded */
	__u64 text_bytes;
	__u64 load;  /* what the file's own addresses lack */
	__u32 heads; /* a power of two */
	__u32 arcs_max;
	__u32 arcs; /* that are taken */
	__u32 bins;
	__u32 rate_hz;	 /* of the ticks in the bins */
	__u32 pid;	 /* whose it is, as it calls itself */
	__u64 uncounted; /* calls that found no room */
	__u64 elsewhere; /* ticks outside of the text */
	__u64 lost;	 /* ticks that nobody had room for */
	__u32 forked;	 /* has its parent's counts, too, and so not its own @elsewhere and @lost */
	__u32 failed;	 /* the errno for which there are no ticks, or 0 */
	__u32 written;	 /* the process has written it itself */
	__u32 zero;
};
_Static_assert(sizeof(struct profil_graph) == 88, "shared with another process");

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

/* Lays out, in @g, a graph of the text from @low to @high: -EINVAL where that is no text. */
int graph_shape(struct profil_graph *g, __u64 low, __u64 high);

/* The ticks in its bins. */
__u64 graph_ticks(struct profil_graph *g);

/* Writes gmon.out to @fd. Async-signal-safe; returns 0 or a negative errno. */
int graph_write(int fd, struct profil_graph *g);

/*
 * Opens the file that @pid's goes to, as glibc does: behind @prefix, unless it is NULL or leads
 * nowhere, else gmon.out. *@name is set to its name, in @space; async-signal-safe.
 */
#define GRAPH_NAME_MAX 4096
int graph_create(const char **name, char space[GRAPH_NAME_MAX], const char *prefix, int pid);

#endif
