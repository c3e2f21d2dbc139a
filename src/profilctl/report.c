/* report.c - shows a profile that was kept */
#include <errno.h>
#include <string.h>

#include "core/log.h"
#include "core/scope.h"

#include "output.h"
#include "verb.h"

int verb_report(const struct options *o)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	__cleanup(fclosep) FILE *in = NULL;
	char why[256];
	FILE *out;
	int err;

	if (o->argc != 1) {
		log_err("report: one file, please; 'profilctl report FILE'");
		return CTL_USAGE;
	}
	in = fopen(o->argv[0], "re");
	if (!in) {
		log_err("cannot read %s: %s", o->argv[0], strerror(errno));
		return CTL_ERROR;
	}
	err = json_load(&p, in, why, sizeof(why));
	if (err < 0) {
		log_err("cannot read %s: %s", o->argv[0], err == -EINVAL ? why : strerror(-err));
		return CTL_ERROR;
	}
	err = output_open(&out, o);
	return err ? err : output_write(out, o, p);
}
