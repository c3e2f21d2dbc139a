/* kallsyms.h - the functions of the running kernel and its modules */
#ifndef PROFIL_SYMBOLS_KALLSYMS_H
#define PROFIL_SYMBOLS_KALLSYMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <linux/types.h>

struct kernel_function {
	__u64 address;
	char *name; /* in a module: "NAME [MODULE]" */
	bool local;
	bool weak;
};

struct kallsyms {
	struct kernel_function *function; /* in the order of the file */
	size_t n;
};

/*
 * Reads @in, a file like /proc/kallsyms. Returns 0, -EPERM if the kernel hides addresses from this
 * process (root and CAP_SYSLOG see them), or -ENOMEM. kallsyms_fini() in any case.
 */
int kallsyms_read(struct kallsyms *k, FILE *in);

void kallsyms_fini(struct kallsyms *k);

#endif
