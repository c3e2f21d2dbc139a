/* listing.h - the lines or instructions of a function, and an excerpt around the hot ones */
#ifndef PROFIL_ANALYSIS_LISTING_H
#define PROFIL_ANALYSIS_LISTING_H

#include <stdbool.h>
#include <stddef.h>
#include <linux/types.h>

struct listed {
	char *text; /* "": unknown */
	__u64 at;   /* line number or address */
	__u64 samples;
};

struct listing {
	struct listed *line; /* in order */
	size_t n;
	__u64 outside; /* samples of the function outside of all lines */
	bool readable; /* the lines have text */
	char *memory;  /* holds all texts; NULL: each is allocated separately */
};

/* An excerpt has the @hot hottest lines with samples, and @context lines around each. */
struct listing_bounds {
	size_t hot;
	size_t context;
};

#define LISTING_WHOLE ((struct listing_bounds){ (size_t)-1, (size_t)-1 })

struct listing_writer {
	void (*line)(void *ctx, const struct listed *line);
	/* A gap of @lines lines that are not shown, which have @samples samples. */
	void (*gap)(void *ctx, size_t lines, __u64 samples);
};

/* Shows the excerpt, in order. Returns 0 or -ENOMEM. */
int listing_excerpt(const struct listing *l, struct listing_bounds bounds,
		    const struct listing_writer *w, void *ctx);

/*
 * The lines with samples, hottest first, in an array of *@n that the caller frees. NULL: out of
 * memory.
 */
const struct listed **listing_hottest(const struct listing *l, size_t *n);

void listing_fini(struct listing *l);

#endif
