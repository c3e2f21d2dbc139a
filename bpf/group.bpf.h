/* group.bpf.h - the group of a sample: of its process, thread, command or cgroup */
#ifndef PROFIL_BPF_GROUP_BPF_H
#define PROFIL_BPF_GROUP_BPF_H

#include "image.bpf.h"
#include "table.bpf.h"

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

#define GROUP_PROBES 16 /* elements tried in each of two pages */

/* The number of the running task's group; 0 where there is no room for it. Global, as
 * image_number(). */
__attribute__((noinline)) int group_number(__u32 slot)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	__u64 cgroup = bpf_get_current_cgroup_id(), name[2] = { 0 }, id, h;
	const struct profil_observer *o;
	struct table table, *t = &table;

	if (!table_of(t, slot))
		return 0;
	o = t->observer;
	id = o->group_by;
	if (o->group_by & PROFIL_GROUP_COMMAND) {
		struct task_struct *leader = BPF_CORE_READ(task, group_leader);

		bpf_probe_read_kernel_str(name, sizeof(name), &leader->comm);
		id = mix(id ^ name[0]) ^ mix(name[1]);
	}
	if (o->group_by & PROFIL_GROUP_CGROUP)
		id = mix(id ^ mix(cgroup));
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
	id |= 1;
	h = mix(id);
	for (int turn = 0; turn < 2; turn++) {
		__u32 page = (__u32)h & o->group_mask, first = h >> 24 & 255;
		struct profil_group *groups = table_page(t, o->group_page + page);

		h >>= 32;
		for (__u32 i = 0; groups && i < GROUP_PROBES; i++) {
			__u32 at = (first + i) % PROFIL_PAGE_GROUPS;
			__u64 *word = &groups[at].id, seen = *(volatile __u64 *)word;
			int number = (int)(1 + page * PROFIL_PAGE_GROUPS + at);

			if (!seen)
				seen = __sync_val_compare_and_swap(word, 0, id);
			if (!seen)
				group_fill(slot, (__u32)number);
			if (!seen || seen == id)
				return number;
		}
	}
	return 0;
}

#endif
