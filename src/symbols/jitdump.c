/* jitdump.c - reads a jitdump, in which a JIT compiler describes its code for perf */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

#include "jitdump.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/proc_maps.h"

/* The format is that of tools/perf/Documentation/jitdump-specification.txt in Linux, version 1. */
#define MAGIC 0x4a695444u
#define CODE_LOAD 0

struct file_head {
	__u32 magic;
	__u32 version;
	__u32 bytes; /* of this */
	__u32 machine;
	__u32 zero;
	__u32 pid;
	__u64 ns;
	__u64 flags;
};

struct record_head {
	__u32 id;
	__u32 bytes; /* with this */
	__u64 ns;
};

/* Of CODE_LOAD, followed by the name, which ends with a NUL, and the code. */
struct code_load {
	struct record_head head;
	__u32 pid;
	__u32 tid;
	__u64 vma;
	__u64 start;
	__u64 bytes;
	__u64 number;
};

static bool read_at(const struct jitdump *d, void *out, size_t bytes)
{
	return pread(d->fd, out, bytes, (off_t)d->at) == (ssize_t)bytes;
}

bool jitdump_is(int fd)
{
	struct jitdump d = { .fd = fd };
	struct file_head head;

	return read_at(&d, &head, sizeof(head)) && head.magic == MAGIC && head.version == 1;
}

/* A NUL ends the name, or else the bytes that it can have do. */
static bool read_name(const struct jitdump *d, const struct code_load *load, char *name)
{
	ssize_t n = pread(d->fd, name, JITDUMP_NAME_MAX - 1, (off_t)(d->at + sizeof(*load)));
	size_t most = load->head.bytes - sizeof(*load) - load->bytes;

	if (n <= 0)
		return false;
	name[(size_t)n < most ? (size_t)n : most] = '\0';
	for (char *c = name; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	return *name;
}

/* Reads the code of the record at d->at. */
static bool read_code(const struct jitdump *d, struct jitdump_code *code)
{
	struct code_load load;

	if (!read_at(d, &load, sizeof(load)) || load.head.bytes < sizeof(load) ||
	    load.bytes > load.head.bytes - sizeof(load) || !load.bytes)
		return false;
	code->start = load.start;
	code->bytes = load.bytes;
	return read_name(d, &load, code->name);
}

int jitdump_next(struct jitdump *d, struct jitdump_code *code)
{
	struct file_head file;
	struct record_head head;

	if (!d->at) {
		if (!read_at(d, &file, sizeof(file)) || file.bytes < sizeof(file))
			return 0;
		d->at = file.bytes;
	}
	if (!read_at(d, &head, sizeof(head)) || head.bytes < sizeof(head))
		return 0;
	if (head.id != CODE_LOAD || !read_code(d, code))
		code->bytes = 0;
	d->at += head.bytes;
	return 1;
}

/* The path of the mapped file below its root; "" if there is none. */
static void find_path(char *out, size_t bytes, pid_t pid, int inner)
{
	struct maps maps;
	char name[64];

	*out = '\0';
	snprintf(name, sizeof(name), "/jit-%d.dump", inner);
	if (maps_read(&maps, pid) < 0)
		return;
	for (size_t i = 0; i < maps.n && !*out; i++) {
		const char *path = maps.mapping[i].path;
		size_t n = strlen(path), end = strlen(name);

		if (maps.mapping[i].ino && !maps.mapping[i].deleted && n >= end && n < bytes &&
		    !strcmp(path + n - end, name))
			strcpy(out, path + 1);
	}
	maps_fini(&maps);
}

int jitdump_open(pid_t pid, int inner, const char *root, uid_t owner)
{
	__cleanup(closep) int fd = -1;
	char path[4096];
	struct stat st;

	find_path(path, sizeof(path), pid, inner);
	fd = *path ? guarded_file_open_below(root, path, &st) : -1;
	return fd < 0 || st.st_uid != owner ? -ENOENT : steal_fd(fd);
}
