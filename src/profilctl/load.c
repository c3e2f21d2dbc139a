/* load.c - reads a profile that was kept by -o */
#include <errno.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "load.h"
#include "output.h"
#include "verb.h"

int load_profile(struct profile **out, const char *path)
{
	__cleanup(fclosep) FILE *in = fopen(path, "re");
	char why[256];
	int err;

	if (!in) {
		log_err("cannot read %s: %s; 'profilctl record -o FILE' makes such a file", path,
			strerror(errno));
		return CTL_ERROR;
	}
	err = json_load(out, in, why, sizeof(why));
	if (!err)
		return CTL_OK;
	log_err("cannot read %s: %s", path, err == -EINVAL ? why : strerror(-err));
	return CTL_ERROR;
}
