/* profile.h - the one in-memory profile, which everything is read into and written from */
#ifndef PROFIL_PROFILE_H
#define PROFIL_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <time.h>
#include <sys/types.h>
#include <linux/types.h>

#define PROFILE_SCHEMA "profil/1"
#define PROFILE_ANON "[anon]"	 /* memory of no file: a just-in-time compiler's, mostly */
#define PROFILE_BUILD_ID_MAX 129 /* in hex, with its NUL */

/* What was mapped: a file, [vdso], or memory that came from no file. */
struct object {
	char *path; /* of a file as the target saw it, or a name in brackets */
	char build_id[PROFILE_BUILD_ID_MAX];
	__u64 dev;    /* without a file: the process whose memory it is, 0: any */
	__u64 ino;    /* 0: no file */
	__u64 vaddr;  /* what its linker added to an offset in the file */
	bool program; /* it can be run, and is no library */
	int fd;	      /* the file, opened while a target had it mapped; -1: none */
};

/*
 * Where ticks fell: in @width bytes from @offset on. In a file that is the offset in the file, so
 * that it does not depend on where it was loaded; in memory without a file, the address.
 */
struct place {
	__u64 offset;
	__u64 count; /* 0: an empty slot */
	__u32 object;
	__u32 width;
};

struct function {
	char *name; /* NULL: none is known, it is called object+0xOFFSET */
	__u64 offset;
	__u64 size;
	__u64 samples;
	__u32 object;
	__u64 *slices; /* of the profile's nslices; NULL: nobody asked when it was hot */
	bool shared;   /* some of them came from counters that cover its neighbour as well */
};

struct thread {
	char *name;
	pid_t pid;
	pid_t tid;
	__u64 samples;
};

/* A stretch of an object, and when it was hot. */
struct band {
	__u64 offset;
	__u64 bytes;
	__u32 object;
	__u64 *slices; /* of the profile's nslices */
};

enum profile_end {
	PROFILE_RUNS_ON, /* the command outlived the profile, or it was not ours to wait for */
	PROFILE_EXITED,
	PROFILE_KILLED,
};

struct profile {
	char *command;
	pid_t pid;
	time_t started;
	enum profile_end end;
	int end_code; /* the exit status or the signal */
	__u64 tick_ns;
	__u64 duration_ns;
	__u64 cpu_ns; /* that the command used; 0: not known */
	__u64 total;
	__u64 binned;
	__u64 unmatched;
	__u64 lost;
	__u64 saturated; /* counters that can hold no more */

	__u64 slice_ns;
	size_t nslices; /* of time, each of slice_ns, from the beginning on; the last may be shorter
			 */

	struct object *objects;
	size_t nobjects;
	struct place *places; /* a hash table of places_room slots */
	size_t nplaces;
	size_t places_room;
	struct band *bands; /* by object and offset; only where there are slices */
	size_t nbands;
	struct thread *threads; /* only where they were asked for */
	size_t nthreads;
	struct function *functions; /* sorted, most samples first */
	size_t nfunctions;
};

struct profile *profile_new(void);
void profile_free(struct profile *p);
void profile_freep(struct profile **p);

/*
 * Adds an object, taking over @fd and copying @path, and says at which index. @dev and @ino tell
 * files of one path apart. Returns 0 or -ENOMEM.
 */
int profile_add_object(struct profile *p, const char *path, __u64 dev, __u64 ino, int fd,
		       __u32 *index);

/* The object with these three, or -ENOENT. */
int profile_find_object(const struct profile *p, const char *path, __u64 dev, __u64 ino,
			__u32 *index);

/*
 * The program with the most samples; where there is no program, any object with the most. Returns 0
 * or -ENOMEM.
 */
int profile_main_object(__u32 *out, const struct profile *p);

/* Adds @count ticks, binned ones. Returns 0 or -ENOMEM. */
int profile_add_place(struct profile *p, __u32 object, __u64 offset, __u32 width, __u64 count);

/* A profile that has its objects from another one, which must outlive it. NULL: ENOMEM. */
struct profile *profile_borrow(const struct profile *from);
/* The same, where @from has got more objects since: they are elsewhere then. */
void profile_borrow_again(struct profile *p, const struct profile *from);

/* Frees one that was borrowed. */
void profile_give_back(struct profile *p);

/* Adds to @p what @now has more of than @last (NULL: nothing); all have the same objects. */
int profile_difference(struct profile *p, const struct profile *last, const struct profile *now);

/* Adds the places of @from, whose objects @p has as well. Returns 0 or -ENOMEM. */
int profile_add_places(struct profile *p, const struct profile *from);

/* The ticks of one place; 0: none. */
__u64 profile_place_count(const struct profile *p, const struct place *place);

/* Forgets all places and what they add up to. */
void profile_clear_places(struct profile *p);

/* The places, in order of object and offset, in an array of nplaces that the caller frees. */
struct place *profile_sorted_places(const struct profile *p);

/* Takes over @name. Returns 0 or -ENOMEM (@name is freed then, too). */
int profile_add_function(struct profile *p, const struct function *f);

/* Takes over its name. Likewise. */
int profile_add_thread(struct profile *p, const struct thread *t);

/* Puts the functions in the order of a report. */
void profile_sort_functions(struct profile *p);

/* The functions, in order of object and offset, in an array of nfunctions that the caller frees. */
struct function **profile_sorted_functions(const struct profile *p);

/* The one of these that is where @f is; NULL: none. */
struct function *profile_same_function(const struct profile *p, struct function **sorted,
				       const struct function *f);

/* The name of @f in @out, object+0xOFFSET where it has none. Returns @out. */
const char *profile_function_name(const struct profile *p, const struct function *f, char *out,
				  size_t bytes);

/* The last part of a path. */
const char *profile_base_name(const char *path);

/* The samples of @f in @n slices from @first on, or as many as there are. */
__u64 profile_slices(const struct profile *p, const struct function *f, size_t first, size_t n);

/* Share of all ticks. */
double profile_percent(const struct profile *p, __u64 samples);

#endif
