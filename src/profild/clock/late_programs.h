/* late_programs.h - the BPF programs of places and events, loaded when one is first needed */
#ifndef PROFIL_PROFILD_CLOCK_LATE_PROGRAMS_H
#define PROFIL_PROFILD_CLOCK_LATE_PROGRAMS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

struct profil_bpf;
struct late_programs;

/*
 * Excludes the programs from the load of @skel, in which the verifier would need most of the time:
 * with @places, not the counting of places at the tick; with @perf, not the program of perf events,
 * which counts them as well.
 */
void late_programs_leave_out(struct profil_bpf *skel, bool places, bool perf);

/* They get the maps of @skel, which must exist until late_programs_close(). */
int late_programs_open(struct late_programs **out, const struct profil_bpf *skel, sd_event *event);
struct late_programs *late_programs_close(struct late_programs *p);

enum late_program {
	LATE_PROGRAM_TICK, /* tick_or_exit() with places, which takes the place of that without */
	LATE_PROGRAM_PERF, /* of perf events: of the clock's, and of those that are observed */
	LATE_PROGRAM_TRACEPOINT,
	LATE_PROGRAM_UPROBE,
	LATE_PROGRAM_BRANCHES,
	LATE_PROGRAM_SWITCH, /* of off-CPU time, as the next ones */
	LATE_PROGRAM_WAKEUP,
	LATE_PROGRAM_WAKING,
	LATE_PROGRAM_CONTENTION_BEGIN,
	LATE_PROGRAM_CONTENTION_END,
	LATE_PROGRAMS
};

/*
 * The fd of a program, or a negative errno. -EINPROGRESS: a thread loads it, in a fifth of a
 * second; ask again then.
 */
int late_programs_fd(struct late_programs *p, enum late_program which);

/* Loads that of perf events at once, before there are clients. */
int late_programs_load_perf(struct late_programs *p);

/*
 * What waits for the program of perf events, after late_programs_fd() was -EINPROGRESS. @done is
 * called from the event loop with 0 or an error, and @wait is not used after it or the end.
 */
struct late_programs_wait {
	struct late_programs_wait *next;
	void (*done)(struct late_programs_wait *wait, int err);
};
void late_programs_wait(struct late_programs *p, struct late_programs_wait *wait);
void late_programs_wait_end(struct late_programs *p, struct late_programs_wait *wait);

/*
 * Has the programs of off-CPU time loaded and linked. Returns 0 when they are, or a negative errno,
 * as late_programs_fd(). The links are closed one second after they were last used.
 */
int late_programs_link(struct late_programs *p);
void late_programs_use_links(struct late_programs *p, bool used);

#endif
