/* read_budget.c - limits the memory and time that reading a file of another user takes */
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "read_budget.h"

/* The resident memory that is of no file. Other threads' is in it: a limit too early does no harm.
 */
static __u64 own_bytes(void)
{
	__cleanup(closep) int fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
	unsigned long long resident = 0, shared = 0;
	char text[128];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	text[n < 0 ? 0 : n] = '\0';
	if (sscanf(text, "%*u %llu %llu", &resident, &shared) != 2 || resident < shared)
		return 0;
	return (resident - shared) * (__u64)sysconf(_SC_PAGESIZE);
}

void read_budget_resume(struct read_budget *b)
{
	if (!b->account)
		return;
	b->before_bytes = own_bytes();
	b->before_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	b->reading = true;
}

void read_budget_begin(struct read_budget *b, struct file_account *account, enum file_time kind)
{
	*b = (struct read_budget){ .account = account, .kind = kind };
	read_budget_resume(b);
}

static __u64 bytes_of(const struct read_budget *b)
{
	__u64 now = own_bytes();

	return b->bytes + (now > b->before_bytes ? now - b->before_bytes : 0);
}

static __u64 cpu_ns_of(const struct read_budget *b)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - b->before_ns;
}

static bool has_memory(struct read_budget *b)
{
	__u64 bytes = bytes_of(b);

	if (bytes <= b->charged)
		return true;
	if (bytes > READ_FILE_BYTES || !file_account_take(b->account, bytes - b->charged))
		return false;
	b->charged = bytes;
	return true;
}

static bool has_time(const struct read_budget *b)
{
	__u64 used = cpu_ns_of(b);

	return b->cpu_ns + used <= READ_FILE_CPU_NS + b->credit_ns &&
	       used <= file_account_time_left(b->account, b->kind) + b->credit_ns;
}

bool read_budget_left(struct read_budget *b)
{
	if (b->reading && !b->spent)
		b->spent = !has_memory(b) || !has_time(b);
	return !b->spent;
}

void read_budget_pause(struct read_budget *b)
{
	__u64 used;

	if (!b->reading)
		return;
	read_budget_left(b);
	used = cpu_ns_of(b);
	b->bytes = bytes_of(b);
	b->cpu_ns += used;
	file_account_use_time(b->account, b->kind, used);
	b->reading = false;
}

void read_budget_end(struct read_budget *b)
{
	read_budget_pause(b);
	if (b->account)
		file_account_give(b->account, b->charged);
	*b = (struct read_budget){ 0 };
}
