/* hotplug.h - tells of CPUs that come online */
#ifndef PROFIL_HOTPLUG_H
#define PROFIL_HOTPLUG_H

#include <systemd/sd-event.h>

struct hotplug;

/*
 * Calls @online for each CPU that comes online from now on; more often than that where the kernel
 * had more to tell than there was room for. *@out is NULL where it cannot be had: it is said.
 */
void hotplug_open(struct hotplug **out, sd_event *event, void (*online)(void *arg, int cpu),
		  void *arg);
struct hotplug *hotplug_close(struct hotplug *h);

#endif
