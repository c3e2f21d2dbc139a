/* quantity.h - what samples stand for, in words */
#ifndef PROFIL_FORMATS_QUANTITY_H
#define PROFIL_FORMATS_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

#include "profile/profile.h"

/* What one sample of @p stands for, as "999 Hz, a sample stands for 1.001 ms of CPU time". */
const char *quantity_of_sample(char *out, size_t bytes, const struct profile *p);

/* What all samples of @p stand for, as "1.35 s of CPU time". */
const char *quantity_of_all(char *out, size_t bytes, const struct profile *p);

/*
 * What threads did in how much of the time of @p, which is profile_is_wall() and has lasted for
 * @duration_ns: "10.75 % on CPU, ..., of 5.00 threads".
 */
const char *quantity_of_states(char *out, size_t bytes, const struct profile *p, __u64 duration_ns);

/*
 * How many processes have samples, as "183 processes", or which one, as "pid 4711"; "" if unknown.
 */
const char *quantity_of_processes(char *out, size_t bytes, const struct profile *p);

/* Says whether the samples of both are of one event, so that they can be compared. */
bool quantity_is_same(const struct profile *a, const struct profile *b);

#endif
