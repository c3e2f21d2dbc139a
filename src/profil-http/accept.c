/* accept.c - content negotiation by Accept and Accept-Encoding (RFC 9110, 12.5) */
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "accept.h"

#define BLANKS " \t"

static int is_token(const char *s, size_t n, const char *token)
{
	return strlen(token) == n && !strncasecmp(s, token, n);
}

/* Reads the parameters of one range, up to its end at @end. Returns q in thousandths. */
static unsigned int quality(const char *s, const char *end)
{
	unsigned int q = 1000;

	while ((s = memchr(s, ';', (size_t)(end - s)))) {
		unsigned int unit = 100;

		s++;
		s += strspn(s, BLANKS);
		if (end - s < 3 || (*s != 'q' && *s != 'Q') || s[1] != '=')
			continue;
		q = s[2] == '1' ? 1000 : 0;
		for (s += 4; q < 1000 && s < end && *s >= '0' && *s <= '9'; s++, unit /= 10)
			q += unit * (unsigned int)(*s - '0');
		break;
	}
	return q;
}

/* 3: the range is the type; 2: all of its kind; 1: everything; 0: another. */
static int specificity(const char *range, size_t n, const char *type, const char *subtype)
{
	const char *slash = memchr(range, '/', n);
	size_t left = slash ? (size_t)(slash - range) : 0, right = slash ? n - left - 1 : 0;

	if (!slash)
		return 0;
	if (is_token(range, left, "*"))
		return is_token(slash + 1, right, "*");
	if (!is_token(range, left, type))
		return 0;
	return is_token(slash + 1, right, "*") ? 2 : is_token(slash + 1, right, subtype) ? 3 : 0;
}

unsigned int accept_quality(const char *accept, const char *type, const char *subtype, int *named)
{
	unsigned int q = accept && accept[strspn(accept, BLANKS ",")] ? 0 : 1000;
	int best = 0;

	while (accept && *accept) {
		const char *end = accept + strcspn(accept, ",");
		size_t n;
		int s;

		accept += strspn(accept, BLANKS);
		n = strcspn(accept, ",;" BLANKS);
		s = specificity(accept, n, type, subtype);
		if (s > best) {
			best = s;
			q = quality(accept + n, end);
		}
		accept = end + (*end == ',');
	}
	*named = best == 3;
	return q;
}

/* Readers of the old format exist that take anything, so OpenMetrics must be asked for. */
enum metrics_format accept_metrics(const char *accept)
{
	int open_named, text_named;
	unsigned int open = accept_quality(accept, "application", "openmetrics-text", &open_named);
	unsigned int text = accept_quality(accept, "text", "plain", &text_named);

	if (open && ((open_named && open >= text) || !text))
		return METRICS_OPENMETRICS;
	return text ? METRICS_PROMETHEUS : METRICS_NONE;
}

/* The quality of @coding in @accept in thousandths; negative: it is not named. */
static int coding_quality(const char *accept, const char *coding)
{
	while (accept && *accept) {
		const char *end = accept + strcspn(accept, ",");
		size_t n;

		accept += strspn(accept, BLANKS);
		n = strcspn(accept, ",;" BLANKS);
		if (is_token(accept, n, coding))
			return (int)quality(accept + n, end);
		accept = end + (*end == ',');
	}
	return -1;
}

enum encoding accept_encoding(const char *accept)
{
	int any = coding_quality(accept, "*"), gzip = coding_quality(accept, "gzip");
	int identity = coding_quality(accept, "identity");

	if (gzip < 0)
		gzip = coding_quality(accept, "x-gzip"); /* its older name */
	if (gzip < 0)
		gzip = any < 0 ? 0 : any;
	if (gzip > 0 && gzip >= identity)
		return ENCODING_GZIP;
	/* It is taken unless the header excludes it. */
	return identity > 0 || (identity < 0 && any) ? ENCODING_IDENTITY : ENCODING_NONE;
}
