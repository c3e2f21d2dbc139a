/* plt.h - names for PLT stubs, through which a file calls functions of others */
#ifndef PROFIL_SYMBOLS_ELF_PLT_H
#define PROFIL_SYMBOLS_ELF_PLT_H

#include <libelf.h>
#include <stddef.h>
#include <linux/types.h>

struct plt {
	__u64 start; /* virtual address of the first stub */
	__u64 stub_bytes;
	char **names; /* FUNCTION@plt, for each stub */
	size_t n;
};

/* Reads the stubs of @elf; none if their layout is unknown. Returns 0 or -ENOMEM. */
int plt_read(struct plt *out, Elf *elf);

void plt_fini(struct plt *plt);

#endif
