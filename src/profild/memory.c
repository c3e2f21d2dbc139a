/* memory.c - the memory of one process, through descriptors that stay bound to it for good */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ioctl.h>
#include <linux/types.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/scope.h"
#include "memory.h"

/* /proc/PID/mem writes through read-only mappings too, so each write asks the mappings first. */
struct memory {
	int mem;
	int maps;
	uint64_t start; /* the writable mapping that was seen last: [start, end) */
	uint64_t end;
	uint64_t image;
};

/* linux/fs.h of 6.11 and later; only the start of the kernel's structure is used. */
struct procmap_query {
	__u64 size;
	__u64 query_flags;
	__u64 query_addr;
	__u64 vma_start;
	__u64 vma_end;
	__u64 vma_flags;
	__u64 vma_page_size;
	__u64 vma_offset;
	__u64 inode;
	__u32 dev_major;
	__u32 dev_minor;
	__u32 vma_name_size;
	__u32 build_id_size;
	__u64 vma_name_addr;
	__u64 build_id_addr;
};
#define QUERY_VMA_WRITABLE 0x02
#define QUERY_PROCMAP _IOWR('f', 17, struct procmap_query)

#define TRIES 8

/* A kernel that has no memory for a moment is no fault of the process. */
static bool try_again(int *tries)
{
	return (errno == ENOMEM || errno == EINTR || errno == EAGAIN) && --*tries;
}

static int open_proc(pid_t pid, pid_t tid, const char *file, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, file);
	fd = open(path, flags | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* FNV-1a of what the kernel told the image of itself when it began: where all of it lies. */
static int read_image(uint64_t *out, pid_t pid, pid_t tid)
{
	__cleanup(closep) int fd = open_proc(pid, tid, "auxv", O_RDONLY);
	uint8_t auxv[1024];
	ssize_t n = fd < 0 ? fd : read(fd, auxv, sizeof(auxv));

	if (fd < 0)
		return fd;
	*out = 14695981039346656037u;
	for (ssize_t i = 0; i < n; i++)
		*out = (*out ^ auxv[i]) * 1099511628211u;
	return n > 0 ? 0 : -ESRCH;
}

/*
 * The memory that thread @tid of @pid has; -ESRCH where it has gone, or given its memory up, and
 * where it is just now becoming another image's.
 */
static int open_thread(struct memory *m, pid_t pid, pid_t tid)
{
	uint64_t after = 0;
	char any;
	int err;

	closep(&m->mem);
	closep(&m->maps);
	m->maps = -1;
	err = read_image(&m->image, pid, tid);
	m->mem = err ? err : open_proc(pid, tid, "mem", O_RDWR);
	if (m->mem >= 0)
		m->maps = open_proc(pid, tid, "maps", O_RDONLY);
	if (m->mem < 0 || m->maps < 0)
		return m->mem < 0 ? m->mem : m->maps;
	/* Where there is no memory at all, the end of the file is at 0; else that is no address. */
	if (pread(m->mem, &any, 1, 0) == 0)
		return -ESRCH;
	err = read_image(&after, pid, tid);
	return err ? err : after == m->image ? 0 : -ESRCH;
}

/* Any thread's will do: they all have the same. */
static int open_any(struct memory *m, pid_t pid)
{
	int err = -ESRCH;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (err && dir && (entry = readdir(dir))) {
		if (*entry->d_name != '.')
			err = open_thread(m, pid, (pid_t)atoi(entry->d_name));
	}
	if (dir)
		closedir(dir);
	return err;
}

int memory_open(struct memory **out, pid_t pid)
{
	struct memory *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	m->mem = m->maps = -1;
	err = open_thread(m, pid, pid);
	if (err == -ESRCH)
		err = open_any(m, pid); /* a leader that exits first leaves its threads behind */
	if (err) {
		memory_close(m);
		return err == -ENOENT ? -ESRCH : err;
	}
	*out = m;
	return 0;
}

struct memory *memory_close(struct memory *m)
{
	if (m) {
		closep(&m->mem);
		closep(&m->maps);
	}
	free(m);
	return NULL;
}

uint64_t memory_image(const struct memory *m)
{
	return m->image;
}

void memory_forget(struct memory *m)
{
	if (m)
		m->start = m->end = 0;
}

int memory_read(struct memory *m, uint64_t addr, void *buf, size_t bytes)
{
	int tries = TRIES;
	ssize_t n;

	do
		n = m ? pread(m->mem, buf, bytes, (off_t)addr) : 0;
	while (n < 0 && try_again(&tries));
	if (n == 0 && bytes)
		return -ESRCH;
	return n == (ssize_t)bytes ? 0 : -EFAULT;
}

/* Finds the writable mapping with @addr in the text of /proc/PID/maps, for older kernels. */
static int read_maps(struct memory *m, uint64_t addr)
{
	__cleanup(fclosep) FILE *f = NULL;
	char line[512], mode[5];
	int fd = dup(m->maps);
	bool any = false;

	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	rewind(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long start, end;

		if (sscanf(line, "%llx-%llx %4s", &start, &end, mode) != 3)
			continue;
		any = true;
		if (addr >= start && addr < end && mode[1] == 'w') {
			m->start = start;
			m->end = end;
			return 0;
		}
	}
	return any ? -EFAULT : -ESRCH;
}

static int find_writable(struct memory *m, uint64_t addr)
{
	struct procmap_query q = {
		.size = sizeof(q),
		.query_flags = QUERY_VMA_WRITABLE,
		.query_addr = addr,
	};
	int tries = TRIES, err;

	do
		err = ioctl(m->maps, QUERY_PROCMAP, &q);
	while (err < 0 && try_again(&tries));
	if (err < 0) {
		if (errno == ENOTTY)
			return read_maps(m, addr);
		return errno == ESRCH ? -ESRCH : -EFAULT;
	}
	m->start = q.vma_start;
	m->end = q.vma_end;
	return 0;
}

int memory_writable(struct memory *m, uint64_t addr, size_t bytes)
{
	uint64_t end = addr + bytes;

	if (!m)
		return -ESRCH;
	if (end < addr)
		return -EFAULT;
	while (addr < end) {
		if (addr < m->start || addr >= m->end) {
			int err = find_writable(m, addr);

			if (err)
				return err;
		}
		addr = m->end;
	}
	return 0;
}

int memory_write(struct memory *m, uint64_t addr, const void *buf, size_t bytes)
{
	int err = memory_writable(m, addr, bytes), tries = TRIES;
	ssize_t n;

	if (err)
		return err;
	do
		n = pwrite(m->mem, buf, bytes, (off_t)addr);
	while (n < 0 && try_again(&tries));
	if (n == 0 && bytes)
		return -ESRCH;
	return n == (ssize_t)bytes ? 0 : -EFAULT;
}
