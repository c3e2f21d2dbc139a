/* task.h - one request to a worker, with a callback for the answer */
#ifndef PROFIL_PROFILD_WORKER_TASK_H
#define PROFIL_PROFILD_WORKER_TASK_H

#include <stdbool.h>

#include "work.h"

/*
 * @a->err is the worker's result, or -ETIMEDOUT or -EIO if the worker has ended without an answer,
 * -EAGAIN if there is no worker. @area is the worker's; NULL without an answer. Never called from
 * inside lane_submit().
 */
typedef void task_done(void *arg, const struct work_answer *a, union work_area *area);

/* Fills in the area before the task is sent. Returns false if there is nothing to do. */
typedef bool task_prepare(void *arg, struct work *work, union work_area *area);

struct task {
	struct task *next; /* in its lane's queue */
	struct work work;
	task_prepare *prepare; /* may be NULL */
	task_done *done;       /* NULL: task_forget() */
	void *arg;
	const int *sock; /* from which the worker receives a message; NULL: none */
	bool kept;	 /* of task_new() */
	bool queued;
};

/* A task that is freed when it is finished. NULL: no memory. */
struct task *task_once(const struct work *work, task_prepare *prepare, task_done *done, void *arg);

/*
 * A task that may be submitted repeatedly, without further allocations. In @done it is not queued
 * any more. task_free() accepts NULL, and a queued task, whose @done is then not called.
 */
struct task *task_new(const struct work *work, task_prepare *prepare, task_done *done, void *arg);
void task_free(struct task *t);

/* @done is not called any more. The worker may still do the task. */
void task_forget(struct task *t);

/* Calls @done, which may submit a kept task again, or free it. */
void task_finish(struct task *t, const struct work_answer *a, union work_area *area);

#endif
