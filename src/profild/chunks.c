/* chunks.c - the counters: BPF arrays, made when they are needed, handed out in groups */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chunks.h"
#include "core/log.h"
#include "core/scope.h"
#include "counts.h"
#include "range.h"
#include "store.h"

struct chunk {
	int fd;	       /* 0: there is none */
	uint32_t used; /* groups */
	bool leaves;   /* nobody's, but its groups are taken until it has gone */
	bool reader;
	struct profil_chunk *at; /* mapped when first used; never where it is a reader's */
};

struct chunks {
	int outer;
	struct store *store;
	struct range *groups;
	uint32_t n;   /* of the following, are there */
	bool emptied; /* some of them may be */
	struct chunk chunk[PROFIL_MAX_CHUNKS];
};

static uint32_t groups_of(uint64_t counters)
{
	return (uint32_t)((counters + PROFIL_GROUP_COUNTERS - 1) / PROFIL_GROUP_COUNTERS);
}

static const char *chunk_name(uint32_t k, char name[32])
{
	snprintf(name, 32, "chunk-%u", k);
	return name;
}

/* Lets go of the chunk here; in the kernel it is where it was. */
static void chunk_unmap(struct chunks *c, uint32_t k)
{
	struct chunk *chunk = &c->chunk[k];

	if (!chunk->fd)
		return;
	c->n--;
	if (chunk->at)
		munmap(chunk->at, sizeof(*chunk->at));
	close(chunk->fd);
	memset(chunk, 0, sizeof(*chunk));
}

struct chunks *chunks_close(struct chunks *c)
{
	if (!c)
		return NULL;
	for (uint32_t k = 0; k < PROFIL_MAX_CHUNKS; k++)
		chunk_unmap(c, k);
	range_free(c->groups);
	free(c);
	return NULL;
}

static void chunk_add(struct chunks *c, uint32_t k, int fd, bool reader)
{
	c->chunk[k] = (struct chunk){ .fd = fd, .reader = reader };
	c->n++;
}

/* A BPF array that is mapped is resident, whole: no sooner than it must. */
static int chunk_map(struct chunks *c, uint32_t k)
{
	struct chunk *chunk = &c->chunk[k];
	void *at;

	if (chunk->at || chunk->reader)
		return 0;
	at = mmap(NULL, sizeof(*chunk->at), PROT_READ | PROT_WRITE, MAP_SHARED, chunk->fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	chunk->at = at;
	return 0;
}

int chunks_open(struct chunks **out, int outer, int first, struct store *store)
{
	struct chunks *c = calloc(1, sizeof(*c));
	int err, fd;

	if (!c)
		return -ENOMEM;
	c->outer = outer;
	c->store = store;
	err = range_new(&c->groups, PROFIL_MAX_CHUNKS * PROFIL_CHUNK_GROUPS);
	fd = err ? -1 : fcntl(first, F_DUPFD_CLOEXEC, 0);
	if (!err && fd < 0)
		err = -errno;
	if (err) {
		chunks_close(c);
		return err;
	}
	chunk_add(c, 0, fd, false);
	*out = c;
	return 0;
}

static int chunk_create(bool reader)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	__cleanup(closep) int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, "profil_chunk", sizeof(__u32),
						  sizeof(struct profil_chunk), 1, &opts);

	if (fd < 0 || (reader && bpf_map_freeze(fd) < 0))
		return -errno;
	return steal_fd(fd);
}

/* Chunks that are made, and put where the kernel finds them, together. */
struct batch {
	uint32_t n;
	__u32 key[PROFIL_MAX_CHUNKS];
	int fd[PROFIL_MAX_CHUNKS];
};

static int batch_add(struct batch *b, uint32_t k, bool reader)
{
	int fd = chunk_create(reader);

	if (fd < 0)
		return fd;
	b->key[b->n] = k;
	b->fd[b->n++] = fd;
	return 0;
}

/* To put something there takes a grace period, some milliseconds: one for all of them. */
static int batch_put(struct chunks *c, struct batch *b, bool reader)
{
	__u32 n = b->n;
	int err = bpf_map_update_batch(c->outer, b->key, b->fd, &n, NULL) < 0 ? -errno : 0;
	char name[32];

	for (uint32_t i = 0; i < b->n; i++) {
		if (err) {
			bpf_map_delete_elem(c->outer, &b->key[i]);
			close(b->fd[i]);
			continue;
		}
		chunk_add(c, b->key[i], b->fd[i], reader);
		if (!reader && store_put(c->store, chunk_name(b->key[i], name), b->fd[i])) {
			log_warning("cannot store %s: a restart will not find its counts", name);
		}
	}
	return err;
}

/*
 * As many chunks as may lie idle: who stops and starts again need not wait for one, and where many
 * start, few of them do.
 */
static uint32_t idle_max(const struct chunks *c)
{
	return 1 + c->n / 8;
}

/* Makes those of the chunks from @k up to before @end that are not there, and some more. */
static int chunks_make(struct chunks *c, uint32_t k, uint32_t end, bool reader)
{
	struct batch b;
	int err = 0;

	b.n = 0;
	for (; !err && k < end; k++) {
		if (!c->chunk[k].fd)
			err = batch_add(&b, k, reader);
	}
	for (uint32_t more = idle_max(c) - 1;
	     !err && !reader && b.n && more && k < PROFIL_MAX_CHUNKS; k++) {
		if (c->chunk[k].fd)
			continue;
		if (batch_add(&b, k, false))
			break;
		more--;
	}
	if (!err)
		return b.n ? batch_put(c, &b, reader) : 0;
	while (b.n)
		close(b.fd[--b.n]);
	return err;
}

/* The chunk of an earlier daemon. */
static int chunk_adopt(struct chunks *c, uint32_t k)
{
	char name[32];
	int fd;

	if (!c->chunk[k].fd) {
		fd = store_take(c->store, chunk_name(k, name));
		if (fd < 0)
			return fd;
		chunk_add(c, k, fd, false);
	}
	return chunk_map(c, k);
}

/* The chunk of group @g, and how many of the groups up to @end lie in it. */
static uint32_t chunk_of(uint32_t g, uint32_t end, uint32_t *groups)
{
	uint32_t k = g / PROFIL_CHUNK_GROUPS, next = (k + 1) * PROFIL_CHUNK_GROUPS;

	*groups = (end < next ? end : next) - g;
	return k;
}

int chunks_take(struct chunks *c, uint64_t n, bool reader, uint32_t *first)
{
	uint32_t align = reader ? PROFIL_CHUNK_GROUPS : 1, groups = groups_of(n), g, step;
	uint32_t end, k, last;
	int err;

	groups = (groups + align - 1) / align * align;
	/* Chunk 0 is never a reader's: it is not frozen. */
	err = range_take_from(c->groups, reader ? PROFIL_CHUNK_GROUPS : 0, groups, align, &g);
	if (err)
		return err;
	end = g + groups;
	k = g / PROFIL_CHUNK_GROUPS;
	last = (end + PROFIL_CHUNK_GROUPS - 1) / PROFIL_CHUNK_GROUPS;
	err = chunks_make(c, k, last, reader);
	for (; !err && k < last; k++)
		err = chunk_map(c, k);
	if (err) {
		range_give(c->groups, g, groups);
		return err;
	}
	*first = g * PROFIL_GROUP_COUNTERS;
	for (; g < end; g += step)
		c->chunk[chunk_of(g, end, &step)].used += step;
	return 0;
}

int chunks_take_at(struct chunks *c, uint32_t first, uint64_t n)
{
	uint32_t g = first / PROFIL_GROUP_COUNTERS, groups = groups_of(n), at, step;
	int err = range_take_at(c->groups, g, groups);

	if (err)
		return err;
	for (at = g; !err && at < g + groups; at += err ? 0 : step) {
		uint32_t k = chunk_of(at, g + groups, &step);

		err = chunk_adopt(c, k);
		if (!err)
			c->chunk[k].used += step;
	}
	if (err) {
		/* They stay open: who comes after may have counted there. */
		for (uint32_t from = g; from < at; from += step)
			c->chunk[chunk_of(from, at, &step)].used -= step;
		range_give(c->groups, g, groups);
	}
	return err;
}

static uint8_t *dirty_of(const struct chunks *c, uint32_t g)
{
	return &c->chunk[g / PROFIL_CHUNK_GROUPS].at->dirty[g % PROFIL_CHUNK_GROUPS];
}

static uint32_t *group_of(const struct chunks *c, uint32_t g)
{
	struct profil_chunk *at = c->chunk[g / PROFIL_CHUNK_GROUPS].at;

	return &at->count[(size_t)(g % PROFIL_CHUNK_GROUPS) * PROFIL_GROUP_COUNTERS];
}

void chunks_give(struct chunks *c, uint32_t first, uint64_t n, bool reader)
{
	uint32_t align = reader ? PROFIL_CHUNK_GROUPS : 1, groups = groups_of(n);
	uint32_t g = first / PROFIL_GROUP_COUNTERS, end, step;

	groups = (groups + align - 1) / align * align;
	end = g + groups;
	for (uint32_t i = g; !reader && i < end; i++) {
		if (*dirty_of(c, i))
			memset(group_of(c, i), 0, PROFIL_GROUP_COUNTERS * sizeof(uint32_t));
		*dirty_of(c, i) = 0;
	}
	if (!reader)
		range_give(c->groups, g, groups);
	for (; g < end; g += step) {
		struct chunk *chunk = &c->chunk[chunk_of(g, end, &step)];

		chunk->used -= step;
		chunk->leaves = reader;
		c->emptied |= !chunk->used;
	}
}

/* An empty chunk can be had again until it goes: then its groups are taken. */
static bool chunk_goes(struct chunks *c, uint32_t k, uint32_t *idle)
{
	struct chunk *chunk = &c->chunk[k];

	if (!chunk->leaves && chunk->fd && !chunk->reader && !chunk->used && ++*idle > idle_max(c))
		chunk->leaves =
			!range_take_at(c->groups, k * PROFIL_CHUNK_GROUPS, PROFIL_CHUNK_GROUPS);
	return chunk->leaves;
}

uint32_t chunks_leaving(struct chunks *c, __u32 *key, uint32_t max)
{
	uint32_t n = 0, idle = 0;

	for (uint32_t k = 0; c->emptied && n < max && k < PROFIL_MAX_CHUNKS; k++) {
		if (chunk_goes(c, k, &idle))
			key[n++] = k;
	}
	c->emptied = n != 0; /* the fewer there are, the fewer may lie idle */
	return n;
}

void chunks_left(struct chunks *c, const __u32 *key, uint32_t n)
{
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		store_drop(c->store, chunk_name(key[i], name));
		chunk_unmap(c, key[i]);
		range_give(c->groups, key[i] * PROFIL_CHUNK_GROUPS, PROFIL_CHUNK_GROUPS);
	}
}

/* Clears what is in group @g, if that is nobody's. */
static void clear_unused(struct chunks *c, uint32_t g)
{
	bool clean = !*dirty_of(c, g);

	for (int i = 0; clean && i < PROFIL_GROUP_COUNTERS; i += 8)
		clean = !any_of_eight(group_of(c, g) + i);
	if (clean || range_take_at(c->groups, g, 1))
		return;
	memset(group_of(c, g), 0, PROFIL_GROUP_COUNTERS * sizeof(uint32_t));
	*dirty_of(c, g) = 0;
	range_give(c->groups, g, 1);
}

void chunks_sweep(struct chunks *c)
{
	for (uint32_t k = 0; k < PROFIL_MAX_CHUNKS; k++) {
		uint32_t first = k * PROFIL_CHUNK_GROUPS;
		int err = c->chunk[k].fd ? chunk_map(c, k) : 0;

		if (err)
			log_warning("cannot clear what an earlier daemon left in chunk %u: %s", k,
				    strerror(-err));
		for (uint32_t i = 0; c->chunk[k].at && i < PROFIL_CHUNK_GROUPS; i++)
			clear_unused(c, first + i);
	}
}

int chunks_fd(const struct chunks *c, uint32_t chunk)
{
	return c->chunk[chunk].fd;
}

unsigned int chunks_count(const struct chunks *c)
{
	return c->n;
}

/* The first dirty group of [@g, @end), or @end. Eight clean ones are passed at a time. */
static uint32_t next_dirty(const struct chunks *c, uint32_t g, uint32_t end)
{
	while (g < end) {
		uint64_t eight;

		if (g % 8 == 0 && end - g >= 8) {
			memcpy(&eight, dirty_of(c, g), sizeof(eight));
			if (!eight) {
				g += 8;
				continue;
			}
		}
		if (*dirty_of(c, g))
			return g;
		g++;
	}
	return end;
}

/*
 * The mark goes first: a tick that comes after it sets it again, and its count is found now or
 * with the next mark, never neither.
 */
static uint64_t take_group(const struct chunks *c, uint32_t g, uint32_t *count)
{
	uint32_t *counter = group_of(c, g);
	uint64_t sum = 0;

	__atomic_exchange_n(dirty_of(c, g), 0, __ATOMIC_SEQ_CST);
	for (int first = 0; first < PROFIL_GROUP_COUNTERS; first += 8) {
		if (!any_of_eight(counter + first))
			continue;
		for (int i = first; i < first + 8; i++) {
			if (__atomic_load_n(&counter[i], __ATOMIC_RELAXED))
				count[i] = __atomic_exchange_n(&counter[i], 0, __ATOMIC_RELAXED);
			sum += count[i];
		}
	}
	return sum;
}

/* So many groups from one marked one to the next are less to carry along than to begin again. */
#define BRIDGED 16

uint32_t chunks_next(const struct chunks *c, uint64_t *counter, uint64_t end, uint32_t max)
{
	uint32_t last = (uint32_t)(end / PROFIL_GROUP_COUNTERS), most = max / PROFIL_GROUP_COUNTERS;
	uint32_t g = next_dirty(c, (uint32_t)(*counter / PROFIL_GROUP_COUNTERS), last), n = 0;

	*counter = (uint64_t)g * PROFIL_GROUP_COUNTERS;
	if (last - g > most)
		last = g + most;
	for (uint32_t at = g, reach = last; at < reach; at = next_dirty(c, at + 1, reach)) {
		n = at + 1 - g;
		reach = last - at > BRIDGED ? at + BRIDGED : last;
	}
	return n * PROFIL_GROUP_COUNTERS;
}

uint64_t chunks_drain(struct chunks *c, uint64_t counter, uint32_t n, uint32_t *count)
{
	uint32_t g = (uint32_t)(counter / PROFIL_GROUP_COUNTERS);
	uint32_t end = g + n / PROFIL_GROUP_COUNTERS;
	uint64_t sum = 0;

	for (uint32_t at = next_dirty(c, g, end); at < end; at = next_dirty(c, at + 1, end))
		sum += take_group(c, at, count + (size_t)(at - g) * PROFIL_GROUP_COUNTERS);
	return sum;
}
