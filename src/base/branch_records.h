/* branch_records.h - the perf event whose samples have the CPU's records of taken branches */
#ifndef PROFIL_BASE_BRANCH_RECORDS_H
#define PROFIL_BASE_BRANCH_RECORDS_H

#include <linux/perf_event.h>

/*
 * Sets @attr to cycles in user mode, with the records of any branches of user mode. For the rest,
 * perf_event_open() says EOPNOTSUPP where the CPU has no such records, ENOENT without counters.
 */
static inline void branch_records_ask(struct perf_event_attr *attr)
{
	attr->type = PERF_TYPE_HARDWARE;
	attr->config = PERF_COUNT_HW_CPU_CYCLES;
	attr->sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr->branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
}

#endif
