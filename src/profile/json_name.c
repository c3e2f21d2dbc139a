/* json_name.c - names of unknown origin as JSON */
#include <stdlib.h>

#include "base/cleanup.h"

#include "json_name.h"
#include "base/utf8.h"

json_t *jsonname(const char *s)
{
	__cleanup(freep) char *copy = NULL;

	if (utf8_is_valid(s))
		return json_string(s);
	copy = utf8_copy(s);
	return copy ? json_string(copy) : NULL;
}

json_t *jsonname_of(const struct profile *p, const struct function *f)
{
	char name[4096];

	return jsonname(f->name ? f->name : profile_function_name(p, f, name, sizeof(name)));
}
