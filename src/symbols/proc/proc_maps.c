/* proc_maps.c - the executable mappings of a process, from /proc/PID/maps */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_while.h"
#include "base/cleanup.h"

#include "base/clocks.h"
#include "base/grow.h"
#include "file_account.h"
#include "proc_maps.h"

#define TEXT_BYTES_MAX (16u << 20)
#define USUAL_NS 2000000ull /* of CPU time, which is not charged */

/* Reads a number in @base that is followed by @stop, and moves *@at behind @stop. */
static bool number(const char **at, int base, char stop, __u64 *out)
{
	char *end;

	errno = 0;
	*out = strtoull(*at, &end, base);
	if (errno || end == *at || *end != stop)
		return false;
	*at = end + 1;
	return true;
}

static void cut_deleted(struct mapping *m, char *path)
{
	static const char mark[] = " (deleted)";
	size_t len = strlen(path);

	if (len <= sizeof(mark) - 1 || strcmp(path + len - (sizeof(mark) - 1), mark) != 0)
		return;
	path[len - (sizeof(mark) - 1)] = '\0';
	m->deleted = true;
}

/* LO-HI rwxp OFFSET MAJOR:MINOR INODE   PATH. Returns false if malformed or not executable. */
static bool parse_line(struct mapping *m, char *line)
{
	const char *at = line, *perms;
	__u64 major, minor;
	char *path;

	*m = (struct mapping){ 0 };
	if (!number(&at, 16, '-', &m->lo) || !number(&at, 16, ' ', &m->hi) || m->hi <= m->lo)
		return false;
	perms = at;
	if (strlen(perms) < 5 || perms[4] != ' ' || perms[2] != 'x')
		return false;
	at += 5;
	if (!number(&at, 16, ' ', &m->offset) || !number(&at, 16, ':', &major) ||
	    !number(&at, 16, ' ', &minor))
		return false;
	m->dev = major << 32 | minor;

	errno = 0;
	m->ino = strtoull(at, &path, 10);
	if (errno || path == at || (*path && *path != ' '))
		return false;
	path += strspn(path, " ");
	cut_deleted(m, path);
	m->path = path;
	return true;
}

int maps_parse(struct maps *out, char *text)
{
	struct maps maps = { .text = text };
	char *line = text, *next;
	__u64 end = 0;

	for (; line && *line; line = next) {
		struct mapping m, *more;

		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		/*
		 * The file is read in several calls, so a mapping that changes in between can
		 * appear twice.
		 */
		if (!parse_line(&m, line) || m.lo < end)
			continue;
		end = m.hi;
		more = grow(maps.mapping, maps.n, sizeof(m));
		if (!more) {
			maps_fini(&maps);
			return -ENOMEM;
		}
		maps.mapping = more;
		maps.mapping[maps.n++] = m;
	}
	*out = maps;
	return 0;
}

/*
 * Reads the rest of @fd into a string, up to TEXT_BYTES_MAX: the process chooses how many mappings
 * it has, and their paths of 4 KiB.
 */
static int slurp(char **out, int fd)
{
	__cleanup(freep) char *text = NULL;
	size_t n = 0, room = 0;
	ssize_t got;

	do {
		if (room - n < 4096) {
			char *more;

			room = room ? 2 * room : 16384;
			more = realloc(text, room);
			if (!more)
				return -ENOMEM;
			text = more;
		}
		got = read(fd, text + n, room - n - 1);
		if (got < 0 && errno != EINTR)
			return -errno;
		n += got > 0 ? (size_t)got : 0;
	} while (got != 0 && n < TEXT_BYTES_MAX);

	if (!n)
		return -ESRCH;
	text[n] = '\0';
	if (got) /* there is more */
		text[strrchr(text, '\n') ? strrchr(text, '\n') - text : 0] = '\0';
	*out = steal(text);
	return 0;
}

static int read_maps(struct maps *out, pid_t pid)
{
	__cleanup(closep) int fd = -1;
	char path[64], *text = NULL;
	int err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	err = slurp(&text, fd);
	if (err < 0)
		return err;
	return maps_parse(out, text);
}

int maps_read(struct maps *out, pid_t pid)
{
	struct file_account *account = file_account_of_process(pid);
	__u64 began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID), ns;
	int err;

	if (file_account_is_own(account))
		return read_maps(out, pid);
	if (!file_account_time_left(account, FILE_TIME))
		return -ETIMEDOUT;
	err = read_maps(out, pid);
	ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns;
	if (ns > USUAL_NS)
		file_account_use_time(account, FILE_TIME, ns);
	return err;
}

struct mapping *maps_find(const struct maps *maps, __u64 pc)
{
	size_t lo = COUNT_WHILE(maps->n, i, maps->mapping[i].hi <= pc);

	if (lo == maps->n || pc < maps->mapping[lo].lo)
		return NULL;
	return &maps->mapping[lo];
}

void maps_fini(struct maps *maps)
{
	free(maps->mapping);
	free(maps->text);
	*maps = (struct maps){ 0 };
}
