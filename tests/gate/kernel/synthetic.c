/* synthetic.c - gives samples to the counting code in the kernel, without a clock */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "synthetic.h"

/* Not the address of a function: the program of the tick takes no timer for the tick's. */
#define NO_FUNCTION 1

#define MAPS_MAX 128

/* The maps of a daemon, as descriptors of the test. */
struct maps {
	int fd[MAPS_MAX];
	unsigned int n;
};

/* Adds the map that descriptor @name of @dir, a /proc/PID/fdinfo, refers to, if it is one. */
static void maps_add(struct maps *maps, const char *dir, const char *name)
{
	__cleanup(fclosep) FILE *f = NULL;
	char path[320], line[128];
	unsigned int id = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "re");
	while (f && !id && fgets(line, sizeof(line), f))
		sscanf(line, "map_id: %u", &id);
	if (!id)
		return;
	cr_assert_lt(maps->n, MAPS_MAX);
	maps->fd[maps->n] = bpf_map_get_fd_by_id(id);
	maps->n += maps->fd[maps->n] >= 0; /* a map that the daemon has closed by now */
}

static void maps_open(struct maps *maps, pid_t pid)
{
	const struct dirent *entry;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	dir = opendir(path);
	cr_assert(dir, "%s: %s", path, strerror(errno));
	maps->n = 0;
	while ((entry = readdir(dir)))
		maps_add(maps, path, entry->d_name);
	closedir(dir);
}

static void maps_close(struct maps *maps)
{
	for (unsigned int i = 0; i < maps->n; i++)
		close(maps->fd[i]);
}

/*
 * True if the kernel's @info describes the object's map @name. The kernel has 15 characters of a
 * name; those of .bss and .rodata begin with a part of the object's name.
 */
static bool is_map(const struct bpf_map_info *info, const char *name)
{
	const char *dot = strchr(name, '.');
	const char *other = dot ? strchr(info->name, '.') : info->name;

	return other && !strncmp(other, dot ? dot : name, sizeof(info->name) - 1);
}

static int maps_find(const struct maps *maps, const char *name)
{
	for (unsigned int i = 0; i < maps->n; i++) {
		struct bpf_map_info info = { 0 };
		__u32 bytes = sizeof(info);

		if (!bpf_obj_get_info_by_fd(maps->fd[i], &info, &bytes) && is_map(&info, name))
			return maps->fd[i];
	}
	return -1;
}

/* Of all programs only those of the tests are loaded. */
static void synthetic_open(struct synthetic *s, bool places)
{
	struct bpf_program *program;

	s->object = synth_bpf__open();
	cr_assert(s->object, "cannot open the programs: %s", strerror(errno));
	bpf_object__for_each_program(program, s->object->obj) bpf_program__set_autoload(
		program, !strncmp(bpf_program__name(program), "synth_", strlen("synth_")));
	bpf_program__set_autoload(s->object->progs.synth_count, places);
	bpf_program__set_autoload(s->object->progs.synth_branches, places);
	bpf_program__set_autoload(s->object->progs.synth_waits, places);
}

static void synthetic_load(struct synthetic *s)
{
	int err = synth_bpf__load(s->object);

	cr_assert(!err, "the kernel refuses the programs: %s", strerror(-err));
	s->tables = &s->object->bss->tables;
}

void synthetic_join(struct synthetic *s, const struct daemon *d, bool places)
{
	const __u32 key = 0;
	struct maps maps;
	struct bpf_map *map;

	synthetic_open(s, places);
	maps_open(&maps, d->pid);
	bpf_object__for_each_map(map, s->object->obj)
	{
		int fd = maps_find(&maps, bpf_map__name(map));

		if (map == s->object->maps.synth_sample)
			continue;
		cr_assert(fd >= 0, "the daemon has no map %s", bpf_map__name(map));
		if (map == s->object->maps.rodata) { /* the daemon's may have no places yet */
			cr_assert_eq(bpf_map_lookup_elem(fd, &key, s->object->rodata), 0);
			s->object->rodata->counts_places = true;
			continue;
		}
		cr_assert_eq(bpf_map__reuse_fd(map, fd), 0, "map %s", bpf_map__name(map));
	}
	maps_close(&maps);
	synthetic_load(s);
	s->tables->clock.tick_function = NO_FUNCTION;
}

void synthetic_alone(struct synthetic *s)
{
	synthetic_open(s, false);
	s->object->rodata->tick_ns = SYNTHETIC_TICK_NS;
	bpf_program__set_autoload(s->object->progs.synth_count,
				  false); /* needs a daemon's tables */
	synthetic_load(s);
}

void synthetic_close(struct synthetic *s)
{
	synth_bpf__destroy(s->object);
	s->object = NULL;
}

void synthetic_run(const struct bpf_program *program, void *context, __u32 bytes)
{
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = context, .ctx_size_in = bytes);
	int err = bpf_prog_test_run_opts(bpf_program__fd(program), &opts);

	cr_assert(!err && !opts.retval, "%s: %s, returned %u", bpf_program__name(program),
		  strerror(-err), opts.retval);
}

__u64 synthetic_entry(const struct synthetic *s, pid_t pid)
{
	struct synth_hit a = { .tgid = (__u32)pid, .flags = PROFIL_TARGET_TICK };

	SYNTHETIC_RUN(s, hit, &a);
	return a.entry;
}

struct profil_target *synthetic_target(const struct synthetic *s, pid_t pid)
{
	__u64 entry = synthetic_entry(s, pid);

	cr_assert(entry, "process %d has no profile", (int)pid);
	return &s->tables->target[profil_entry_target(entry)];
}

const volatile __u8 *synthetic_dirty(const struct synthetic *s, const struct profil_target *t)
{
	__cleanup(closep) int fd = -1;
	struct profil_region region;
	struct profil_chunk *chunk;
	__u32 key, id;

	cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(s->object->maps.regions), &t->region_first,
					 &region),
		     0);
	key = region.first / PROFIL_CHUNK_COUNTERS;
	cr_assert_eq(bpf_map_lookup_elem(bpf_map__fd(s->object->maps.chunks), &key, &id), 0);
	fd = bpf_map_get_fd_by_id(id);
	chunk = mmap(NULL, sizeof(*chunk), PROT_READ, MAP_SHARED, fd, 0);
	cr_assert_neq(chunk, MAP_FAILED, "%s", strerror(errno));
	return &chunk->dirty[region.first % PROFIL_CHUNK_COUNTERS / PROFIL_BLOCK_COUNTERS];
}

void synthetic_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out)
{
	static union {
		struct profil_msg_list m;
		char space[PROFIL_MSG_MAX];
	} answer;
	__cleanup(closep) int sock = client_open(d, NULL);
	struct profil_header ask;

	wire_header(&ask, PROFIL_MSG_LIST, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)), "LIST: %s", strerror(errno));
	cr_assert_geq(client_recv(sock, &answer, sizeof(answer)), sizeof(answer.m));
	for (__u32 i = 0; i < answer.m.h.count; i++) {
		*out = answer.m.profile[i];
		if (out->tgid == (__u32)pid && !out->attachment)
			return;
	}
	cr_assert_fail("the daemon lists no profile of process %d", (int)pid);
}

/* The parent of process @pid; 0: no such process. */
static pid_t parent_of(pid_t pid)
{
	__cleanup(fclosep) FILE *f = NULL;
	char path[64], line[256];
	int parent = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "re");
	if (f && fgets(line, sizeof(line), f) && strrchr(line, ')'))
		sscanf(strrchr(line, ')'), ") %*c %d", &parent);
	return parent;
}

void synthetic_workers(const struct daemon *d, int signal)
{
	const struct dirent *entry;
	DIR *proc = opendir("/proc");
	unsigned int n = 0;

	cr_assert(proc);
	while ((entry = readdir(proc))) {
		pid_t pid = (pid_t)atoi(entry->d_name), up = pid > 0 ? parent_of(pid) : 0;

		if (up != d->pid && (up <= 1 || parent_of(up) != d->pid))
			continue;
		cr_assert_eq(kill(pid, signal), 0);
		n++;
	}
	closedir(proc);
	cr_assert(n, "the daemon has no workers");
}

void synthetic_hit(const struct synthetic *s, pid_t pid, __u64 pc, __u32 n)
{
	struct synth_hit a = { .pc = pc, .tgid = (__u32)pid, .n = n, .flags = PROFIL_TARGET_TICK };

	SYNTHETIC_RUN(s, hit, &a);
	cr_assert(!a.none, "process %d has no profile", (int)pid);
}
