/* truncated_file.c - mapped files that become shorter while they are read */
#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truncated_file.h"

static uintptr_t page_bytes;

/*
 * Replaces the page by zeroes and repeats the access. If that does not help (hardware memory error,
 * address that cannot be mapped), the repeated SIGBUS has its default action.
 */
static void on_bus_error(int number, siginfo_t *info, void *context)
{
	void *page = (void *)((uintptr_t)info->si_addr & ~(page_bytes - 1));
	int saved = errno;

	if (info->si_code != BUS_ADRERR ||
	    mmap(page, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED)
		signal(number, SIG_DFL);
	errno = saved;
}

void truncated_file_reads_as_zeroes(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };

	page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
	sigaction(SIGBUS, &action, NULL);
}
