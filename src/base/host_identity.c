/* host_identity.c - which machine, kernel and boot a profile is of */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "cleanup.h"

#include "first_line.h"
#include "hex.h"
#include "host_identity.h"

/* Each ELF note is a header, a name and a description, padded to 4 bytes. */
void host_kernel_build_id(char *out, size_t room)
{
	__cleanup(fclosep) FILE *f = fopen("/sys/kernel/notes", "re");
	unsigned char note[4096];
	size_t n = f ? fread(note, 1, sizeof(note), f) : 0, at = 0;
	Elf64_Nhdr h;

	*out = '\0';
	while (at + sizeof(h) <= n) {
		size_t name = at + sizeof(h), id;

		memcpy(&h, note + at, sizeof(h));
		if (h.n_namesz > n || h.n_descsz > n)
			return;
		id = name + (h.n_namesz + 3) / 4 * 4;
		at = id + (h.n_descsz + 3) / 4 * 4;
		if (at > n || h.n_type != NT_GNU_BUILD_ID || h.n_namesz != 4 ||
		    memcmp(note + name, "GNU", 4) != 0)
			continue;
		hex_write(out, room, note + id, h.n_descsz);
		return;
	}
}

void host_identify(struct host_identity *h)
{
	struct utsname u;

	*h = (struct host_identity){ .name = "" };
	if (uname(&u) < 0)
		return;
	snprintf(h->name, sizeof(h->name), "%s", u.nodename);
	snprintf(h->kernel, sizeof(h->kernel), "%s", u.release);
	snprintf(h->architecture, sizeof(h->architecture), "%s", u.machine);
	first_line("/proc/sys/kernel/random/boot_id", h->boot_id, sizeof(h->boot_id));
}
