/* programs.h - the run statistics of a daemon's BPF programs */
#ifndef PROFIL_TEST_PROGRAMS_H
#define PROFIL_TEST_PROGRAMS_H

#include <linux/bpf.h>

#include "daemon.h"

/* Those of program @name of @d; there must be one. They count while bpf_enable_stats() is in
 * effect. */
struct bpf_prog_info program_ran(const struct daemon *d, const char *name);

#endif
