/* event_programs.h - the BPF programs of places and events, loaded when one is first needed */
#ifndef PROFIL_PROFILD_CLOCK_EVENT_PROGRAMS_H
#define PROFIL_PROFILD_CLOCK_EVENT_PROGRAMS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

struct profil_bpf;
struct event_programs;

/*
 * Excludes the programs from the load of @skel, in which the verifier would need most of the time:
 * with @places, not the counting of places at the tick; with @perf, not the program of perf events,
 * which counts them as well.
 */
void event_programs_leave_out(struct profil_bpf *skel, bool places, bool perf);

/* They get the maps of @skel, which must exist until event_programs_close(). */
int event_programs_open(struct event_programs **out, const struct profil_bpf *skel,
			sd_event *event);
struct event_programs *event_programs_close(struct event_programs *p);

enum event_program {
	EVENT_PROGRAM_TICK, /* tick_or_exit() with places, which takes the place of that without */
	EVENT_PROGRAM_PERF, /* of perf events: of the clock's, and of those that are observed */
	EVENT_PROGRAM_TRACEPOINT,
	EVENT_PROGRAM_UPROBE,
	EVENT_PROGRAM_BRANCHES,
	EVENT_PROGRAM_SWITCH, /* of off-CPU time, as the next ones */
	EVENT_PROGRAM_WAKEUP,
	EVENT_PROGRAM_WAKING,
	EVENT_PROGRAM_CONTENTION_BEGIN,
	EVENT_PROGRAM_CONTENTION_END,
	EVENT_PROGRAMS
};

/*
 * The fd of a program, or a negative errno. -EINPROGRESS: a thread loads it, in a fifth of a
 * second; ask again then.
 */
int event_programs_fd(struct event_programs *p, enum event_program which);

/* Loads that of perf events at once, before there are clients. */
int event_programs_load_perf(struct event_programs *p);

/*
 * What waits for the program of perf events, after event_programs_fd() was -EINPROGRESS. @done is
 * called from the event loop with 0 or an error, and @wait is not used after it or the end.
 */
struct event_programs_wait {
	struct event_programs_wait *next;
	void (*done)(struct event_programs_wait *wait, int err);
};
void event_programs_wait(struct event_programs *p, struct event_programs_wait *wait);
void event_programs_wait_end(struct event_programs *p, struct event_programs_wait *wait);

/*
 * Has the programs of off-CPU time loaded and linked. Returns 0 when they are, or a negative errno,
 * as event_programs_fd(). The links are closed one second after they were last used.
 */
int event_programs_link(struct event_programs *p);
void event_programs_use_links(struct event_programs *p, bool used);

#endif
