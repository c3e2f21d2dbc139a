/* table_reader.c - reads a table of places into profiles, and identifies its images and groups */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"

#include "function_reader.h"
#include "image_file.h"
#include "symbols/jit_processes.h"
#include "symbols/proc/kernel_text.h"
#include "symbols/elf/elf_file.h"
#include "symbols/perf_map.h"
#include "table_reader.h"

/* Interval at which the perf maps of running processes are looked for, besides at each reading. */
#define PERF_MAPS_NS 1000000000u

int table_reader_open(struct table_reader *r, int fd, struct profile *p)
{
	int err;

	*r = (struct table_reader){ .profile = p };
	err = table_open(&r->table, fd);
	if (err < 0)
		return err;
	r->object = calloc(r->table.head->images + 1, sizeof(*r->object));
	r->group = calloc(r->table.head->groups + 1, sizeof(*r->group));
	r->kernel_text = kernel_text();
	if (r->object && r->group)
		return 0;
	table_reader_close(r);
	return -ENOMEM;
}

void table_reader_close(struct table_reader *r)
{
	table_close(&r->table);
	cgroups_fini(&r->cgroups);
	free(r->object);
	free(r->group);
	*r = (struct table_reader){ 0 };
}

/* The kernel, the vdso, and the anonymous code of each process are one object each. */
static int find_unnamed(const struct profile *p, enum object_kind kind, pid_t pid, __u32 *index)
{
	for (size_t i = 0; i < p->nobjects; i++) {
		if (p->objects[i].kind == kind && p->objects[i].pid == pid) {
			*index = (__u32)i;
			return 0;
		}
	}
	return -ENOENT;
}

static void note_unnamed(struct object *o, const char *why)
{
	snprintf(o->unnamed, sizeof(o->unnamed), "%s", why);
}

static int add_unnamed(struct table_reader *r, const struct profil_image *image, __u32 *index)
{
	static const char *const names[] = { [OBJECT_KERNEL] = PROFILE_KERNEL,
					     [OBJECT_VDSO] = PROFILE_VDSO,
					     [OBJECT_ANON] = PROFILE_ANON };
	enum object_kind kind = image->kind == PROFIL_IMAGE_KERNEL ? OBJECT_KERNEL
				: image->kind == PROFIL_IMAGE_VDSO ? OBJECT_VDSO
								   : OBJECT_ANON;
	pid_t pid = kind == OBJECT_ANON ? (pid_t)image->tgid : 0;
	const struct jit_runtime *runtime = NULL;
	struct profile *p = r->profile;
	int err;

	if (!find_unnamed(p, kind, pid, index))
		return 0;
	err = profile_add_object(p, names[kind], 0, 0, -1, index);
	if (err < 0)
		return err;
	p->objects[*index].pid = pid;
	if (pid) {
		runtime = jit_runtime_of(pid);
		p->objects[*index].fd = perfmap_open_any(pid);
	}
	if (runtime)
		note_unnamed(&p->objects[*index], runtime->name);
	if (kind == OBJECT_KERNEL) {
		if (!r->kernel_text)
			note_unnamed(&p->objects[*index], kernel_text_hidden());
		p->objects[*index].kernel_text = r->kernel_text;
		host_kernel_build_id(p->objects[*index].build_id, PROFILE_BUILD_ID_MAX);
	}
	return 0;
}

static int add_language(struct table_reader *r, const struct profil_image *image, __u32 *index)
{
	const char *name = interpreted_language(image->generation);

	if (!name)
		name = "unknown language";
	if (!profile_find_object(r->profile, name, 0, 0, index))
		return 0;
	r->functions = 0;
	return profile_add_object(r->profile, name, 0, 0, -1, index);
}

/* Reads the functions of interpreted languages again if there are more of them. */
static int read_functions(struct table_reader *r)
{
	struct profile *p = r->profile;
	__u32 n = r->table.head->used_functions;

	if (r->functions == n)
		return 0;
	for (__u32 i = 1; i <= r->table.head->images; i++) {
		const struct profil_image *image = r->object[i] ? table_image(&r->table, i) : NULL;
		struct object *o = image ? &p->objects[r->object[i] - 1] : NULL;
		struct interpreted *functions;

		if (!o || image->kind != PROFIL_IMAGE_FUNCTIONS)
			continue;
		functions = calloc(1, sizeof(*functions));
		if (!functions ||
		    functions_read(functions, &r->table, image->generation, o->interpreted) < 0) {
			interpreted_free(functions);
			return -ENOMEM;
		}
		interpreted_free(o->interpreted);
		o->interpreted = functions;
	}
	r->functions = n;
	return 0;
}

/* The owner of file @fd; -1: unknown. */
static uid_t owner_of(int fd)
{
	struct stat st;

	return fd < 0 || fstat(fd, &st) < 0 ? (uid_t)-1 : st.st_uid;
}

static bool is_trusted(uid_t owner)
{
	return !owner || owner == geteuid();
}

/*
 * A user can have a file with the path and the build id of a system library, in a mount namespace,
 * and its symbols must not name the library's samples. So files of different owners differ. A file
 * that could not be opened, as its process has ended, is taken for one of root or of this user.
 */
static bool may_be_same(uid_t a, uid_t b)
{
	return a == b || (a == (uid_t)-1 && is_trusted(b)) || (b == (uid_t)-1 && is_trusted(a));
}

/* A new build can have the inode number of the old one. */
static bool is_other_build(const struct object *o, const struct object *like)
{
	return *o->build_id && *like->build_id && strcmp(o->build_id, like->build_id) != 0;
}

static int find_inode(const struct profile *p, const struct object *like, __u32 *index)
{
	for (size_t i = 0; i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		if (o->kind == OBJECT_FILE && o->ino == like->ino && o->dev == like->dev &&
		    !strcmp(o->path, like->path) && !is_other_build(o, like)) {
			*index = (__u32)i;
			return 0;
		}
	}
	return -ENOENT;
}

/*
 * Files with the same path and build id are one object, even if reinstalled or in two containers.
 */
static int find_build(const struct profile *p, const struct object *like, __u32 *index)
{
	for (size_t i = 0; *like->build_id && i < p->nobjects; i++) {
		const struct object *o = &p->objects[i];

		if (o->kind == OBJECT_FILE && !strcmp(o->path, like->path) &&
		    !strcmp(o->build_id, like->build_id) && may_be_same(o->owner, like->owner)) {
			*index = (__u32)i;
			return 0;
		}
	}
	return -ENOENT;
}

/* Takes ownership of @fd. */
static void set_file(struct object *o, int fd)
{
	if (o->fd >= 0 || fd < 0) {
		closep(&fd);
		return;
	}
	o->fd = fd;
	if (o->released)
		return;
	o->owner = owner_of(fd);
	elf_file_identify(o, fd);
	elf_file_layout(fd, &o->segments, &o->program);
}

static int add_file(struct table_reader *r, const struct profil_image *image, __u32 *index)
{
	char path[PROFIL_IMAGE_PATH + 16];
	struct object like = { .path = path, .dev = image->dev, .ino = image->ino };
	int err;

	table_image_path(image, path, sizeof(path));
	if (!*path)
		snprintf(path, sizeof(path), "[inode %llu]", image->ino);
	image_file_build_id(image, like.build_id, sizeof(like.build_id));
	if (!find_inode(r->profile, &like, index))
		return 0;
	like.fd = image_file_open(image, path);
	like.owner = owner_of(like.fd);
	err = find_build(r->profile, &like, index);
	if (err)
		err = profile_add_object(r->profile, path, image->dev, image->ino, -1, index);
	if (err < 0) {
		closep(&like.fd);
		return err;
	}
	memcpy(r->profile->objects[*index].build_id, like.build_id, sizeof(like.build_id));
	set_file(&r->profile->objects[*index], like.fd);
	return 0;
}

void table_reader_reopen(void *reader, __u32 object)
{
	const struct table_reader *r = reader;
	struct object *o = &r->profile->objects[object];

	for (__u32 i = 1; i <= r->table.head->images && o->fd < 0; i++) {
		const struct profil_image *image =
			r->object[i] == object + 1 ? table_image(&r->table, i) : NULL;
		__cleanup(closep) int fd = image ? image_file_open(image, o->path) : -1;

		if (owner_of(fd) == o->owner)
			set_file(o, steal_fd(fd));
	}
}

int table_reader_update_images(struct table_reader *r)
{
	const struct profil_table *head = r->table.head;

	if (r->images >= head->used_images)
		return 0;
	for (__u32 i = 1; i <= head->images; i++) {
		const struct profil_image *image = r->object[i] ? NULL : table_image(&r->table, i);
		__u32 index;
		int err;

		if (!image)
			continue;
		err = image->kind == PROFIL_IMAGE_FILE	      ? add_file(r, image, &index)
		      : image->kind == PROFIL_IMAGE_FUNCTIONS ? add_language(r, image, &index)
							      : add_unnamed(r, image, &index);
		if (err < 0)
			return err;
		r->object[i] = index + 1;
		r->images++;
	}
	return 0;
}

/*
 * A JIT compiler can create its map after its code has run for a while, and leave it behind when it
 * ends. This takes ten system calls per process without a map.
 */
static void open_perf_maps(struct table_reader *r)
{
	const struct profile *p = r->profile;

	r->next_maps_ns = now_ns() + PERF_MAPS_NS;
	for (size_t i = 0; i < p->nobjects; i++) {
		struct object *o = &p->objects[i];

		if (o->kind != OBJECT_ANON || o->fd >= 0 || !o->pid || o->ended)
			continue;
		o->ended = kill(o->pid, 0) < 0 && errno == ESRCH;
		o->fd = perfmap_open(o->pid);
	}
}

static int add_group(struct table_reader *r, const struct profil_group *from, __u32 *index)
{
	__u32 by = r->table.head->group_by;
	bool has_process = by & (PROFIL_GROUP_PROCESS | PROFIL_GROUP_THREAD);
	const char *path = cgroups_path(&r->cgroups, from->cgroup);
	struct group g = { .uid = from->uid };
	char unit[NAME_MAX + 1] = "";

	if (has_process) {
		g.pid = (pid_t)from->tgid;
		g.start_ns = from->start_ns;
	}
	if (path && by & (PROFIL_GROUP_CGROUP | PROFIL_GROUP_PROCESS | PROFIL_GROUP_THREAD)) {
		g.cgroup = strdup(path);
		cgroups_unit(path, unit, sizeof(unit));
	}
	if (*unit)
		g.unit = strdup(unit);
	g.command = strndup(from->command, sizeof(from->command));
	if (by & PROFIL_GROUP_THREAD) {
		g.tid = (pid_t)from->tid;
		g.thread = strndup(from->thread, sizeof(from->thread));
	}
	if (!g.command)
		return -ENOMEM;
	return profile_add_group(r->profile, &g, index);
}

/* Adds the frame of the thread of group @i. */
static int add_thread(struct table_reader *r, const struct profil_group *from, __u32 i)
{
	struct interpreted_function f = { .start = table_reader_thread(i) - 1, .length = 1 };
	struct profile *p = r->profile;
	__u32 index;
	int err;

	if (!r->threads) {
		err = profile_add_object(p, interpreted_language(PROFIL_LANGUAGE_THREADS), 0, 0, -1,
					 &index);
		if (err < 0)
			return err;
		p->objects[index].interpreted = calloc(1, sizeof(*p->objects[index].interpreted));
		if (!p->objects[index].interpreted)
			return -ENOMEM;
		r->threads = index + 1;
	}
	if (asprintf(&f.name, from->tid ? "%.*s (%u)" : "%.*s", (int)sizeof(from->thread),
		     from->thread, from->tid) < 0)
		return -ENOMEM;
	return interpreted_add(p->objects[r->threads - 1].interpreted, &f);
}

/* Group @i, if it is new; NULL: it is not. */
static const struct profil_group *new_group(const struct table_reader *r, __u32 i)
{
	return r->group[i] ? NULL : table_group(&r->table, i);
}

/* Looks up the cgroups of all new groups in one walk of the hierarchy. */
static int look_up_cgroups(struct table_reader *r)
{
	for (__u32 i = 1; i <= r->table.head->groups; i++) {
		const struct profil_group *group = new_group(r, i);

		if (group && cgroups_want(&r->cgroups, group->cgroup) < 0)
			return -ENOMEM;
	}
	cgroups_look_up(&r->cgroups);
	return 0;
}

/* A group that appears after the walk, in another cgroup, is left to the next update. */
static int notice_groups(struct table_reader *r)
{
	const struct profil_table *head = r->table.head;
	int err = 0;

	if (r->groups >= head->used_groups)
		return 0;
	err = look_up_cgroups(r);
	for (__u32 i = 1; i <= head->groups && !err; i++) {
		const struct profil_group *group = new_group(r, i);

		if (!group || !cgroups_knows(&r->cgroups, group->cgroup))
			continue;
		if (head->stack_mode && head->group_by & PROFIL_GROUP_THREAD)
			err = add_thread(r, group, i);
		err = err ?: add_group(r, group, &r->group[i]);
		r->groups += !err;
	}
	if (r->threads)
		interpreted_sort(r->profile->objects[r->threads - 1].interpreted);
	return err;
}

int table_reader_update(struct table_reader *r)
{
	int err = table_reader_update_images(r);

	if (!err)
		err = notice_groups(r);
	if (!err)
		err = read_functions(r);
	if (now_ns() >= r->next_maps_ns)
		open_perf_maps(r);
	return err;
}

void table_reader_locate(const struct table_reader *r, struct place *place, __u32 number,
			 __u32 offset)
{
	const struct profil_image *image = table_image(&r->table, number);

	place->width = 1;
	place->offset = image->base + offset;
	if (image->kind != PROFIL_IMAGE_KERNEL)
		return;
	if (r->kernel_text && offset)
		place->offset -= r->kernel_text;
	else
		place->offset = place->width = 0;
}

/* Says whether the image or group of @key is not complete yet, but will be shortly. */
static bool is_pending(const struct table_reader *r, __u64 key)
{
	__u32 image = profil_place_image(key), group = profil_place_group(key);

	return (image && image <= r->table.head->images && !r->object[image]) ||
	       (group && group <= r->table.head->groups && !r->group[group]);
}

/*
 * Samples of an image that was claimed but never completed, as its process was interrupted, count
 * as lost.
 */
int table_reader_add(const struct table_reader *r, struct profile *into, __u64 key, __u64 count)
{
	__u32 image = profil_place_image(key), group = profil_place_group(key);
	struct place place = { .count = count };

	if (!image || image > r->table.head->images || !r->object[image]) {
		into->lost += key & (PROFIL_PLACE_FOLDED | PROFIL_PLACE_SUM) ? 0 : count;
		return 0;
	}
	place.object = r->object[image] - 1;
	place.group = group <= r->table.head->groups ? r->group[group] : 0;
	if (key & PROFIL_PLACE_SUM) /* folded samples are counted elsewhere, too */
		return key & PROFIL_PLACE_FOLDED ? 0 : places_add(&into->sums, &place);
	table_reader_locate(r, &place, image, profil_place_offset(key));
	return places_add(key & PROFIL_PLACE_FOLDED ? &into->folded : &into->places, &place);
}

/* Loads each counter once, as the kernel counts meanwhile. The next reading has what is above @most. */
static __u32 take_place(struct table_seen *seen, size_t at, const __u32 *counter, __u64 most)
{
	__u32 before = seen ? seen->place[at] : 0;
	__u32 count = __atomic_load_n(counter, __ATOMIC_RELAXED) - before;

	count = count < most ? count : (__u32)most;
	if (seen)
		seen->place[at] += count;
	return count;
}

/*
 * Reads places, or with @only PROFIL_PLACE_SUM the sums of groups: after the places, and at most as
 * many samples as those have, as the kernel counts meanwhile. @seen NULL: reads all counts.
 */
static int read_places(const struct table_reader *r, struct table_seen *seen, __u64 only,
		       struct profile *into)
{
	const struct profil_line *lines = table_lines(&r->table);
	int err = 0;

	for (__u32 i = 0; i < r->table.head->lines && !err; i++) {
		for (int k = 0; k < PROFIL_LINE_PLACES && !err && lines[i].key[k]; k++) {
			size_t at = (size_t)i * PROFIL_LINE_PLACES + (size_t)k;
			__u64 key = lines[i].key[k];
			__u32 count;

			if ((key & PROFIL_PLACE_SUM) != only || (seen && is_pending(r, key)))
				continue;
			count = take_place(seen, at, &lines[i].count[k],
					   only ? into->places.sum - into->sums.sum : ~0u);
			if (count)
				err = table_reader_add(r, into, key, count);
		}
	}
	return err;
}

/* The samples of a counter since @seen; NULL: all. */
static __u64 take_counter(__u64 *seen, const __u64 *counter)
{
	__u64 count = __atomic_load_n(counter, __ATOMIC_RELAXED), before = seen ? *seen : 0;

	if (seen)
		*seen = count;
	return count - before;
}

/* Reads samples that did not fit into the table of places: anywhere in their object. */
static int read_coarse(const struct table_reader *r, struct table_seen *seen, struct profile *into)
{
	int err = 0;

	for (__u32 i = 1; i <= r->table.head->images && !err; i++) {
		const struct profil_image *image = r->object[i] ? table_image(&r->table, i) : NULL;
		__u64 *before = seen ? seen->coarse[i] : NULL;
		struct place place;

		if (!image)
			continue;
		place = (struct place){ .object = r->object[i] - 1 };
		place.count = take_counter(before, &image->coarse[0]);
		err = places_add(&into->places, &place);
		into->place_full += place.count;
		place.count = take_counter(before ? before + 1 : NULL, &image->coarse[1]);
		if (!err)
			err = places_add(&into->folded, &place);
	}
	return err;
}

/* Since @seen less of it may be new than has found a place. */
static __u64 take_unseen(const struct table *t, struct table_seen *seen)
{
	__u64 now_ns = t->head->unseen_ns + table_waiting_ns(t), before_ns = seen->unseen_ns;

	seen->unseen_ns = now_ns;
	return now_ns > before_ns ? now_ns - before_ns : 0;
}

/* @seen is all zero to read all. */
static void read_outcomes(const struct table *t, struct table_seen *seen, struct profile *into)
{
	const struct profil_table *head = t->head;
	__u64 image_full = into->image_full;

	for (size_t i = 0; i < OUTCOMES; i++) {
		const void *counter = (const char *)head + outcomes[i].table;

		if (outcomes[i].table)
			*outcome_of(into, &outcomes[i]) += take_counter(&seen->outcome[i], counter);
	}
	into->lost += take_counter(&seen->lost, &head->lost) + into->image_full - image_full;
	into->unmatched += take_counter(&seen->unmatched, &head->unmatched);
	into->unseen_ns += take_unseen(t, seen);
	into->binned = into->places.sum;
	into->total = into->binned + into->unmatched + into->lost;
}

int table_seen_init(struct table_seen *seen, const struct table *t)
{
	*seen = (struct table_seen){ 0 };
	seen->place = calloc((size_t)t->head->lines * PROFIL_LINE_PLACES, sizeof(*seen->place));
	seen->coarse = calloc(t->head->images + 1, sizeof(*seen->coarse));
	return seen->place && seen->coarse ? 0 : -ENOMEM;
}

void table_seen_fini(struct table_seen *seen)
{
	free(seen->place);
	free(seen->coarse);
	*seen = (struct table_seen){ 0 };
}

int table_reader_read_since(struct table_reader *r, struct table_seen *seen, struct profile *into)
{
	int err;

	r->next_maps_ns = 0;
	err = table_reader_update(r);
	profile_borrow_again(into, r->profile);
	err = err ?: read_places(r, seen, 0, into)
		       ?: read_coarse(r, seen, into)
		       ?: read_places(r, seen, PROFIL_PLACE_SUM, into);
	read_outcomes(&r->table, seen, into);
	return err;
}

int table_reader_read(struct table_reader *r, struct profile *into)
{
	struct table_seen nothing = { 0 };
	int err;

	r->next_maps_ns = 0;
	err = table_reader_update(r);
	profile_borrow_again(into, r->profile);
	into->unmatched = into->lost = into->unseen_ns = 0;
	for (size_t i = 0; i < OUTCOMES; i++) {
		if (outcomes[i].table)
			*outcome_of(into, &outcomes[i]) = 0;
	}
	err = err ?: read_places(r, NULL, 0, into)
		       ?: read_coarse(r, NULL, into)
		       ?: read_places(r, NULL, PROFIL_PLACE_SUM, into);
	read_outcomes(&r->table, &nothing, into);
	return err;
}
