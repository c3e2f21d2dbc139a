/* verb.h - the verbs of profilctl */
#ifndef PROFIL_PROFILCTL_VERBS_VERB_H
#define PROFIL_PROFILCTL_VERBS_VERB_H

#include "profilctl/util/exit_status.h"
#include "profilctl/options/options.h"

/* Each prints one line on stderr on failure and returns an enum ctl_status. */
int verb_record(const struct options *o);
int verb_run(const struct options *o);
int verb_attach(const struct options *o);
int verb_top(const struct options *o);
int verb_machine(const struct options *o);
int verb_report(const struct options *o);
int verb_diff(const struct options *o);
int verb_annotate(const struct options *o);
int verb_doctor(const struct options *o);
int verb_optimize(const struct options *o);
int verb_list(const struct options *o);
int verb_status(const struct options *o);
int verb_schema(const struct options *o);
int verb_interpreters(const struct options *o);

#endif
