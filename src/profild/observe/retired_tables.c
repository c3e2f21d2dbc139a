/* retired_tables.c - charges of tables whose attachment has ended, but which clients still have */
#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clocks.h"
#include "retired_tables.h"

/*
 * Until then the daemon's own references can be the last: for some grace periods, while a user's 64
 * tables are removed from their slots eight at a time.
 */
#define ENDING_NS 1000000000ULL

struct retired {
	struct retired *next;
	struct table_charges charges;
	uint32_t map[2]; /* ids; 0: none */
	uint64_t since_ns;
};

struct retired_tables {
	struct retired *first;
	int iterator; /* link; <= 0: none */
	uint32_t *id; /* of the tables that exist, ascending */
	size_t n;
	size_t room;
};

void table_charges_give(struct table_charges *c)
{
	charge_give(&c->memory);
	charge_give(&c->profile);
}

static void give(struct retired *t)
{
	table_charges_give(&t->charges);
	free(t);
}

/*
 * Lists the tables that exist. A map whose last reference is dropped loses its id at once; its
 * memory is freed some grace periods later. To ask for a map by its id would need CAP_SYS_ADMIN.
 */
static int list(struct retired_tables *r)
{
	__cleanup(closep) int fd = r->iterator > 0 ? bpf_iter_create(r->iterator) : -1;
	size_t bytes = 0;
	ssize_t more;

	r->n = 0;
	if (fd < 0)
		return r->iterator > 0 ? -errno : 0;
	do {
		if (r->room - bytes < 1024) {
			uint32_t *id = realloc(r->id, 2 * r->room + 4096);

			if (!id)
				return -ENOMEM;
			r->id = id;
			r->room = 2 * r->room + 4096;
		}
		more = read(fd, (char *)r->id + bytes, r->room - bytes);
		bytes += more > 0 ? (size_t)more : 0;
	} while (more > 0 || (more < 0 && errno == EAGAIN));
	r->n = bytes / sizeof(*r->id);
	return more < 0 ? -errno : 0;
}

static int by_id(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static bool exists(const struct retired_tables *r, uint32_t id)
{
	return id && r->n && bsearch(&id, r->id, r->n, sizeof(*r->id), by_id);
}

void retired_tables_sweep(void *retired)
{
	struct retired_tables *r = retired;
	struct retired **place = &r->first;

	if (!*place || list(r))
		return;
	while (*place) {
		struct retired *t = *place;

		if (exists(r, t->map[0]) || exists(r, t->map[1])) {
			place = &t->next;
			continue;
		}
		*place = t->next;
		give(t);
	}
}

int retired_tables_open(struct retired_tables **out)
{
	*out = calloc(1, sizeof(**out));
	return *out ? 0 : -ENOMEM;
}

void retired_tables_list_by(struct retired_tables *r, int fd)
{
	r->iterator = fd;
}

struct retired_tables *retired_tables_close(struct retired_tables *r)
{
	if (!r)
		return NULL;
	for (struct retired *t = r->first, *next; t; t = next) {
		next = t->next;
		give(t);
	}
	free(r->id);
	free(r);
	return NULL;
}

/* 0: not a BPF map (with --replay). */
static uint32_t id_of(int fd)
{
	struct bpf_map_info info = { 0 };
	__u32 len = sizeof(info);

	return fd >= 0 && bpf_obj_get_info_by_fd(fd, &info, &len) == 0 ? info.id : 0;
}

void retired_tables_add(struct retired_tables *r, struct table_charges *charges, int table,
			int unwind)
{
	struct retired *t = calloc(1, sizeof(*t));

	if (!t) { /* the tables of this moment are not limited */
		table_charges_give(charges);
		return;
	}
	t->map[0] = id_of(table);
	t->map[1] = id_of(unwind);
	if (!t->map[0] && !t->map[1]) {
		table_charges_give(charges);
		free(t);
		return;
	}
	charge_move(&t->charges.profile, &charges->profile);
	charge_move(&t->charges.memory, &charges->memory);
	t->since_ns = now_ns();
	t->next = r->first;
	r->first = t;
}

bool retired_tables_are_ending(const struct retired_tables *r, const struct user *u)
{
	uint64_t now = now_ns();

	for (const struct retired *t = r->first; t; t = t->next) {
		if (t->charges.memory.user == u && now - t->since_ns < ENDING_NS)
			return true;
	}
	return false;
}
