/* observer.c - a client with an attachment, and its table of places */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/wire.h"
#include "observed.h"
#include "observer.h"

struct profil_msg_observe observer_ask(enum profil_scope scope, uint64_t period_ns)
{
	struct profil_msg_observe ask = { .period_ns = period_ns,
					  .flags = PROFIL_OBSERVE_INHERIT | PROFIL_OBSERVE_FOLLOW,
					  .scope = scope };

	wire_header(&ask.h, PROFIL_MSG_OBSERVE, sizeof(ask), 0, 0);
	return ask;
}

static int take_reply(int sock, struct profil_msg_reply *reply, int *fd, int *unwind)
{
	int fds[2] = { -1, -1 };
	unsigned int nfds = 2;
	int err = wire_recv(sock, reply, sizeof(*reply), fds, &nfds);

	cr_assert(!err && reply->h.type == PROFIL_MSG_REPLY, "no reply: %s", strerror(-err));
	*fd = nfds ? fds[0] : -1;
	*unwind = nfds > 1 ? fds[1] : -1;
	return (int)reply->error;
}

int observer_take(struct observer *o, const struct profil_header *h)
{
	struct profil_msg_reply reply;
	int err;

	cr_assert(!wire_send(o->sock, h, NULL, 0));
	err = take_reply(o->sock, &reply, &o->fd, &o->unwind);
	if (err || o->fd < 0)
		return err;
	o->table = mmap(NULL, PROFIL_TABLE_PAGE, PROT_READ, MAP_SHARED, o->fd, 0);
	cr_assert(o->table != MAP_FAILED, "cannot map the table: %s", strerror(errno));
	o->bytes = (size_t)o->table->pages * PROFIL_TABLE_PAGE;
	munmap((void *)o->table, PROFIL_TABLE_PAGE);
	o->table = mmap(NULL, o->bytes, PROT_READ, MAP_SHARED, o->fd, 0);
	cr_assert(o->table != MAP_FAILED, "cannot map the table: %s", strerror(errno));
	return 0;
}

int observer_open(struct observer *o, const struct daemon *d, const struct profil_msg_observe *ask)
{
	memset(o, 0, sizeof(*o));
	o->sock = client_open(d, NULL);
	return observer_take(o, &ask->h);
}

void observer_must_open(struct observer *o, const struct daemon *d,
			const struct profil_msg_observe *ask)
{
	int err = observer_open(o, d, ask);

	cr_assert(!err, "OBSERVE: %s", strerror(err));
}

void observer_close(struct observer *o)
{
	if (o->table)
		munmap((void *)o->table, o->bytes);
	if (o->fd > 0)
		close(o->fd);
	if (o->unwind > 0)
		close(o->unwind);
	close(o->sock);
}

int observer_begin(struct observer *o)
{
	struct profil_header h;
	struct profil_msg_reply reply;
	int none;

	wire_header(&h, PROFIL_MSG_BEGIN, sizeof(h), 0, 0);
	cr_assert(!wire_send(o->sock, &h, NULL, 0));
	return take_reply(o->sock, &reply, &none, &none);
}

int observer_add(struct observer *o, pid_t pid)
{
	struct profil_header h;
	struct profil_msg_reply reply;
	char path[64];
	int fds[2], none, err;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	fds[0] = (int)syscall(SYS_pidfd_open, pid, 0);
	fds[1] = open(path, O_RDONLY | O_CLOEXEC);
	cr_assert(fds[0] >= 0, "pidfd_open %d: %s", (int)pid, strerror(errno));
	if (fds[1] < 0) /* an invalid proof */
		fds[1] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	wire_header(&h, PROFIL_MSG_ADD, sizeof(h), 0, 0);
	cr_assert(!wire_send(o->sock, &h, fds, 2));
	err = take_reply(o->sock, &reply, &none, &none);
	close(fds[0]);
	close(fds[1]);
	return err;
}

void observer_run(struct observer *o, void (*work)(const char *arg), const char *arg)
{
	struct child c = child_fork(work, arg);
	int err = observer_add(o, c.pid);

	cr_assert(!err, "ADD: %s", strerror(err));
	child_run(&c);
}

static const void *page(const struct observer *o, uint32_t n)
{
	return (const char *)o->table + (size_t)n * PROFIL_TABLE_PAGE;
}

const struct profil_image *observer_image(const struct observer *o, uint32_t number)
{
	const struct profil_image *image = page(o, o->table->image_page);

	cr_assert(number && number <= o->table->images);
	return image[number - 1].id ? &image[number - 1] : NULL;
}

const struct profil_node *observer_node(const struct observer *o, uint32_t number)
{
	uint32_t at = number - PROFIL_STACK_ROOTS;
	const char *page =
		(const char *)o->table +
		(size_t)(o->table->node_page + at / PROFIL_PAGE_NODES) * PROFIL_TABLE_PAGE;

	cr_assert_lt(at, o->table->nodes);
	return (const struct profil_node *)page + at % PROFIL_PAGE_NODES;
}

const struct profil_group *observer_group(const struct observer *o, uint32_t number)
{
	const struct profil_group *group = page(o, o->table->group_page);

	cr_assert(number && number <= o->table->groups);
	return group[number - 1].id ? &group[number - 1] : NULL;
}

uint32_t observer_find(const struct observer *o, int kind, const char *name)
{
	for (uint32_t i = 1; i <= o->table->images; i++) {
		const struct profil_image *image = observer_image(o, i);

		if (image && image->kind == kind && (!name || !strcmp(image->path, name)))
			return i;
	}
	return 0;
}

const char *observer_path(const struct profil_image *image)
{
	static char path[2 * PROFIL_IMAGE_PATH];
	char *at = path + sizeof(path) - 1;
	const char *from = image->path;

	*at = 0;
	while (*from) {
		size_t n = strlen(from);

		at -= n + 1;
		*at = '/';
		memcpy(at + 1, from, n);
		from += n + 1;
	}
	return at;
}

uint64_t observer_count_by(const struct observer *o, int (*wanted)(const void *arg, uint64_t key),
			   const void *arg)
{
	const struct profil_line *line = page(o, o->table->place_page);
	uint64_t n = 0;

	for (uint32_t i = 0; i < o->table->lines; i++) {
		for (int k = 0; k < PROFIL_LINE_PLACES; k++) {
			if (line[i].key[k] && wanted(arg, line[i].key[k]))
				n += line[i].count[k];
		}
	}
	return n;
}

struct counted {
	uint32_t image;
	uint64_t bits;
};

static int is_counted(const void *arg, uint64_t key)
{
	const struct counted *c = arg;

	return (key & (PROFIL_PLACE_FOLDED | PROFIL_PLACE_SUM)) == c->bits &&
	       (!c->image || profil_place_image(key) == c->image);
}

uint64_t observer_count(const struct observer *o, uint32_t number, uint64_t bits)
{
	struct counted c = { number, bits };

	return observer_count_by(o, is_counted, &c);
}

uint64_t observer_sum(const struct observer *o)
{
	const volatile struct profil_table *t = o->table;
	uint64_t n = t->unmatched + t->image_full + t->lost + observer_count(o, 0, 0);

	for (uint32_t i = 1; i <= o->table->images; i++) {
		const struct profil_image *image = observer_image(o, i);

		n += image ? image->coarse[0] : 0;
	}
	return n;
}

uint64_t observer_total(const struct observer *o)
{
	struct profil_header h;
	struct profil_msg_reply reply;
	int none;

	wire_header(&h, PROFIL_MSG_STATS, sizeof(h), 0, 0);
	cr_assert(!wire_send(o->sock, &h, NULL, 0));
	cr_assert_eq(take_reply(o->sock, &reply, &none, &none), 0);
	return reply.total;
}

uint64_t observer_check(const struct observer *o)
{
	uint64_t total = observer_total(o), sum = observer_sum(o);

	cr_assert_eq(total, sum, "the daemon counted %llu samples, the table has %llu",
		     (unsigned long long)total, (unsigned long long)sum);
	return sum;
}
