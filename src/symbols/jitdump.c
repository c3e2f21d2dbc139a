/* jitdump.c - reads a jitdump, in which a JIT compiler describes its code for perf */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/count_while.h"
#include "base/grow.h"
#include "base/utf8.h"

#include "jitdump.h"
#include "symbols/proc/guarded_file.h"
#include "symbols/proc/proc_maps.h"

/* The format is that of tools/perf/Documentation/jitdump-specification.txt in Linux, version 1. */
#define MAGIC 0x4a695444u
#define CODE_LOAD 0
#define CODE_MOVE 1
#define CODE_DEBUG_INFO 2
#define CODE_UNWINDING_INFO 4

#define LOADS_MAX (256u << 10)	   /* beyond these, code that moves has no name */
#define LINES_BYTES_MAX (1u << 20) /* of one function */

/*
 * V8 adds the size of the ELF header that perf puts before the code to the addresses of lines, of
 * which the first is that of the code's start.
 */
#define ELF_HEADER_BYTES 0x40

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

struct code_move {
	struct record_head head;
	__u32 pid;
	__u32 tid;
	__u64 vma;
	__u64 from;
	__u64 to;
	__u64 bytes;
	__u64 number;
};

/* Of CODE_DEBUG_INFO, followed by @n lines. It comes before the code that it describes. */
struct debug_info {
	struct record_head head;
	__u64 start;
	__u64 n;
};

/* Followed by the name of the file, which ends with a NUL; SAME_FILE: that of the line before. */
struct debug_line {
	__u64 address;
	__u32 line;
	__u32 discriminator;
};

#define SAME_FILE "\xff"

/*
 * Of CODE_UNWINDING_INFO, followed by the .eh_frame and the .eh_frame_hdr of the code that comes
 * next. Their addresses are as if the first were at the next multiple of 8 behind the code.
 */
struct unwinding_info {
	struct record_head head;
	__u64 bytes; /* of both */
	__u64 hdr_bytes;
	__u64 mapped_bytes;
};

static bool read_at(const struct jitdump *d, void *out, size_t bytes)
{
	return pread(d->fd, out, bytes, (off_t)d->at) == (ssize_t)bytes;
}

bool jitdump_made(int fd, __u64 *ns, __u32 *machine)
{
	struct jitdump d = { .fd = fd };
	struct file_head head;

	if (!read_at(&d, &head, sizeof(head)) || head.magic != MAGIC || head.version != 1)
		return false;
	*ns = head.ns;
	*machine = head.machine;
	return true;
}

bool jitdump_is(int fd)
{
	__u64 ns;
	__u32 machine;

	return jitdump_made(fd, &ns, &machine);
}

/* A NUL ends the name, or else the bytes that it can have do. */
static bool read_name(struct jitdump *d, __u64 at, const struct code_load *load)
{
	char *name = d->name;
	ssize_t n = pread(d->fd, name, JITDUMP_NAME_MAX - 1, (off_t)(at + sizeof(*load)));
	size_t most = load->head.bytes - sizeof(*load) - load->bytes;

	if (n <= 0)
		return false;
	name[(size_t)n < most ? (size_t)n : most] = '\0';
	for (char *c = name; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	return *name;
}

/* Reads the code that the record at @from describes. */
static bool read_code(struct jitdump *d, const struct jitdump_load *from, struct jitdump_code *code,
		      __u64 *number)
{
	struct code_load load;

	if (pread(d->fd, &load, sizeof(load), (off_t)from->at) != sizeof(load) ||
	    load.head.bytes < sizeof(load) || load.bytes > load.head.bytes - sizeof(load) ||
	    !load.bytes || !read_name(d, from->at, &load))
		return false;
	*code = (struct jitdump_code){ .start = load.start,
				       .first = load.start,
				       .bytes = load.bytes,
				       .at = from->at + load.head.bytes - load.bytes,
				       .lines_at = from->lines_at,
				       .lines_bytes = from->lines_bytes,
				       .frames_at = from->frames_at,
				       .frames_bytes = from->frames_bytes };
	*number = load.number;
	return true;
}

static void keep_load(struct jitdump *d, const struct jitdump_load *load)
{
	struct jitdump_load *more;

	if (d->loads == LOADS_MAX || (d->loads && d->load[d->loads - 1].number >= load->number))
		return;
	more = grow(d->load, d->loads, sizeof(*more));
	if (!more)
		return;
	d->load = more;
	d->load[d->loads++] = *load;
}

static bool read_load(struct jitdump *d, struct jitdump_code *code)
{
	struct jitdump_load load = d->ahead;

	load.at = d->at;
	d->ahead = (struct jitdump_load){ 0 };
	if (!read_code(d, &load, code, &load.number))
		return false;
	if (load.lines_at && d->lines_of != code->start)
		code->lines_at = load.lines_at = 0;
	keep_load(d, &load);
	return true;
}

static bool read_move(struct jitdump *d, struct jitdump_code *code)
{
	struct code_move move;
	__u64 number;
	size_t i;

	if (!read_at(d, &move, sizeof(move)))
		return false;
	i = COUNT_WHILE(d->loads, k, d->load[k].number < move.number);
	if (i == d->loads || d->load[i].number != move.number ||
	    !read_code(d, &d->load[i], code, &number))
		return false;
	code->start = move.to;
	return true;
}

static bool read_debug_info(struct jitdump *d)
{
	struct debug_info info;

	if (!read_at(d, &info, sizeof(info)) || info.head.bytes <= sizeof(info))
		return false;
	d->lines_of = info.start;
	d->ahead.lines_at = d->at + sizeof(info);
	d->ahead.lines_bytes = info.head.bytes - sizeof(info);
	return false;
}

static bool read_unwinding_info(struct jitdump *d)
{
	struct unwinding_info info;

	if (!read_at(d, &info, sizeof(info)) || info.head.bytes < sizeof(info) ||
	    info.bytes > info.head.bytes - sizeof(info) || info.hdr_bytes >= info.bytes)
		return false;
	d->ahead.frames_at = d->at + sizeof(info);
	d->ahead.frames_bytes = info.bytes - info.hdr_bytes;
	return false;
}

static bool read_record(struct jitdump *d, const struct record_head *head,
			struct jitdump_code *code)
{
	switch (head->id) {
	case CODE_LOAD:
		return read_load(d, code);
	case CODE_MOVE:
		return read_move(d, code);
	case CODE_DEBUG_INFO:
		return read_debug_info(d);
	case CODE_UNWINDING_INFO:
		return read_unwinding_info(d);
	}
	return false;
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
	if (!read_record(d, &head, code))
		code->bytes = 0;
	d->at += head.bytes;
	return 1;
}

void jitdump_fini(struct jitdump *d)
{
	free(d->load);
}

/* Finds the line of @text that begins last at or before @offset of the code. */
static int find_line(const char *text, size_t n, const struct jitdump_code *code, __u64 offset,
		     const char **file)
{
	const char *end = text + n, *named = "";
	__u64 shift = 0, nearest = 0;
	struct debug_line line;
	int found = 0;

	for (const char *at = text; end - at > (ptrdiff_t)sizeof(line);) {
		const char *name = at + sizeof(line);
		const char *name_end = memchr(name, 0, (size_t)(end - name));

		if (!name_end)
			break;
		memcpy(&line, at, sizeof(line));
		if (at == text && line.address - code->first >= ELF_HEADER_BYTES)
			shift = ELF_HEADER_BYTES;
		line.address -= code->first + shift;
		named = strcmp(name, SAME_FILE) ? name : named;
		if (line.address <= offset && line.address >= nearest) {
			nearest = line.address;
			found = (int)line.line;
			*file = named;
		}
		at = name_end + 1;
	}
	return found;
}

/* Node 20 writes names that it has freed. */
static bool is_text(const char *s)
{
	for (size_t n; *s; s += n) {
		n = utf8_bytes(s);
		if (!n || utf8_is_control(s, n))
			return false;
	}
	return true;
}

int jitdump_line(int fd, const struct jitdump_code *code, __u64 offset, char *file, size_t bytes)
{
	size_t n = code->lines_bytes < LINES_BYTES_MAX ? code->lines_bytes : LINES_BYTES_MAX;
	__cleanup(freep) char *text = code->lines_at ? malloc(n) : NULL;
	const char *name = "";
	ssize_t got = text ? pread(fd, text, n, (off_t)code->lines_at) : 0;
	int line = got > 0 ? find_line(text, (size_t)got, code, offset, &name) : 0;

	if (line <= 0 || !*name || !is_text(name))
		return 0;
	snprintf(file, bytes, "%s", name);
	return line;
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
