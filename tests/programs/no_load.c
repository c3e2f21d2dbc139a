/* no_load.c - for LD_PRELOAD: no BPF program can be loaded while the file NO_LOAD exists, for want of memory */
#include <dlfcn.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ARGUMENTS 6

long syscall(long number, ...)
{
	long (*next)(long number, ...);
	long of[ARGUMENTS];
	va_list arguments;

	va_start(arguments, number);
	for (int i = 0; i < ARGUMENTS; i++)
		of[i] = va_arg(arguments, long);
	va_end(arguments);
	if (number == SYS_bpf && of[0] == BPF_PROG_LOAD && !access(getenv("NO_LOAD"), F_OK)) {
		errno = ENOMEM;
		return -1;
	}
	*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, of[0], of[1], of[2], of[3], of[4], of[5]);
}
