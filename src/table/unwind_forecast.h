/* unwind_forecast.h - prepares the unwind tables of a command before it runs */
#ifndef PROFIL_TABLE_UNWIND_FORECAST_H
#define PROFIL_TABLE_UNWIND_FORECAST_H

#include "unwind_feeder.h"

/*
 * Expects the files that @command, found as execvp() does, will map as its dynamic loader lists
 * them. Files that it loads later are found when they are sampled.
 */
void unwind_forecast(struct unwind_feeder *f, const char *command);

#endif
