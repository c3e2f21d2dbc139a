/* files.c - executes code in so many files: "files DIR N MS", each for MS milliseconds of CPU time
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A loop of as many steps as its argument says. */
#if defined(__x86_64__)
static const unsigned char code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
static const unsigned int code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#endif

static double cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void execute(const char *dir, int number, double ms)
{
	char path[512];
	double end;
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s/code-%d", dir, number);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	if (fd < 0 || write(fd, code, sizeof(code)) != (ssize_t)sizeof(code))
		exit(1);
	at = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	if (at == MAP_FAILED)
		exit(1);
	for (end = cpu_ms() + ms; cpu_ms() < end;)
		((void (*)(unsigned long))at)(20000);
	munmap(at, 4096);
}

int main(int argc, char **argv)
{
	int n = argc > 3 ? atoi(argv[2]) : 0;

	if (!n)
		return 2;
	for (int i = 0; i < n; i++)
		execute(argv[1], i, atof(argv[3]));
	return 0;
}
