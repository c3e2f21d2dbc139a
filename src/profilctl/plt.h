/* plt.h - the stubs through which a file calls other files' functions */
#ifndef PROFIL_PLT_H
#define PROFIL_PLT_H

#include <libelf.h>
#include <stddef.h>
#include <linux/types.h>

struct plt {
	__u64 start; /* virtual address of the first stub */
	__u64 stub_bytes;
	char **names; /* FUNCTION@plt, one for each */
	size_t n;
};

/* Reads those of @elf. A file whose stubs are not laid out as is usual has none. 0 or -ENOMEM. */
int plt_read(struct plt *out, Elf *elf);

void plt_fini(struct plt *plt);

#endif
