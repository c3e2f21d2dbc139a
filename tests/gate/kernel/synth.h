/* synth.h - samples of a test's choice: the arguments of the programs in synth.bpf.c */
#ifndef PROFIL_TEST_SYNTH_H
#define PROFIL_TEST_SYNTH_H

#include <linux/types.h>

/*
 * The object of synth.bpf.c is the product's own, bpf/profil.bpf.c, and programs that call its
 * functions. A test runs them by bpf_prog_test_run_opts() on the maps of a running daemon, or on
 * maps of its own. Each struct is the context of one program; the kernel copies it back.
 */

/* synth_hit(): @n samples of process @tgid at @pc, for its first target on the clock @flags. */
struct synth_hit {
	__u64 pc;
	__u64 entry; /* 0: looked up; else a sample that has read this entry earlier */
	__u32 tgid;
	__u32 n; /* 0: the entry is looked up, nothing is counted */
	__u32 flags;
	__u32 none; /* out: the process has no entry */
};

/* synth_count(): one sample of the calling thread, for all targets of its process. */
struct synth_count {
	__u64 user_pc;
	__u64 kernel_pc;
	__u64 ns;	/* of CPU time that it stands for */
	__u32 clock_ns; /* the clock's period, ... */
	__u32 periods;	/* ... of which it stands for so many */
	__u32 flags;	/* enum profil_target_flags: which clock */
	__u32 wide;	/* also for the attachments of a wide scope */
	__u32 user_mode;
	__u32 tgid; /* of the calling process */
};

/* synth_branches(): the first @n records in the map of branches, of the calling thread. */
struct synth_branches {
	__u32 flags; /* as in struct synth_count */
	__u32 n;
	__u32 busy; /* they interrupt the walk of a stack */
	__u32 zero;
};

/* synth_inherit(): process @child is forked by the process of @entry. */
struct synth_inherit {
	__u64 entry;
	__u32 child;
	__u32 bits; /* of its entry */
};

/* synth_exec() and synth_exit(): process @tgid executes a program, or ends. */
struct synth_exec {
	__u32 tgid;
	__u32 exec_id; /* as in an entry */
	__u32 secret;
	__u32 zero;
};

/* synth_take_out(): removes @entry, which was at place @at of its process's two buckets. */
struct synth_take_out {
	__u64 entry;
	__u32 at;
	__u32 zero;
};

/* synth_event(): one event of a thread that has run for @ran_ns, on its account @credit_ns. */
struct synth_event {
	__u64 credit_ns;
	__u64 ran_ns;
	__u64 ns; /* out: the CPU time that it stands for */
	__u32 periods;
	__u32 zero;
};

/* synth_tick(): one tick of a thread that has run for @ran_ns, on its account. */
struct synth_tick {
	__u64 ticked_ns;
	__u64 tick_epoch;
	__u64 ran_ns;
	__u64 ns; /* out: the CPU time that it stands for */
	__u64 since;
};

/* synth_first(): the first tick of a thread, for a target; all times are of one clock. */
struct synth_first {
	__u64 ran_ns;
	__u64 born_ns;
	__u64 started_ns; /* of the target */
	__u64 now_ns;
	__u64 ns; /* out: the CPU time that it stands for */
};

/* synth_rest(): the end of a thread that has run for @ran_ns, on its account. */
struct synth_rest {
	__u64 ticked_ns;
	__u64 ran_ns;
	__u64 ns; /* out: the CPU time that is charged */
};

/* synth_sleep(): a thread that has run for @ran_ns sleeps from @from_ns to @to_ns, on its account.
 */
struct synth_sleep {
	__u64 out_ns;
	__u64 out_ran_ns;
	__u64 slept_ns;
	__u64 overlap_ns;
	__u64 ran_ns;
	__u64 from_ns;
	__u64 to_ns;
	__u64 taken_ns; /* out: of the sleep's time, not counted */
};

/* synth_wait(): a thread has no CPU from @since_ns to @now_ns, and is woken up at @woken_ns. */
struct synth_wait {
	__u64 since_ns;
	__u64 woken_ns; /* 0: it is not */
	__u64 now_ns;
	__u64 taken_ns;	 /* not counted */
	__u64 asleep_ns; /* out, as the next one */
	__u64 runnable_ns;
};

/* synth_weight(): a sample of the event of @cookie, whose counter is at @count. */
struct synth_weight {
	__u64 cookie;
	__u64 period;
	__u64 count;
	__u64 seen_cookie; /* of this CPU's latest sample */
	__u64 seen_count;
	__u64 weight; /* out: the events that the sample stands for */
};

/* synth_pc(): a sample at @user_pc, for a target with @target_flags. */
struct synth_pc {
	__u64 user_pc;
	__u32 user_mode;
	__u32 target_flags;
	__u32 new_image; /* execve() has loaded another image than the target's */
	__u32 zero;
	__u64 shown; /* out: the pc that is counted */
};

/*
 * synth_thin(): a sample of @ns for the target number @target, of a process of which @running
 * threads run; out: @n samples are counted.
 */
struct synth_thin {
	__u64 ns;
	__u64 since;
	__u32 clock_ns;
	__u32 periods;
	__u32 target;
	__u32 n;
	__u32 running;
	__u32 zero;
};

/* synth_running(): a sample of the calling process, which runs on other CPUs as the map says. */
struct synth_running {
	__u32 tgid; /* out, as the next one: the process */
	__u32 n;    /* its running threads */
};

/*
 * synth_execs(): the calling thread, which has run for args[0] ns, executes another program; 0: it
 * is to have an account from now on. synth_exits(): it ends, having run for args[0] ns.
 */

/*
 * synth_stacks(): the args are the slot of a table, the number of the first stack, how many, how
 * often each is counted, and the node or root above all. Returns how many have found room. A stack
 * is three frames in image 1: one of 16 outer, one of 1000 middle, and a leaf of its own, at these
 * offsets.
 */
#define SYNTH_OUTER 1000
#define SYNTH_MIDDLE 10000
#define SYNTH_LEAF 1000000

/*
 * synth_waits(): the args are a target's index, the node at which a thread lost its CPU (or root),
 * a note of what it waited for, its state (0: none), and for how long it waited in ns. It was woken
 * by an interrupt.
 */

#endif
