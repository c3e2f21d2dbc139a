/* window.h - a BPF map's memory, of which as much is mapped as is in use */
#ifndef PROFIL_WINDOW_H
#define PROFIL_WINDOW_H

#include <stddef.h>

/* The kernel maps an array's pages at once, and counts them as ours, whether we look or not. */
struct window {
	void *at; /* does not move */
	size_t size;
	size_t mapped;
	int fd;
};

/* The first @size bytes of the map @fd, which stays the caller's. None of them is mapped yet. */
int window_open(struct window *w, int fd, size_t size);
void window_close(struct window *w);

/* Maps at least the first @bytes. */
int window_reach(struct window *w, size_t bytes);

#endif
