/* unwind_feeder.h - builds the unwind tables of profiled images for the kernel's stack walk */
#ifndef PROFIL_TABLE_UNWIND_FEEDER_H
#define PROFIL_TABLE_UNWIND_FEEDER_H

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
	bool foretold;			/* the files of the first process are expected already */
	const struct unwind_stop *stop; /* NULL: tables are made to the end */
};

/* Maps @fd, which stays the caller's, for the table @t. Returns 0 or a negative errno. */
int unwind_feeder_open(struct unwind_feeder *f, int fd, const struct table *t);

/* Puts the table of the ELF file @fd, named @path, into the map before an image of it exists. */
void unwind_feeder_expect(struct unwind_feeder *f, int fd, const char *path);

/* Says that all files expected so far are those of the program @fd, whose code one may compile. */
void unwind_feeder_program(struct unwind_feeder *f, int fd);

/* unwind_feeder_expect() for all files that process @pid has mapped executable. */
void unwind_feeder_prepare(struct unwind_feeder *f, pid_t pid);

/*
 * The same for those of @pids that have used most CPU time, as long as it takes neither long nor
 * most of the map: the tables of other files are added when they are sampled. Sorts @pids.
 */
void unwind_feeder_prepare_all(struct unwind_feeder *f, pid_t *pids, size_t n);

/*
 * Adds the tables of images that are new since the last call. Costs a comparison if there are none.
 */
void unwind_feeder_update(struct unwind_feeder *f, const struct table_reader *r);

/*
 * Adds the table of @image, which is known to @r, unless it has been added. If its user has no time
 * left (file_account.h), it waits until this is called again.
 */
void unwind_feeder_image(struct unwind_feeder *f, const struct table_reader *r, __u32 image);

/* Says whether the map had no room for the rows of @image. */
bool unwind_feeder_lacks_room(const struct unwind_feeder *f, __u32 image);

/*
 * Removes all rows, those of an earlier feeder as well, and waits until no walk reads them. The
 * descriptors of interpreters stay.
 */
void unwind_feeder_clear(struct unwind_feeder *f);

void unwind_feeder_close(struct unwind_feeder *f);

#endif
