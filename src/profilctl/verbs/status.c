/* status.c - prints the daemon's state */
#include <stdint.h>
#include <stdio.h>

#include "core/observers.h"
#include "core/resource.h"
#include "core/wire.h"

#include "answer.h"
#include "verb.h"

/* A missing limit is null. */
static json_t *user_json(const struct profil_msg_user *u)
{
	json_t *resources = json_object();

	for (int i = 0; i < N_RESOURCES; i++)
		json_object_set_new(
			resources, resource_name(i),
			u->limit[i] == UINT64_MAX
				? json_pack("{sI sn}", "used", (json_int_t)u->used[i], "limit")
				: json_pack("{sI sI}", "used", (json_int_t)u->used[i], "limit",
					    (json_int_t)u->limit[i]));
	return json_pack("{sI sb so}", "uid", (json_int_t)(int)u->uid, "root", (int)u->root,
			 "resources", resources);
}

static const char *const lookups[][2] = {
	[PROFIL_LOOKUP_WALK] = { "walk", "by a walk of the VMA tree" },
	[PROFIL_LOOKUP_FIND_VMA] = { "find-vma", "by bpf_find_vma(): samples taken while mmap_lock "
						 "is held have no image" },
	[PROFIL_LOOKUP_PROCESS] = { "process", "none: user-mode samples are counted by process" },
};

/* The name for --json (0) or text (1); NULL for an unknown value. */
static const char *lookup_name(const struct profil_msg_status *m, int in)
{
	return m->image_lookup < sizeof(lookups) / sizeof(*lookups) ? lookups[m->image_lookup][in]
								    : NULL;
}

static int status_json(const struct profil_msg_status *m)
{
	json_t *users = json_array();

	for (__u32 i = 0; i < m->h.count; i++)
		json_array_append_new(users, user_json(&m->user[i]));
	return answer_json(json_pack("{ss si sI sb sI sI si si si ss* so}", "schema",
				     "profil-status/1", "pid", (int)m->pid, "uptime_ns",
				     (json_int_t)m->uptime_ns, "replay", (int)m->replay, "tick_ns",
				     (json_int_t)m->rate_period_ns, "fast_tick_ns",
				     (json_int_t)m->fast_period_ns, "profiles", (int)m->profiles,
				     "regions", (int)m->regions, "chunks", (int)m->chunks,
				     "image_lookup", lookup_name(m, 0), "users", users));
}

static void user_text(const struct profil_msg_user *u)
{
	if (u->uid == (__u32)-1)
		printf("machine   ");
	else
		printf("uid %-6u", u->uid);
	for (int i = 0; i < N_RESOURCES; i++) {
		if (!u->used[i])
			continue;
		printf(" %s %llu", resource_name(i), (unsigned long long)u->used[i]);
		if (u->limit[i] != UINT64_MAX)
			printf("/%llu", (unsigned long long)u->limit[i]);
	}
	putchar('\n');
}

static int status_text(const struct profil_msg_status *m)
{
	printf("profild    pid %u, up %.0f s%s\n", m->pid, (double)m->uptime_ns / 1e9,
	       m->replay ? ", replaying a file" : "");
	printf("rate       %.6g Hz, fast %.6g Hz\n", 1e9 / (double)m->rate_period_ns,
	       1e9 / (double)m->fast_period_ns);
	printf("profiles   %u, of %u regions\n", m->profiles, m->regions);
	printf("counters   %u chunks of 1 MiB\n", m->chunks);
	if (lookup_name(m, 1))
		printf("images     %s\n", lookup_name(m, 1));
	for (__u32 i = 0; i < m->h.count; i++)
		user_text(&m->user[i]);
	return CTL_OK;
}

int verb_status(const struct options *o)
{
	const struct profil_header *answer;
	const struct profil_msg_status *m;
	struct client *c;
	int status = answer_get(&c, o, PROFIL_MSG_STATUS, &answer);

	if (!status && !wire_fits(answer, sizeof(*m), sizeof(m->user[0]), PROFIL_MSG_USER_MAX))
		status = answer_misunderstood(o);
	if (!status) {
		m = (const void *)answer;
		status = o->format ? status_json(m) : status_text(m);
	}
	client_close(c);
	return status;
}
