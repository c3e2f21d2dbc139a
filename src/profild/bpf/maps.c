/* maps.c - the BPF programs and their maps: new, or as an earlier daemon left them */
#include <assert.h>
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "profild/clock/late_programs.h"
#include "profild/clock/source.h"
#include "profild/config.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "image_lookup.h"
#include "maps.h"
#include "profild/skeleton.h"
#include "profild/store.h"
#include "profild/profile/target.h"

/* libbpf's warnings, logged only if the load fails. */
static char libbpf_words[960];

static int __attribute__((format(printf, 2, 0)))
on_libbpf(enum libbpf_print_level level, const char *format, va_list ap)
{
	__cleanup(freep) char *text = NULL;
	size_t n, used = strlen(libbpf_words), room = sizeof(libbpf_words) - 1;

	if (level != LIBBPF_WARN || vasprintf(&text, format, ap) < 0)
		return 0;
	n = strlen(text);
	/* The verifier's log gives its reason at the end. */
	if (n >= room) {
		memcpy(libbpf_words, text + n - room, room);
		return 0;
	}
	if (used + n > room) {
		memmove(libbpf_words, libbpf_words + used + n - room, room - n);
		used = room - n;
	}
	memcpy(libbpf_words + used, text, n + 1);
	return 0;
}

/* True if the stored maps can never be used, false if the error may be temporary. */
static bool is_useless(int err)
{
	return err == -ENOENT || err == -EINVAL;
}

/*
 * Sets *@found if the store has an earlier daemon's maps of this layout. Maps of another layout
 * cannot be read: their profiles end here.
 */
static int find_state(struct store *store, struct profil_state *out, bool *found)
{
	__cleanup(closep) int fd = store_take_map(store, "state", "state", sizeof(*out));
	__u32 key = 0;

	if (fd == -ENOENT) /* links without maps would count for other maps */
		store_clear(store);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (bpf_map_lookup_elem(fd, &key, out) < 0)
		return -errno;
	*found = out->version == PROFIL_LAYOUT_VERSION;
	if (*found)
		return 0;
	log_warning("the maps of an earlier profild have layout %u, not %u: its profiles end",
		    out->version, PROFIL_LAYOUT_VERSION);
	store_clear(store);
	return 0;
}

/* The name of @map in the persistent store; NULL: it is not stored. */
static const char *name_of(const struct maps *m, const struct bpf_map *map)
{
	if (map == m->skel->maps.bss)
		return "tables";
	return bpf_map__is_internal(map) ? NULL : bpf_map__name(map);
}

/* Reuses all maps of the earlier daemon. After an error the object must be opened again. */
static int reuse(struct maps *m, struct store *store)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map, m->skel->obj)
	{
		const char *name = name_of(m, map);
		__cleanup(closep) int fd = -1;
		int err;

		if (!name)
			continue;
		fd = store_take_map(store, name, bpf_map__name(map), bpf_map__value_size(map));
		if (fd < 0)
			return fd;
		err = bpf_map__reuse_fd(map, fd);
		if (err)
			return err;
	}
	return 0;
}

static int keep(struct maps *m, struct store *store)
{
	struct profil_state state = { PROFIL_LAYOUT_VERSION, m->processes.seed };
	struct bpf_map *map;
	__u32 key = 0;

	if (bpf_map_update_elem(bpf_map__fd(m->skel->maps.state), &key, &state, BPF_ANY) < 0)
		return -errno;
	bpf_object__for_each_map(map, m->skel->obj)
	{
		const char *name = name_of(m, map);
		int err = name ? store_put(store, name, bpf_map__fd(map)) : 0;

		if (err)
			return err;
	}
	return 0;
}

/* include/linux/proc_ns.h: the same on every machine. */
#define INITIAL_PID_NS 0xeffffffcu

/* The inode of the daemon's pid namespace; 0: it is the initial one, or cannot be told. */
static uint32_t pid_namespace(void)
{
	struct stat st;

	if (stat("/proc/self/ns/pid", &st) < 0 || st.st_ino == INITIAL_PID_NS)
		return 0;
	return (uint32_t)st.st_ino;
}

/*
 * Says whether perf events are needed from the start: for the clock that @config asks for, for
 * profiles of an earlier daemon, and for profilctl(1)'s own daemon, which serves one recording.
 */
static bool needs_perf(const struct maps *m, const struct config *config)
{
	uint64_t shortest = config->period_ns;

	if (config->machine && config->machine_period_ns && config->machine_period_ns < shortest)
		shortest = config->machine_period_ns;
	return m->found || config->ephemeral || config->clock == CLOCK_CPU ||
	       config->clock == CLOCK_CYCLES || shortest < clock_tick_ns();
}

/* From Linux 6.8 on the verifier skips what is not called: only then less is loaded sooner. */
static bool kernel_skips_uncalled(void)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;

	return !uname(&u) && sscanf(u.release, "%u.%u", &major, &minor) == 2 &&
	       (major > 6 || (major == 6 && minor >= 8));
}

/* Adapts the programs to this kernel's BTF, before the load. */
static void adapt(struct maps *m, const struct config *config)
{
	struct btf *btf = btf__load_vmlinux_btf();

	m->skel->rodata->irq_regs_offset = btf ? clock_irq_regs_offset(btf) : 0;
	m->skel->rodata->preempt_count_offset = btf ? clock_preempt_count_offset(btf) : 0;
	m->skel->rodata->pid_ns = pid_namespace();
	/* bpf_task_from_pid() takes ids of the initial pid namespace. */
	m->exec_ids = btf && !m->skel->rodata->pid_ns &&
		      btf__find_by_name_kind(btf, "bpf_task_from_pid", BTF_KIND_FUNC) > 0;
	bpf_program__set_autoload(m->skel->progs.exec_id_of, m->exec_ids);
	late_programs_leave_out(m->skel, config->machine || !kernel_skips_uncalled(),
				needs_perf(m, config));
	bpf_program__set_autoload(m->skel->progs.find_pid_ns_level, m->skel->rodata->pid_ns);
	btf__free(btf);
}

static int load(struct maps *m, const struct config *config, struct store *store)
{
	struct profil_state state = { 0, 0 };
	uint32_t salt;
	int err;

	m->skel = skeleton_open();
	if (!m->skel)
		return -errno;
	err = find_state(store, &state, &m->found);
	if (err)
		return err;
	if (m->found) {
		err = reuse(m, store);
		if (err && !is_useless(err))
			return err;
		if (err) {
			log_warning("the maps of an earlier profild are incomplete (%s): "
				    "its profiles end",
				    strerror(-err));
			store_clear(store);
			profil_bpf__destroy(m->skel);
			m->skel = skeleton_open();
			m->found = false;
			if (!m->skel)
				return -errno;
		}
	}
	m->processes.seed = state.bucket_seed;
	if (!m->found && getrandom(&m->processes.seed, sizeof(m->processes.seed), 0) < 0)
		return -errno;
	m->skel->rodata->bucket_seed = m->processes.seed;
	if (getrandom(&salt, sizeof(salt), 0) < 0)
		return -errno;
	m->skel->rodata->sleeper_salt = salt | 1u << 31;
	m->skel->rodata->tick_ns = clock_tick_ns();
	m->skel->rodata->clock_owner = salt;
	m->skel->rodata->page_shift = (__u32)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE));
	adapt(m, config);
	err = profil_bpf__load(m->skel);
	/* libbpf does not map its own arrays if its probe says that arrays cannot be mapped. */
	if (!err && (!m->skel->bss || !m->skel->data || !m->skel->rodata))
		err = -EOPNOTSUPP;
	if (!err && !m->found) {
		err = keep(m, store);
		if (err) {
			log_warning("cannot store the maps: %s; profiles end with this daemon",
				    strerror(-err));
			store_clear(store);
			err = 0;
		}
	}
	return err;
}

static int map_whole(void **out, const struct bpf_map *map, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (at == MAP_FAILED)
		return -errno;
	*out = at;
	return 0;
}

/* Maps the ledgers; libbpf has mapped the tables. */
static int map_all(struct maps *m)
{
	struct profil_tables *t;

	assert(m->skel);
	t = &m->skel->bss->tables;
	m->processes.tables = t;
	m->processes.target = t->target;
	return map_whole((void **)&m->ledger, m->skel->maps.ledgers,
			 PROFIL_MAX_TARGETS * sizeof(*m->ledger));
}

static const char *cure(int err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "; this kernel has no BTF: use one built with CONFIG_DEBUG_INFO_BTF=y";
	if (err == -EPERM || err == -EACCES)
		return "; start profild as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
	return "";
}

/* The programs translate every process id to the daemon's pid namespace (bpf/pid.bpf.h). */
static int find_pid_namespace(struct maps *m)
{
	LIBBPF_OPTS(bpf_test_run_opts, run);

	m->skel->bss->tables.pid_ns_level = 0;
	if (!m->skel->rodata->pid_ns)
		return 0;
	if (bpf_prog_test_run_opts(bpf_program__fd(m->skel->progs.find_pid_ns_level), &run) < 0)
		return -errno;
	log_notice("in a pid namespace of its own: serves the processes of that namespace");
	return 0;
}

int maps_open(struct maps *m, const struct config *config, struct store *store)
{
	int err;

	libbpf_set_print(on_libbpf);
	err = load(m, config, store) ?: map_all(m) ?: find_pid_namespace(m);
	if (err) {
		if (*libbpf_words)
			log_info("libbpf: %s", libbpf_words);
		log_err("cannot load the BPF programs: %s%s", strerror(-err), cure(err));
		return err;
	}
	m->image_lookup = image_lookup_choose(m->skel);
	return 0;
}

void maps_close(struct maps *m)
{
	if (m->ledger)
		munmap(m->ledger, PROFIL_MAX_TARGETS * sizeof(*m->ledger));
	profil_bpf__destroy(m->skel);
}

int maps_exec_id(struct maps *m, uint32_t tgid, uint32_t *exec_id)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &tgid, .ctx_size_in = sizeof(tgid));
	int program = bpf_program__fd(m->skel->progs.exec_id_of);

	*exec_id = 0;
	if (!m->exec_ids)
		return 0;
	if (bpf_prog_test_run_opts(program, &run) < 0)
		return -errno;
	*exec_id = run.retval;
	return *exec_id ? 0 : -ESRCH;
}

int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *owner)
{
	const struct profil_owner none = { 0 };
	int fd = bpf_map__fd(m->skel->maps.owners);

	return bpf_map_update_elem(fd, &index, owner ? owner : &none, BPF_ANY) < 0 ? -errno : 0;
}

int maps_get_owner(struct maps *m, uint32_t index, struct profil_owner *out)
{
	int fd = bpf_map__fd(m->skel->maps.owners);

	return bpf_map_lookup_elem(fd, &index, out) < 0 ? -errno : 0;
}

int maps_write_regions(struct maps *m, const struct target *t, uint32_t from, uint32_t n)
{
	__cleanup(freep) __u32 *key = calloc(n ? n : 1, sizeof(*key));
	int fd = bpf_map__fd(m->skel->maps.regions);
	__u32 count = n;

	if (!key)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		key[i] = t->region_first + from + i;
	if (n && bpf_map_update_batch(fd, key, &t->region[from], &count, NULL) < 0)
		return -errno;
	return 0;
}

int maps_read_regions(struct maps *m, struct target *t)
{
	int fd = bpf_map__fd(m->skel->maps.regions);

	for (uint32_t i = 0; i < t->nregions; i++) {
		__u32 key = t->region_first + i;

		if (bpf_map_lookup_elem(fd, &key, &t->region[i]) < 0)
			return -errno;
	}
	return 0;
}
