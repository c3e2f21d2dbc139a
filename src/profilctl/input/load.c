/* load.c - reads a profile from a file, or prints why that is not possible */
#include <errno.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"

#include "load.h"
#include "profile/profile_file.h"
#include "profilctl/util/exit_status.h"

#define BYTES_MAX (1ul << 30)

static int refuse(const char *name, const char *what)
{
	char path[1024];

	log_err("cannot read %s: %s; profilctl reads what 'profilctl record -o FILE' writes",
		sanitize(path, sizeof(path), name), what);
	return CTL_ERROR;
}

static int load(struct profile **out, FILE *in, const char *name)
{
	char why[256];

	if (!profile_file_read(out, in, BYTES_MAX, why, sizeof(why)))
		return CTL_OK;
	return refuse(name, why);
}

int load_profile(struct profile **out, const char *path)
{
	__cleanup(fclosep) FILE *in = NULL;
	int err;

	if (!strcmp(path, "-"))
		return load(out, stdin, "standard input");
	in = fopen(path, "re");
	err = errno;
	return in ? load(out, in, path) : refuse(path, strerror(err));
}
