/* switch_frame.bpf.h - the kernel's function in which the running thread gives up its CPU */
#ifndef PROFIL_BPF_SWITCH_FRAME_BPF_H
#define PROFIL_BPF_SWITCH_FRAME_BPF_H

#include <stdbool.h>

#include "unwind.bpf.h"

/* Frames of the tracepoint and this program, at most. */
#define SWITCH_FRAMES 16

/* The return address in the function of the tracepoint that calls this program; 0: not seen yet. */
static __u64 switch_pc;

/*
 * The address of __traceiter_sched_switch(), which the daemon reads in /proc/kallsyms before these
 * programs are loaded; 0: unknown. With a second program at the tracepoint it calls them all.
 */
SEC(".data") __u64 switch_iterator;
#define TRACEITER_BYTES 512

static __always_inline bool is_iterator(__u64 pc)
{
	__u64 start = switch_iterator;

	return start && pc - start < TRACEITER_BYTES;
}

/* Compares the beginning of @name; the verifier wants a constant length. */
#define BEGINS(name, with) (!bpf_strncmp(name, sizeof(with) - 1, with))

/* True if @pc is in a function of the tracepoint, by name, as is_tick(). Global, as it. */
__attribute__((noinline)) int is_tracepoint(__u64 pc)
{
	char name[16] = { 0 };

	/* The name is cut: -E2BIG is no error. */
	bpf_snprintf(name, sizeof(name), "%ps", &pc, sizeof(pc));
	return BEGINS(name, "bpf_trace_run") || BEGINS(name, "__bpf_trace_") ||
	       BEGINS(name, "__traceiter_");
}

/*
 * The kernel's innermost frame of the running thread, which goes to sleep; 0: not found. Frames of
 * the scheduler are not in the stack that the kernel gives, those of its tracepoint are. Global, so
 * that the verifier does not follow what comes after it for each of its results.
 */
__attribute__((noinline)) __u64 sleep_pc(void)
{
	__u32 zero = 0, n = 0, last = 0;
	struct unwind *u = bpf_map_lookup_elem(&unwinds, &zero);
	long bytes;

	if (!u)
		return 0;
	bytes = bpf_get_task_stack(bpf_get_current_task_btf(), u->kernel, sizeof(u->kernel), 0);
	if (bytes > 0)
		n = (__u32)bytes / 8;
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < SWITCH_FRAMES && i + 2 < n; i++) {
		if (switch_pc && u->kernel[i] == switch_pc)
			return u->kernel[i + 1 + is_iterator(u->kernel[i + 1])];
	}
#pragma clang loop unroll(disable)
	for (__u32 i = 0; i < SWITCH_FRAMES && i + 1 < n; i++) {
		if (!is_tracepoint(u->kernel[i]))
			continue;
		last = i + 1;
		if (!is_iterator(u->kernel[i]))
			switch_pc = u->kernel[i];
	}
	if (!last || last > SWITCH_FRAMES)
		return 0;
	return u->kernel[last];
}

#endif
