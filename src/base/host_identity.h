/* host_identity.h - which machine, kernel and boot a profile is of */
#ifndef PROFIL_BASE_HOST_IDENTITY_H
#define PROFIL_BASE_HOST_IDENTITY_H

#include <stddef.h>

/* An empty string: not known. */
struct host_identity {
	char name[65];
	char kernel[65]; /* its release */
	char architecture[65];
	char boot_id[37]; /* differs with each boot */
};

/* Identifies the running machine. */
void host_identify(struct host_identity *h);

/* Writes the GNU build id of the running kernel in hex, "" if unknown. */
void host_kernel_build_id(char *out, size_t room);

#endif
