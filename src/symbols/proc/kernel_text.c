/* kernel_text.c - where the running kernel is loaded */
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#include "kernel_text.h"

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
