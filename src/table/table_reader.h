/* table_reader.h - reads a table of places into profiles, and identifies its images and groups */
#ifndef PROFIL_TABLE_TABLE_READER_H
#define PROFIL_TABLE_TABLE_READER_H

#include "symbols/proc/cgroups.h"
#include "profile/outcomes.h"
#include "image_file.h"
#include "table.h"

/*
 * The images and groups of a table become objects and groups of one profile, in the order in which
 * table_reader_update() finds them. Counts are read into that profile or into one that borrows from
 * it.
 */
struct table_reader {
	struct table table;
	struct profile *profile; /* not owned */
	struct cgroups cgroups;
	__u32 *object; /* of each image: object + 1; 0: not found yet */
	__u32 *group;  /* of each group of the table; 0: not found yet */
	__u32 threads; /* the object of threads' frames + 1; 0: there is none */
	__u32 images;  /* found so far */
	__u32 groups;
	__u64 next_maps_ns; /* of now_ns(), when perf maps are looked for again */
	__u32 functions;    /* of interpreted languages, read so far */
	__u64 kernel_text;  /* address of _text; 0: hidden from this process */
};

/* The values of all counters of a table at the last read; initially 0. */
struct table_seen {
	__u32 *place;	    /* of each place, by position in the table */
	__u64 (*coarse)[2]; /* of each image */
	__u64 unmatched;
	__u64 lost;
	__u64 unseen_ns;
	__u64 outcome[OUTCOMES];
};

/* Returns 0 or -ENOMEM; table_seen_fini() in any case. */
int table_seen_init(struct table_seen *seen, const struct table *t);
void table_seen_fini(struct table_seen *seen);

/* Maps the table @fd, which stays the caller's. Returns 0 or a negative errno. */
int table_reader_open(struct table_reader *r, int fd, struct profile *p);

void table_reader_close(struct table_reader *r);

/*
 * Finds new images and groups, and opens the images' files while a process still has them mapped.
 * Costs a few loads if there are none. Returns 0 or -ENOMEM.
 */
int table_reader_update(struct table_reader *r);

/* The same, of images alone. */
int table_reader_update_images(struct table_reader *r);

/*
 * Opens the file of @object again after symbolize_cache_renew() has closed it, if it can be found.
 * @reader is a struct table_reader: this is the function of a struct symbolize_cache.
 */
void table_reader_reopen(void *reader, __u32 object);

/*
 * Sets offset and width of @place for @offset in image @number, which was found. If the kernel's
 * addresses are hidden, its places have width 0: anywhere in the kernel.
 */
void table_reader_locate(const struct table_reader *r, struct place *place, __u32 number,
			 __u32 offset);

/* Adds @count samples at the place @key of the table to @into. Returns 0 or -ENOMEM. */
int table_reader_add(const struct table_reader *r, struct profile *into, __u64 key, __u64 count);

/* The offset of the frame of group @i's thread. As a return address it belongs to the one before. */
static inline __u32 table_reader_thread(__u32 i)
{
	return 2 * i + 1;
}

/*
 * Calls table_reader_update(), adds all counts so far to @into, and sets its total and outcomes.
 * Returns 0 or -ENOMEM.
 */
int table_reader_read(struct table_reader *r, struct profile *into);

/*
 * Adds to @into the samples since @seen, and updates @seen. Each sample is added by exactly one
 * call, so all calls add up to the table; one whose image is not complete yet is left to a later
 * call. Returns 0 or -ENOMEM.
 */
int table_reader_read_since(struct table_reader *r, struct table_seen *seen, struct profile *into);

#endif
