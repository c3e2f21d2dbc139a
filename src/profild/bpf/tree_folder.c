/* tree_folder.c - frees the coldest nodes of the machine's tree of calls, in a thread
 *
 * bpf/fold.bpf.h has the steps by which a node is freed. This file chooses the nodes: those with
 * the fewest samples, in themselves and below, since the latest folding. They are whole subtrees,
 * because a node has at least as many as a callee of it. Outermost frames come last: they have no
 * caller, and their samples are then in no node (stack_lost), or in that of their group. These
 * nodes stay: there are at most as many as groups and roots, which is less than a quarter of the
 * table.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/cleanup.h"
#include "base/jobs.h"
#include "base/log.h"
#include "core/fold.h"
#include "core/observe_maps.h"
#include "core/observers.h"
#include "maps.h"
#include "profild/observe/table.h"
#include "profild/skeleton.h"
#include "rcu_grace.h"
#include "tree_folder.h"

#define OUTERMOST (1u << 31) /* added to the samples of an outermost frame */
#define GROUP UINT32_MAX     /* in place of those of a group */

struct tree_folder {
	struct job job;
	struct jobs *jobs;
	struct rcu_grace grace;
	int program;
	int moves;
	int observers;
	bool busy;
	pthread_mutex_t lock; /* held during a step, and to stop between two */
	bool stopped;

	/* Of the job. */
	uint32_t slot;
	uint32_t epoch;	     /* of the observer, */
	uint32_t next_epoch; /* and afterwards */
	int table;
	int err;
	uint64_t table_ns; /* start of the table that @last is of */
	uint32_t *last;	   /* the count of each node after the latest folding */
	uint32_t nlast;
	uint32_t freed;
	struct profil_fold_moves batch;
	uint32_t nbatch;
};

/* A table, and what is found out of its nodes. */
struct fold {
	const struct profil_table *head;
	uint32_t n;
	uint32_t *order; /* complete nodes, callees before callers */
	uint32_t norder;
	uint32_t *weight; /* recent samples in it and below */
	uint32_t *callees;
	bool *chosen;
};

static const struct profil_node *node_at(const struct fold *fold, uint32_t i)
{
	const char *page =
		(const char *)fold->head +
		((size_t)fold->head->node_page + i / PROFIL_PAGE_NODES) * PROFIL_TABLE_PAGE;

	return (const struct profil_node *)page + i % PROFIL_PAGE_NODES;
}

static uint64_t id_of(const struct fold *fold, uint32_t i)
{
	return __atomic_load_n(&node_at(fold, i)->id, __ATOMIC_ACQUIRE);
}

static bool is_complete(const struct fold *fold, uint32_t i)
{
	return id_of(fold, i) & 1 && __atomic_load_n(&node_at(fold, i)->place, __ATOMIC_ACQUIRE);
}

/* The index of the caller of node @i; n: it is an outermost frame. */
static uint32_t caller_of(const struct fold *fold, uint32_t i)
{
	uint32_t parent = node_at(fold, i)->parent - PROFIL_STACK_ROOTS;

	return parent < fold->n ? parent : fold->n;
}

static bool is_group(const struct fold *fold, uint32_t i)
{
	return profil_place_group(node_at(fold, i)->place) == PROFIL_NOTE_GROUP;
}

static uint32_t count_of(const struct fold *fold, uint32_t i)
{
	return __atomic_load_n(&node_at(fold, i)->count, __ATOMIC_RELAXED);
}

/* --- the steps -------------------------------------------------------------------------------- */

/* Carries out @op for the batch. -ECANCELED: the table is no longer to be changed. */
static int flush(struct tree_folder *f, enum profil_fold_op op)
{
	struct profil_fold fold = { f->slot, f->epoch, op, f->nbatch };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &fold, .ctx_size_in = sizeof(fold));
	__u32 key = 0;
	int err = 0;

	f->nbatch = 0;
	pthread_mutex_lock(&f->lock);
	if (f->stopped)
		err = -ECANCELED;
	else if (bpf_map_update_elem(f->moves, &key, &f->batch, BPF_ANY) < 0 ||
		 bpf_prog_test_run_opts(f->program, &run) < 0)
		err = -errno;
	pthread_mutex_unlock(&f->lock);
	return err;
}

/* Adds a node to the batch. */
static int put(struct tree_folder *f, enum profil_fold_op op, uint32_t node, uint32_t to)
{
	f->batch.move[f->nbatch++] = (struct profil_fold_move){ node, to };
	return f->nbatch == PROFIL_FOLD_MOVES ? flush(f, op) : 0;
}

/* Makes all programs forget the nodes that they have found. */
static int change_epoch(struct tree_folder *f)
{
	struct profil_observer o;
	int err = 0;

	rcu_grace_wait(&f->grace);
	pthread_mutex_lock(&f->lock);
	if (f->stopped)
		err = -ECANCELED;
	else if (bpf_map_lookup_elem(f->observers, &f->slot, &o) < 0)
		err = -errno;
	if (!err) {
		o.epoch = f->next_epoch;
		if (bpf_map_update_elem(f->observers, &f->slot, &o, BPF_ANY) < 0)
			err = -errno;
	}
	pthread_mutex_unlock(&f->lock);
	f->epoch = f->next_epoch;
	rcu_grace_wait(&f->grace);
	return err;
}

/* --- the choice ------------------------------------------------------------------------------- */

/* Brings the complete nodes in order, and adds up what each has in itself and below. */
static void weigh(struct fold *fold, const uint32_t *last)
{
	for (uint32_t i = 0; i < fold->n; i++) {
		uint32_t count = count_of(fold, i), caller = caller_of(fold, i);

		if (!is_complete(fold, i))
			continue;
		fold->weight[i] += count > last[i] ? count - last[i] : 0;
		if (caller < fold->n)
			fold->callees[caller]++;
	}
	for (uint32_t i = 0; i < fold->n; i++) {
		if (is_complete(fold, i) && !fold->callees[i] && fold->norder < fold->n)
			fold->order[fold->norder++] = i;
	}
	for (uint32_t k = 0; k < fold->norder; k++) {
		uint32_t i = fold->order[k], caller = caller_of(fold, i), sum;

		if (is_group(fold, i))
			fold->weight[i] = GROUP;
		else if (caller == fold->n || is_group(fold, caller))
			fold->weight[i] |= OUTERMOST;
		if (caller == fold->n)
			continue;
		sum = fold->weight[caller] + fold->weight[i];
		fold->weight[caller] = sum < OUTERMOST ? sum : OUTERMOST - 1;
		if (!--fold->callees[caller] && is_complete(fold, caller) && fold->norder < fold->n)
			fold->order[fold->norder++] = caller;
	}
}

static int by_weight(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Chooses the lightest nodes, so many that three quarters of the table are free. */
static int choose(struct fold *fold)
{
	uint32_t want = fold->norder > fold->n / 4 ? fold->norder - fold->n / 4 : 0;
	__cleanup(freep) uint32_t *sorted = calloc(fold->norder + 1u, sizeof(*sorted));
	uint32_t most, equal = 0;

	if (!sorted)
		return -ENOMEM;
	for (uint32_t k = 0; k < fold->norder; k++)
		sorted[k] = fold->weight[fold->order[k]];
	qsort(sorted, fold->norder, sizeof(*sorted), by_weight);
	most = want ? sorted[want - 1] : 0;
	while (equal < want && sorted[want - 1 - equal] == most)
		equal++;
	for (uint32_t k = 0; want && k < fold->norder; k++) {
		uint32_t i = fold->order[k], weight = fold->weight[i];

		fold->chosen[i] = weight < most || (weight == most && equal && equal--);
	}
	return 0;
}

/* --- folding ---------------------------------------------------------------------------------- */

/* Those of a daemon that ended while it was folding are found again. */
static int show_hidden(struct tree_folder *f, const struct fold *fold)
{
	int err = 0;

	for (uint32_t i = 0; i < fold->n && !err; i++) {
		uint64_t id = id_of(fold, i);

		if (id && !(id & 1))
			err = put(f, PROFIL_FOLD_SHOW, PROFIL_STACK_ROOTS + i, 0);
	}
	return err ? err : flush(f, PROFIL_FOLD_SHOW);
}

static int hide_chosen(struct tree_folder *f, const struct fold *fold)
{
	int err = 0;

	for (uint32_t i = 0; i < fold->n && !err; i++) {
		if (fold->chosen[i])
			err = put(f, PROFIL_FOLD_HIDE, PROFIL_STACK_ROOTS + i, 0);
	}
	return err ? err : flush(f, PROFIL_FOLD_HIDE);
}

/* Keeps chosen nodes below which a walk has entered a callee in the meantime. */
static int keep_entered(struct tree_folder *f, struct fold *fold)
{
	int err = 0;

	for (uint32_t i = 0; i < fold->n && !err; i++) {
		uint32_t at = id_of(fold, i) & 1 ? caller_of(fold, i) : fold->n;

		for (; at < fold->n && fold->chosen[at] && !err; at = caller_of(fold, at)) {
			fold->chosen[at] = false;
			err = put(f, PROFIL_FOLD_SHOW, PROFIL_STACK_ROOTS + at, 0);
		}
	}
	return err ? err : flush(f, PROFIL_FOLD_SHOW);
}

/* Callees come before their callers in the order, so that these are still there. */
static int move_chosen(struct tree_folder *f, const struct fold *fold)
{
	int err = 0;

	for (uint32_t k = 0; k < fold->norder && !err; k++) {
		uint32_t i = fold->order[k], to = i;

		if (!fold->chosen[i])
			continue;
		while (to < fold->n && fold->chosen[to])
			to = caller_of(fold, to);
		err = put(f, PROFIL_FOLD_MOVE, PROFIL_STACK_ROOTS + i,
			  to < fold->n ? PROFIL_STACK_ROOTS + to : 0);
		f->freed++;
	}
	return err ? err : flush(f, PROFIL_FOLD_MOVE);
}

static int fold_chosen(struct tree_folder *f, struct fold *fold)
{
	int err = hide_chosen(f, fold) ?: change_epoch(f) ?: keep_entered(f, fold);

	return err ? err : move_chosen(f, fold);
}

static void note_counts(struct tree_folder *f, const struct fold *fold)
{
	for (uint32_t i = 0; i < fold->n; i++)
		f->last[i] = count_of(fold, i);
}

/* The counts after the latest folding of this table; of another one: none. */
static int take_last(struct tree_folder *f, const struct fold *fold)
{
	if (f->table_ns == fold->head->started_ns && f->nlast == fold->n)
		return 0;
	free(f->last);
	f->nlast = fold->n;
	f->table_ns = fold->head->started_ns;
	f->last = calloc(fold->n + 1u, sizeof(*f->last));
	return f->last ? 0 : -ENOMEM;
}

static int fold_tree(struct tree_folder *f, const struct profil_table *head)
{
	struct fold fold = { .head = head, .n = head->nodes };
	__cleanup(freep) uint32_t *order = calloc(fold.n + 1u, sizeof(*order));
	__cleanup(freep) uint32_t *weight = calloc(fold.n + 1u, sizeof(*weight));
	__cleanup(freep) uint32_t *callees = calloc(fold.n + 1u, sizeof(*callees));
	__cleanup(freep) bool *chosen = calloc(fold.n + 1u, sizeof(*chosen));
	int err = order && weight && callees && chosen ? take_last(f, &fold) : -ENOMEM;

	if (err)
		return err;
	fold.order = order;
	fold.weight = weight;
	fold.callees = callees;
	fold.chosen = chosen;
	err = show_hidden(f, &fold);
	if (err)
		return err;
	weigh(&fold, f->last);
	err = choose(&fold) ?: fold_chosen(f, &fold);
	note_counts(f, &fold);
	return err;
}

/* In the thread. */
static void run(struct job *job)
{
	struct tree_folder *f = (struct tree_folder *)job;
	struct profil_table header;
	size_t bytes;
	void *at;

	f->nbatch = f->freed = 0;
	f->err = table_read(&header, f->table);
	if (f->err)
		return;
	bytes = (size_t)header.pages * PROFIL_TABLE_PAGE;
	at = mmap(NULL, bytes, PROT_READ, MAP_SHARED, f->table, 0);
	if (at == MAP_FAILED) {
		f->err = -errno;
		return;
	}
	f->err = fold_tree(f, at);
	munmap(at, bytes);
}

static void done(struct job *job)
{
	struct tree_folder *f = (struct tree_folder *)job;

	f->busy = false;
	closep(&f->table);
	if (f->err && f->err != -ECANCELED)
		log_err("cannot fold the calls of the machine's profile: %s; it is tried again",
			strerror(-f->err));
}

/* --- the main thread -------------------------------------------------------------------------- */

int tree_folder_open(struct tree_folder **out, const struct maps *maps, sd_event *event)
{
	struct tree_folder *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->job = (struct job){ .run = run, .done = done };
	f->program = bpf_program__fd(maps->skel->progs.tree_fold);
	f->moves = bpf_map__fd(maps->skel->maps.fold_moves);
	f->observers = bpf_map__fd(maps->skel->maps.observers);
	f->table = -1;
	pthread_mutex_init(&f->lock, NULL);
	err = rcu_grace_open(&f->grace) ?: jobs_open(&f->jobs, event, 1);
	if (err) {
		tree_folder_close(f);
		return err;
	}
	*out = f;
	return 0;
}

struct tree_folder *tree_folder_close(struct tree_folder *f)
{
	if (!f)
		return NULL;
	tree_folder_stop(f, f->slot);
	jobs_close(f->jobs);
	rcu_grace_close(&f->grace);
	pthread_mutex_destroy(&f->lock);
	closep(&f->table);
	free(f->last);
	free(f);
	return NULL;
}

void tree_folder_begin(struct tree_folder *f, uint32_t slot, int table, uint32_t epoch,
		       uint32_t next_epoch)
{
	if (f->busy)
		return;
	f->table = fcntl(table, F_DUPFD_CLOEXEC, 0);
	if (f->table < 0)
		return;
	f->busy = true;
	f->stopped = false;
	f->slot = slot;
	f->epoch = epoch;
	f->next_epoch = next_epoch;
	jobs_submit(f->jobs, &f->job);
}

void tree_folder_stop(struct tree_folder *f, uint32_t slot)
{
	if (!f->busy || f->slot != slot)
		return;
	pthread_mutex_lock(&f->lock);
	f->stopped = true;
	pthread_mutex_unlock(&f->lock);
}
