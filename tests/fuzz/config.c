/* config.c - fuzzes what profild is told at its start: its whole configuration */
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "profild/config.h"
#include "core/layout.h"
#include "fuzz.h"

#define WORDS 32

static void in_range(const struct config *c)
{
	must(c->period_ns >= period_of(RATE_MAX_HZ) && c->period_ns <= period_of(RATE_MIN_HZ));
	must(c->fast_period_ns >= period_of(RATE_MAX_HZ) &&
	     c->fast_period_ns <= period_of(RATE_MIN_HZ));
	must(c->mirror_interval_ns > 0 && c->clock <= CLOCK_CYCLES && c->socket_path);
	must(c->user.profiles && c->user.profiles <= PROFIL_MAX_TARGETS);
	must(c->user.regions && c->user.regions <= PROFIL_MAX_REGIONS);
	must(c->user.bins && c->user.bins <= c->all.bins);
	must(c->user.rate_hz && c->user.rate_hz <= RATE_MAX_HZ);
	must(c->user.connections && c->user.connections <= c->all.connections);
	must(c->user.requests > 0);
}

/* Each line is a word of the command line. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = strndup((const char *)bytes, n), *rest = text;
	char *argv[WORDS + 2] = { (char *)(unsigned long)"profild" };
	struct config c;
	int argc = 1, err;

	must(text != NULL);
	while (rest && argc <= WORDS)
		argv[argc++] = strsep(&rest, "\n");
	argv[argc] = NULL;
	optind = 0; /* getopt() begins anew */
	opterr = 0;
	err = config_parse(&c, argc, argv);
	if (!err)
		in_range(&c);
	free(text);
	return 0;
}
