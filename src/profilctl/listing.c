/* listing.c - the instructions of a function, with their samples */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/scope.h"

#include "listing.h"
#include "objectfile.h"

struct listing {
	const struct function *function;
	const struct spots *spots;
	__u64 vaddr; /* what the linker added to the offsets */
	void (*show)(void *ctx, const char *text, __u64 samples);
	void *ctx;
	char last[1024]; /* an instruction ends where the next one begins */
	__u64 from;
};

/* Shows the last instruction, which ends before @upto, an offset in the object. */
static void flush(struct listing *l, __u64 upto)
{
	__u64 samples = 0;

	if (!*l->last)
		return;
	for (size_t i = 0; i < l->spots->n; i++) {
		const struct spot *s = &l->spots->spot[i];

		if (s->function == l->function && s->place.offset >= l->from &&
		    s->place.offset < upto)
			samples += s->place.count;
	}
	l->show(l->ctx, l->last, samples);
	*l->last = '\0';
}

/* "  401136:<tab>push %rbp"; what is no instruction is left out. */
static void read_all(struct listing *l, FILE *objdump)
{
	char line[1024];

	while (fgets(line, sizeof(line), objdump)) {
		char *end;
		__u64 at = strtoull(line, &end, 16) - l->vaddr;

		if (end == line || *end != ':')
			continue;
		line[strcspn(line, "\n")] = '\0';
		flush(l, at);
		memcpy(l->last, line, sizeof(line));
		l->from = at;
	}
	flush(l, l->function->offset + l->function->size);
}

int listing_show(const struct profile *p, const struct function *f, const struct spots *s,
		 void (*show)(void *ctx, const char *text, __u64 samples), void *ctx)
{
	const struct object *o = &p->objects[f->object];
	__cleanup(closep) int fd = objectfile_open(o);
	struct listing l = {
		.function = f, .spots = s, .vaddr = o->vaddr, .show = show, .ctx = ctx
	};
	__u64 start = f->offset + o->vaddr;
	char command[256];
	FILE *objdump;

	if (fd < 0)
		return -ENOENT;
	/* By its descriptor: what lies at its path may be another file by now. */
	snprintf(command, sizeof(command),
		 "objdump -d -C --no-show-raw-insn --start-address=0x%llx --stop-address=0x%llx "
		 "/proc/%d/fd/%d 2>/dev/null",
		 start, start + f->size, (int)getpid(), fd);
	fflush(NULL);
	objdump = popen(command, "re");
	if (!objdump)
		return -ENOSYS;
	read_all(&l, objdump);
	return pclose(objdump) ? -ENOSYS : 0;
}
