/* cpu_hotplug.h - reports CPUs that come online */
#ifndef PROFIL_PROFILD_CLOCK_CPU_HOTPLUG_H
#define PROFIL_PROFILD_CLOCK_CPU_HOTPLUG_H

#include <systemd/sd-event.h>

struct hotplug;

/*
 * Calls @online for each CPU that comes online from now on, and for all CPUs if the socket has
 * overflowed. If it cannot listen, it logs that and sets *@out to NULL.
 */
void hotplug_open(struct hotplug **out, sd_event *event, void (*online)(void *arg, int cpu),
		  void *arg);
struct hotplug *hotplug_close(struct hotplug *h);

#endif
