/* conditional.c - conditional requests by entity tags (RFC 9110, 13.1) */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

#include "conditional.h"

/* FNV-1a: the tags of one address must differ, which no reader can choose. */
void etag_of(char out[ETAG_BYTES], const char *bytes, size_t n, const char *coding)
{
	__u64 h = 14695981039346656037u;

	for (size_t i = 0; i < n; i++)
		h = (h ^ (unsigned char)bytes[i]) * 1099511628211u;
	snprintf(out, ETAG_BYTES, "\"%016llx%s%s\"", h, *coding ? "-" : "", coding);
}

/* Says whether @list, "*" or tags with commas between them, has @etag. Weak tags are equal to
 * strong ones of the same text, if @weak. */
static bool has(const char *list, const char *etag, bool weak)
{
	size_t n = etag ? strlen(etag) : 0;

	list += strspn(list, " \t");
	if (*list == '*')
		return true;
	while (n && *list) {
		bool is_weak = !strncmp(list, "W/", 2);
		const char *tag = list + (is_weak ? 2 : 0);
		const char *end = *tag == '"' ? strchr(tag + 1, '"') : NULL;

		if (!end)
			return false;
		if ((weak || !is_weak) && (size_t)(end + 1 - tag) == n && !memcmp(tag, etag, n))
			return true;
		list = end + 1 + strspn(end + 1, " \t,");
	}
	return false;
}

unsigned int conditional_status(const char *etag, const char *if_match, const char *if_none_match)
{
	if (if_match && !has(if_match, etag, false))
		return 412;
	return if_none_match && has(if_none_match, etag, true) ? 304 : 200;
}
