/* schema.c - prints the schema of everything that --json writes */
#include <stdio.h>

#include "base/log.h"

#include "profile/json.h"
#include "verb.h"

int verb_schema(const struct options *o)
{
	if (o->argc) {
		log_err("schema: takes no arguments");
		return CTL_USAGE;
	}
	fputs(schema_json, stdout);
	return CTL_OK;
}
