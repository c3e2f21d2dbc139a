/* top_calls.c - top's pages of callers and calls */
#include "profile/stack_ends.h"
#include "profilctl/output/text_stacks.h"
#include "symbols/short_name.h"
#include "base/sanitize.h"
#include "top_calls.h"

#define LEAST_PERCENT 1
#define NAME_COLUMNS 50

int top_calls_write(FILE *out, const struct profile *p, const struct function *of, size_t columns)
{
	struct text_tree tree = { .of = of, .least_percent = LEAST_PERCENT, .columns = columns };
	char name[4096], clear[4096], fits[4096];

	if (of) {
		profile_function_name(p, of, name, sizeof(name));
		sanitize(clear, sizeof(clear), name);
		fprintf(out, "callers of %s, ", fit_name(fits, sizeof(fits), clear, NAME_COLUMNS));
	}
	fprintf(out, "%llu samples\n", p->total);
	return has_stacks(p) ? text_tree(out, p, &tree) : 0;
}
