/* capabilities.c - drops the rights that a process of the daemon does not need */
#include <errno.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "capabilities.h"

int capabilities_keep(uint64_t keep)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, data) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].permitted &= (__u32)(keep >> 32 * i);
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	/* An ambient capability goes with the inheritable one. */
	return syscall(SYS_capset, &h, data) < 0 ? -errno : 0;
}

static int set_effective(uint64_t lowered, uint64_t raised)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	if (syscall(SYS_capget, &h, data) < 0)
		return -errno;
	for (int i = 0; i < _LINUX_CAPABILITY_U32S_3; i++) {
		data[i].effective &= ~(__u32)(lowered >> 32 * i);
		data[i].effective |= data[i].permitted & (__u32)(raised >> 32 * i);
	}
	return syscall(SYS_capset, &h, data) < 0 ? -errno : 0;
}

int capabilities_lower(uint64_t lowered)
{
	return set_effective(lowered, 0);
}

int capabilities_raise(uint64_t raised)
{
	return set_effective(0, raised);
}
