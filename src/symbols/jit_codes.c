/* jit_codes.c - the bytes and source lines of code of a JIT compiler, from its jitdump */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/grow.h"

#include "cover.h"
#include "jit_codes.h"
#include "symbols/elf/read_budget.h"
#include "symbols/proc/file_account.h"
#include "symbols/proc/guarded_file.h"

/* What is read of a jitdump, which can be another user's: that user's account pays. */
#define CODES_MAX (256u << 10)
#define RECORDS_MAX (4u << 20)
#define RECORDS_UNCHECKED 1024

struct jit_codes {
	int fd;
	__u32 machine;
	struct jitdump_code *code;
	size_t n;
	struct claim *claim; /* the newest code of each address */
	size_t nclaims;
	struct read_budget budget;
};

int jit_codes_identify(struct object *o)
{
	char link[64], path[PATH_MAX];
	struct stat st;
	__u32 machine;
	ssize_t n;
	__u64 ns;

	if (o->kind != OBJECT_ANON || o->fd < 0 || !jitdump_made(o->fd, &ns, &machine) ||
	    fstat(o->fd, &st) < 0)
		return 0;
	o->file_mtime_ns = (__s64)ns;
	o->file_bytes = (__u64)st.st_size;
	if (o->jitdump)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", o->fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n < 0 ? 0 : n] = '\0';
	o->jitdump = strdup(path);
	return o->jitdump ? 0 : -ENOMEM;
}

/* The jitdump of @o: its descriptor, or the file at its path if that was begun at the same time. */
static int open_dump(const struct object *o, __u32 *machine)
{
	__cleanup(closep) int fd = o->fd >= 0	? fcntl(o->fd, F_DUPFD_CLOEXEC, 0)
				   : o->jitdump ? guarded_file_open(o->jitdump, NULL)
						: -1;
	__u64 ns;

	if (fd < 0 || !jitdump_made(fd, &ns, machine) ||
	    (o->fd < 0 && (__s64)ns != o->file_mtime_ns))
		return -ENOENT;
	return steal_fd(fd);
}

/* Reads the first @bytes of the file: what was written later is not what was sampled. */
static int read_records(struct jit_codes *c, __u64 bytes)
{
	__cleanup(jitdump_fini) struct jitdump dump = { .fd = c->fd };
	struct jitdump_code code, *more;

	for (unsigned int i = 0; i < RECORDS_MAX && jitdump_next(&dump, &code); i++) {
		if (dump.at > bytes)
			break;
		if (i % RECORDS_UNCHECKED == 0 && !read_budget_left(&c->budget))
			return -EFBIG;
		if (!code.bytes || code.start + code.bytes < code.start)
			continue;
		more = c->n == CODES_MAX ? NULL : grow(c->code, c->n, sizeof(*more));
		if (!more)
			return -EFBIG;
		c->code = more;
		c->code[c->n++] = code;
	}
	return 0;
}

static int cover_all(struct jit_codes *c)
{
	c->claim = calloc(2 * c->n + 1, sizeof(*c->claim));
	if (!c->claim)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		c->claim[i] = (struct claim){ c->code[i].start, c->code[i].start + c->code[i].bytes,
					      i, i };
	c->nclaims = c->n;
	return cover(c->claim, &c->nclaims);
}

static int read_all(struct jit_codes *c, __u64 bytes)
{
	int err;

	read_budget_begin(&c->budget, file_account_of(c->fd), FILE_TIME);
	err = read_records(c, bytes) ?: cover_all(c);
	if (!err && !read_budget_left(&c->budget))
		err = -EFBIG;
	read_budget_pause(&c->budget);
	return err;
}

void jit_codes_close(struct jit_codes *c)
{
	if (!c)
		return;
	closep(&c->fd);
	free(c->code);
	free(c->claim);
	read_budget_end(&c->budget);
	free(c);
}

static void jit_codes_closep(struct jit_codes **c)
{
	jit_codes_close(*c);
}

int jit_codes_open(struct jit_codes **out, const struct object *o)
{
	__cleanup(jit_codes_closep) struct jit_codes *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->fd = open_dump(o, &c->machine);
	err = c->fd < 0 ? c->fd : read_all(c, o->file_bytes ?: ~0ull);
	if (err < 0)
		return err;
	*out = steal(c);
	return 0;
}

__u32 jit_codes_machine(const struct jit_codes *c)
{
	return c->machine;
}

const struct jitdump_code *jit_codes_find(const struct jit_codes *c, __u64 address)
{
	size_t i = cover_upto(c->claim, c->nclaims, address);

	return i && address < c->claim[i - 1].end ? &c->code[c->claim[i - 1].owner] : NULL;
}

bool jit_codes_piece(const struct jit_codes *c, size_t i, struct jit_piece *out)
{
	if (i >= c->nclaims)
		return false;
	*out = (struct jit_piece){ c->claim[i].start, c->claim[i].end,
				   &c->code[c->claim[i].owner] };
	return true;
}

size_t jit_codes_frames(struct jit_codes *c, const struct jitdump_code *code, void *out,
			size_t bytes)
{
	ssize_t n;

	if (!code->frames_at || code->frames_bytes > bytes)
		return 0;
	if (!c->budget.reading)
		read_budget_resume(&c->budget);
	if (!read_budget_left(&c->budget))
		return 0;
	n = pread(c->fd, out, code->frames_bytes, (off_t)code->frames_at);
	return n == (ssize_t)code->frames_bytes ? (size_t)n : 0;
}

int jit_codes_line(const struct jit_codes *c, __u64 address, char *file, size_t bytes)
{
	const struct jitdump_code *code = jit_codes_find(c, address);

	return code ? jitdump_line(c->fd, code, address - code->start, file, bytes) : 0;
}

size_t jit_codes_read(const struct jit_codes *c, __u64 address, void *out, size_t bytes)
{
	const struct jitdump_code *code = jit_codes_find(c, address);
	__u64 into = code ? address - code->start : 0;
	ssize_t n;

	if (!code)
		return 0;
	n = pread(c->fd, out, bytes < code->bytes - into ? bytes : code->bytes - into,
		  (off_t)(code->at + into));
	return n < 0 ? 0 : (size_t)n;
}
