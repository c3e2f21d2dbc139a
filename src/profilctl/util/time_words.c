/* time_words.c - times in words, as journalctl's --since takes them */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "time_words.h"

#define DAY_S 86400
#define WORDS_MAX 64

static const struct {
	const char *name;
	time_t seconds;
} units[] = {
	{ "s", 1 },	    { "sec", 1 },	   { "second", 1 },
	{ "seconds", 1 },   { "m", 60 },	   { "min", 60 },
	{ "minute", 60 },   { "minutes", 60 },	   { "h", 3600 },
	{ "hr", 3600 },	    { "hour", 3600 },	   { "hours", 3600 },
	{ "d", DAY_S },	    { "day", DAY_S },	   { "days", DAY_S },
	{ "w", 7 * DAY_S }, { "week", 7 * DAY_S }, { "weeks", 7 * DAY_S },
};

/* Reads a number and its unit. Returns the rest of @words; NULL: malformed. */
static const char *one_length(time_t *sum, const char *words)
{
	char *unit;
	unsigned long n = strtoul(words, &unit, 10);
	size_t letters = 0;

	if (!isdigit((unsigned char)*words) || n > 1ul << 31)
		return NULL;
	while (*unit == ' ')
		unit++;
	while (isalpha((unsigned char)unit[letters]))
		letters++;
	if (!letters && !*unit) {
		*sum += (time_t)n;
		return unit;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		if (strlen(units[i].name) != letters || strncmp(units[i].name, unit, letters) != 0)
			continue;
		*sum += (time_t)n * units[i].seconds;
		return unit + letters + strspn(unit + letters, " ");
	}
	return NULL;
}

int time_length_parse(time_t *out, const char *words)
{
	time_t sum = 0;

	do {
		words = one_length(&sum, words);
	} while (words && *words);
	if (!words)
		return -EINVAL;
	*out = sum;
	return 0;
}

/* "-1h", "+5min", "1h ago", or "now". */
static int relative(time_t *out, const char *words, time_t now)
{
	char length[WORDS_MAX];
	size_t n = strlen(words);
	bool ago = n > 4 && !strcmp(words + n - 4, " ago");
	time_t by;

	if (!strcmp(words, "now")) {
		*out = now;
		return 0;
	}
	if (!ago && *words != '-' && *words != '+')
		return -EINVAL;
	snprintf(length, sizeof(length), "%.*s", (int)(ago ? n - 4 : n - 1), words + !ago);
	if (time_length_parse(&by, length) < 0)
		return -EINVAL;
	*out = *words == '+' ? now + by : now - by;
	return 0;
}

/* Reads "HH:MM" or "HH:MM:SS" into @tm; an empty text is midnight. */
static int clock_time(struct tm *tm, const char *words)
{
	const char *rest;

	tm->tm_hour = tm->tm_min = tm->tm_sec = 0;
	if (!*words)
		return 0;
	rest = strptime(words, "%H:%M:%S", tm);
	if (!rest || *rest) {
		tm->tm_sec = 0;
		rest = strptime(words, "%H:%M", tm);
	}
	return rest && !*rest ? 0 : -EINVAL;
}

/* The time of day of @tm, @days after the day of @day. */
static time_t on_day(const struct tm *tm, time_t day, int days)
{
	struct tm date;

	localtime_r(&day, &date);
	date.tm_mday += days;
	date.tm_hour = tm->tm_hour;
	date.tm_min = tm->tm_min;
	date.tm_sec = tm->tm_sec;
	date.tm_isdst = -1;
	return mktime(&date);
}

static int time_of_day(time_t *out, const char *words, time_t now, const time_t *after)
{
	struct tm tm = { 0 };

	if (!*words || clock_time(&tm, words) < 0)
		return -EINVAL;
	*out = on_day(&tm, after ? *after : now, 0);
	if (after && *out < *after)
		*out = on_day(&tm, *after, 1);
	else if (!after && *out > now)
		*out = on_day(&tm, now, -1);
	return 0;
}

/* "today" or "yesterday", with an optional time of day. */
static int named_day(time_t *out, const char *words, time_t now)
{
	static const struct {
		const char *name;
		int days;
	} names[] = { { "today", 0 }, { "yesterday", -1 }, { "tomorrow", 1 } };
	struct tm tm = { 0 };

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		size_t n = strlen(names[i].name);

		if (strncmp(words, names[i].name, n) != 0 || (words[n] && words[n] != ' '))
			continue;
		if (clock_time(&tm, words[n] ? words + n + 1 : "") < 0)
			return -EINVAL;
		*out = on_day(&tm, now, names[i].days);
		return 0;
	}
	return -EINVAL;
}

/* A date, with an optional time of day. */
static int date(time_t *out, char *words)
{
	struct tm tm = { .tm_isdst = -1 };
	size_t n = strlen(words);
	bool utc = false;
	const char *rest;

	if (n > 4 && !strcmp(words + n - 4, " UTC")) {
		utc = true;
		words[n - 4] = '\0';
	} else if (n > 1 && words[n - 1] == 'Z') {
		utc = true;
		words[n - 1] = '\0';
	}
	rest = strptime(words, "%Y-%m-%d", &tm);
	if (!rest || (*rest && *rest != ' ' && *rest != 'T') ||
	    clock_time(&tm, *rest ? rest + 1 : "") < 0)
		return -EINVAL;
	*out = utc ? timegm(&tm) : mktime(&tm);
	return 0;
}

int time_parse(time_t *out, const char *words, time_t now, const time_t *after)
{
	char copy[WORDS_MAX], *end;

	if (!*words || strlen(words) >= sizeof(copy))
		return -EINVAL;
	strcpy(copy, words);
	if (*words == '@') {
		*out = (time_t)strtoll(words + 1, &end, 10);
		return end != words + 1 && !*end ? 0 : -EINVAL;
	}
	if (!relative(out, copy, now) || !time_of_day(out, copy, now, after) ||
	    !named_day(out, copy, now))
		return 0;
	return date(out, copy);
}

int time_span_parse(struct time_span *out, const char *since, const char *until, time_t now,
		    const char **wrong)
{
	*out = (struct time_span){ .until = SPOOL_NO_END };
	*wrong = since;
	if (since && time_parse(&out->since, since, now, NULL) < 0)
		return -EINVAL;
	*wrong = until;
	if (until && time_parse(&out->until, until, now, since ? &out->since : NULL) < 0)
		return -EINVAL;
	*wrong = NULL;
	return out->until > out->since ? 0 : -ERANGE;
}

bool time_span_is(struct time_span *out, const char *words, time_t now)
{
	const char *dots = strstr(words, ".."), *wrong;
	char since[WORDS_MAX];

	if (!dots || (size_t)(dots - words) >= sizeof(since) || (dots == words && !dots[2]))
		return false;
	snprintf(since, sizeof(since), "%.*s", (int)(dots - words), words);
	return !time_span_parse(out, *since ? since : NULL, dots[2] ? dots + 2 : NULL, now, &wrong);
}

const char *time_text(char *out, size_t bytes, time_t t)
{
	struct tm tm;

	if (!localtime_r(&t, &tm) || !strftime(out, bytes, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(out, bytes, "@%lld", (long long)t);
	return out;
}
