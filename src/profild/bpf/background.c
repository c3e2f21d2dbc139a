/* background.c - a thread for system calls that block */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "background.h"
#include "base/cleanup.h"
#include "base/thread.h"

struct queue {
	struct job *first;
	struct job **end;
};

struct background {
	pthread_t thread;
	bool running; /* there is a thread */
	int finished_fd;
	sd_event_source *source;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* submitted or closing */
	struct queue submitted;
	struct queue finished;
	bool closing;
};

static void push(struct queue *q, struct job *job)
{
	job->next = NULL;
	*q->end = job;
	q->end = &job->next;
}

static struct job *pop(struct queue *q)
{
	struct job *job = q->first;

	if (!job)
		return NULL;
	q->first = job->next;
	if (!q->first)
		q->end = &q->first;
	return job;
}

static struct job *next_submitted(struct background *b)
{
	struct job *job = NULL;

	pthread_mutex_lock(&b->lock);
	while (!b->closing && !(job = pop(&b->submitted)))
		pthread_cond_wait(&b->changed, &b->lock);
	pthread_mutex_unlock(&b->lock);
	return job;
}

static void *run_jobs(void *arg)
{
	struct background *b = arg;
	struct job *job;

	while ((job = next_submitted(b))) {
		job->run(job);
		pthread_mutex_lock(&b->lock);
		push(&b->finished, job);
		pthread_mutex_unlock(&b->lock);
		eventfd_write(b->finished_fd, 1);
	}
	return NULL;
}

static void finish(struct background *b)
{
	struct job *job;

	do {
		pthread_mutex_lock(&b->lock);
		job = pop(&b->finished);
		pthread_mutex_unlock(&b->lock);
		if (job)
			job->done(job);
	} while (job);
}

static int on_finished(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	eventfd_t n;

	(void)source;
	(void)revents;
	eventfd_read(fd, &n);
	finish(userdata);
	return 0;
}

int background_open(struct background **out, sd_event *event)
{
	struct background *b = calloc(1, sizeof(*b));
	int err;

	if (!b)
		return -ENOMEM;
	pthread_mutex_init(&b->lock, NULL);
	pthread_cond_init(&b->changed, NULL);
	b->submitted.end = &b->submitted.first;
	b->finished.end = &b->finished.first;
	b->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = b->finished_fd < 0 ? -errno : 0;
	if (!err)
		err = sd_event_add_io(event, &b->source, b->finished_fd, EPOLLIN, on_finished, b);
	if (err >= 0)
		err = thread_start(&b->thread, run_jobs, b);
	if (err < 0) {
		background_close(b);
		return err;
	}
	b->running = true;
	*out = b;
	return 0;
}

struct background *background_close(struct background *b)
{
	if (!b)
		return NULL;
	pthread_mutex_lock(&b->lock);
	b->closing = true;
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
	if (b->running)
		pthread_join(b->thread, NULL);
	sd_event_source_unref(b->source);
	closep(&b->finished_fd);
	pthread_cond_destroy(&b->changed);
	pthread_mutex_destroy(&b->lock);
	free(b);
	return NULL;
}

void background_submit(struct background *b, struct job *job)
{
	pthread_mutex_lock(&b->lock);
	push(&b->submitted, job);
	pthread_cond_broadcast(&b->changed);
	pthread_mutex_unlock(&b->lock);
}
