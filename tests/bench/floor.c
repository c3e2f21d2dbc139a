/* floor.c - a BPF program that does nothing, on a perf event of every CPU: the least that one costs
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

static int attach(int program, int cpu, unsigned int hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000 / hz,
		.exclude_idle = 1,
	};
	int event = (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	if (event < 0)
		return errno == ENODEV ? 0 : event;
	return bpf_link_create(program, event, BPF_PERF_EVENT, NULL);
}

/* usage: floor HZ; runs until the end of input, then tells what its runs took, if that is counted.
 */
int main(int argc, char **argv)
{
	const struct bpf_insn nothing[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K }, /* r0 = 0 */
		{ .code = BPF_JMP | BPF_EXIT },
	};
	unsigned int hz = argc == 2 ? (unsigned int)atoi(argv[1]) : 0;
	struct bpf_prog_info info = { 0 };
	__u32 bytes = sizeof(info);
	int program;
	char byte;

	if (!hz) {
		fputs("usage: floor HZ\n", stderr);
		return 2;
	}
	program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "floor", "GPL", nothing, 2, NULL);
	if (program < 0)
		return die("cannot load a program");
	for (int cpu = 0; cpu < libbpf_num_possible_cpus(); cpu++) {
		if (attach(program, cpu, hz) < 0)
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
