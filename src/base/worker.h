/* worker.h - a thread for what can wait for files */
#ifndef PROFIL_BASE_WORKER_H
#define PROFIL_BASE_WORKER_H

#include "jobs.h"

#define worker jobs
#define worker_start(out, event, name) jobs_open_with(out, event, 1, JOBS_STACK_LARGE)
#define worker_submit(w, job) jobs_submit(w, job)

#endif
