/* task.c - one request to a worker, with a callback for the answer */
#include <stdlib.h>

#include "task.h"

struct task *task_once(const struct work *work, task_prepare *prepare, task_done *done, void *arg)
{
	struct task *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->work = *work;
	t->prepare = prepare;
	t->done = done;
	t->arg = arg;
	return t;
}

struct task *task_new(const struct work *work, task_prepare *prepare, task_done *done, void *arg)
{
	struct task *t = task_once(work, prepare, done, arg);

	if (t)
		t->kept = true;
	return t;
}

void task_free(struct task *t)
{
	if (!t)
		return;
	t->done = NULL;
	t->kept = false;
	if (!t->queued)
		free(t);
}

void task_forget(struct task *t)
{
	t->done = NULL;
}

void task_finish(struct task *t, const struct work_answer *a, union work_area *area)
{
	bool kept = t->kept;

	t->queued = false;
	if (t->done)
		t->done(t->arg, a, area);
	if (!kept)
		free(t);
}
