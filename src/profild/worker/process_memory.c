/* process_memory.c - the memory of one process, through descriptors bound to it */
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

#include "base/count_while.h"
#include "base/cleanup.h"
#include "process_memory.h"

struct span {
	uint64_t start; /* [start, end) */
	uint64_t end;
};

/* /proc/PID/mem ignores write protection, so each write looks at the mapping first. */
struct memory {
	int mem;
	int maps;
	struct span seen; /* the latest writable mapping that was looked up */
	uint64_t image;

	/* Kernels before 6.11: all writable mappings, as read since memory_forget(). */
	struct span *writable;
	size_t nwritable;
	bool read;
};

/* struct procmap_query of linux/fs.h, since Linux 6.11. */
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

/* True for a temporary error of the kernel, which is not a fault of the process. */
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

/* FNV-1a of the auxv, which the kernel passed to the image at its exec. */
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
 * Opens the memory of thread @tid of @pid. -ESRCH if the thread has ended or has no memory any
 * more, and if the image changes in between (an exec).
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
	/* A file without an address space returns 0 here, another one fails: 0 is not mapped. */
	if (pread(m->mem, &any, 1, 0) == 0)
		return -ESRCH;
	err = read_image(&after, pid, tid);
	return err ? err : after == m->image ? 0 : -ESRCH;
}

#define DEAD_THREADS 64 /* skipped at most: a tracer can keep thousands of them */

/* Opens the memory of any thread; all threads share it. */
static int open_any(struct memory *m, pid_t pid)
{
	int err = -ESRCH, tries = DEAD_THREADS;
	struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (err && dir && tries && (entry = readdir(dir))) {
		if (*entry->d_name == '.')
			continue;
		tries--;
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
		err = open_any(m, pid); /* the leader may have exited before other threads */
	if (err) {
		memory_close(m);
		return err == -ENOENT ? -ESRCH : err;
	}
	*out = m;
	return 0;
}

int memory_copy(struct memory **out, const struct memory *from)
{
	struct memory *m = from ? calloc(1, sizeof(*m)) : NULL;

	if (!m)
		return from ? -ENOMEM : -ESRCH;
	m->image = from->image;
	m->mem = fcntl(from->mem, F_DUPFD_CLOEXEC, 0);
	m->maps = fcntl(from->maps, F_DUPFD_CLOEXEC, 0);
	if (m->mem < 0 || m->maps < 0) {
		memory_close(m);
		return -EMFILE;
	}
	*out = m;
	return 0;
}

struct memory *memory_close(struct memory *m)
{
	if (m) {
		closep(&m->mem);
		closep(&m->maps);
		free(m->writable);
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
	if (!m)
		return;
	m->seen = (struct span){ 0 };
	m->read = false;
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

static int add_writable(struct memory *m, size_t *room, uint64_t start, uint64_t end)
{
	struct span *more;

	if (m->nwritable && m->writable[m->nwritable - 1].end == start) {
		m->writable[m->nwritable - 1].end = end;
		return 0;
	}
	if (m->nwritable == *room) {
		*room = *room ? 2 * *room : 64;
		more = reallocarray(m->writable, *room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		m->writable = more;
	}
	m->writable[m->nwritable++] = (struct span){ start, end };
	return 0;
}

/* Reads the writable mappings from /proc/PID/maps. */
static int read_maps(struct memory *m)
{
	__cleanup(fclosep) FILE *f = NULL;
	__cleanup(freep) char *line = NULL;
	size_t bytes = 0, room = 0;
	int fd = fcntl(m->maps, F_DUPFD_CLOEXEC, 0), err = 0;
	bool any = false;

	if (fd < 0)
		return -errno;
	f = fdopen(fd, "r");
	if (!f) {
		close(fd);
		return -ENOMEM;
	}
	rewind(f);
	free(m->writable);
	m->writable = NULL;
	m->nwritable = 0;
	while (!err && getline(&line, &bytes, f) >= 0) {
		unsigned long long start, end;
		char mode[5];

		if (sscanf(line, "%llx-%llx %4s", &start, &end, mode) != 3)
			continue;
		any = true;
		if (mode[1] == 'w')
			err = add_writable(m, &room, start, end);
	}
	m->read = !err && any;
	return err ? err : any ? 0 : -ESRCH;
}

static int find_in_maps(struct memory *m, uint64_t addr)
{
	size_t low;
	int err = m->read ? 0 : read_maps(m);

	if (err)
		return err;
	low = COUNT_WHILE(m->nwritable, i, m->writable[i].end <= addr);
	if (low == m->nwritable || m->writable[low].start > addr)
		return -EFAULT;
	m->seen = m->writable[low];
	return 0;
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
			return find_in_maps(m, addr);
		return errno == ESRCH ? -ESRCH : -EFAULT;
	}
	m->seen = (struct span){ q.vma_start, q.vma_end };
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
		if (addr < m->seen.start || addr >= m->seen.end) {
			int err = find_writable(m, addr);

			if (err)
				return err;
		}
		addr = m->seen.end;
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
