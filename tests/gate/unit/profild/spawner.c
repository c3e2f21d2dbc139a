/* spawner.c - workers are forked in rounds, with one of each account */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "profild/worker/spawner.h"
#include "profild/worker/work.h"

#define BIRTHS 9

struct asked {
	struct birth birth;
	char name[3];
};

static char order[4 * BIRTHS];
static unsigned int nborn;

/* Each worker ends with the other end of its socket, which the test closes. */
static void on_born(struct birth *b, int pidfd)
{
	const struct asked *a = (const void *)b;

	cr_expect_geq(pidfd, 0, "%s", a->name);
	snprintf(order + strlen(order), sizeof(order) - strlen(order), "%s ", a->name);
	nborn++;
	close(pidfd);
}

/* Asks for a worker of account @name[0]. */
static void ask(struct spawner *s, struct asked *a, const char *name)
{
	int ends[2], fd[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	fd[0] = ends[1];
	fd[1] = memfd_create("area", MFD_CLOEXEC);
	cr_assert_eq(ftruncate(fd[1], sizeof(union work_area)), 0);
	*a = (struct asked){ .birth = { .account = (uid_t)name[0], .born = on_born } };
	memcpy(a->name, name, sizeof(a->name));
	cr_assert_eq(spawner_ask(s, fd, &a->birth), 0);
	close(ends[0]);
}

/*
 * The first two are forked at once. Answers are read by the event loop alone, which runs after all
 * have been asked for.
 */
Test(spawner, forks_one_worker_of_each_account_in_turn)
{
	static const char *const names[BIRTHS] = { "a1", "a2", "a3", "a4", "a5",
						   "b1", "b2", "c1", "a6" };
	struct asked asked[BIRTHS];
	struct spawner *s;
	sd_event *event;

	cr_assert_eq(sd_event_new(&event), 0);
	cr_assert_eq(spawner_open(&s, event), 0);
	for (size_t i = 0; i < BIRTHS; i++)
		ask(s, &asked[i], names[i]);
	while (nborn < BIRTHS)
		cr_assert_geq(sd_event_run(event, UINT64_MAX), 0);
	cr_expect_str_eq(order, "a1 a2 a3 b1 c1 a4 b2 a5 a6 ");
	spawner_close(s);
	sd_event_unref(event);
}
