/* counter_pool.c - the counters: BPF arrays, created on demand, handed out in blocks
 *
 * A counter has one number: chunk * 2^18 + place in the chunk. A chunk is a BPF array of one
 * element, struct profil_chunk: 2^18 counters of 32 bits (1 MiB) and a dirty flag for each block of
 * 64. The kernel finds it by its number in an array of maps. A profile takes a run of whole blocks,
 * which may span chunks. @blocks (range_alloc.h) allocates runs from the blocks of all 1024 chunks,
 * whether a chunk exists or not; a chunk is created when a run first reaches into it. Its states:
 *
 *	absent	no fd
 *	making	being created by the job in the background (struct making), one job at a time
 *	present	has an fd, is in the array of maps and in the persistent store; is mapped here when
 *		its first counter is taken
 *	idle	present, and none of its blocks is taken (used == 0): a start need not wait for it
 *	leaving	idle, and the pool holds all its blocks, until it is out of the array of maps
 *
 * Taking: a change to an array of maps waits for an RCU grace period, which the main thread must
 * not do. counter_pool_begin() allocates the run. If all chunks of it are present, it is complete;
 * else the take waits in @waiting until a job in the background has created them. One job creates
 * all that are missing, and as many more as may be idle (idle_max()), so that few starts wait. Runs
 * of more than half a chunk come from the last chunks, all others from the first ones: then a loop
 * of large starts does not take the chunks in which others find theirs at once.
 *
 * Giving back: counter_pool_give() zeroes the dirty blocks of a run and frees it. Chunks that have
 * been idle for AGE_MAX calls of counter_pool_age(), one a second, leave if they are beyond
 * idle_max(), with the next grace period that reservation.c asks for: counter_pool_leaving() takes
 * their blocks and names them, and counter_pool_left() closes them afterwards. So starts and stops
 * in a loop create few chunks.
 *
 * Restart: counter_pool_take_at() takes over the runs of an earlier daemon's targets with their
 * counts; then counter_pool_sweep() zeroes all blocks that no such target owns.
 *
 * Invariants: the counters of a free block are 0, its dirty flag is clear, and no BPF program can
 * count in it. So counter_pool_give() is called after an RCU grace period, or when each sample of
 * the closed target is accounted for. A chunk with a taken block stays in the array of maps. How
 * counts are read while the kernel counts: profild/profile/counters.c.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/jobs.h"
#include "counter_pool.h"
#include "base/log.h"
#include "base/cleanup.h"
#include "base/sparse.h"
#include "range_alloc.h"
#include "profild/profile/counters.h"
#include "profild/store.h"

#define AGE_MAX 2

struct chunk {
	int fd;	       /* 0: absent */
	uint32_t used; /* blocks that are taken */
	uint32_t age;  /* calls of counter_pool_age() since it became idle, at most AGE_MAX */
	bool leaves;
};

/* A job that creates chunks and puts them into the array of maps. */
struct making {
	struct job job;
	struct counter_pool *pool;
	bool under_way;
	int outer;
	int err;
	uint32_t n;
	__u32 key[PROFIL_MAX_CHUNKS];
	int fd[PROFIL_MAX_CHUNKS];
};

struct counter_pool {
	int outer;
	struct store *store;
	struct jobs *jobs;
	struct range *blocks;
	uint32_t n;			   /* chunks that are present */
	bool emptied;			   /* some have become idle since counter_pool_age() */
	bool aged;			   /* some may be idle for AGE_MAX calls of it */
	struct counter_pool_take *waiting; /* for missing chunks; the oldest first */
	struct making making;
	struct chunk chunk[PROFIL_MAX_CHUNKS];
	struct profil_chunk *memory[PROFIL_MAX_CHUNKS]; /* NULL: not mapped yet */
};

static uint32_t blocks_of(uint64_t counters)
{
	return (uint32_t)((counters + PROFIL_BLOCK_COUNTERS - 1) / PROFIL_BLOCK_COUNTERS);
}

#define CHUNK "profil_chunk" /* the kernel's name */

static const char *chunk_name(uint32_t k, char name[32])
{
	snprintf(name, 32, "chunk-%u", k);
	return name;
}

/* Unmaps and closes the chunk; it stays in the array of maps. */
static void chunk_unmap(struct counter_pool *c, uint32_t k)
{
	struct chunk *chunk = &c->chunk[k];

	if (!chunk->fd)
		return;
	c->n--;
	if (c->memory[k])
		munmap(c->memory[k], sizeof(*c->memory[k]));
	c->memory[k] = NULL;
	close(chunk->fd);
	memset(chunk, 0, sizeof(*chunk));
}

struct counter_pool *counter_pool_close(struct counter_pool *c)
{
	if (!c)
		return NULL;
	jobs_close(c->jobs);
	for (uint32_t k = 0; k < PROFIL_MAX_CHUNKS; k++)
		chunk_unmap(c, k);
	range_free(c->blocks);
	free(c);
	return NULL;
}

static void chunk_add(struct counter_pool *c, uint32_t k, int fd)
{
	c->chunk[k].fd = fd;
	c->n++;
}

/* Maps late, because a mapped BPF array is resident as a whole. */
static int chunk_map(struct counter_pool *c, uint32_t k)
{
	void *at;

	if (c->memory[k])
		return 0;
	at = mmap(NULL, sizeof(*c->memory[k]), PROT_READ | PROT_WRITE, MAP_SHARED, c->chunk[k].fd,
		  0);
	if (at == MAP_FAILED)
		return -errno;
	c->memory[k] = at;
	return 0;
}

static int chunk_create(void)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_MMAPABLE);
	int fd = bpf_map_create(BPF_MAP_TYPE_ARRAY, CHUNK, sizeof(__u32),
				sizeof(struct profil_chunk), 1, &opts);

	return fd < 0 ? -errno : fd;
}

/* --- making chunks ---------------------------------------------------------------------------- */

/* Runs in the background thread. */
static void run_making(struct job *job)
{
	struct making *m = (struct making *)job;
	uint32_t made = 0;
	__u32 n = m->n;

	for (m->err = 0; !m->err && made < m->n; made += !m->err) {
		m->fd[made] = chunk_create();
		m->err = m->fd[made] < 0 ? m->fd[made] : 0;
	}
	if (!m->err && bpf_map_update_batch(m->outer, m->key, m->fd, &n, NULL) < 0) {
		m->err = -errno;
		for (uint32_t i = 0; i < m->n; i++)
			bpf_map_delete_elem(m->outer, &m->key[i]);
	}
	for (uint32_t i = 0; m->err && i < made; i++)
		close(m->fd[i]);
}

static void add_made(struct counter_pool *c)
{
	const struct making *m = &c->making;
	char name[32];

	for (uint32_t i = 0; !m->err && i < m->n; i++) {
		chunk_add(c, m->key[i], m->fd[i]);
		if (store_put(c->store, chunk_name(m->key[i], name), m->fd[i]))
			log_warning("cannot store %s: a restart will lose its counts", name);
	}
}

/* How many chunks may be idle, so that a start seldom waits for a new one. */
static uint32_t idle_max(const struct counter_pool *c)
{
	return 1 + c->n / 8;
}

/* The chunks of @take: returns the first; *@end is behind the last. */
static uint32_t chunks_of(const struct counter_pool_take *take, uint32_t *end)
{
	*end = (take->block + take->blocks + PROFIL_CHUNK_BLOCKS - 1) / PROFIL_CHUNK_BLOCKS;
	return take->block / PROFIL_CHUNK_BLOCKS;
}

static bool all_there(const struct counter_pool *c, const struct counter_pool_take *take)
{
	uint32_t end, k = chunks_of(take, &end);

	while (k < end && c->chunk[k].fd)
		k++;
	return k == end;
}

/* Submits a job that creates the chunks that @take misses, and some more. */
static void make_for(struct counter_pool *c, const struct counter_pool_take *take)
{
	struct making *m = &c->making;
	uint32_t end, first = chunks_of(take, &end), more = idle_max(c) - 1;

	m->n = 0;
	for (uint32_t k = first; k < end; k++) {
		if (!c->chunk[k].fd)
			m->key[m->n++] = k;
	}
	for (uint32_t k = 0; more && k < PROFIL_MAX_CHUNKS; k++) {
		if (c->chunk[k].fd || (k >= first && k < end))
			continue;
		m->key[m->n++] = k;
		more--;
	}
	m->under_way = true;
	jobs_submit(c->jobs, &m->job);
}

/* Opens and maps the chunk of an earlier daemon. */
static int chunk_adopt(struct counter_pool *c, uint32_t k)
{
	char name[32];
	int fd;

	if (!c->chunk[k].fd) {
		fd = store_take_map(c->store, chunk_name(k, name), CHUNK,
				    sizeof(struct profil_chunk));
		if (fd < 0)
			return fd;
		chunk_add(c, k, fd);
	}
	return chunk_map(c, k);
}

/* The chunk of block @b, and how many of the blocks up to @end lie in it. */
static uint32_t chunk_of(uint32_t b, uint32_t end, uint32_t *blocks)
{
	uint32_t k = b / PROFIL_CHUNK_BLOCKS, next = (k + 1) * PROFIL_CHUNK_BLOCKS;

	*blocks = (end < next ? end : next) - b;
	return k;
}

/* --- taking counters -------------------------------------------------------------------------- */

static void give_range(struct counter_pool *c, const struct counter_pool_take *take)
{
	range_give(c->blocks, take->block, take->blocks);
}

/* Completes @take, whose chunks are all present. */
static int complete(struct counter_pool *c, struct counter_pool_take *take)
{
	uint32_t at = take->block, to = at + take->blocks, end, k = chunks_of(take, &end), step;
	int err = 0;

	for (; !err && k < end; k++)
		err = chunk_map(c, k);
	if (err) {
		give_range(c, take);
		return err;
	}
	take->first = at * PROFIL_BLOCK_COUNTERS;
	for (; at < to; at += step) {
		struct chunk *chunk = &c->chunk[chunk_of(at, to, &step)];

		chunk->used += step;
		chunk->age = 0;
	}
	return 0;
}

/* The job has ended: completes or fails the takes that waited for its chunks. */
static void done_making(struct job *job)
{
	struct counter_pool *c = ((struct making *)job)->pool;
	struct counter_pool_take **place = &c->waiting;
	int failed = c->making.err;

	add_made(c);
	c->making.under_way = false;
	while (*place) {
		struct counter_pool_take *take = *place;
		bool there = all_there(c, take);
		int err = failed;

		if (!there && !failed) {
			place = &take->next;
			continue;
		}
		*place = take->next;
		if (there)
			err = complete(c, take);
		else
			give_range(c, take);
		take->done(take, err);
		place = &c->waiting; /* done() may have changed the list */
	}
	if (c->waiting && !c->making.under_way)
		make_for(c, c->waiting);
}

int counter_pool_begin(struct counter_pool *c, struct counter_pool_take *take)
{
	struct counter_pool_take **end = &c->waiting;
	int err;

	take->blocks = blocks_of(take->n);
	if (take->blocks > PROFIL_CHUNK_BLOCKS / 2)
		err = range_take_last(c->blocks, take->blocks, &take->block);
	else
		err = range_take(c->blocks, take->blocks, &take->block);
	if (err)
		return err;
	if (all_there(c, take))
		return complete(c, take);
	while (*end)
		end = &(*end)->next;
	take->next = NULL;
	*end = take;
	if (!c->making.under_way)
		make_for(c, take);
	return -EINPROGRESS;
}

void counter_pool_cancel(struct counter_pool *c, struct counter_pool_take *take)
{
	struct counter_pool_take **place = &c->waiting;

	while (*place && *place != take)
		place = &(*place)->next;
	if (!*place)
		return;
	*place = take->next;
	give_range(c, take);
}

/* Chunk 0 is created at the start, so that the first profile need not wait. */
static int make_first(struct counter_pool *c)
{
	struct making *m = &c->making;

	m->n = 1;
	m->key[0] = 0;
	run_making(&m->job);
	add_made(c);
	return m->err;
}

int counter_pool_open(struct counter_pool **out, int outer, struct store *store, sd_event *event)
{
	struct counter_pool *c = calloc(1, sizeof(*c));
	int err;

	if (!c)
		return -ENOMEM;
	c->outer = outer;
	c->store = store;
	c->making.job = (struct job){ .run = run_making, .done = done_making };
	c->making.pool = c;
	c->making.outer = outer;
	err = range_new(&c->blocks, PROFIL_MAX_CHUNKS * PROFIL_CHUNK_BLOCKS)
		      ?: jobs_open(&c->jobs, event, 1);
	if (!err && chunk_adopt(c, 0))
		err = make_first(c);
	if (err) {
		counter_pool_close(c);
		return err;
	}
	*out = c;
	return 0;
}

int counter_pool_take_at(struct counter_pool *c, uint32_t first, uint64_t n)
{
	uint32_t b = first / PROFIL_BLOCK_COUNTERS, blocks = blocks_of(n), at, step;
	int err = range_take_at(c->blocks, b, blocks);

	if (err)
		return err;
	for (at = b; !err && at < b + blocks; at += err ? 0 : step) {
		uint32_t k = chunk_of(at, b + blocks, &step);

		err = chunk_adopt(c, k);
		if (!err)
			c->chunk[k].used += step;
	}
	if (err) {
		/* The chunks stay open: other targets may have counters in them. */
		for (uint32_t from = b; from < at; from += step)
			c->chunk[chunk_of(from, at, &step)].used -= step;
		range_give(c->blocks, b, blocks);
	}
	return err;
}

void counter_pool_give(struct counter_pool *c, uint32_t first, uint64_t n)
{
	uint32_t blocks = blocks_of(n), b = first / PROFIL_BLOCK_COUNTERS, end = b + blocks, step;

	for (uint32_t i = b; i < end; i++) {
		if (*counters_dirty(c->memory, i))
			memset(counters_block(c->memory, i), 0,
			       PROFIL_BLOCK_COUNTERS * sizeof(uint32_t));
		*counters_dirty(c->memory, i) = 0;
	}
	range_give(c->blocks, b, blocks);
	for (; b < end; b += step) {
		struct chunk *chunk = &c->chunk[chunk_of(b, end, &step)];

		chunk->used -= step;
		c->emptied |= !chunk->used;
	}
}

bool counter_pool_emptied(const struct counter_pool *c)
{
	return c->emptied;
}

void counter_pool_age(struct counter_pool *c)
{
	c->emptied = false;
	for (uint32_t k = 0; k < PROFIL_MAX_CHUNKS; k++) {
		struct chunk *chunk = &c->chunk[k];

		if (!chunk->fd || chunk->used || chunk->age == AGE_MAX)
			continue;
		chunk->age++;
		c->emptied |= chunk->age < AGE_MAX;
		c->aged |= chunk->age == AGE_MAX;
	}
}

/* True if chunk @k is leaving. If it is idle beyond idle_max(), takes its blocks: it leaves now. */
static bool chunk_goes(struct counter_pool *c, uint32_t k, uint32_t *idle)
{
	struct chunk *chunk = &c->chunk[k];

	if (!chunk->leaves && chunk->fd && !chunk->used && ++*idle > idle_max(c) &&
	    chunk->age == AGE_MAX)
		chunk->leaves =
			!range_take_at(c->blocks, k * PROFIL_CHUNK_BLOCKS, PROFIL_CHUNK_BLOCKS);
	return chunk->leaves;
}

uint32_t counter_pool_leaving(struct counter_pool *c, __u32 *key, uint32_t max)
{
	uint32_t n = 0, idle = 0;

	for (uint32_t k = 0; c->aged && n < max && k < PROFIL_MAX_CHUNKS; k++) {
		if (chunk_goes(c, k, &idle))
			key[n++] = k;
	}
	c->aged = n != 0; /* look again: idle_max() falls with the number of chunks */
	return n;
}

void counter_pool_left(struct counter_pool *c, const __u32 *key, uint32_t n)
{
	char name[32];

	for (uint32_t i = 0; i < n; i++) {
		store_drop(c->store, chunk_name(key[i], name));
		chunk_unmap(c, key[i]);
		range_give(c->blocks, key[i] * PROFIL_CHUNK_BLOCKS, PROFIL_CHUNK_BLOCKS);
	}
}

/* Zeroes block @b if no profile has it. */
static void clear_unused(struct counter_pool *c, uint32_t b)
{
	bool clean = !*counters_dirty(c->memory, b);

	for (int i = 0; clean && i < PROFIL_BLOCK_COUNTERS; i += 8)
		clean = !any_of_eight(counters_block(c->memory, b) + i);
	if (clean || range_take_at(c->blocks, b, 1))
		return;
	memset(counters_block(c->memory, b), 0, PROFIL_BLOCK_COUNTERS * sizeof(uint32_t));
	*counters_dirty(c->memory, b) = 0;
	range_give(c->blocks, b, 1);
}

void counter_pool_sweep(struct counter_pool *c)
{
	for (uint32_t k = 0; k < PROFIL_MAX_CHUNKS; k++) {
		uint32_t first = k * PROFIL_CHUNK_BLOCKS;
		int err = c->chunk[k].fd ? chunk_map(c, k) : 0;

		if (err)
			log_warning("cannot clear an earlier daemon's counts in chunk %u: %s", k,
				    strerror(-err));
		for (uint32_t i = 0; c->memory[k] && i < PROFIL_CHUNK_BLOCKS; i++)
			clear_unused(c, first + i);
	}
}

struct profil_chunk *const *counter_pool_chunks(const struct counter_pool *c)
{
	return c->memory;
}

unsigned int counter_pool_count(const struct counter_pool *c)
{
	return c->n;
}
