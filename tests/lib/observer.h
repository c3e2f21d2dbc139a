/* observer.h - a client with an attachment, and its table of places */
#ifndef PROFIL_TEST_OBSERVER_H
#define PROFIL_TEST_OBSERVER_H

#include <stdint.h>
#include <sys/types.h>

#include "core/observe_maps.h"
#include "core/proto.h"
#include "daemon.h"

struct observer {
	int sock;
	int fd;	    /* of the table */
	int unwind; /* of the map of unwind rules; -1: none */
	const struct profil_table *table;
	size_t bytes;
};

#define OBSERVER_FAST_NS 100000 /* the period of 10000 Hz */

/* The usual request: @scope at @period_ns, following children and execs. */
struct profil_msg_observe observer_ask(enum profil_scope scope, uint64_t period_ns);

/* Sends @ask to @d and maps the table. Returns the errno of the daemon's REPLY. */
int observer_open(struct observer *o, const struct daemon *d, const struct profil_msg_observe *ask);
/* The same for a test, which fails when the daemon refuses it. */
void observer_must_open(struct observer *o, const struct daemon *d,
			const struct profil_msg_observe *ask);
/* Sends @h through o->sock and maps the table, if the reply has one. Returns the reply's errno. */
int observer_take(struct observer *o, const struct profil_header *h);
void observer_close(struct observer *o);

/* Starts counting after a request with PROFIL_OBSERVE_LATER. Returns the errno. */
int observer_begin(struct observer *o);

/* Adds process @pid, with its maps as proof. Returns the errno. */
int observer_add(struct observer *o, pid_t pid);

/* Observes a child that calls @work(@arg), to its end. */
void observer_run(struct observer *o, void (*work)(const char *arg), const char *arg);

/* The samples of the table by the formula in observe_maps.h, and as the daemon counts them. */
uint64_t observer_sum(const struct observer *o);
uint64_t observer_total(const struct observer *o);

/* Expects both to agree, when no observed process runs any more. Returns the number. */
uint64_t observer_check(const struct observer *o);

/* Image @number, from 1 on; NULL when it is free. */
const struct profil_image *observer_image(const struct observer *o, uint32_t number);

/* The number of the first image of @kind whose last component is @name (NULL: any); 0: none. */
uint32_t observer_find(const struct observer *o, int kind, const char *name);

/* The path of @image, joined of its components; valid until the next call. */
const char *observer_path(const struct profil_image *image);

/* Samples of image @number (0: of all) whose keys have of FOLDED and SUM exactly @bits. */
uint64_t observer_count(const struct observer *o, uint32_t number, uint64_t bits);

/* Samples of the keys that @wanted() selects. */
uint64_t observer_count_by(const struct observer *o, int (*wanted)(const void *arg, uint64_t key),
			   const void *arg);

/* Node @number of the tree of calls, from PROFIL_STACK_ROOTS on. */
const struct profil_node *observer_node(const struct observer *o, uint32_t number);

/* Group @number, from 1 on; NULL when it is free. */
const struct profil_group *observer_group(const struct observer *o, uint32_t number);

#endif
