/* config.c - fuzzes profild's configuration file and command line */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profild/config.h"
#include "core/shared_maps.h"
#include "fuzz.h"

#define WORDS 32

static void in_range(const struct config *c)
{
	must(c->period_ns >= period_of(RATE_MAX_HZ) && c->period_ns <= period_of(RATE_MIN_HZ));
	must(c->fast_period_ns >= period_of(RATE_MAX_HZ) &&
	     c->fast_period_ns <= period_of(RATE_MIN_HZ));
	must(c->mirror_interval_ns > 0 && c->clock <= CLOCK_CYCLES && c->socket_path);
	must(c->quota.requests.a_second > 0);
	for (int i = 0; i < N_RESOURCES; i++)
		must(c->quota.user.of[i] && c->quota.user.of[i] <= c->quota.machine.of[i]);
}

/* True if each line is a comment: then the file must be accepted. */
static int is_comment(const char *text)
{
	const char *line = text;

	while (line && *line == '#') {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return !line || !*line;
}

/* The input is the file up to the first NUL; after it each line is an argument. */
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = strndup((const char *)bytes, n), *words = NULL, *rest, file[64];
	size_t used = strlen(text);
	char *argv[WORDS + 4] = { (char *)(unsigned long)"profild",
				  (char *)(unsigned long)"--config", file };
	int fd = file_of(text, used), argc = 3, err;
	struct config c;

	snprintf(file, sizeof(file), "/proc/self/fd/%d", fd);
	if (used + 1 < n)
		words = strndup((const char *)bytes + used + 1, n - used - 1);
	for (rest = words; rest && argc <= WORDS;)
		argv[argc++] = strsep(&rest, "\n");
	argv[argc] = NULL;
	opterr = 0;
	err = config_parse(&c, argc, argv);
	if (!err) {
		in_range(&c);
		must(config_reload(&c) == 0);
		in_range(&c);
	}
	must(words || !is_comment(text) || !err);
	close(fd);
	free(words);
	free(text);
	return 0;
}
