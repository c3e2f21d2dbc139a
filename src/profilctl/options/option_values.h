/* option_values.h - reads the values of options */
#ifndef PROFIL_PROFILCTL_OPTIONS_OPTION_VALUES_H
#define PROFIL_PROFILCTL_OPTIONS_OPTION_VALUES_H

#include "options.h"

/*
 * Reads the value of an option into @o. Returns NULL, or what a valid value is, for the message.
 * @arg is NULL for an option without a value; it can be split at commas in place.
 */
typedef const char *value_fn(struct options *o, char *arg);

value_fn value_by, value_check, value_optimized, value_rounds, value_call_graph,
	value_kernel_stacks, value_callers, value_callees, value_command, value_function,
	value_object, value_process, value_cgroup, value_clock, value_comm, value_count,
	value_duration, value_event, value_exe, value_format, value_input, value_interval,
	value_off_cpu, value_record_wakers, value_wakers, value_states, value_wall, value_json,
	value_limit, value_nothing, value_output, value_period, value_pid, value_rate,
	value_max_age, value_max_size, value_rows, value_since, value_slices, value_socket,
	value_sort, value_spool, value_unit, value_endpoint, value_fail_on, value_header,
	value_state, value_container, value_pod, value_only_container, value_only_pod, value_until;

#endif
