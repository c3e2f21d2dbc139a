/* unwind_cache.c - a cache on disk of unwind tables */
#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/arch.h"
#include "base/cleanup.h"
#include "base/grow.h"

#include "symbols/proc/file_account.h"
#include "separate_debug.h"
#include "unwind_cache.h"

#define MAGIC "profiluw"
#define VERSION 12
#define ROWS_MOST (PROFIL_FIRST_PAGES_MAX * PROFIL_PAGE_FIRSTS * PROFIL_PAGE_ROWS)
#define BUILD_ID_MOST (NAME_MAX - 16)
#define TEMPORARY ".new."
#define TEMPORARY_S 3600 /* a temporary file of this age is stale */
#define USED_S 3600	 /* a file that was used less long ago is not marked again: no write */

struct header {
	char magic[8];
	__u32 version;
	__u32 machine;
	__u64 rows;
	__u64 beyond;
	__u64 sum;
};

static __u64 checksum(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;
	__u64 sum = 0xcbf29ce484222325ull;

	for (; n >= 8; n -= 8, at += 8) {
		__u64 word;

		memcpy(&word, at, 8);
		sum = (sum ^ word) * 0x100000001b3ull;
		sum ^= sum >> 29;
	}
	for (; n; n--, at++)
		sum = (sum ^ *at) * 0x100000001b3ull;
	return sum;
}

/* --- the folder ------------------------------------------------------------------------------- */

/* Checks that no other user can change the folder or its files. */
static int check_folder(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & 022) ? 0 : -EPERM;
}

/* Opens folder @name in @parent, and creates it if the user owns the parent. */
static int open_folder(int parent, const char *name)
{
	const int flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
	int fd = openat(parent, name, flags), err;

	if (fd >= 0 || errno != ENOENT)
		return fd < 0 ? -errno : fd;
	err = check_folder(parent);
	if (err < 0)
		return err;
	if (mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
		return -errno;
	fd = openat(parent, name, flags);
	return fd < 0 ? -errno : fd;
}

static int open_parent(void)
{
	const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	__cleanup(closep) int fd = -1;

	if (xdg && *xdg == '/') {
		fd = open(xdg, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return fd < 0 ? -errno : steal_fd(fd);
	}
	if (!home || *home != '/')
		return -ENOENT;
	fd = open(home, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : open_folder(fd, ".cache");
}

int unwind_cache_open(void)
{
	__cleanup(closep) int parent = open_parent();
	__cleanup(closep) int fd = parent < 0 ? parent : open_folder(parent, "profil");
	int err = fd < 0 ? fd : check_folder(fd);

	return err < 0 ? err : steal_fd(fd);
}

struct cached {
	char name[NAME_MAX + 1];
	time_t used;
	off_t bytes;
};

static int by_use(const void *a, const void *b)
{
	const struct cached *x = a, *y = b;

	return x->used < y->used ? -1 : x->used > y->used;
}

/* Lists the files of the folder, after removing stale temporary files. */
static size_t list_folder(DIR *d, struct cached **out, off_t *bytes)
{
	const struct dirent *e;
	size_t n = 0;

	while ((e = readdir(d))) {
		struct cached *more;
		struct stat st;

		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISREG(st.st_mode))
			continue;
		if (!strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY))) {
			if (time(NULL) - st.st_mtime > TEMPORARY_S)
				unlinkat(dirfd(d), e->d_name, 0);
			continue;
		}
		more = grow(*out, n, sizeof(*more));
		if (!more)
			break;
		*out = more;
		more += n++;
		snprintf(more->name, sizeof(more->name), "%s", e->d_name);
		more->used = st.st_mtime;
		more->bytes = st.st_size;
		*bytes += st.st_size;
	}
	return n;
}

static void evict(int dir)
{
	__cleanup(freep) struct cached *files = NULL;
	int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	off_t bytes = 0;
	size_t n;

	if (!d) {
		closep(&fd);
		return;
	}
	n = list_folder(d, &files, &bytes);
	if (n && bytes > (off_t)UNWIND_CACHE_BYTES)
		qsort(files, n, sizeof(*files), by_use);
	for (size_t i = 0; i < n && bytes > (off_t)UNWIND_CACHE_BYTES; i++) {
		if (!unlinkat(dir, files[i].name, 0))
			bytes -= files[i].bytes;
	}
	closedir(d);
}

/* --- files in it ------------------------------------------------------------------------------ */

static bool write_all(int fd, const void *bytes, size_t n)
{
	for (const char *at = bytes; n;) {
		ssize_t written = write(fd, at, n);

		if (written <= 0)
			return false;
		at += written;
		n -= (size_t)written;
	}
	return true;
}

/*
 * Writes a file. Failure is not an error: the cache stays without it. The checksum detects files
 * that a crash has truncated.
 */
static void put(int dir, const char *name, const struct header *h, const void *bytes, size_t n)
{
	char temporary[64];
	int fd;

	snprintf(temporary, sizeof(temporary), TEMPORARY "%d.%llx", (int)getpid(),
		 (unsigned long long)checksum(name, strlen(name)));
	fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return;
	if (!write_all(fd, h, sizeof(*h)) || !write_all(fd, bytes, n) ||
	    renameat(dir, temporary, dir, name) < 0)
		unlinkat(dir, temporary, 0);
	close(fd);
	evict(dir);
}

/*
 * Reads file @name: its header, and the rest. Returns NULL if it is missing or damaged. The time of
 * its last use is the file's mtime.
 */
static void *get(int dir, const char *name, struct header *h, size_t most, size_t *n)
{
	__cleanup(closep) int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	__cleanup(freep) char *bytes = NULL;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    st.st_size < (off_t)sizeof(*h) || (size_t)st.st_size > most + sizeof(*h))
		return NULL;
	*n = (size_t)st.st_size - sizeof(*h);
	bytes = malloc(*n + 1);
	if (!bytes || read(fd, h, sizeof(*h)) != sizeof(*h) || read(fd, bytes, *n) != (ssize_t)*n ||
	    memcmp(h->magic, MAGIC, sizeof(h->magic)) != 0 || h->version != VERSION ||
	    h->machine != ARCH_ELF_MACHINE || h->sum != checksum(bytes, *n))
		return NULL;
	if (time(NULL) - st.st_mtime >= USED_S)
		futimens(fd, NULL);
	return steal(bytes);
}

static struct header header_of(const void *bytes, size_t n)
{
	struct header h = { .version = VERSION, .machine = ARCH_ELF_MACHINE };

	memcpy(h.magic, MAGIC, sizeof(h.magic));
	h.sum = checksum(bytes, n);
	return h;
}

/* --- tables ----------------------------------------------------------------------------------- */

static bool is_hex(const char *text)
{
	return *text && !text[strspn(text, "0123456789abcdef")];
}

static bool is_table(const struct unwind_table *t)
{
	for (size_t i = 0; i < t->n; i++) {
		if ((t->row[i].rule & PROFIL_UNWIND_KIND) >= PROFIL_UNWIND_KINDS ||
		    (i && t->row[i].offset <= t->row[i - 1].offset))
			return false;
	}
	return true;
}

static int load(struct unwind_table *t, int dir, const char *name)
{
	struct header h;
	size_t n;

	*t = (struct unwind_table){ 0 };
	t->row = get(dir, name, &h, ROWS_MOST * sizeof(*t->row), &n);
	if (!t->row)
		return -ENOENT;
	t->n = n / sizeof(*t->row);
	t->beyond = h.beyond;
	if (h.rows == t->n && n % sizeof(*t->row) == 0 && is_table(t))
		return 0;
	unwind_table_fini(t);
	return -ENOENT;
}

/* A file can have any build id, so a table is stored only if no other user can have made it. */
int unwind_cache_table(struct unwind_table *t, int dir, int fd, const char *build_id,
		       const struct unwind_stop *stop)
{
	bool cached = dir >= 0 && is_hex(build_id) && strlen(build_id) < BUILD_ID_MOST;
	__cleanup(closep) int debug = separate_debug_open(fd, build_id);
	char name[NAME_MAX + 1];
	struct header h;
	int err;

	snprintf(name, sizeof(name), "%.*s%s.rows", BUILD_ID_MOST, build_id,
		 debug < 0 ? "" : ".debug");
	if (cached && !load(t, dir, name))
		return 0;
	err = unwind_table_open(t, fd, debug, stop);
	if (err || !cached || !t->n || t->n > ROWS_MOST || file_account_of(fd) ||
	    (debug >= 0 && file_account_of(debug)))
		return err;
	h = header_of(t->row, t->n * sizeof(*t->row));
	h.rows = t->n;
	h.beyond = t->beyond;
	put(dir, name, &h, t->row, t->n * sizeof(*t->row));
	return 0;
}
