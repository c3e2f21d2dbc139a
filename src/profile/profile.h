/* profile.h - a profile in memory, which recorders and file readers fill and formats write */
#ifndef PROFIL_PROFILE_PROFILE_H
#define PROFIL_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <time.h>
#include <sys/types.h>
#include <linux/types.h>

#include "base/host_identity.h"

#include "call_tree.h"
#include "interpreted.h"
#include "places.h"
#include "segments.h"

/*
 * A profile counts samples. Each sample is in exactly one of these:
 *
 *	places		an offset in an object (a file, the kernel, the vdso, a process's own code)
 *	unmatched	its pc was in no mapping
 *	lost		counted without a place, or dropped
 *
 * so total = binned + unmatched + lost, where binned = places.sum. A sample in kernel mode is in
 * @places at the kernel's pc, and again in @folded at the user pc from which the kernel was
 * entered; profile_fold_kernel() replaces the former by the latter. A place can have a group: the
 * process, thread or cgroup that ran.
 */
#define PROFILE_SCHEMA "profil/1"
#define PROFILE_WALL "wall" /* events; see struct profile */
#define PROFILE_OFF_CPU "off-cpu"
#define PROFILE_LATENCY "latency"
#define PROFILE_BRANCHES "taken-branches"
#define PROFILE_ANON "[anon]" /* memory without a file: mostly JIT-compiled code */
#define PROFILE_VDSO "[vdso]"
#define PROFILE_KERNEL "[kernel]"
#define PROFILE_BUILD_ID_MAX 129 /* in hex, with its NUL */
#define PROFILE_UNNAMED_MAX 16

enum object_kind {
	OBJECT_FILE,
	OBJECT_KERNEL, /* and its modules */
	OBJECT_VDSO,
	OBJECT_ANON,	    /* anonymous executable memory of one process */
	OBJECT_INTERPRETED, /* the functions of an interpreted language, named by path */
};

#define PROFILE_UNNAMED_INTERPRETER "interpreter"

struct object {
	enum object_kind kind;
	char *path; /* as the target saw the file, or a name in brackets */
	char build_id[PROFILE_BUILD_ID_MAX];
	__u64 dev; /* st_dev */
	__u64 ino; /* 0: no file */
	/* What identifies a file without a build id; 0: unknown. */
	__u64 file_bytes;
	__s64 file_mtime_ns;
	struct segments segments; /* of a file; none: it could not be read */
	__u64 kernel_text;	  /* KERNEL: address of _text; 0: hidden */
	pid_t pid;		  /* ANON: the process, in profilctl's pid namespace; 0: any */
	bool program;		  /* an executable, not a library */
	/*
	 * Why functions can lack names: of the kernel one of KERNEL_HIDDEN_*; of ANON the name of
	 * the runtime whose perf map was not found; of a file PROFILE_UNNAMED_INTERPRETER, if it
	 * has an interpreter of a version that is not known. "": they have names, or it is not
	 * known.
	 */
	char unnamed[PROFILE_UNNAMED_MAX];
	/*
	 * ANON: the path of the jitdump, of which the first file_bytes were read, and which was
	 * begun at file_mtime_ns by its own clock; or NULL.
	 */
	char *jitdump;
	char *host; /* ANON: its machine, in a sum of several hosts' profiles; NULL: the profile's
		     */
	bool ended; /* ANON: the process had ended before its perf map was last looked for */
	struct interpreted *interpreted; /* the functions of INTERPRETED; else NULL */
	int fd; /* the file (ANON: its perf map), opened while a target had it mapped; -1: none */
	uid_t owner;   /* of the file; (uid_t)-1: unknown */
	bool released; /* @fd was closed, as no sample needed it for a while */
};

/* What ran. Fields that do not distinguish groups are 0, or those of the first sample. */
struct group {
	pid_t pid; /* 0: not grouped by process, or the process is in another pid namespace */
	pid_t tid; /* 0: not grouped by thread */
	uid_t uid;
	__u64 start_ns; /* of the process; CLOCK_BOOTTIME */
	char *command;	/* the process's comm; never NULL */
	char *thread;	/* the thread's comm; NULL: not grouped by thread */
	char *cgroup;	/* path in cgroup2; NULL: unknown */
	char *unit;	/* systemd unit; NULL: none */
	char *host;	/* in a sum of several hosts' profiles; NULL: the profile's; "": unknown */
};

/* The command of a group for the samples without one. */
#define GROUP_REST "[others]"

void group_fini(struct group *g);

/* Says whether @g is for the samples without a group: the first one, and of a sum one per host. */
bool group_is_rest(const struct group *g);

struct function {
	char *name; /* NULL: unknown, printed as object+0xOFFSET */
	__u64 offset;
	__u64 size;
	__u64 samples;
	__u32 object;
	__u64 *slices; /* of the profile's nslices; NULL: no time slices were recorded */
};

enum profile_end {
	PROFILE_RUNS_ON, /* the command was still running, or profilctl did not start it */
	PROFILE_EXITED,
	PROFILE_KILLED,
};

struct profile {
	char *command;
	pid_t pid;		   /* of the first process; 0: no process was named */
	struct host_identity host; /* the recording machine */
	time_t started;
	__u64 started_boot_ns; /* the same in CLOCK_BOOTTIME, which is never set; 0: unknown */
	enum profile_end end;
	int end_code;	   /* the exit status or the signal */
	__u64 duration_ns; /* wall-clock time */
	__u64 least;	   /* stacks with fewer samples are counted in their callers; 0: none are */
	__u64 cpu_ns;	   /* used by the profiled processes; 0: unknown */
	size_t processes;  /* that had samples; 0: unknown */

	/*
	 * A sample stands for @tick_ns of CPU time, or for @period events named @event. The event
	 * "off-cpu" is the time that threads sleep, PROFILE_WALL all of their time, by states in
	 * the stacks, PROFILE_LATENCY their CPU time, divided by the threads of the process that
	 * run at the same time: all are its ns. A sample of PROFILE_BRANCHES is a record of a
	 * branch, and what it has in place of a stack says formats/branches.h.
	 */
	__u64 tick_ns; /* 0: the samples are not of time */
	char *event;   /* as -e takes it; NULL: samples of CPU time */
	__u64 period;

	/* Samples by outcome; see above. */
	__u64 total;
	__u64 binned;
	__u64 unmatched;
	__u64 lost;

	/* Parts of these, by reason. */
	__u64 image_full;    /* of lost: the table of images was full */
	__u64 group_full;    /* of binned: in group 0, because the table of groups was full */
	__u64 place_full;    /* of binned: anywhere in an object, as the table of places was full */
	__u64 function_full; /* frames without a name: no room for another function */
	__u64 function_unread; /* frames whose function could not be read */
	__u64 node_full;    /* of binned: at an outer frame, because the tree of calls was full */
	__u64 calls_folded; /* samples moved to callers, as the machine's tree was full */

	/* Missing from all counts. */
	__u64 unfollowed; /* processes that did not fit into the process table */
	__u64 secret; /* processes that exec'd a program which the observer has no permission to see
		       */
	__u64 hidden_ns;     /* CPU time of the user's processes that are selected, but secret */
	__u64 sleepers_full; /* sleeps that are not counted, of off-CPU time */
	__u64 unseen_ns;     /* CPU time of threads that ended before their first sample */

	__u64 slice_ns;
	size_t nslices; /* of time, from the start; the last one can be shorter */

	struct object *objects;
	size_t nobjects;
	struct group *groups; /* groups[0]: samples without a group */
	size_t ngroups;	      /* 0: samples are not grouped */
	struct places places;
	struct places folded; /* samples in kernel mode at their user pc */
	/*
	 * Samples by group and object, with offset and width 0, where places have no groups (the
	 * machine profile); otherwise empty. A sample counted during the read can be in @places or
	 * here only.
	 */
	struct places sums;
	/*
	 * The stacks of samples: the sum is at most total - lost. Empty where no stacks were
	 * recorded or kept.
	 */
	struct call_tree calls;
	struct function *functions; /* of places; sorted, most samples first */
	size_t nfunctions;
};

struct profile *profile_new(void);
void profile_free(struct profile *p);
void profile_freep(struct profile **p);

/*
 * Adds an object; takes ownership of @fd and copies @path, which determines its kind. Returns 0 or
 * -ENOMEM.
 */
int profile_add_object(struct profile *p, const char *path, __u64 dev, __u64 ino, int fd,
		       __u32 *index);

/*
 * The virtual address of @offset in @o, as linked, and the reverse. In an object without segments
 * there, offsets are addresses, as in JIT-compiled code.
 */
__u64 object_address(const struct object *o, __u64 offset);
__u64 object_offset(const struct object *o, __u64 address);

/* Finds the object with these properties. Returns 0 or -ENOENT. */
int profile_find_object(const struct profile *p, const char *path, __u64 dev, __u64 ino,
			__u32 *index);

/*
 * Finds the program with the most samples; without a program, the object with the most. Returns 0
 * or -ENOMEM.
 */
int profile_main_object(__u32 *out, const struct profile *p);

/* Adds a group; takes ownership of its strings, even on failure. Returns 0 or -ENOMEM. */
int profile_add_group(struct profile *p, const struct group *g, __u32 *index);

/* Adds @count binned samples of group 0. Returns 0 or -ENOMEM. */
int profile_add_place(struct profile *p, __u32 object, __u64 offset, __u32 width, __u64 count);

/* Adds place->count samples at @place, with its group. Returns 0 or -ENOMEM. */
int profile_add_sample(struct profile *p, const struct place *place);

/* Samples of each group, in an array of ngroups that the caller frees. NULL: out of memory. */
__u64 *profile_group_samples(const struct profile *p);

/* Says whether samples are grouped by thread. */
bool profile_has_threads(const struct profile *p);

/* The number of processes with samples; 0: not grouped by process. */
size_t profile_count_processes(const struct profile *p);

/* Samples in kernel mode. */
__u64 profile_kernel_samples(const struct profile *p);

/*
 * Moves samples in kernel mode to their user pc, as every historical kernel counted them. Samples
 * without one (kernel threads, interrupts of an idle CPU) become unmatched. Call before
 * symbolize(). Returns 0 or -ENOMEM.
 */
int profile_fold_kernel(struct profile *p);

/*
 * A profile that shares the objects and groups of @from, which must outlive it. NULL: out of
 * memory.
 */
struct profile *profile_borrow(const struct profile *from);
/* Updates @p after objects or groups were added to @from, which can have moved them. */
void profile_borrow_again(struct profile *p, const struct profile *from);

/* Frees a profile from profile_borrow(). */
void profile_give_back(struct profile *p);

/* Adds to @p the counts of @now minus those of @last (NULL: 0); all have the same objects. */
int profile_difference(struct profile *p, const struct profile *last, const struct profile *now);

/* Removes all places and resets their sums. */
void profile_clear_places(struct profile *p);

/* Takes ownership of f->name, even on failure. Returns 0 or -ENOMEM. */
int profile_add_function(struct profile *p, const struct function *f);

/* Sorts the functions in the order of a report: most samples first. */
void profile_sort_functions(struct profile *p);

/*
 * The functions sorted by object and offset, in an array of nfunctions that the caller frees. NULL:
 * out of memory.
 */
struct function **profile_sorted_functions(const struct profile *p);

/* The function in @sorted at the object and offset of @f; NULL: none. */
struct function *profile_same_function(const struct profile *p, struct function **sorted,
				       const struct function *f);

/* Writes the name of @f, or object+0xOFFSET. Returns @out. */
const char *profile_function_name(const struct profile *p, const struct function *f, char *out,
				  size_t bytes);

/* The command of a profile of all processes. */
#define PROFILE_MACHINE "the whole machine"

/*
 * Writes the command without its arguments. These are separated by blanks, which the name of a file
 * can have, too: it is the name of an object, or else ends at the first blank. Returns @out.
 */
const char *profile_program(char *out, size_t bytes, const struct profile *p);

/* The last part of a path. */
const char *profile_base_name(const char *path);

/* The samples of @f in @n slices from @first, or up to the last slice. */
__u64 profile_slices(const struct profile *p, const struct function *f, size_t first, size_t n);

/* Says whether the samples are of CPU time, divided by the threads that run at the same time. */
static inline bool profile_is_latency(const struct profile *p)
{
	return p->event && p->tick_ns && !strcmp(p->event, PROFILE_LATENCY);
}

/*
 * Says whether the samples are of the time that threads sleep, or of all of their time. Those of
 * one sleep depend on each other, so the error of a share is not known.
 */
static inline bool profile_is_off_cpu(const struct profile *p)
{
	return p->event && p->tick_ns && !profile_is_latency(p);
}

/* Says whether the samples are of all time of threads, by their states. */
static inline bool profile_is_wall(const struct profile *p)
{
	return profile_is_off_cpu(p) && !strcmp(p->event, PROFILE_WALL);
}

/* Says whether the samples are the CPU's records of taken branches. */
static inline bool profile_is_branches(const struct profile *p)
{
	return p->event && !strcmp(p->event, PROFILE_BRANCHES);
}

/* Says whether the samples are of events, and not of time. */
static inline bool profile_is_of_events(const struct profile *p)
{
	return p->event && !p->tick_ns;
}

/* The share of @samples in all samples. */
double profile_percent(const struct profile *p, __u64 samples);

#endif
