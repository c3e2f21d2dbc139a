/* places.c - takes a page fault at each of so many instructions: "places FILE N". FILE gets its
 * code
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096

/* A load from the address that is the argument, whose next page is that of the next load. */
#if defined(__x86_64__)
static const unsigned char load[] = { 0x8a, 0x07, 0x48, 0x81, 0xc7, 0x00, 0x10, 0x00, 0x00 };
static const unsigned char leave[] = { 0xc3 };
#elif defined(__aarch64__)
static const uint32_t load[] = { 0x39400001, 0x91400400 };
static const uint32_t leave[] = { 0xd65f03c0 };
#endif

/* Maps a file of @n loads, which begin at its second page, as code does in a program. */
static char *code_map(const char *path, size_t n)
{
	size_t bytes = PAGE + n * sizeof(load) + sizeof(leave);
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
	char *at;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		return MAP_FAILED;
	at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return at;
	for (size_t i = 0; i < n; i++)
		memcpy(at + PAGE + i * sizeof(load), load, sizeof(load));
	memcpy(at + PAGE + n * sizeof(load), leave, sizeof(leave));
	munmap(at, bytes);
	at = mmap(NULL, bytes, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	close(fd);
	return at;
}

int main(int argc, char **argv)
{
	size_t n = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
	char *code;
	void *pages;

	if (!n)
		return 2;
	code = code_map(argv[1], n);
	/* Only read, all are the kernel's page of zeros, and need memory for page tables only. */
	pages = mmap(NULL, n * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (code == MAP_FAILED || pages == MAP_FAILED)
		return perror(argv[1]), 1;
	madvise(pages, n * PAGE, MADV_NOHUGEPAGE);
	((void (*)(void *))(code + PAGE))(pages);
	return 0;
}
