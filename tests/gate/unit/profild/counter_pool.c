/* counter_pool.c - grants that need new chunks of counters are completed later, in order */
#include <bpf/bpf.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/mman.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "core/shared_maps.h"
#include "profild/bpf/counters/counter_pool.h"
#include "profild/store.h"
#include "profild/config.h"

/* --- the kernel's part: a chunk is a file in memory ------------------------------------------- */

static int made, failing;

int bpf_map_create(enum bpf_map_type type, const char *name, __u32 key, __u32 value, __u32 n,
		   const struct bpf_map_create_opts *opts)
{
	int fd = __atomic_load_n(&failing, __ATOMIC_SEQ_CST) ? -1 : memfd_create(name, MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, value) < 0) {
		errno = ENOMEM;
		return -1;
	}
	__atomic_add_fetch(&made, 1, __ATOMIC_SEQ_CST);
	return fd;
}

int bpf_map_update_batch(int fd, const void *keys, const void *values, __u32 *n,
			 const struct bpf_map_batch_opts *opts)
{
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	return 0;
}

/* --- the tests -------------------------------------------------------------------------------- */

static sd_event *event;
static struct store *store;
static struct counter_pool *pool;

static void start(void)
{
	static const struct config config = { .ephemeral = true };

	made = failing = 0;
	cr_assert_geq(sd_event_new(&event), 0);
	cr_assert_eq(store_open(&store, &config), 0);
	cr_assert_eq(counter_pool_open(&pool, -1, store, event), 0);
	cr_assert_eq(made, 1);
}

static void stop(void)
{
	counter_pool_close(pool);
	store_close(store);
	sd_event_unref(event);
}

TestSuite(counter_pool, .init = start, .fini = stop);

struct taken {
	struct counter_pool_take take;
	int calls;
	int err;
};

static void on_done(struct counter_pool_take *take, int err)
{
	struct taken *t = (struct taken *)take;

	t->calls++;
	t->err = err;
}

static struct taken taking(uint64_t chunks)
{
	return (struct taken){ .take = { .n = chunks * PROFIL_CHUNK_COUNTERS, .done = on_done } };
}

static void run_until_called(const struct taken *t)
{
	while (!t->calls)
		cr_assert_geq(sd_event_run(event, 10 * 1000000), 0);
}

/* The first counter of the @nth chunk from the end, where large runs are taken. */
static uint64_t chunk_from_end(uint64_t nth)
{
	return (PROFIL_MAX_CHUNKS - nth) * PROFIL_CHUNK_COUNTERS;
}

Test(counter_pool, grants_at_once_from_an_existing_chunk)
{
	struct taken t = { .take = { .n = 1000, .done = on_done } };

	cr_expect_eq(counter_pool_begin(pool, &t.take), 0);
	cr_expect_eq(t.take.first, 0);
	cr_expect_eq(t.calls, 0);
	cr_expect_eq(made, 1);
}

Test(counter_pool, makes_missing_chunks_in_the_background)
{
	struct taken t = taking(2), next = taking(1);

	cr_assert_eq(counter_pool_begin(pool, &t.take), -EINPROGRESS);
	cr_assert_eq(counter_pool_begin(pool, &next.take), -EINPROGRESS);
	cr_expect_eq(t.calls + next.calls, 0);
	run_until_called(&t);
	cr_expect_eq(t.err, 0);
	cr_expect_eq(t.take.first, chunk_from_end(2));
	run_until_called(&next);
	cr_expect_eq(next.err, 0);
	cr_expect_eq(next.take.first, chunk_from_end(3));
}

Test(counter_pool, returns_a_cancelled_reservation)
{
	struct taken t = taking(3), next = taking(3);

	cr_assert_eq(counter_pool_begin(pool, &t.take), -EINPROGRESS);
	counter_pool_cancel(pool, &t.take);
	cr_assert_eq(counter_pool_begin(pool, &next.take), -EINPROGRESS);
	run_until_called(&next);
	cr_expect_eq(next.err, 0);
	cr_expect_eq(next.take.first, chunk_from_end(3));
	cr_expect_eq(t.calls, 0);
}

Test(counter_pool, refuses_with_enomem_and_serves_the_next)
{
	struct taken t = taking(2), again = taking(2);

	failing = 1;
	cr_assert_eq(counter_pool_begin(pool, &t.take), -EINPROGRESS);
	run_until_called(&t);
	cr_expect_eq(t.err, -ENOMEM);
	failing = 0;
	cr_assert_eq(counter_pool_begin(pool, &again.take), -EINPROGRESS);
	run_until_called(&again);
	cr_expect_eq(again.err, 0);
	cr_expect_eq(again.take.first, chunk_from_end(2));
}
