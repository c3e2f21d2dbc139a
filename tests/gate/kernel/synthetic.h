/* synthetic.h - gives samples to the counting code in the kernel, without a clock */
#ifndef PROFIL_TEST_SYNTHETIC_H
#define PROFIL_TEST_SYNTHETIC_H

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <criterion/criterion.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "core/shared_maps.h"
#include "synth.h"
#include "tests/lib/daemon.h"

#include "tests/gate/kernel/synth.skel.h"

/*
 * The programs of synth.bpf.c. The test, not a clock, says when a sample comes, of which process it
 * is and at which pc. All that is between the sample and the counter in the client's buffer is the
 * product's. A failure in these functions fails the test.
 */
struct synthetic {
	struct synth_bpf *object;
	struct profil_tables *tables;
};

/* With which every daemon here is started: its only clock is the tick. */
#define SYNTHETIC_CLOCK "--clock", "tick"

/*
 * Loads the programs, with the maps of @d in place of their own, and disconnects the daemon's tick,
 * so that no other samples are counted. To be called before the first profile starts. Only with
 * @places synth_count() is loaded, which has the whole engine of places: the verifier takes a third
 * of a second for it.
 */
void synthetic_join(struct synthetic *s, const struct daemon *d, bool places);

#define SYNTHETIC_TICK_NS 4000000ull

/* Loads the programs with maps of their own: no daemon is needed. The tick has the period above. */
void synthetic_alone(struct synthetic *s);

void synthetic_close(struct synthetic *s);

/* Runs @program with @context, whose size is @bytes. */
void synthetic_run(const struct bpf_program *program, void *context, __u32 bytes);

/* Runs program synth_@name with the context @a, of struct synth_@type. */
#define SYNTHETIC_RUN(s, name, a) synthetic_run((s)->object->progs.synth_##name, (a), sizeof(*(a)))

/* The entry of process @pid's profile; 0: none. */
__u64 synthetic_entry(const struct synthetic *s, pid_t pid);

/* The target of process @pid's profile, which must have one. */
struct profil_target *synthetic_target(const struct synthetic *s, pid_t pid);

/* The dirty flag of the first block of @t's counters. */
const volatile __u8 *synthetic_dirty(const struct synthetic *s, const struct profil_target *t);

/* The profile of process @pid in the daemon's LIST; it must have one. */
void synthetic_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out);

/* Sends @signal to the daemon's workers, which write the buffers. */
void synthetic_workers(const struct daemon *d, int signal);

/* Waits until @condition holds: an event of another process, in memory that it shares. */
#define SYNTHETIC_AWAIT(condition)     \
	do {                           \
		while (!(condition))   \
			sched_yield(); \
	} while (0)

/* Counts @n samples of @pid at @pc. The process must have a profile. */
void synthetic_hit(const struct synthetic *s, pid_t pid, __u64 pc, __u32 n);

/*
 * Defines the Criterion suite @name: each test has a daemon d, started with the arguments that
 * follow, and the programs s on its maps.
 */
#define SYNTHETIC_SUITE(name, places, ...)                                             \
	static struct daemon d;                                                        \
	static struct synthetic s;                                                     \
	static void start(void)                                                        \
	{                                                                              \
		static const char *args[] = { SYNTHETIC_CLOCK, ##__VA_ARGS__, NULL };  \
                                                                                       \
		daemon_start(&d, NULL, args);                                          \
		synthetic_join(&s, &d, places);                                        \
	}                                                                              \
	static void stop(void)                                                         \
	{                                                                              \
		synthetic_close(&s);                                                   \
		kill(d.pid, SIGCONT); /* of a test that failed while it was stopped */ \
		daemon_stop(&d);                                                       \
	}                                                                              \
	TestSuite(name, .init = start, .fini = stop)

#endif
