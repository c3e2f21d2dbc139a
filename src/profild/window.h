/* window.h - a BPF map's memory, of which as much is mapped as is in use */
#ifndef PROFIL_WINDOW_H
#define PROFIL_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

/* The kernel maps an array's pages at once, and counts them as ours, whether we look or not. */
struct window {
	void *at; /* does not move */
	size_t size;
	size_t mapped;
	size_t wanted; /* of them */
	size_t offset; /* in the map */
	int fd;
	bool lent; /* the memory is part of what somebody else has mapped */
};

/* The first @size bytes of the map @fd, which stays the caller's. None of them is mapped yet. */
int window_open(struct window *w, int fd, size_t size);

/* The @size bytes at @at, which lie in the map @fd at @offset. All of them are mapped. */
void window_lend(struct window *w, int fd, void *at, size_t size, size_t offset);
void window_close(struct window *w);

/* Maps at least the first @bytes. */
int window_reach(struct window *w, size_t bytes);

/* No more stays mapped than window_reach() has been asked for. */
int window_narrow(struct window *w);

#endif
