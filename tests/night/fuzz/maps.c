/* maps.c - fuzzes /proc/PID/maps, as read by profilctl and by the daemon */
#include "profild/worker/process_memory.c"
#include "symbols/proc/proc_maps.h"

#include "fuzz.h"

static void sorted(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct mapping *m = &maps->mapping[i];

		must(m->lo < m->hi && !strchr(m->path, '\n'));
		must(!i || maps->mapping[i - 1].hi <= m->lo);
		must(maps_find(maps, m->lo) == m && maps_find(maps, m->hi - 1) == m);
	}
}

/* Before Linux 6.11 the daemon reads this file to find out what is writable. */
static void writable(const uint8_t *bytes, size_t n, uint64_t addr)
{
	struct memory m = { .mem = -1, .maps = file_of(bytes, n) };
	int err = find_in_maps(&m, addr);

	if (!err)
		must(m.seen.start <= addr && addr < m.seen.end);
	else
		must(err == -EFAULT || err == -ESRCH);
	free(m.writable);
	close(m.maps);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct input in = { bytes, n };
	struct maps maps;
	uint64_t addr;
	char *text;

	input_take(&in, &addr, sizeof(addr));
	text = calloc(1, in.left + 1);
	must(text != NULL);
	input_take(&in, text, in.left);
	writable((uint8_t *)text, strlen(text), addr);
	must(maps_parse(&maps, text) == 0);
	sorted(&maps);
	maps_find(&maps, addr);
	maps_fini(&maps);
	return 0;
}
