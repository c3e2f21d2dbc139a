/* unwind_forecast.h - prepares the unwind tables of a command before it runs */
#ifndef PROFIL_TABLE_UNWIND_FORECAST_H
#define PROFIL_TABLE_UNWIND_FORECAST_H

#include "unwind_feeder.h"

/*
 * Expects the files that @command, found as execvp() does, will map: those that its dynamic loader
 * lists, and those that it and its children mapped in its last recording.
 */
void unwind_forecast(struct unwind_feeder *f, const char *command);

/* Stores the list of mapped files for the next recording. */
void unwind_forecast_keep(const struct unwind_feeder *f, const char *command,
			  const struct profile *p);

#endif
