/* sleeper_reader.h - adds the time of threads that still have no CPU to a profile of waits */
#ifndef PROFIL_TABLE_SLEEPER_READER_H
#define PROFIL_TABLE_SLEEPER_READER_H

#include "table_reader.h"

/*
 * Adds the sleeps that have not ended to @into, as if they ended at @now_ns, after
 * table_reader_read() and stack_reader_read(). Does nothing for other tables. Returns 0 or -ENOMEM.
 */
int sleepers_read(const struct table_reader *r, struct profile *into, __u64 now_ns);

#endif
