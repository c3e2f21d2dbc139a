/* group.bpf.h - the group of a sample: of its process, thread, command or cgroup */
#ifndef PROFIL_BPF_GROUP_BPF_H
#define PROFIL_BPF_GROUP_BPF_H

#include "image.bpf.h"
#include "share.bpf.h"

/*
 * A hash of what the running process shows and may change: name, cgroup and user. Global, so that
 * its stack is not part of the caller's.
 */
__attribute__((noinline)) __u64 look_here(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 name[2] = { 0 };

	bpf_probe_read_kernel_str(name, sizeof(name), &leader->comm);
	return mix(mix(name[0] ^ mix(name[1])) ^ bpf_get_current_cgroup_id()) ^
	       mix(BPF_CORE_READ(task, cred, uid.val));
}

/* Fills in the group that this sample has claimed. Global, as image_number(). */
__attribute__((noinline)) int group_fill(__u32 slot, __u32 number)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct table table, *t = &table;
	struct profil_group *group;
	__u32 at = number - 1;

	if (!table_of(t, slot))
		return 0;
	group = table_page(t, t->observer->group_page + at / PROFIL_PAGE_GROUPS);
	if (!group)
		return 0;
	group += at % PROFIL_PAGE_GROUPS;
	group->cgroup = bpf_get_current_cgroup_id();
	group->start_ns = start_of(task);
	group->tgid = task_number(t, leader);
	group->tid = task_number(t, task);
	bpf_probe_read_kernel(group->command, sizeof(group->command), &leader->comm);
	bpf_probe_read_kernel(group->thread, sizeof(group->thread), &task->comm);
	group->uid = BPF_CORE_READ(task, cred, uid.val);
	__sync_lock_test_and_set(&group->ready, 1);
	TABLE_ADD(t, used_groups, 1);
	return 0;
}

/* The id of the running task's group. Global, as image_number(). */
__attribute__((noinline)) __u64 group_id(__u32 slot)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	const struct profil_observer *o = bpf_map_lookup_elem(&observers, &slot);
	__u64 name[2] = { 0 }, id;

	if (!o)
		return 0;
	id = o->group_by;
	if (o->group_by & PROFIL_GROUP_COMMAND) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);

		bpf_probe_read_kernel_str(name, sizeof(name), &leader->comm);
		id = mix(id ^ name[0]) ^ mix(name[1]);
	}
	if (o->group_by & PROFIL_GROUP_CGROUP)
		id = mix(id ^ mix(bpf_get_current_cgroup_id()));
	if (o->group_by & (PROFIL_GROUP_PROCESS | PROFIL_GROUP_THREAD))
		id = mix(id ^ look_here());
	if (o->group_by & PROFIL_GROUP_PROCESS)
		id = mix(id ^ mix((__u32)task->tgid ^ start_of(task) << 24));
	if (o->group_by & PROFIL_GROUP_THREAD) {
		name[0] = name[1] = 0;
		bpf_probe_read_kernel_str(name, sizeof(name), &task->comm);
		id = mix(id ^ mix((__u32)task->pid ^ task->start_boottime << 24));
		id = mix(id ^ name[0]) ^ mix(name[1]);
	}
	return id | 1;
}

#define GROUP_PROBES 16 /* elements tried in each of two pages */
#define GROUP_FRESH (1 << 30)

/*
 * The number of the group @id in a page that @h selects; GROUP_FRESH is set if it is claimed now.
 * 0: it is not there, or may not be claimed. Global, as image_number().
 */
__attribute__((noinline)) int group_probe(__u32 slot, __u64 id, __u32 h)
{
	struct table table, *t = &table;
	struct profil_group *groups;
	__u32 page;

	if (!table_of(t, slot))
		return 0;
	page = h & t->observer->group_mask;
	groups = table_page(t, t->observer->group_page + page);
	for (__u32 i = 0; groups && i < GROUP_PROBES; i++) {
		__u32 at = ((h >> 24) + i) % PROFIL_PAGE_GROUPS;
		__u64 *word = &groups[at].id, seen = *(volatile __u64 *)word;
		int number = (int)(1 + page * PROFIL_PAGE_GROUPS + at);

		if (!seen)
			seen = share_claim(slot, SHARE_GROUPS, word, id);
		if (!seen)
			return number | GROUP_FRESH;
		if (seen == id)
			return number;
		if (seen == SHARE_REFUSED)
			return 0;
	}
	return 0;
}

/* The number of the running task's group; 0 where there is no room for it. Global, as
 * image_number(). */
__attribute__((noinline)) int group_number(__u32 slot)
{
	__u64 id = group_id(slot), h = mix(id);
	int number = group_probe(slot, id, (__u32)h);

	if (!number)
		number = group_probe(slot, id, (__u32)(h >> 32));
	if (number & GROUP_FRESH) {
		number &= ~GROUP_FRESH;
		group_fill(slot, (__u32)number);
	}
	return number;
}

#endif
