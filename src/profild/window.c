/* window.c - a BPF map's memory, of which as much is mapped as is in use */
#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>

#include "window.h"

#define STEP (1ul << 16) /* no page is larger */

static size_t steps_for(const struct window *w, size_t bytes)
{
	bytes = (bytes + STEP - 1) / STEP * STEP;
	return bytes < w->size ? bytes : w->size;
}

int window_open(struct window *w, int fd, size_t size)
{
	void *at = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (at == MAP_FAILED)
		return -errno;
	*w = (struct window){ .at = at, .size = size, .fd = fd };
	return 0;
}

void window_lend(struct window *w, int fd, void *at, size_t size, size_t offset)
{
	*w = (struct window){
		.at = at, .size = size, .mapped = size, .offset = offset, .fd = fd, .lent = true
	};
}

void window_close(struct window *w)
{
	if (w->at && !w->lent)
		munmap(w->at, w->size);
	*w = (struct window){ 0 };
}

int window_reach(struct window *w, size_t bytes)
{
	size_t end = steps_for(w, bytes);
	void *at;

	if (end > w->wanted)
		w->wanted = end;
	if (end <= w->mapped)
		return 0;
	at = mmap((uint8_t *)w->at + w->mapped, end - w->mapped, PROT_READ | PROT_WRITE,
		  MAP_SHARED | MAP_FIXED, w->fd, (off_t)(w->offset + w->mapped));
	if (at == MAP_FAILED)
		return -errno;
	w->mapped = end;
	return 0;
}

int window_narrow(struct window *w)
{
	void *at = (uint8_t *)w->at + w->wanted;

	if (w->wanted < w->mapped &&
	    mmap(at, w->mapped - w->wanted, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		return -errno;
	w->mapped = w->wanted;
	return 0;
}
