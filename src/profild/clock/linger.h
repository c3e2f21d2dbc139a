/* linger.h - a delay of one second before something unused is given up */
#ifndef PROFIL_PROFILD_CLOCK_LINGER_H
#define PROFIL_PROFILD_CLOCK_LINGER_H

#include <systemd/sd-event.h>

/*
 * Attaching and detaching takes milliseconds, and so does creating a chunk of counters. With the
 * delay, a profile that stops and starts again finds its clock still attached. @over is called from
 * the event loop one second after the first linger_begin() since the last call; later ones do not
 * postpone it. It must check what is in use.
 */
struct linger;

int linger_open(struct linger **out, sd_event *event, void (*over)(void *arg), void *arg);
struct linger *linger_close(struct linger *l);
void linger_begin(struct linger *l);

#endif
