/* jobs.c - threads for system calls that block */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "cleanup.h"
#include "jobs.h"

struct queue {
	struct job *first;
	struct job **end;
};

struct jobs {
	int finished_fd;
	sd_event_source *source;

	pthread_mutex_t lock;
	pthread_cond_t changed; /* submitted, finished or closing */
	struct queue submitted;
	struct queue finished;
	unsigned int unfinished; /* submitted or running */
	bool closing;

	unsigned int nthreads;
	pthread_t thread[];
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

static void *jobs_run(void *arg)
{
	struct jobs *j = arg;
	struct job *job;

	pthread_mutex_lock(&j->lock);
	while (!j->closing) {
		job = pop(&j->submitted);
		if (!job) {
			pthread_cond_wait(&j->changed, &j->lock);
			continue;
		}
		pthread_mutex_unlock(&j->lock);
		job->run(job);
		pthread_mutex_lock(&j->lock);
		j->unfinished--;
		push(&j->finished, job);
		pthread_cond_broadcast(&j->changed);
		eventfd_write(j->finished_fd, 1);
	}
	pthread_mutex_unlock(&j->lock);
	return NULL;
}

void jobs_finish(struct jobs *j, bool wait)
{
	struct job *job;

	do {
		pthread_mutex_lock(&j->lock);
		while (wait && j->unfinished && !j->finished.first)
			pthread_cond_wait(&j->changed, &j->lock);
		job = pop(&j->finished);
		pthread_mutex_unlock(&j->lock);
		if (job)
			job->done(job);
	} while (job);
}

static int on_finished(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	eventfd_t n;

	eventfd_read(fd, &n);
	jobs_finish(userdata, false);
	return 0;
}

static int start_thread(struct jobs *j, size_t stack)
{
	pthread_attr_t attr;
	int err = pthread_attr_init(&attr);

	if (err)
		return -err;
	err = pthread_attr_setstacksize(&attr, stack)
		      ?: pthread_create(&j->thread[j->nthreads], &attr, jobs_run, j);
	pthread_attr_destroy(&attr);
	j->nthreads += !err;
	return -err;
}

int jobs_open_with(struct jobs **out, sd_event *event, unsigned int threads, size_t stack)
{
	struct jobs *j = calloc(1, sizeof(*j) + threads * sizeof(j->thread[0]));
	int err;

	if (!j)
		return -ENOMEM;
	pthread_mutex_init(&j->lock, NULL);
	pthread_cond_init(&j->changed, NULL);
	j->submitted.end = &j->submitted.first;
	j->finished.end = &j->finished.first;
	j->finished_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = (j->finished_fd < 0 ? -errno : 0)
		      ?: sd_event_add_io(event, &j->source, j->finished_fd, EPOLLIN, on_finished,
					 j);
	while (err >= 0 && j->nthreads < threads)
		err = start_thread(j, stack);
	if (err < 0) {
		jobs_close(j);
		return err;
	}
	*out = j;
	return 0;
}

struct jobs *jobs_close(struct jobs *j)
{
	if (!j)
		return NULL;
	pthread_mutex_lock(&j->lock);
	j->closing = true;
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
	while (j->nthreads)
		pthread_join(j->thread[--j->nthreads], NULL);
	sd_event_source_unref(j->source);
	closep(&j->finished_fd);
	pthread_cond_destroy(&j->changed);
	pthread_mutex_destroy(&j->lock);
	free(j);
	return NULL;
}

void jobs_submit(struct jobs *j, struct job *job)
{
	pthread_mutex_lock(&j->lock);
	j->unfinished++;
	push(&j->submitted, job);
	pthread_cond_broadcast(&j->changed);
	pthread_mutex_unlock(&j->lock);
}
