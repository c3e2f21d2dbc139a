/* scripts.c - shell scripts to be observed */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "observed.h"
#include "scripts.h"

void script_exec(const char *script)
{
	execl("/bin/sh", "sh", "-c", script, (char *)NULL);
	_exit(127);
}

void observe_script(struct observer *o, const struct daemon *d,
		    const struct profil_msg_observe *ask, const char *script)
{
	observer_must_open(o, d, ask);
	observer_run(o, script_exec, script);
}

uint64_t scripts_without_places(const struct daemon *d, uint64_t *all)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	uint64_t coarse = 0, folded = 0;
	struct observer o;

	ask.places = 1; /* rounded up to a page: 320 */
	observe_script(&o, d, &ask, SCRIPT_BROAD);
	*all = observer_check(&o);
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		coarse += m ? m->coarse[0] : 0;
		folded += m ? m->coarse[1] : 0;
	}
	cr_expect_gt(folded, 0);
	cr_expect_eq(o.table->image_full + o.table->lost + o.table->unmatched, 0);
	cr_expect_leq(o.table->used_places, o.table->lines * PROFIL_LINE_PLACES);
	observer_close(&o);
	return coarse;
}

unsigned int scripts_deleted(const struct daemon *d, unsigned int programs, unsigned int *images)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, OBSERVER_FAST_NS);
	unsigned int n, right = 0, without = 0;
	struct observer o;
	uint8_t id[64] = { 0 };
	char script[1024];

	snprintf(script, sizeof(script),
		 "cd %s; n=0; while [ $n -lt %u ]; do "
		 "cp -L /bin/sh gone$n; ./gone$n -c "
		 "'i=0; while [ $i -lt 10000 ]; do i=$((i+1)); done'; rm gone$n; n=$((n+1)); done",
		 d->dir, programs);
	observe_script(&o, d, &ask, script);
	observer_check(&o);
	n = build_id_of("/bin/sh", id);
	*images = 0;
	for (uint32_t i = 1; i <= o.table->images; i++) {
		const struct profil_image *m = observer_image(&o, i);

		if (!m || m->kind != PROFIL_IMAGE_FILE || strncmp(m->path, "gone", 4) != 0)
			continue;
		++*images;
		right += m->build_id_bytes == n && !memcmp(m->build_id, id, n);
		without += m->build_id_bytes == 0;
	}
	cr_expect_eq(right + without, *images, "%u of %u images have their build ids, %u none",
		     right, *images, without);
	observer_close(&o);
	return right;
}
