/* uprobes.h - calls of a function, or of a static probe, as events */
#ifndef PROFIL_PROFILCTL_COLLECT_UPROBES_H
#define PROFIL_PROFILCTL_COLLECT_UPROBES_H

#include <stdbool.h>

#include "events.h"

/*
 * "uprobe:FILE:FUNCTION" or "usdt:FILE:PROVIDER:NAME", where FILE is a path, or the name of a
 * library or a program.
 */
bool uprobe_is(const char *name);

/*
 * Defines the event in the kernel's tracefs, until the program ends. Returns 0, -ENXIO if there is
 * no such file, -ENOENT if it has no such function or probe, or another negative errno.
 */
int uprobe_define(struct event *e, const char *name);

#endif
