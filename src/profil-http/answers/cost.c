/* cost.c - the CPU time and memory of profild and profil-http */
#include <stdio.h>
#include <unistd.h>

#include "base/clocks.h"
#include "core/wire.h"
#include "cost.h"
#include "table/daemon_client.h"
#include "symbols/proc/procfs.h"

static __u64 resident_bytes(pid_t pid)
{
	unsigned long long size, resident;
	char text[128];

	if (!procfs_read(pid, "statm", text, sizeof(text)) ||
	    sscanf(text, "%llu %llu", &size, &resident) != 2)
		return 0;
	return resident * (__u64)sysconf(_SC_PAGESIZE);
}

void cost_of_daemon(struct cost *c, const char *socket)
{
	const struct profil_header *answer;
	const struct profil_msg_status *m;
	struct client *client = NULL;
	pid_t pid = 0;

	*c = (struct cost){ 0 };
	if (client_open(&client, socket) < 0)
		return;
	if (!client_ask(client, PROFIL_MSG_STATUS, &answer) &&
	    wire_fits(answer, sizeof(*m), sizeof(m->user[0]), PROFIL_MSG_USER_MAX)) {
		m = (const void *)answer;
		pid = (pid_t)m->pid;
	}
	client_close(client);
	if (pid <= 0)
		return;
	c->cpu_ns = procfs_cpu_ns(pid);
	c->resident_bytes = resident_bytes(pid);
}

void cost_of_self(struct cost *c)
{
	c->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	c->resident_bytes = resident_bytes(getpid());
}
