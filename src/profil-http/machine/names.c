/* names.c - the names of a table's images and groups, and of the functions in them */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "names.h"

static int begin(struct names *n, struct source *source)
{
	int err;

	names_fini(n);
	n->profile = profile_new();
	if (!n->profile)
		return -ENOMEM;
	err = table_reader_open(&n->reader, source->fd, n->profile);
	if (err < 0) {
		names_fini(n);
		return err;
	}
	n->symbols.reopen = table_reader_reopen;
	n->symbols.reader = &n->reader;
	n->source = source_ref(source);
	return 0;
}

int names_update(struct names *n, struct source *source)
{
	int err = n->source == source ? 0 : begin(n, source);

	return err ? err : table_reader_update(&n->reader);
}

void names_renew(struct names *n)
{
	if (n->source)
		symbolize_cache_renew(&n->symbols, n->profile, symbolize_cache_minute_ago());
}

void names_fini(struct names *n)
{
	symbolize_cache_fini(&n->symbols);
	table_reader_close(&n->reader);
	profile_free(n->profile);
	source_unref(n->source);
	*n = (struct names){ 0 };
}
