/* pprof_writer.c - what the writers of functions and of stacks share */
#include "pprof_writer.h"

__u64 pprof_period(const struct profile *p)
{
	return p->event ? p->period : p->tick_ns;
}

__u64 pprof_mapping(const struct pprof *w, __u32 object, __u64 offset)
{
	return w->mapping[extents_of(&w->extents, object, offset) - w->extents.extent];
}

/* The label of the command; for collectors it is the kernel's name for that. */
static const char *command_key(const struct pprof *w)
{
	return w->for_collectors ? "comm" : "command";
}

void pprof_group_labels(struct pprof *w, __u32 group)
{
	const struct profile *p = w->profile;
	const struct group *g = group && group < p->ngroups ? &p->groups[group] : NULL;

	if (!g)
		return;
	proto_label(&w->proto, command_key(w), g->command);
	proto_label(&w->proto, "thread", g->thread);
	proto_label(&w->proto, "cgroup", g->cgroup);
	proto_label(&w->proto, "unit", g->unit);
	proto_label(&w->proto, "host", g->host);
	content_container(&w->proto, g->cgroup);
	proto_number_label(&w->proto, "pid", (__u64)g->pid);
	proto_number_label(&w->proto, "tid", (__u64)g->tid);
}

void pprof_labels(struct pprof *w, __u32 object, __u32 group)
{
	if (w->profile->objects[object].kind == OBJECT_KERNEL)
		proto_label(&w->proto, "mode", "kernel");
	if (w->owner && !group)
		content_owner(&w->proto, command_key(w), &w->owner[object]);
	else
		pprof_group_labels(w, group);
}
