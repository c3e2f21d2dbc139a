/* option_values.h - reads the values of options */
#ifndef PROFIL_PROFILCTL_OPTIONS_OPTION_VALUES_H
#define PROFIL_PROFILCTL_OPTIONS_OPTION_VALUES_H

#include "options.h"

/*
 * Reads the value of an option into @o. Returns NULL, or what a valid value is, for the message.
 * @arg is NULL for an option without a value; it can be split at commas in place.
 */
typedef const char *value_fn(struct options *o, char *arg);

value_fn value_by, value_check, value_rounds, value_call_graph, value_kernel_stacks, value_cgroup,
	value_clock, value_comm, value_event, value_exe, value_format, value_off_cpu, value_latency,
	value_branches, value_record_wakers, value_states, value_wall, value_json, value_limit,
	value_nothing, value_pid, value_rate, value_max_age, value_max_size, value_max_daily,
	value_mounts_of, value_slices, value_sort, value_unit, value_fail_on, value_header,
	value_container, value_only_container;

/* As value_fn, for values that are one member of the options. */
const char *value_text(const char **out, const char *arg);
const char *value_number(__u64 *out, const char *arg);
const char *value_seconds(__u64 *ns, const char *arg);

#endif
