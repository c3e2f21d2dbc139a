/* facts.h - the facts of a manual, each tested in a process of its own */
#ifndef PROFIL_TEST_FACTS_H
#define PROFIL_TEST_FACTS_H

#include <stddef.h>

/*
 * The samples that profild replays to every profile that starts (FACTS_OVER=replay), in this order,
 * after TICKS_AT_HOT at hot(). They are in the buffer when the call returns.
 */
#define AT 0x10000000ul
#define TICKS_AT 3     /* at AT */
#define TICKS_AT_1 1   /* at AT + 1 */
#define TICKS_AT_4 2   /* at AT + 4 */
#define TICKS_AT_8 5   /* at AT + 8 */
#define TICKS_AT_100 7 /* at AT + 0x100 */
#define MANY 0x20000000ul
#define TICKS_MANY 70000 /* at MANY */
#define AFTER 0x30000000ul
#define TICKS_AFTER 9 /* at AFTER */
#define TICKS_AT_HOT 50
#define TICKS_ALL                                                                        \
	(TICKS_AT_HOT + TICKS_AT + TICKS_AT_1 + TICKS_AT_4 + TICKS_AT_8 + TICKS_AT_100 + \
	 TICKS_MANY + TICKS_AFTER)

struct fact {
	const char *name;
	int (*holds)(void);
};

/* Ends a fact as failed. */
#define WANT(what)                                    \
	do {                                          \
		if (!(what)) {                        \
			fact_missed(#what, __LINE__); \
			return 0;                     \
		}                                     \
	} while (0)

/* The same, if a call should have failed with an errno. */
#define WANT_ERRNO(call, error) WANT((errno = 0, (call) == -1) && errno == (error))

/* Ends a fact as skipped, with a reason. */
#define SKIP(why) return fact_skipped(why)

void fact_missed(const char *what, int line);
int fact_skipped(const char *why);

/* Tries all facts up to the one without a name, and tells how many held. Returns main()'s status.
 */
int facts_try(const struct fact *facts);

/* True if samples are taken by the kernel, not replayed. */
int facts_live(void);

/* Uses some CPU time, nearly all of it in hot(); returns at once over replay. */
void burn(void);
void hot(unsigned long n);
#define HOT_BYTES 64

/* A page that is writable, read-only, or unmapped; the page after it is unmapped. */
#define PAGE 4096
void *page_writable(void);
void *page_read_only(void);
void *page_gone(void);

/* The sum of @n counters. */
unsigned long sum(const unsigned short *counter, size_t n);

#endif
