/* time_words.h - times in words, as journalctl's --since takes them */
#ifndef PROFIL_PROFILCTL_UTIL_TIME_WORDS_H
#define PROFIL_PROFILCTL_UTIL_TIME_WORDS_H

#include <stdbool.h>
#include <time.h>

#include "profile/spool_files.h"

/* A span of time: since <= t < until. */
struct time_span {
	time_t since;
	time_t until;
};

/*
 * Reads a time: "2026-11-22 03:00[:00]", "2026-11-22", "03:00[:00]", "today", "yesterday",
 * "yesterday 23:50", "now", "@SECONDS", "-90min", "2h ago". A date and a time can be separated by
 * T, and followed by UTC or Z. A time of day without a date means its last occurrence until @now;
 * with @after, its first occurrence from *@after on. Returns 0 or -EINVAL.
 */
int time_parse(time_t *out, const char *words, time_t now, const time_t *after);

/*
 * Reads the values of --since and --until. NULL for @since means from the beginning, NULL for
 * @until without an end. Returns 0, -EINVAL with the invalid value in *@wrong, or -ERANGE if the
 * span ends before it begins.
 */
int time_span_parse(struct time_span *out, const char *since, const char *until, time_t now,
		    const char **wrong);

/* Reads SINCE..UNTIL, of which one can be missing. Returns false if @words are not a span. */
bool time_span_is(struct time_span *out, const char *words, time_t now);

/*
 * Reads a length of time: "7d", "90min", "1h 30min"; a number without a unit is seconds. Returns 0
 * or -EINVAL.
 */
int time_length_parse(time_t *out, const char *words);

/* Writes @t in the local time zone, as "2026-11-22 03:00:00". Returns @out. */
const char *time_text(char *out, size_t bytes, time_t t);

#endif
