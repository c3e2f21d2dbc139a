/* programs.c - the run statistics of a daemon's BPF programs */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "programs.h"

/* Says whether @d holds program @id: other daemons' programs have the same names. */
static int holds(const struct daemon *d, __u32 id)
{
	char path[64], line[256];
	__u32 held;
	int found = 0;

	for (int fd = 0; fd < 256 && !found; fd++) {
		__cleanup(fclosep) FILE *f = NULL;

		snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", (int)d->pid, fd);
		f = fopen(path, "re");
		while (f && !found && fgets(line, sizeof(line), f))
			found = sscanf(line, "prog_id: %u", &held) == 1 && held == id;
	}
	return found;
}

struct bpf_prog_info program_ran(const struct daemon *d, const char *name)
{
	struct bpf_prog_info found = { 0 };
	__u32 id = 0;

	while (bpf_prog_get_next_id(id, &id) == 0) {
		struct bpf_prog_info info = { 0 };
		__cleanup(closep) int fd = bpf_prog_get_fd_by_id(id);
		__u32 len = sizeof(info);

		if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 &&
		    !strcmp(info.name, name) && holds(d, id))
			found = info;
	}
	cr_assert(found.id, "the kernel runs no program called %s", name);
	return found;
}
