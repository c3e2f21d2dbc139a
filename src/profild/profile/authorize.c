/* authorize.c - which rights a client has */
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/capability.h>

#include "authorize.h"

/*
 * capget() and stat() of the namespace take no lock that a client could hold, so the main thread
 * may call them.
 */
bool authorize_privileged(pid_t pid)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, (int)pid };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { 0 };
	struct stat theirs, own;
	char path[64];

	if (syscall(SYS_capget, &h, data) < 0 ||
	    !(data[CAP_TO_INDEX(CAP_SYS_PTRACE)].effective & CAP_TO_MASK(CAP_SYS_PTRACE)))
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/user", (int)pid);
	return stat(path, &theirs) == 0 && stat("/proc/self/ns/user", &own) == 0 &&
	       theirs.st_dev == own.st_dev && theirs.st_ino == own.st_ino;
}

bool authorize_member(const struct profild *d, int sock, const struct ucred *peer)
{
	gid_t groups[256];
	socklen_t len = sizeof(groups);

	if (d->operators == (gid_t)-1)
		return false;
	if (peer->gid == d->operators)
		return true;
	if (getsockopt(sock, SOL_SOCKET, SO_PEERGROUPS, groups, &len) < 0)
		return false;
	for (size_t i = 0; i < len / sizeof(groups[0]); i++) {
		if (groups[i] == d->operators)
			return true;
	}
	return false;
}

bool authorize_others(const struct profild *d, const struct peer *peer)
{
	return peer->privileged || authorize_member(d, peer->sock, &peer->cred);
}
