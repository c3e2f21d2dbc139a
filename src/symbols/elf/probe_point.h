/* probe_point.h - where a file has a function or a static probe (USDT), for the kernel's uprobes */
#ifndef PROFIL_SYMBOLS_ELF_PROBE_POINT_H
#define PROFIL_SYMBOLS_ELF_PROBE_POINT_H

#include <linux/types.h>

/* Offsets in the file. */
struct probe_point {
	__u64 offset;
	__u64 semaphore; /* what counts the probe's users; 0: none */
};

/*
 * Finds the function @name in the ELF file @fd, or the static probe @name of @provider. Returns 0,
 * -ENOENT if it has none of that name, or -ENOEXEC.
 */
int probe_function(struct probe_point *out, int fd, const char *name);
int probe_static(struct probe_point *out, int fd, const char *provider, const char *name);

#endif
