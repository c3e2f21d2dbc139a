/* unwind_feeder.c - builds the unwind tables of profiled images for the kernel's stack walk */
#include <errno.h>
#include <linux/membarrier.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "core/unwind_maps.h"
#include "symbols/proc/mounts.h"
#include "symbols/proc/proc_maps.h"
#include "symbols/proc/procfs.h"
#include "symbols/elf/elf_file.h"
#include "base/grow.h"
#include "symbols/proc/file_account.h"
#include "symbols/proc/guarded_file.h"

#include "jit_feeder.h"
#include "unwind_feeder.h"

/*
 * Puts the descriptor of the ELF file @fd, named @path, into the map if it is an interpreter's.
 * Returns its number; 0: it is none, or there is no room.
 */
static __u16 put_interpreter(struct unwind_feeder *f, int fd, const char *path)
{
	struct profil_interpreter d, *page = unwind_page_at(f, PROFIL_UNWIND_INTERPRETER_PAGE);
	struct unwind_share *share;

	if (interpreter_open(&d, fd, path))
		return 0;
	for (__u32 i = 0; i < f->interpreters; i++) {
		if (interpreter_is_same(&page[i], &d))
			return (__u16)(i + 1);
	}
	share = unwind_share_of(f, fd);
	if (f->interpreters == PROFIL_INTERPRETERS ||
	    (share &&
	     !unwind_is_fair(PROFIL_INTERPRETERS, f->interpreters, share->interpreters, 1)))
		return 0;
	if (share)
		share->interpreters++;
	page[f->interpreters++] = d;
	__atomic_thread_fence(__ATOMIC_RELEASE);
	return (__u16)f->interpreters;
}

static bool is_due(const struct unwind_feeder *f)
{
	return f->stop && f->stop->is_due(f->stop->arg);
}

/* The rows of the ELF file @fd; none if the attachment has no stacks. */
static int table_of(const struct unwind_feeder *f, struct unwind_table *t, int fd,
		    const char *build_id)
{
	*t = (struct unwind_table){ 0 };
	return f->rows ? unwind_cache_table(t, f->cache, fd, build_id, f->stop) : 0;
}

/* --- expected files --------------------------------------------------------------------------- */

/*
 * The element of file @ino of @dev, or a free one, among those that the kernel searches; NULL:
 * none. The daemon makes elements for the interpreters that root has installed.
 */
static struct profil_unwind_file *file_of(const struct unwind_feeder *f, __u64 ino, __u32 dev)
{
	struct profil_unwind_file *page = unwind_page_at(f, profil_unwind_file_page(ino));
	__u32 at = profil_unwind_file_at(ino);

	for (__u32 i = 0; i < PROFIL_UNWIND_FILE_TRIES; i++) {
		struct profil_unwind_file *file = &page[(at + i) % PROFIL_PAGE_UNWIND_FILES];

		if (!file->ino || (file->ino == ino && file->dev == dev))
			return file;
	}
	return NULL;
}

static struct expected_file *find_expected(const struct unwind_feeder *f, __u64 ino, __u32 dev)
{
	for (size_t i = 0; i < f->nexpected; i++) {
		struct expected_file *e = &f->expected[i];

		if (e->ino == ino && (!e->dev || !dev || e->dev == dev))
			return e;
	}
	return NULL;
}

static void expect(struct unwind_feeder *f, struct expected_file *e, const struct unwind_table *t,
		   int fd)
{
	struct profil_unwind_file *file = file_of(f, e->ino, e->dev);
	struct expected_file *grown = file ? grow(f->expected, f->nexpected, sizeof(*e)) : NULL;
	__u16 interpreter;

	if (!grown)
		return;
	f->expected = grown;
	interpreter = e->at.interpreter;
	if (!unwind_put_rows(f, &e->at, t, unwind_share_of(f, fd)) && !interpreter)
		return;
	e->at.interpreter = interpreter;
	f->expected[f->nexpected++] = *e;
	file->ino = e->ino;
	file->dev = e->dev;
	file->first_page = e->at.first_page;
	file->row_page = e->at.row_page;
	if (interpreter)
		file->interpreter = interpreter;
	__atomic_store_n(&file->pages, e->at.pages, __ATOMIC_RELEASE);
}

/* The device of the file @st, of which @fd may be a copy; 0: any. */
static __u32 dev_of(int fd, const struct stat *st)
{
	struct stat own;

	return !fstat(fd, &own) && own.st_ino == st->st_ino && own.st_dev == st->st_dev
		       ? mounts_file_dev(fd, st)
		       : 0;
}

/* Expects the file @st, named @path. @fd is that file, or a copy. */
static void expect_file(struct unwind_feeder *f, int fd, const struct stat *st, const char *path)
{
	struct expected_file e = { 0 };
	struct unwind_table t;

	if (!f->map || !S_ISREG(st->st_mode))
		return;
	e.ino = st->st_ino;
	e.dev = dev_of(fd, st);
	if (find_expected(f, e.ino, e.dev))
		return;
	elf_file_build_id(fd, e.build_id, sizeof(e.build_id));
	if (table_of(f, &t, fd, e.build_id))
		return;
	e.at.interpreter = put_interpreter(f, fd, path);
	expect(f, &e, &t, fd);
	unwind_table_fini(&t);
}

void unwind_feeder_expect(struct unwind_feeder *f, int fd, const char *path)
{
	struct stat st;

	if (!fstat(fd, &st))
		expect_file(f, fd, &st, path);
}

static void expect_vdso(struct unwind_feeder *f)
{
	struct expected_file e = { .ino = PROFIL_UNWIND_VDSO };
	struct unwind_table t;

	if (unwind_table_open_vdso(&t))
		return;
	expect(f, &e, &t, -1);
	unwind_table_fini(&t);
}

static void prepare(struct unwind_feeder *f, pid_t pid, const struct mapping *m)
{
	__cleanup(closep) int fd = -1;
	char path[64];
	struct stat st;

	if (!m->ino)
		return;
	snprintf(path, sizeof(path), "/proc/%d/map_files/%llx-%llx", (int)pid, m->lo, m->hi);
	fd = guarded_file_open(path, &st);
	if (fd < 0)
		fd = guarded_file_open(m->path, &st);
	if (fd >= 0 && st.st_ino == m->ino)
		expect_file(f, fd, &st, m->path);
}

/* The descriptor of an interpreter that compiles code, if file @ino of @dev has one; 0: none. */
static __u16 compiler_of(const struct unwind_feeder *f, __u64 ino, __u32 dev)
{
	const struct profil_interpreter *page = unwind_page_at(f, PROFIL_UNWIND_INTERPRETER_PAGE);
	const struct expected_file *e = find_expected(f, ino, dev);

	return e && e->at.interpreter && profil_interpreter_compiles(&page[e->at.interpreter - 1])
		       ? e->at.interpreter
		       : 0;
}

/* Says that code without a file in processes that execute file @ino is of interpreter @number. */
static void set_anonymous(struct unwind_feeder *f, __u64 ino, __u32 dev, __u16 number)
{
	struct profil_unwind_file *page = unwind_page_at(f, profil_unwind_file_page(ino));
	__u32 at = profil_unwind_file_at(ino);

	for (__u32 i = 0; number && i < PROFIL_UNWIND_FILE_TRIES; i++) {
		struct profil_unwind_file *file = &page[(at + i) % PROFIL_PAGE_UNWIND_FILES];

		if (file->ino == ino && (!file->dev || file->dev == dev))
			file->anonymous = number;
	}
}

void unwind_feeder_program(struct unwind_feeder *f, int fd)
{
	struct stat st;
	__u16 number = 0;

	if (!f->map || fstat(fd, &st) < 0)
		return;
	for (size_t i = 0; i < f->nexpected && !number; i++)
		number = compiler_of(f, f->expected[i].ino, f->expected[i].dev);
	set_anonymous(f, st.st_ino, mounts_file_dev(fd, &st), number);
}

/*
 * The interpreter among the files in @maps that compiles code, and where its code is; 0: none.
 */
static __u16 compiler_among(const struct unwind_feeder *f, const struct maps *maps, __u64 *base)
{
	__u16 number = 0;

	for (size_t i = 0; i < maps->n && !number; i++) {
		const struct mapping *m = &maps->mapping[i];

		*base = m->lo - m->offset;
		if (m->ino)
			number = compiler_of(f, m->ino, 0);
	}
	return number;
}

/* unwind_feeder_program() for process @pid, which has mapped @maps. */
static void note_program(struct unwind_feeder *f, pid_t pid, const struct maps *maps)
{
	__u64 base;
	__u16 number = compiler_among(f, maps, &base);
	__cleanup(closep) int fd = -1;
	struct stat st;
	char path[32];

	if (!number)
		return;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	fd = guarded_file_open(path, &st); /* a copy's own number is another */
	if (fd >= 0)
		set_anonymous(f, st.st_ino, dev_of(fd, &st), number);
}

/* compiler_among() for the files of process @pid. */
static __u16 compiler_in(struct unwind_feeder *f, pid_t pid, __u64 *base)
{
	struct maps maps;
	__u16 number;

	*base = 0;
	if (!pid || maps_read(&maps, pid))
		return 0;
	/* What the process has opened by itself, as a launcher does, was not expected. */
	for (size_t i = 0; i < maps.n; i++)
		prepare(f, pid, &maps.mapping[i]);
	number = compiler_among(f, &maps, base);
	note_program(f, pid, &maps);
	maps_fini(&maps);
	return number;
}

void unwind_feeder_prepare(struct unwind_feeder *f, pid_t pid)
{
	struct maps maps;

	if (!f->map || f->foretold || maps_read(&maps, pid))
		return;
	for (size_t i = 0; i < maps.n && !is_due(f); i++)
		prepare(f, pid, &maps.mapping[i]);
	note_program(f, pid, &maps);
	maps_fini(&maps);
}

struct runner {
	pid_t pid;
	__u64 cpu_ns;
};

static int by_cpu_time(const void *a, const void *b)
{
	const struct runner *x = a, *y = b;

	return (x->cpu_ns < y->cpu_ns) - (x->cpu_ns > y->cpu_ns);
}

static void sort_by_cpu_time(pid_t *pids, size_t n)
{
	__cleanup(freep) struct runner *runner = calloc(n, sizeof(*runner));

	if (!runner)
		return;
	for (size_t i = 0; i < n; i++)
		runner[i] = (struct runner){ pids[i], procfs_process_cpu_ns(pids[i]) };
	qsort(runner, n, sizeof(*runner), by_cpu_time);
	for (size_t i = 0; i < n; i++)
		pids[i] = runner[i].pid;
}

#define PREPARE_NS 1000000000u

void unwind_feeder_prepare_all(struct unwind_feeder *f, pid_t *pids, size_t n)
{
	__u64 until_ns = now_ns() + PREPARE_NS;

	sort_by_cpu_time(pids, n);
	for (size_t i = 0; i < n && f->used < f->pages / 2 && now_ns() < until_ns; i++)
		unwind_feeder_prepare(f, pids[i]);
}

/* --- images ----------------------------------------------------------------------------------- */

/* Says whether the image is another file than the expected one with its inode. */
static bool differs(const struct expected_file *e, const struct object *o)
{
	return *e->build_id && *o->build_id && strcmp(e->build_id, o->build_id) != 0;
}

/* Writes the rows of an image that was not expected. Returns -EAGAIN if they must wait. */
static int make_rows(struct unwind_feeder *f, const struct object *o, bool vdso,
		     struct profil_unwind_image *at)
{
	struct unwind_table t = { 0 };
	int err = vdso	       ? unwind_table_open_vdso(&t)
		  : o->fd >= 0 ? table_of(f, &t, o->fd, o->build_id)
			       : -ENOENT;

	if (!err)
		unwind_put_rows(f, at, &t, unwind_share_of(f, vdso ? -1 : o->fd));
	unwind_table_fini(&t);
	if (!vdso && o->fd >= 0)
		at->interpreter = put_interpreter(f, o->fd, o->path);
	if (err == -EAGAIN)
		at->looked = PROFIL_LOOKED_NOT_YET;
	return err;
}

/*
 * Rows have 32-bit offsets: code beyond a file's first 4 GiB, very rare, has none. Returns false if
 * the image must wait for its rows.
 */
static bool feed(struct unwind_feeder *f, const struct table_reader *r, __u32 image)
{
	const struct profil_image *i = table_image(&r->table, image);
	const struct object *o = &r->profile->objects[r->object[image] - 1];
	struct profil_unwind_image *entry = unwind_entry_of(f, image),
				   at = { .looked = PROFIL_LOOKED };
	bool vdso = i->kind == PROFIL_IMAGE_VDSO;
	const struct expected_file *e;
	int err = 0;

	e = find_expected(f, vdso ? PROFIL_UNWIND_VDSO : i->ino, vdso ? 0 : i->dev);
	if (i->base || (i->kind != PROFIL_IMAGE_FILE && !vdso))
		e = NULL;
	else if (!e || differs(e, o))
		err = make_rows(f, o, vdso, &at);
	else
		at = e->at;
	if (i->kind == PROFIL_IMAGE_ANON) {
		at.interpreter = compiler_in(f, (pid_t)i->tgid, &at.base);
		if (!at.interpreter)
			at.interpreter = entry->interpreter;
		if (!at.interpreter)
			jit_feeder_add(f, r, image, &at);
	}
	if (entry->pages && entry->row_page == at.row_page) {
		entry->looked = PROFIL_LOOKED;
		return true;
	}
	__atomic_store_n(&entry->pages, 0, __ATOMIC_RELEASE);
	entry->base = at.base; /* or the first two pages */
	entry->interpreter = at.interpreter;
	__atomic_store_n(&entry->pages, at.pages, __ATOMIC_RELEASE);
	__atomic_store_n(&entry->looked, at.looked, __ATOMIC_RELEASE);
	return err != -EAGAIN;
}

void unwind_feeder_image(struct unwind_feeder *f, const struct table_reader *r, __u32 image)
{
	if (f->fed[image] == UNWIND_FED)
		return;
	f->waiting -= f->fed[image] == UNWIND_WAITS;
	f->fed[image] = feed(f, r, image) ? UNWIND_FED : UNWIND_WAITS;
	f->waiting += f->fed[image] == UNWIND_WAITS;
}

bool unwind_feeder_lacks_room(const struct unwind_feeder *f, __u32 image)
{
	const struct profil_unwind_image *entry = unwind_entry_of(f, image);

	return !entry->pages && entry->looked == PROFIL_LOOKED_NO_ROOM;
}

void unwind_feeder_update(struct unwind_feeder *f, const struct table_reader *r)
{
	if (!f->map)
		return;
	jit_feeder_update(f, r);
	if (f->images == r->images)
		return;
	f->images = r->images;
	for (__u32 i = 1; i <= r->table.head->images; i++) {
		if (f->fed[i] != UNWIND_NOT_FED || !r->object[i])
			continue;
		if (is_due(f))
			break;
		unwind_feeder_image(f, r, i);
	}
	malloc_trim(0); /* making tables takes megabytes, which the heap would keep */
}

/* The first page behind the images. */
static size_t first_row_page(const struct unwind_feeder *f)
{
	return PROFIL_UNWIND_IMAGE_PAGE +
	       (f->most + PROFIL_PAGE_UNWIND_IMAGES - 1) / PROFIL_PAGE_UNWIND_IMAGES;
}

/* A walk lasts some microseconds, with interrupts or preemption disabled. */
static void await_walks(void)
{
	const struct timespec pause = { .tv_nsec = 20000000 };

	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) < 0)
		nanosleep(&pause, NULL);
}

void unwind_feeder_clear(struct unwind_feeder *f)
{
	struct profil_unwind_file *file = unwind_page_at(f, 0);

	for (__u32 i = 1; i <= f->most; i++) {
		__atomic_store_n(&unwind_entry_of(f, i)->pages, 0, __ATOMIC_RELAXED);
		unwind_entry_of(f, i)->looked = PROFIL_LOOKED_NOT_YET;
	}
	for (size_t i = 0; i < PROFIL_UNWIND_FILE_PAGES * PROFIL_PAGE_UNWIND_FILES; i++) {
		__atomic_store_n(&file[i].pages, 0, __ATOMIC_RELAXED);
		if (!file[i].interpreter && !file[i].anonymous)
			file[i].ino = 0;
	}
	await_walks();
	jit_feeder_clear(f);
	memset(f->fed, 0, f->most + 1u);
	f->nexpected = 0;
	f->images = f->waiting = 0;
	for (size_t i = 0; i < f->nshares; i++)
		f->shares[i].pages = 0;
	f->full = false;
	f->used = first_row_page(f);
	if (f->rows)
		expect_vdso(f);
}

/* Of an earlier feeder, or of the daemon: those that root has installed. */
static __u32 count_interpreters(const struct unwind_feeder *f)
{
	const struct profil_interpreter *page = unwind_page_at(f, PROFIL_UNWIND_INTERPRETER_PAGE);
	__u32 n = PROFIL_INTERPRETERS;

	while (n && !page[n - 1].kind)
		n--;
	return n;
}

int unwind_feeder_open(struct unwind_feeder *f, int fd, const struct table *t)
{
	const struct profil_table *head = t->head;
	void *map;

	*f = (struct unwind_feeder){ .cache = -1 };
	f->fed = calloc(head->images + 1u, 1);
	if (!f->fed)
		return -ENOMEM;
	map = mmap(NULL, (size_t)head->unwind_pages * PROFIL_UNWIND_PAGE, PROT_READ | PROT_WRITE,
		   MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	madvise(map, (size_t)head->unwind_pages * PROFIL_UNWIND_PAGE, MADV_DONTFORK);
	f->map = map;
	f->pages = head->unwind_pages;
	f->rows = head->stack_mode != PROFIL_STACK_NONE;
	f->most = head->images;
	f->used = first_row_page(f);
	f->interpreters = count_interpreters(f);
	if (!f->rows)
		return 0;
	f->cache = unwind_cache_open();
	expect_vdso(f);
	return 0;
}

void unwind_feeder_close(struct unwind_feeder *f)
{
	if (f->map && f->cache >= 0)
		close(f->cache);
	jit_feeder_clear(f);
	free(f->expected);
	free(f->shares);
	free(f->fed);
	if (f->map)
		munmap(f->map, f->pages * PROFIL_UNWIND_PAGE);
	*f = (struct unwind_feeder){ 0 };
}
