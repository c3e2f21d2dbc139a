/* events.h - the events that can be sampled instead of CPU time */
#ifndef PROFIL_PROFILCTL_COLLECT_EVENTS_H
#define PROFIL_PROFILCTL_COLLECT_EVENTS_H

#include <stdbool.h>
#include <linux/types.h>

/* See perf_event_attr. */
struct event {
	__u32 type;
	__u64 config;
};

/*
 * Finds the event @name: one of events_each(), or a tracepoint, SYSTEM:NAME. Returns 0, -ENOENT for
 * an unknown one, or -EACCES without permission to read the tracepoints.
 */
int event_find(struct event *e, const char *name);

/* The name of the event @name, which can be an alias. */
const char *event_name(const char *name);

/* Says whether @e is off-CPU time, which has a period in ns. */
bool event_is_off_cpu(const struct event *e);

/* Says whether @e is the CPU's records of taken branches, which have a frequency. */
bool event_is_branches(const struct event *e);

/* Says whether @e is a hardware counter: it counts far faster than samples can be taken. */
bool event_is_hardware(const struct event *e);

/*
 * Opens @e for this process's user mode, which needs no privilege, and closes it. Returns 0, or the
 * negative errno with which this kernel or CPU refuses it.
 */
int event_try(const struct event *e);

/* Says whether they support @e, as far as this process may know. */
bool event_is_here(const struct event *e);

/* Why branches cannot be recorded, in words, by the result of event_try(). */
const char *event_no_branches(int err);

/* Calls @show for each named event. */
void events_each(void (*show)(void *ctx, const char *name, const struct event *e), void *ctx);

/* Calls @show for each tracepoint. Returns 0 or a negative errno. */
int events_each_tracepoint(void (*show)(void *ctx, const char *name, const struct event *e),
			   void *ctx);

/*
 * Opens the folder of all tracepoints. If tracefs is not mounted, as in many containers, root opens
 * a detached mount of it. Returns a descriptor or a negative errno.
 */
int events_open_tracefs(void);

/* Reads the number of a tracepoint from the file @path in @folder. Returns 0 or a negative errno.
 */
int event_read_id(struct event *e, int folder, const char *path);

#endif
