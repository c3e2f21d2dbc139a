/* view_chains.c - shows what woke up threads in the stacks on which they slept */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/each_stack.h"

#include "view_chains.h"

struct chains {
	struct profile *profile;
	__u32 frame[CALL_WAKERS]; /* of wakers without a stack; [0]: "[woken by]" */
};

static int name_frames(struct chains *c)
{
	struct call_tree *t = &c->profile->calls;
	char name[64];
	int err = 0;

	for (__u32 i = 0; i < CALL_WAKERS && !err; i++) {
		struct call_frame f = { .offset = i };

		stack_frame_name(c->profile, stack_frame_waker(t, i), name, sizeof(name));
		f.name = strdup(i ? name : "[woken by]");
		err = f.name ? call_tree_add_frame(t, &f, &c->frame[i]) : -ENOMEM;
	}
	return err;
}

static int descend(struct call_tree *t, __u32 object, __u64 offset, __u32 frame, __u32 *at)
{
	int err = call_tree_add(t, *at, object, offset, at);

	if (!err)
		t->node[*at].frame = frame;
	return err;
}

static int add_chain(struct chains *c, const struct call_wake *w)
{
	struct call_tree *t = &c->profile->calls;
	__u32 at = w->sleeper;
	int err = descend(t, t->node[at].object, 0, c->frame[0], &at);

	if (!err && w->waker < CALL_ROOTS)
		err = descend(t, 0, w->waker, c->frame[w->waker % CALL_WAKERS], &at);
	for (__u32 i = w->waker; i >= CALL_ROOTS && !err; i = t->node[i].parent)
		err = descend(t, t->node[i].object, t->node[i].offset, t->node[i].frame, &at);
	if (!err) {
		t->node[w->sleeper].count -= w->count;
		t->node[at].count += w->count;
	}
	return err;
}

int view_chains(struct profile *p)
{
	struct chains c = { .profile = p };
	int err = name_frames(&c);

	for (size_t i = 0; i < p->calls.nwakes && !err; i++) {
		const struct call_wake *w = &p->calls.wake[i];

		if (w->waker && w->count <= p->calls.node[w->sleeper].count)
			err = add_chain(&c, w);
	}
	return err;
}
