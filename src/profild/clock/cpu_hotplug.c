/* cpu_hotplug.c - reports CPUs that come online, from the kernel's uevents */
#include <errno.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "cpu_hotplug.h"

struct hotplug {
	int sock;
	sd_event_source *source;
	void (*online)(void *arg, int cpu);
	void *arg;
};

static void all_online(const struct hotplug *h)
{
	long ncpus = sysconf(_SC_NPROCESSORS_CONF);

	for (int cpu = 0; cpu < ncpus; cpu++)
		h->online(h->arg, cpu);
}

static int on_uevent(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	const struct hotplug *h = userdata;
	struct sockaddr_nl from = { 0 };
	socklen_t len = sizeof(from);
	char text[512];
	ssize_t n = recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &len);
	int cpu;

	if (n < 0 && errno == ENOBUFS)
		all_online(h);
	if (n <= 0 || from.nl_pid) /* 0: the kernel */
		return 0;
	text[n] = 0;
	if (sscanf(text, "online@/devices/system/cpu/cpu%d", &cpu) == 1 && cpu >= 0)
		h->online(h->arg, cpu);
	return 0;
}

static int listen_to_kernel(struct hotplug *h, sd_event *event)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = 1 };
	int err;

	h->sock = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK,
			 NETLINK_KOBJECT_UEVENT);
	if (h->sock < 0)
		return -errno;
	if (bind(h->sock, (struct sockaddr *)&address, sizeof(address)) < 0)
		return -errno;
	err = sd_event_add_io(event, &h->source, h->sock, EPOLLIN, on_uevent, h);
	return err < 0 ? err : 0;
}

void hotplug_open(struct hotplug **out, sd_event *event, void (*online)(void *arg, int cpu),
		  void *arg)
{
	struct hotplug *h = calloc(1, sizeof(*h));
	int err = h ? 0 : -ENOMEM;

	*out = h;
	if (h) {
		h->online = online;
		h->arg = arg;
		err = listen_to_kernel(h, event);
	}
	if (err) {
		log_warning("cannot listen for CPUs that come online: %s; samples on "
			    "them will be missing",
			    strerror(-err));
		*out = hotplug_close(h);
	}
}

struct hotplug *hotplug_close(struct hotplug *h)
{
	if (!h)
		return NULL;
	sd_event_source_unref(h->source);
	closep(&h->sock);
	free(h);
	return NULL;
}
