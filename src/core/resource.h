/* resource.h - the limited resources, which are charged to users (quota.h) */
#ifndef PROFIL_CORE_RESOURCE_H
#define PROFIL_CORE_RESOURCE_H

/* The values are part of the protocol: add new ones at the end. */
enum resource {
	RES_CONNECTIONS,
	RES_PROFILES,	 /* profiles and attachments */
	RES_TARGETS,	 /* in the kernel's tables, until the RCU grace period after their end */
	RES_REGIONS,	 /* likewise */
	RES_COUNTERS,	 /* likewise; rounded up to blocks of 64, or to whole chunks */
	RES_CHILDREN,	 /* entries of the process table for children that inherit a target */
	RES_SAMPLES,	 /* a second */
	RES_OPERATIONS,	 /* workers that exceeded the time limit and have not ended yet */
	RES_TABLE_BYTES, /* of observers' tables */
	RES_EVENTS,	 /* attachments that sample events instead of CPU time */
	RES_TABLE_SLOTS, /* of attachments, until the RCU grace period after their end */
	RES_WIDE,	 /* attachments with a wide scope, which each sample tests */
	N_RESOURCES,
};

/* The name in options, messages and `profilctl status`. */
static inline const char *resource_name(enum resource what)
{
	static const char *const names[N_RESOURCES] = {
		[RES_CONNECTIONS] = "connections", [RES_PROFILES] = "profiles",
		[RES_TARGETS] = "targets",	   [RES_REGIONS] = "regions",
		[RES_COUNTERS] = "counters",	   [RES_CHILDREN] = "children",
		[RES_SAMPLES] = "samples",	   [RES_OPERATIONS] = "operations",
		[RES_TABLE_BYTES] = "table-bytes", [RES_EVENTS] = "events",
		[RES_TABLE_SLOTS] = "table-slots", [RES_WIDE] = "wide-scopes",
	};

	return names[what];
}

#endif
