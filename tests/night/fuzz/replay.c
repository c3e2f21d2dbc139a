/* replay.c - fuzzes a file of ticks */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "profild/config.h"
#include "profild/profile/sampler.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const struct sampler_sink sink;
	struct sampler *s = NULL;
	char path[64];
	struct config config = { .replay_path = path };
	int fd = file_of(bytes, n), err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	err = sampler_replay_open(&s, &config, &sink);
	must(err == 0 || err == -EINVAL);
	if (s)
		s->ops->close(s);
	close(fd);
	return 0;
}
