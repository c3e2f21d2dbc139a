/* report.c - shows a profile that was kept */
#include "core/log.h"
#include "core/scope.h"

#include "load.h"
#include "output.h"
#include "verb.h"

int verb_report(const struct options *o)
{
	__cleanup(profile_freep) struct profile *p = NULL;
	FILE *out;
	int status;

	if (o->argc != 1) {
		log_err("report: one file, please; 'profilctl report FILE'");
		return CTL_USAGE;
	}
	status = load_profile(&p, o->argv[0]);
	if (!status && o->by == ROWS_THREAD && !p->nthreads && p->binned) {
		log_err("%s does not tell threads apart; record it with --threads", o->argv[0]);
		return CTL_ERROR;
	}
	if (!status)
		status = output_open(&out, o);
	return status ? status : output_write(out, o, p);
}
