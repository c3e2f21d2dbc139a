/* perf_map.c - reads the perf map, in which a JIT compiler names its code */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "cover.h"
#include "jitdump.h"
#include "perf_map.h"
#include "symbols/elf/read_budget.h"
#include "symbols/proc/file_account.h"
#include "symbols/proc/guarded_file.h"

#define STEP_BYTES_MIN (64u << 10)
#define STEP_BYTES_MAX (4u << 20)

/* What a line costs at most: here, and in the symbols that are made from it. */
#define NAME_BYTES 256

static void discharge(struct perfmap *map, size_t bytes)
{
	map->held_bytes -= bytes;
	if (map->account)
		file_account_give(map->account, bytes);
}

static int charge(struct perfmap *map, size_t bytes)
{
	if (map->account && !file_account_take(map->account, bytes))
		return -EFBIG;
	map->held_bytes += bytes;
	return 0;
}

static __u64 used_ns(const struct perfmap *map)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID) - map->begun_ns;
}

static bool is_in_time(const struct perfmap *map)
{
	__u64 ns;

	if (!map->account)
		return true;
	ns = used_ns(map);
	return ns < READ_FILE_CPU_NS && ns < file_account_time_left(map->account, FILE_TIME);
}

/* The process's pid in its own pid namespace, which is in the file's name; 0: it has ended. */
static int inner_pid(int proc)
{
	__cleanup(closep) int fd = openat(proc, "status", O_RDONLY | O_CLOEXEC);
	char text[4096], *line;
	int pid = 0, n;
	ssize_t len;

	len = fd < 0 ? -1 : read(fd, text, sizeof(text) - 1);
	text[len < 0 ? 0 : len] = '\0';
	line = strstr(text, "\nNSpid:");
	if (!line)
		return 0;
	/* NSpid has a pid for each namespace, the innermost last. */
	for (line += strlen("\nNSpid:"); sscanf(line, " %d%n", &pid, &n) == 1; line += n) {
		if (line[n] == '\n')
			break;
	}
	return pid;
}

/*
 * Symbolic links must not lead out of @root: the process controls them. It can also mount a device
 * over the file.
 */
static int open_owned(const char *root, int pid, uid_t owner)
{
	__cleanup(closep) int fd = -1;
	struct stat st;
	char path[64];

	snprintf(path, sizeof(path), "tmp/perf-%d.map", pid);
	fd = guarded_file_open_below(root, path, &st);
	return fd < 0 || st.st_uid != owner ? -ENOENT : steal_fd(fd);
}

/*
 * Opens what @pid describes its code in: with @dump the jitdump, which has more than names, or else
 * the perf map.
 */
static int open_names(pid_t pid, bool dump)
{
	__cleanup(closep) int proc = -1;
	__cleanup(closep) int at_root = -1;
	struct stat st;
	char path[64], root[64];
	int inner, fd = -ENOENT;

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	proc = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	inner = proc < 0 ? 0 : inner_pid(proc);
	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	at_root = proc < 0 ? -1 : openat(proc, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (!inner || at_root < 0 || fstat(proc, &st) < 0)
		return open_owned("/", (int)pid, geteuid());
	if (dump)
		fd = jitdump_open(pid, inner, root, st.st_uid);
	return fd < 0 ? open_owned(root, inner, st.st_uid) : fd;
}

int perfmap_open(pid_t pid)
{
	return open_names(pid, false);
}

int perfmap_open_any(pid_t pid)
{
	return open_names(pid, true);
}

/* Makes room for some more text. Returns 0, -EFBIG or -ENOMEM. */
static int extend(struct perfmap *map, size_t *room)
{
	size_t step = *room < STEP_BYTES_MIN   ? STEP_BYTES_MIN
		      : *room < STEP_BYTES_MAX ? *room
					       : STEP_BYTES_MAX;
	char *more;

	if (!is_in_time(map) || charge(map, step) < 0)
		return -EFBIG;
	more = realloc(map->text, *room + step);
	if (!more)
		return -ENOMEM;
	map->text = more;
	*room += step;
	return 0;
}

/* Returns unused room. */
static void shrink(struct perfmap *map, size_t room)
{
	size_t used = strlen(map->text) + 1;
	char *less = realloc(map->text, used);

	if (!less)
		return;
	map->text = less;
	discharge(map, room - used);
}

/* Reads up to the first NUL: sparse files, which cost their owners nothing, end at once. */
static int read_text(struct perfmap *map, int fd)
{
	size_t n = 0, room = 0;

	for (;;) {
		int err = n + 1 < room ? 0 : extend(map, &room);
		ssize_t len = err ? 0 : pread(fd, map->text + n, room - n - 1, (off_t)n);

		if (err || (len < 0 && !n))
			return err ? err : -errno;
		len = len < 0 ? 0 : len;
		map->text[n + (size_t)len] = '\0';
		if (!len || memchr(map->text + n, 0, (size_t)len))
			break;
		n += (size_t)len;
	}
	shrink(map, room);
	return 0;
}

/* Reads a jitdump into the lines of a perf map. */
static int read_dump(struct perfmap *map, int fd)
{
	__cleanup(jitdump_fini) struct jitdump dump = { .fd = fd };
	struct jitdump_code code;
	size_t n = 0, room = 0;
	int err = extend(map, &room);

	if (err < 0)
		return err;
	*map->text = '\0';
	while (jitdump_next(&dump, &code)) {
		if (!is_in_time(map))
			return -EFBIG;
		if (!code.bytes)
			continue;
		err = room - n > sizeof(dump) ? 0 : extend(map, &room);
		if (err < 0)
			return err;
		n += (size_t)snprintf(map->text + n, room - n, "%llx %llx %s\n", code.start,
				      code.bytes, dump.name);
	}
	shrink(map, room);
	return 0;
}

/* START BYTES NAME, with numbers in hex. */
static int parse_line(struct perfmap_name *out, char *line)
{
	char *end;

	out->start = strtoull(line, &end, 16);
	if (end == line || *end != ' ')
		return -EINVAL;
	line = end;
	out->bytes = strtoull(line, &end, 16);
	if (end == line || *end != ' ' || !end[1] || !out->bytes ||
	    out->start + out->bytes < out->start)
		return -EINVAL;
	out->name = end + 1;
	return 0;
}

/*
 * A JIT compiler reuses the memory of code that it dropped, and the file only grows. So a later
 * line takes the addresses that it covers from earlier ones, wherever these start.
 */
static int drop_replaced(struct perfmap *map)
{
	__cleanup(freep) struct claim *claim = calloc(2 * map->n + 1, sizeof(*claim));
	__cleanup(freep) struct perfmap_name *name = NULL;
	size_t n = map->n;

	if (!claim)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct perfmap_name *from = &map->name[i];

		claim[i] = (struct claim){ from->start, from->start + from->bytes, i, i };
	}
	if (cover(claim, &n) < 0)
		return -ENOMEM;
	name = calloc(n + 1, sizeof(*name));
	if (!name)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		name[i] = (struct perfmap_name){ claim[i].start, claim[i].end - claim[i].start,
						 map->name[claim[i].owner].name };
	free(map->name);
	map->name = steal(name);
	map->n = n;
	return 0;
}

static int read_names(struct perfmap *map, int fd)
{
	char *line, *next;
	size_t lines = 1;
	int err = jitdump_is(fd) ? read_dump(map, fd) : read_text(map, fd);

	if (err < 0)
		return err;
	for (const char *c = map->text; *c; c++)
		lines += *c == '\n';
	if (charge(map, lines * NAME_BYTES) < 0)
		return -EFBIG;
	map->name = calloc(lines, sizeof(*map->name));
	if (!map->name)
		return -ENOMEM;
	for (line = map->text; line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (!parse_line(&map->name[map->n], line))
			map->n++;
	}
	return drop_replaced(map);
}

int perfmap_read(struct perfmap *map, int fd)
{
	int err;

	*map = (struct perfmap){ .account = file_account_of(fd),
				 .begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) };
	err = read_names(map, fd);
	if (map->account)
		file_account_use_time(map->account, FILE_TIME, used_ns(map));
	return err;
}

void perfmap_fini(struct perfmap *map)
{
	discharge(map, map->held_bytes);
	free(map->name);
	free(map->text);
}
