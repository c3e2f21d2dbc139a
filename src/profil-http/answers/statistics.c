/* statistics.c - counters of profil-http itself, for its metrics */
#include "statistics.h"

struct statistics statistics;
