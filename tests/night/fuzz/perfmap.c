/* perfmap.c - fuzzes the map of a just-in-time compiler's names */
#include <string.h>
#include <unistd.h>

#include "symbols/perf_map.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct perfmap map;
	int fd = unlimited_file_of(bytes, n);

	must(perfmap_read(&map, fd) == 0);
	for (size_t i = 0; i < map.n; i++) {
		const struct perfmap_name *name = &map.name[i];

		must(name->bytes && name->start + name->bytes >= name->start);
		must(*name->name && !strchr(name->name, '\n'));
		must(!i || map.name[i - 1].start < name->start);
	}
	perfmap_fini(&map);
	close(fd);
	return 0;
}
