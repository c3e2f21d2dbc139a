/* verb.h - the verbs of profilctl, and what they exit with */
#ifndef PROFIL_VERB_H
#define PROFIL_VERB_H

#include "options.h"

enum ctl_status {
	CTL_OK,
	CTL_ERROR,     /* anything that has no number of its own */
	CTL_USAGE,     /* the command line is wrong */
	CTL_PARTIAL,   /* there is a report, but ticks are missing from it */
	CTL_DENIED,    /* the daemon or the kernel forbids it */
	CTL_NO_DAEMON, /* none answers, and none can be started */
	CTL_GONE,      /* no such process, or no more */
};

/* Each says on stderr what went wrong, in one line, and returns an enum ctl_status. */
int verb_record(const struct options *o);
int verb_run(const struct options *o);
int verb_attach(const struct options *o);
int verb_top(const struct options *o);
int verb_report(const struct options *o);
int verb_diff(const struct options *o);
int verb_annotate(const struct options *o);
int verb_doctor(const struct options *o);
int verb_list(const struct options *o);
int verb_status(const struct options *o);
int verb_schema(const struct options *o);

#endif
