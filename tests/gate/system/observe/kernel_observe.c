/* kernel_observe.c - attachments: every sample has a place in the right image
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/kernel_ticks.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"
#include "tests/lib/scripts.h"

DAEMON_SUITE(kernel_observe, "--rate", TICKS_RATE);

static void spend_in_two_loops(const char *arg)
{
	loop_for(1, 100 * TICKS_PERIOD_NS);
	loop_for(3, 100 * TICKS_PERIOD_NS);
}

struct span {
	uint32_t image;
	uint64_t from;
	uint64_t bytes;
};

static int is_in_span(const void *arg, uint64_t key)
{
	const struct span *s = arg;

	return !(key & PROFIL_PLACE_SUM) && profil_place_image(key) == s->image &&
	       profil_place_offset(key) - s->from < s->bytes;
}

static uint64_t count_in_loop(const struct observer *o, uint32_t image, unsigned int n)
{
	struct span span = { .image = image,
			     .from = observed_offset(loop_at(n)),
			     .bytes = LOOP_BYTES };

	return observer_count_by(o, is_in_span, &span);
}

Test(kernel_observe, counts_exact_places)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct child c = child_fork(spend_in_two_loops, NULL);
	char exe[512] = { 0 };
	struct observer o;
	uint32_t image;
	uint64_t one, three, all;

	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	cr_assert_eq(observer_add(&o, c.pid), 0);
	child_run(&c);
	all = observer_check(&o);
	cr_assert(readlink("/proc/self/exe", exe, sizeof(exe) - 1) > 0);
	image = observer_find(&o, PROFIL_IMAGE_FILE, strrchr(exe, '/') + 1);
	cr_assert(image, "the program's image is missing");
	cr_expect_str_eq(observer_path(observer_image(&o, image)), exe);
	expect_build_id(observer_image(&o, image), exe);
	one = count_in_loop(&o, image, 1);
	three = count_in_loop(&o, image, 3);
	/* No more than TICKS_TOLERANCE of a hundred may be missing. */
	cr_expect_gt(one, 0);
	cr_expect_gt(three, 0);
	cr_expect(one + three <= all && o.table->unmatched == 0);
	observer_close(&o);
}

/* 200 short processes: every sample has an image with its path and build id. */
Test(kernel_observe, names_images_of_short_processes)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	struct observer o;
	uint32_t image;

	observe_script(&o, &d, &ask, "i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done");
	cr_expect_gt(observer_check(&o), 0);
	cr_expect_eq(o.table->unmatched, 0);
	cr_expect_eq(o.table->image_full + o.table->lost + o.table->unfollowed, 0);
	image = observer_find(&o, PROFIL_IMAGE_FILE, "true");
	cr_assert(image, "no sample in /bin/true");
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		if (!m || m->kind != PROFIL_IMAGE_FILE)
			continue;
		cr_expect(m->ready && !m->path_cut && m->path[0]);
		expect_build_id(m, observer_path(m));
	}
	observer_close(&o);
}

Test(kernel_observe, counts_kernel_samples_also_at_their_user_pcs)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	uint64_t kernel, folded;
	uint32_t image;
	struct observer o;

	observe_script(&o, &d, &ask,
		       "exec dd if=/dev/zero of=/dev/null bs=1M count=500 2>/dev/null");
	observer_check(&o);
	image = observer_find(&o, PROFIL_IMAGE_KERNEL, NULL);
	cr_assert(image);
	kernel = observer_count(&o, image, 0);
	folded = observer_count(&o, 0, PROFIL_PLACE_FOLDED);
	/* The rest are samples before the first user mode, or after the process has left its
	 * memory. */
	cr_expect(folded > 0 && folded <= kernel, "%llu folded of %llu", (unsigned long long)folded,
		  (unsigned long long)kernel);
	observer_close(&o);
}

Test(kernel_observe, passes_a_table_that_cannot_be_written)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, TICKS_PERIOD_NS);
	struct observer o;
	void *at;

	cr_assert_eq(observer_open(&o, &d, &ask), 0);
	at = mmap(NULL, o.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, o.fd, 0);
	cr_expect(at == MAP_FAILED && errno == EPERM);
	cr_expect(mprotect((void *)o.table, o.bytes, PROT_READ | PROT_WRITE) < 0);
	observer_close(&o);
}
