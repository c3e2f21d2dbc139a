/* plt.h - names for PLT stubs, through which a file calls functions of others */
#ifndef PROFIL_SYMBOLS_ELF_PLT_H
#define PROFIL_SYMBOLS_ELF_PLT_H

#include <libelf.h>
#include <stddef.h>
#include <linux/types.h>

struct plt_stub {
	__u64 start; /* virtual addresses */
	__u64 end;
	char *name; /* FUNCTION@plt */
};

struct plt {
	struct plt_stub *stub; /* by section and address */
	size_t n;
	size_t name_bytes;
};

/*
 * Reads the stubs of @elf, each by the slot of the GOT that its instructions load: linkers lay out
 * and order stubs in many ways. Returns 0 or -ENOMEM; plt_fini() in any case.
 */
int plt_read(struct plt *out, Elf *elf);

void plt_fini(struct plt *plt);

#endif
