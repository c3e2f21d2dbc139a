/* clock.h - the perf events that tick at one rate, one on each CPU */
#ifndef PROFIL_CLOCK_H
#define PROFIL_CLOCK_H

#include <bpf/libbpf.h>
#include <stdint.h>

struct clock;

/* Runs @prog on every online CPU each @period_ns of its being busy. */
int clock_open(struct clock **out, const struct bpf_program *prog, uint64_t period_ns);
struct clock *clock_close(struct clock *c);

#endif
