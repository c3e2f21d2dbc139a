/* wait_rows.h - the time of threads by what they wait for, and by lock */
#ifndef PROFIL_ANALYSIS_WAIT_ROWS_H
#define PROFIL_ANALYSIS_WAIT_ROWS_H

#include "profile/profile.h"

#include "rows.h"

/*
 * Adds rows by kind of wait, or by lock if @locks; some have the same name. There is room for them.
 * Returns 0, -ENOENT if the profile does not know what threads wait for, or -ENOMEM.
 */
int wait_rows_add(struct rows *rows, const struct profile *p, bool locks);

#endif
