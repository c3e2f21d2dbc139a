/* jsonname.c - names of unknown origin as JSON */
#include <stdlib.h>
#include <string.h>

#include "core/scope.h"

#include "jsonname.h"

json_t *jsonname(const char *s)
{
	__cleanup(freep) char *copy = NULL;
	json_t *j = json_string(s);

	if (j)
		return j;
	copy = strdup(s);
	for (char *c = copy; c && *c; c++)
		*c = (unsigned char)*c < 0x80 ? *c : '?';
	return copy ? json_string(copy) : NULL;
}

json_t *jsonname_of(const struct profile *p, const struct function *f)
{
	char name[4096];

	return jsonname(f->name ? f->name : profile_function_name(p, f, name, sizeof(name)));
}
