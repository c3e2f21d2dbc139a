/* steps.c - runs a program step by step and prints which of its own instructions it executes
 *
 * usage: steps PROGRAM OUTPUT    PROGRAM is an absolute path. OUTPUT has a line for each step: the
 *                                address minus the program's first, or - for any number elsewhere.
 */
#include <elf.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef __x86_64__
#define PC rip
#else
#define PC pc
#endif

static unsigned long pc_of(pid_t pid)
{
	struct user_regs_struct regs = { 0 };
	struct iovec io = { &regs, sizeof(regs) };

	ptrace(PTRACE_GETREGSET, pid, NT_PRSTATUS, &io);
	return regs.PC;
}

/* The addresses of @program in process @pid. */
static int find(pid_t pid, const char *program, unsigned long *start, unsigned long *end)
{
	unsigned long from, to;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	while (f && fgets(line, sizeof(line), f)) {
		if (!strstr(line, program) || sscanf(line, "%lx-%lx", &from, &to) != 2)
			continue;
		*start = *start ? *start : from;
		*end = to;
	}
	if (f)
		fclose(f);
	return *start != 0;
}

int main(int argc, char **argv)
{
	FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;
	unsigned long start = 0, end = 0;
	int status, elsewhere = 0;
	pid_t pid = out ? fork() : -1;

	if (!pid) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		execl(argv[1], argv[1], (char *)NULL);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) < 0 || !WIFSTOPPED(status) ||
	    !find(pid, argv[1], &start, &end))
		return 1;
	while (WIFSTOPPED(status)) {
		unsigned long at = pc_of(pid) - start;

		if (at < end - start)
			fprintf(out, "%lx\n", at);
		else if (!elsewhere)
			fprintf(out, "-\n");
		elsewhere = at >= end - start;
		if (ptrace(PTRACE_SINGLESTEP, pid, 0, 0) < 0 || waitpid(pid, &status, 0) < 0)
			return 1;
	}
	return fclose(out) || WEXITSTATUS(status);
}
