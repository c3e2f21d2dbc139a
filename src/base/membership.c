/* membership.c - the groups of the caller */
#include <grp.h>
#include <limits.h>
#include <unistd.h>

#include "membership.h"

bool is_member(const char *group)
{
	const struct group *entry = getgrnam(group);
	gid_t groups[NGROUPS_MAX];
	int n = getgroups(NGROUPS_MAX, groups);

	if (!entry)
		return false;
	for (int i = 0; i < n; i++) {
		if (groups[i] == entry->gr_gid)
			return true;
	}
	return getegid() == entry->gr_gid;
}
