/* attacker.h - a client that sends broken, false, stale and excessive messages */
#ifndef PROFIL_TEST_ATTACKER_H
#define PROFIL_TEST_ATTACKER_H

#include <stdint.h>

/*
 * Sends so many @messages, which @seed selects, to the daemon at @socket. Returns the number of
 * connections that it made. No answer of the daemon is an error here.
 */
unsigned long attack(const char *socket, unsigned long messages, uint64_t seed);

#endif
