/* process_area.c - libprofil's memory that the daemon reads, and memory that a fork zeroes */
#include <stddef.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "process_area.h"

/* Used if the pages cannot be mapped or marked: a fork child then inherits all of it. */
static struct {
	struct profil_cookie_area area[2];
	struct fork_local local;
} unpaged;

static unsigned char *pages; /* four pages; NULL before the first call */

static size_t page_bytes(void)
{
	return getauxval(AT_PAGESZ);
}

static void *map_pages(void)
{
	size_t page = page_bytes();
	unsigned char *at =
		mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return &unpaged;
	if (madvise(at + page, page, MADV_WIPEONFORK) < 0 ||
	    madvise(at + 3 * page, page, MADV_WIPEONFORK) < 0) {
		munmap(at, 4 * page);
		return &unpaged;
	}
	return at;
}

/* If two threads race, the first one's pages are used. */
static unsigned char *get_pages(void)
{
	unsigned char *at = __atomic_load_n(&pages, __ATOMIC_ACQUIRE), *ours;

	if (at)
		return at;
	ours = map_pages();
	if (__atomic_compare_exchange_n(&pages, &at, ours, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		return ours;
	if (ours != (void *)&unpaged)
		munmap(ours, 4 * page_bytes());
	return at;
}

struct profil_cookie_area *process_area(unsigned int slot)
{
	unsigned char *at = get_pages();

	if (at == (void *)&unpaged)
		return &unpaged.area[slot];
	at += (2 * slot + 1) * page_bytes() - offsetof(struct profil_cookie_area, busy);
	return (struct profil_cookie_area *)(void *)at;
}

struct fork_local *fork_local(void)
{
	unsigned char *at = get_pages();

	if (at == (void *)&unpaged)
		return &unpaged.local;
	at += page_bytes() + sizeof(struct profil_cookie_area);
	return (struct fork_local *)(void *)at;
}
