/* unwind_pages.h - the map of unwind rules: what is in it, and writing rows into it */
#ifndef PROFIL_TABLE_UNWIND_PAGES_H
#define PROFIL_TABLE_UNWIND_PAGES_H

#include "symbols/elf/unwind_cache.h"
#include "symbols/interpreters/interpreter.h"
#include "table_reader.h"

/* A file whose rows are in the map before the kernel has numbered an image of it. */
struct expected_file {
	__u64 ino;
	__u32 dev; /* 0: any */
	struct profil_unwind_image at;
	char build_id[PROFILE_BUILD_ID_MAX];
};

/* What files of one account have of the map: file_account_of(). */
struct unwind_share {
	const struct file_account *account;
	size_t pages;
	__u32 interpreters;
};

/* Pages of the map for the rows of one image. */
struct unwind_area {
	__u32 first_page;
	__u32 row_page;
	__u32 pages; /* of rows */
};

/* Of an image. */
enum unwind_fed { UNWIND_NOT_FED, UNWIND_FED, UNWIND_WAITS };

/* Zeroed, it is closed. */
struct unwind_feeder {
	char *map; /* the attachment's map of unwind rules, writable */
	size_t pages;
	size_t used;   /* pages */
	__u8 *fed;     /* of each image: enum unwind_fed */
	__u32 images;  /* that were processed */
	__u32 waiting; /* images without rows until their files' users have time again */
	__u32 most;    /* images of the table */
	int cache;     /* folder of the unwind cache; negative: none */
	struct expected_file *expected;
	size_t nexpected;
	__u32 interpreters; /* descriptors in the map */
	bool full;	    /* the rows of an image have found no room */
	/*
	 * The map is for programs of all users: of rows and of descriptors, the files of one user
	 * may have half of what those of other users leave. Those of root have no limit.
	 */
	bool shared;
	struct unwind_share *shares;
	size_t nshares;
	bool rows; /* the attachment has stacks; without, only descriptors of interpreters are fed
		    */
	bool foretold;		/* the files of the first process are expected already */
	struct jit_image *jits; /* jit_feeder.c */
	size_t njits;
	const struct unwind_stop *stop; /* NULL: tables are made to the end */
};

void *unwind_page_at(const struct unwind_feeder *f, size_t page);

struct profil_unwind_image *unwind_entry_of(const struct unwind_feeder *f, __u32 image);

/* The share of the user that can have made file @fd; NULL: it has no limits. */
struct unwind_share *unwind_share_of(struct unwind_feeder *f, int fd);

/* Says whether one that has @own of the @used may have @more of @all: half of what others leave. */
bool unwind_is_fair(size_t all, size_t used, size_t own, size_t more);

/*
 * Takes room for @pages pages of rows, which must not be 0, until unwind_feeder_clear(). Returns
 * false if there is none.
 */
bool unwind_area_take(struct unwind_feeder *f, struct unwind_area *a, size_t pages,
		      struct unwind_share *share);

/*
 * Writes the rows into @a, from which no walk reads, and their position to @at. Returns false
 * without rows, or if they are too many.
 */
bool unwind_area_fill(struct unwind_feeder *f, const struct unwind_area *a,
		      struct profil_unwind_image *at, const struct unwind_table *t);

/*
 * Takes room, and writes the rows, the first offset of each of their pages, and their position to
 * @at. Returns false without rows or without room.
 */
bool unwind_put_rows(struct unwind_feeder *f, struct profil_unwind_image *at,
		     const struct unwind_table *t, struct unwind_share *share);

#endif
