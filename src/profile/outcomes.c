/* outcomes.c - one table of the counts of what a profile lacks, beside unmatched and lost samples
 */
#include "core/observe_maps.h"
#include "outcomes.h"

#define HERE(member) #member, offsetof(struct profile, member)
#define BOTH(member) HERE(member), offsetof(struct profil_table, member)

/* clang-format off */
const struct outcome outcomes[OUTCOMES] = {
	{ BOTH(image_full), "sample was", "samples were",
	  "lost for want of room for another file" },
	{ BOTH(group_full), "sample is", "samples are",
	  "without a group: the table of groups is full" },
	{ HERE(place_full), 0, "sample is", "samples are",
	  "counted by file only: the table of places is full; profile for a shorter time, or fewer processes" },
	{ HERE(sleepers_full), 0, "sleep is", "sleeps are",
	  "not counted: more threads slept than the table has room for" },
	{ BOTH(unfollowed), "process", "processes", "could not be followed" },
	{ BOTH(secret), "process", "processes", "executed what may not be observed, and left" },
	{ BOTH(hidden_ns), NULL, NULL, "processes that may not be observed" },
	{ HERE(unseen_ns), 0, NULL, NULL, "threads that ended before their first sample" },
	{ "calls_folded", offsetof(struct profile, calls_folded), offsetof(struct profil_table, folded),
	  "sample was", "samples were",
	  "moved to a caller: the machine's tree of calls was full; 'profilctl record -a -g' has a tree of its own" },
	{ BOTH(node_full), NULL, NULL, NULL },
	{ BOTH(function_full), "frame is", "frames are",
	  "of an interpreter's function without a name: the table of functions is full; profile for a shorter time, or fewer programs" },
	{ BOTH(function_unread), "frame is", "frames are",
	  "of an interpreter's function whose name could not be read at that moment" },
};
