/* maps.c - the BPF programs and their maps: new, or as an earlier daemon left them */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "clock_link.h"
#include "core/log.h"
#include "core/scope.h"
#include "maps.h"
#include "skeleton.h"
#include "store.h"
#include "target.h"

/* libbpf's own words are kept for when something failed; they are many and in its own terms. */
static char libbpf_words[2048];

static int __attribute__((format(printf, 2, 0)))
on_libbpf(enum libbpf_print_level level, const char *format, va_list ap)
{
	size_t used = strlen(libbpf_words);

	if (level == LIBBPF_WARN && used < sizeof(libbpf_words) - 1)
		vsnprintf(libbpf_words + used, sizeof(libbpf_words) - used, format, ap);
	return 0;
}

/*
 * Says whether an earlier daemon's maps are there, of a layout that we know. What is of another
 * layout cannot be read: its profiles end here.
 */
static bool find_state(struct store *store, struct profil_state *out)
{
	__cleanup(closep) int fd = store_take(store, "state");
	__u32 key = 0;

	if (fd < 0)
		return false;
	if (bpf_map_lookup_elem(fd, &key, out) == 0 && out->version == PROFIL_LAYOUT_VERSION)
		return true;
	log_warning("the profiles of an earlier profild are of layout %u, not %u: they end now",
		    out->version, PROFIL_LAYOUT_VERSION);
	store_clear(store);
	return false;
}

/* Under which name the next daemon finds @map; NULL: it has its own. */
static const char *name_of(const struct maps *m, const struct bpf_map *map)
{
	if (map == m->skel->maps.bss)
		return "tables";
	return bpf_map__is_internal(map) ? NULL : bpf_map__name(map);
}

/* All maps of the earlier daemon, or none. */
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
		fd = store_take(store, name);
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

/*
 * Since 7.0 the kernel passes over a program on a tracepoint while a task is preempted in it on the
 * same CPU.
 */
static bool execs_missed(void)
{
	struct utsname system;

	return uname(&system) == 0 && atoi(system.release) >= 7;
}

static int load(struct maps *m, struct store *store)
{
	struct profil_state state = { 0, 0 };
	int err;

	m->skel = profil_bpf__open();
	if (!m->skel)
		return -errno;
	m->found = find_state(store, &state);
	if (m->found) {
		err = reuse(m, store);
		if (err) {
			log_warning("the maps of an earlier profild are not all there (%s): its "
				    "profiles end now",
				    strerror(-err));
			store_clear(store);
			profil_bpf__destroy(m->skel);
			m->skel = profil_bpf__open();
			m->found = false;
			if (!m->skel)
				return -errno;
		}
	}
	m->processes.seed = state.bucket_seed;
	if (!m->found && getrandom(&m->processes.seed, sizeof(m->processes.seed), 0) < 0)
		return -errno;
	m->skel->rodata->bucket_seed = m->processes.seed;
	m->skel->rodata->tick_ns = clock_tick_ns();
	m->skel->rodata->execs_missed = execs_missed();
	bpf_program__set_autoload(m->skel->progs.image_of, m->skel->rodata->execs_missed);
	err = profil_bpf__load(m->skel);
	/* Where libbpf finds that no array can be mapped, it does not map its own. */
	if (!err && (!m->skel->bss || !m->skel->rodata))
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

static int map_journal(struct maps *m)
{
	void *at = mmap(NULL, sizeof(*m->journal), PROT_READ | PROT_WRITE, MAP_SHARED,
			bpf_map__fd(m->skel->maps.journal), 0);

	if (at == MAP_FAILED)
		return -errno;
	m->journal = at;
	return 0;
}

/* libbpf has mapped the tables. */
static void lend_tables(struct maps *m)
{
	struct profil_tables *t = &m->skel->bss->tables;
	int fd = bpf_map__fd(m->skel->maps.bss);

	m->processes.bucket = t->bucket;
	m->processes.target = t->target;
	m->processes.news = &t->news;
	window_lend(&m->targets, fd, t->target, sizeof(t->target),
		    offsetof(struct profil_tables, target));
	window_lend(&m->starts, fd, t->start, sizeof(t->start),
		    offsetof(struct profil_tables, start));
}

int maps_narrow(struct maps *m)
{
	int err = window_narrow(&m->targets);

	return err ? err : window_narrow(&m->starts);
}

static int map_all(struct maps *m)
{
	int err = map_journal(m);

	lend_tables(m);
	if (!err)
		err = window_open(&m->ledgers, bpf_map__fd(m->skel->maps.ledgers),
				  PROFIL_MAX_TARGETS * sizeof(struct profil_ledger));
	m->ledger = m->ledgers.at;
	return err;
}

int maps_reach(struct maps *m, uint32_t targets, uint32_t regions)
{
	int err = window_reach(&m->targets, targets * sizeof(struct profil_target));

	if (!err)
		err = window_reach(&m->ledgers, targets * sizeof(struct profil_ledger));
	if (!err)
		err = window_reach(&m->starts, regions * sizeof(__u64));
	return err;
}

static const char *cure(int err)
{
	if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		return "; this kernel has no BTF: use one built with CONFIG_DEBUG_INFO_BTF=y";
	if (err == -EPERM || err == -EACCES)
		return "; start profild as root, or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE";
	return "";
}

int maps_open(struct maps *m, struct store *store)
{
	int err;

	libbpf_set_print(on_libbpf);
	err = load(m, store);
	if (!err)
		err = map_all(m);
	if (err) {
		if (*libbpf_words)
			log_info("libbpf: %s", libbpf_words);
		log_err("cannot load the BPF programs: %s%s", strerror(-err), cure(err));
	}
	return err;
}

void maps_close(struct maps *m)
{
	if (m->journal)
		munmap(m->journal, sizeof(*m->journal));
	window_close(&m->targets);
	window_close(&m->ledgers);
	window_close(&m->starts);
	profil_bpf__destroy(m->skel);
}

int maps_image(struct maps *m, uint32_t tgid, uint32_t *image)
{
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &tgid, .ctx_size_in = sizeof(tgid));
	int program = bpf_program__fd(m->skel->progs.image_of);

	*image = 0;
	if (!m->skel->rodata->execs_missed)
		return 0;
	if (bpf_prog_test_run_opts(program, &run) < 0)
		return -errno;
	*image = run.retval;
	return *image ? 0 : -ESRCH;
}

int maps_set_owner(struct maps *m, uint32_t index, const struct profil_owner *owner)
{
	const struct profil_owner nobody = { 0 };
	int fd = bpf_map__fd(m->skel->maps.owners);

	return bpf_map_update_elem(fd, &index, owner ? owner : &nobody, BPF_ANY) < 0 ? -errno : 0;
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
	__u64 *start = m->starts.at;
	__u32 count = n;

	if (!key)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		key[i] = t->region_first + from + i;
		if (target_searched(t))
			start[key[i]] = t->region[from + i].lo;
	}
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
