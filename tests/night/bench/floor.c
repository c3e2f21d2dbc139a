/* floor.c - a BPF program that does nothing, on a perf event of every CPU: the least that one
 * costs. Or one that takes the stacks of a process by bpf_get_stack(), and does nothing with them.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int die(const char *what)
{
	fprintf(stderr, "floor: %s: %s\n", what, strerror(errno));
	return 1;
}

#define STACK_BYTES (127 * 8)

/* Loads a program that calls bpf_get_stack() for the user's stack. */
static int load_stack(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "stack", 4, STACK_BYTES, 1, NULL);
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 6, .src_reg = 1 },
		{ .code = BPF_LD | BPF_DW | BPF_IMM,
		  .dst_reg = 1,
		  .src_reg = BPF_PSEUDO_MAP_FD,
		  .imm = map },
		{ 0 },
		{ .code = BPF_ST | BPF_W | BPF_MEM, .dst_reg = 10, .off = -4 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 10 },
		{ .code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = 2, .imm = -4 },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem },
		{ .code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = 0, .off = 5 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 2, .src_reg = 0 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = 1, .src_reg = 6 },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 3, .imm = STACK_BYTES },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = 4, .imm = BPF_F_USER_STACK },
		{ .code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_get_stack },
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K },
		{ .code = BPF_JMP | BPF_EXIT },
	};

	return map < 0 ? map
		       : bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "stack", "GPL", insns,
				       sizeof(insns) / sizeof(insns[0]), NULL);
}

static int attach(int program, int pid, int cpu, unsigned int hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / hz,
		.exclude_idle = 1,
	};
	int event = (int)syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (event < 0)
		return errno == ENODEV ? 0 : event;
	return bpf_link_create(program, event, BPF_PERF_EVENT, NULL);
}

/* usage: floor HZ [PID]; runs until the end of input, then tells what its runs took, if that is
 * counted.
 */
int main(int argc, char **argv)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, /* r0 = 0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	unsigned int hz = argc == 2 || argc == 3 ? (unsigned int)atoi(argv[1]) : 0;
	int pid = argc == 3 ? atoi(argv[2]) : -1;
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);
	int program;
	char byte;

	if (!hz) {
		fputs("usage: floor HZ [PID]\n", stderr);
		return 2;
	}
	program = pid >= 0 ? load_stack()
			   : bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "floor", "GPL", nothing, 2,
					   NULL);
	if (program < 0)
		return die("cannot load a program");
	for (int cpu = pid >= 0 ? -1 : 0; cpu < (pid >= 0 ? 0 : libbpf_num_possible_cpus());
	     cpu++) {
		if (attach(program, pid, cpu, hz) < 0)
			return die("cannot attach to a perf event");
	}
	puts("ready 1");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	if (bpf_obj_get_info_by_fd(program, &info, &bytes))
		return die("cannot ask for the program's statistics");
	printf("runs %llu\n", (unsigned long long)info.run_cnt);
	printf("run_ns %.3f\n", info.run_cnt ? (double)info.run_time_ns / (double)info.run_cnt : 0);
	return 0;
}
