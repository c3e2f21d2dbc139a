/* worker.c - a thread that runs jobs that can block, one after another */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "worker.h"

struct queue {
	struct job *first;
	struct job **last;
};

/*
 * Jobs go to the thread through @waiting, and back through @finished. The thread lives until the
 * process ends.
 */
struct worker {
	pthread_mutex_t mutex;
	pthread_cond_t submitted;
	struct queue waiting;
	struct queue finished;
	int eventfd;
};

static void queue_put(struct queue *q, struct job *j)
{
	j->next = NULL;
	*q->last = j;
	q->last = &j->next;
}

static struct job *queue_take(struct queue *q)
{
	struct job *j = q->first;

	if (j && !(q->first = j->next))
		q->last = &q->first;
	return j;
}

static void *work(void *arg)
{
	struct worker *w = arg;

	pthread_mutex_lock(&w->mutex);
	for (;;) {
		struct job *j = queue_take(&w->waiting);

		if (!j) {
			pthread_cond_wait(&w->submitted, &w->mutex);
			continue;
		}
		pthread_mutex_unlock(&w->mutex);
		j->run(j);
		pthread_mutex_lock(&w->mutex);
		queue_put(&w->finished, j);
		eventfd_write(w->eventfd, 1);
	}
	return NULL;
}

static struct job *next_finished(struct worker *w)
{
	struct job *j;

	pthread_mutex_lock(&w->mutex);
	j = queue_take(&w->finished);
	pthread_mutex_unlock(&w->mutex);
	return j;
}

static int on_finished(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
	struct worker *w = userdata;
	struct job *j;
	eventfd_t n;

	eventfd_read(fd, &n);
	while ((j = next_finished(w)))
		j->done(j);
	return 0;
}

int worker_start(struct worker **out, sd_event *event, const char *name)
{
	struct worker *w = calloc(1, sizeof(*w));
	pthread_t thread;
	int err;

	if (!w)
		return -ENOMEM;
	pthread_mutex_init(&w->mutex, NULL);
	pthread_cond_init(&w->submitted, NULL);
	w->waiting.last = &w->waiting.first;
	w->finished.last = &w->finished.first;
	w->eventfd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	err = w->eventfd < 0 ? -errno : 0;
	if (!err)
		err = sd_event_add_io(event, NULL, w->eventfd, EPOLLIN, on_finished, w);
	if (err >= 0)
		err = -pthread_create(&thread, NULL, work, w);
	if (err < 0) {
		if (w->eventfd >= 0)
			close(w->eventfd);
		free(w);
		return err;
	}
	pthread_setname_np(thread, name);
	pthread_detach(thread);
	*out = w;
	return 0;
}

void worker_submit(struct worker *w, struct job *j)
{
	pthread_mutex_lock(&w->mutex);
	queue_put(&w->waiting, j);
	pthread_cond_signal(&w->submitted);
	pthread_mutex_unlock(&w->mutex);
}
