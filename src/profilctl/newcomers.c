/* newcomers.c - processes that begin to run a program while others are watched already */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/cn_proc.h>
#include <linux/connector.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/scope.h"

#include "grow.h"
#include "newcomers.h"

#define LOOK_THROUGH_S 1
#define RECEIVE_BYTES (1 << 20) /* a storm of forks may come while we are at work */

struct newcomers {
	const struct procfs_select *select;
	int events; /* the kernel's own; -1: a timer makes us look */
	int timer;
	bool missed;
};

/* The parts of a message of the connector, one behind the other. */
struct message {
	struct nlmsghdr nl;
	struct {
		struct cn_msg cn;
		struct proc_event event;
	} __attribute__((packed)) body;
};

/* Asks the kernel to tell. It answers at once, or not at all: in a container, or of old. */
static int subscribe(int fd)
{
	struct {
		struct nlmsghdr nl;
		struct {
			struct cn_msg cn;
			__u32 op;
		} __attribute__((packed)) body;
	} m = { .nl = { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_DONE },
		.body = { .cn = { .id = { CN_IDX_PROC, CN_VAL_PROC }, .len = sizeof(__u32) },
			  .op = PROC_CN_MCAST_LISTEN } };
	struct message answer;

	if (send(fd, &m, sizeof(m), 0) < 0)
		return -errno;
	while (recv(fd, &answer, sizeof(answer), 0) > 0) {
		if (answer.body.event.what == PROC_EVENT_NONE)
			return -(int)answer.body.event.event_data.ack.err;
	}
	return -errno;
}

/* Of all that the kernel tells, forks and execs alone shall wake us. */
static int filter_events(int fd)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct message, body.event.what)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_EXEC), 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, htonl(PROC_EVENT_FORK), 0, 1),
		BPF_STMT(BPF_RET | BPF_K, ~0u),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog filter = { sizeof(code) / sizeof(*code), code };

	return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof(filter)) ? -errno : 0;
}

static int open_events(int *out)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = CN_IDX_PROC };
	__cleanup(closep) int fd =
		socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_CONNECTOR);
	int bytes = RECEIVE_BYTES, err;

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	err = subscribe(fd);
	if (!err)
		err = filter_events(fd);
	if (!err)
		*out = steal_fd(fd);
	return err;
}

static int open_timer(int *out)
{
	struct itimerspec every = { { LOOK_THROUGH_S, 0 }, { LOOK_THROUGH_S, 0 } };
	__cleanup(closep) int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0 || timerfd_settime(fd, 0, &every, NULL) < 0)
		return -errno;
	*out = steal_fd(fd);
	return 0;
}

int newcomers_open(struct newcomers **out, const struct procfs_select *select)
{
	struct newcomers *n = calloc(1, sizeof(*n));
	int err;

	if (!n)
		return -ENOMEM;
	*n = (struct newcomers){ .select = select, .events = -1, .timer = -1 };
	err = open_events(&n->events) ? open_timer(&n->timer) : 0;
	if (err < 0) {
		free(n);
		return err;
	}
	*out = n;
	return 0;
}

void newcomers_close(struct newcomers *n)
{
	if (!n)
		return;
	closep(&n->events);
	closep(&n->timer);
	free(n);
}

int newcomers_fd(const struct newcomers *n)
{
	return n->events >= 0 ? n->events : n->timer;
}

bool newcomers_told(const struct newcomers *n)
{
	return n->events >= 0;
}

static int append(struct newcomer **out, size_t *n, struct newcomer newcomer)
{
	struct newcomer *more = grow(*out, *n, sizeof(*more));

	if (!more)
		return -ENOMEM;
	*out = more;
	more[(*n)++] = newcomer;
	return 0;
}

static int look_through(struct newcomers *n, struct newcomer **out, size_t *count)
{
	__cleanup(freep) pid_t *pids = NULL;
	size_t npids = 0;
	__u64 times;
	int err = 0;

	if (read(n->timer, &times, sizeof(times)) == sizeof(times))
		err = procfs_find(&pids, &npids, n->select);
	for (size_t i = 0; i < npids && !err; i++)
		err = append(out, count, (struct newcomer){ pids[i], 0 });
	return err;
}

bool newcomers_missed(const struct newcomers *n)
{
	return n->missed;
}

/* Takes the next message: false where there is none. */
static bool receive(struct newcomers *n, struct message *m)
{
	ssize_t got;

	/* The kernel says once that it had no room for some, and goes on with what came later. */
	while ((got = recv(n->events, m, sizeof(*m), 0)) < 0 && errno == ENOBUFS)
		n->missed = true;
	return got > 0;
}

int newcomers_take(struct newcomers *n, struct newcomer **out, size_t *count)
{
	struct message m;
	int err = 0;

	*out = NULL;
	*count = 0;
	if (n->events < 0)
		return look_through(n, out, count);
	while (!err && receive(n, &m)) {
		const struct proc_event e = m.body.event;
		struct newcomer begun = { e.event_data.exec.process_tgid, 0 };
		struct newcomer forked = { e.event_data.fork.child_tgid,
					   e.event_data.fork.parent_tgid };

		if (e.what == PROC_EVENT_EXEC)
			err = append(out, count, begun);
		/* Else it is a thread, or what came before the filter did. */
		else if (e.what == PROC_EVENT_FORK && e.event_data.fork.child_pid == forked.pid)
			err = append(out, count, forked);
	}
	return err;
}
