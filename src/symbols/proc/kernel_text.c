/* kernel_text.c - where the running kernel is loaded */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "kernel_text.h"

/* With kernel.kptr_restrict=1 CAP_SYSLOG sees the addresses, with 2 no process does. */
static bool has_syslog(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, set) &&
	       set[CAP_TO_INDEX(CAP_SYSLOG)].effective & CAP_TO_MASK(CAP_SYSLOG);
}

const char *kernel_text_hidden(void)
{
	if (access("/proc/kallsyms", R_OK) < 0)
		return KERNEL_HIDDEN_FILE;
	return has_syslog() ? KERNEL_HIDDEN_KPTR : KERNEL_HIDDEN_PRIVILEGE;
}

/* Without permission, all addresses read as 0. */
__u64 kernel_text(void)
{
	__cleanup(fclosep) FILE *f = fopen("/proc/kallsyms", "re");
	char line[256], name[128];
	__u64 address;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx %*c %127s", &address, name) == 2 && !strcmp(name, "_text"))
			return address;
	}
	return 0;
}
