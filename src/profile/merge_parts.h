/* merge_parts.h - the parts of merge_add(): what has which number in the sum, its hosts and its
 * stacks
 */
#ifndef PROFIL_PROFILE_MERGE_PARTS_H
#define PROFIL_PROFILE_MERGE_PARTS_H

#include <linux/types.h>

struct call_frame;
struct group;
struct merge;
struct profile;

/*
 * What @from has in the sum: index + 1 of each object and frame, index of each group; 0: not looked
 * up yet.
 */
struct numbers {
	__u32 *object;
	__u32 *group;
	__u32 *frame;
};

/* The index in the sum of an object of @from, which is added there. Returns 0 or -ENOMEM. */
int merge_object(struct merge *m, const struct numbers *n, const struct profile *from, __u32 object,
		 __u32 *index);

/* The index in the sum of a group like @g, which is added there. Returns 0 or -ENOMEM. */
int merge_group(struct merge *m, const struct group *g, __u32 *index);

/*
 * The offset in the sum's object @own of @offset in @object of @from: functions of interpreted
 * languages have other offsets in each recording. Returns 0 or -ENOMEM.
 */
int merge_offset(const struct merge *m, const struct profile *from, __u32 object, __u32 own,
		 __u64 *offset);

/* The same for group @group of @from; 0 is for samples without a group. */
int merge_group_of(struct merge *m, const struct numbers *n, const struct profile *from,
		   __u32 group, __u32 *index);

/* The index in the sum of a frame like @like, which is added there. Returns 0 or -ENOMEM. */
int merge_frame(struct merge *m, const struct call_frame *like, __u32 *index);

/* The same for frame @frame of @from. */
int merge_frame_of(struct merge *m, const struct numbers *n, const struct profile *from,
		   __u32 frame, __u32 *index);

/* Makes room in @n for what @from has; numbers_fini() in any case. Returns 0 or -ENOMEM. */
int numbers_init(struct numbers *n, const struct profile *from);
void numbers_fini(struct numbers *n);

/* Frees the tables by which objects and groups of the sum are found, which are made again. */
void merge_forget(struct merge *m);

/*
 * Notes the host of @from. From the second host on, groups have the name of theirs, those of the
 * samples without a group, too. Returns 0 or -ENOMEM.
 */
int merge_host(struct merge *m, const struct profile *from);

/* Adds the samples that the sums of @from lack as those of its host. Returns 0 or -ENOMEM. */
int merge_host_rest(struct merge *m, const struct numbers *n, const struct profile *from);

/*
 * Where one profile counts groups by object only, the others' are counted so, too: in the sums, and
 * not in the places. Returns 0 or -ENOMEM.
 */
int merge_sums(struct merge *m);

/* Adds the stacks of @from. Returns 0 or -ENOMEM. */
int merge_stacks(struct merge *m, const struct numbers *n, const struct profile *from);

#endif
