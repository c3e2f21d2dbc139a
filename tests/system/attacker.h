/* attacker.h - a client that says whatever harms: broken, false, stale, too much, or nothing */
#ifndef PROFIL_TEST_ATTACKER_H
#define PROFIL_TEST_ATTACKER_H

#include <stdint.h>

/*
 * Sends @messages to the daemon at @socket, the choice of which @seed makes, and returns how many
 * connections that took. Nothing that the daemon does in turn is an error here.
 */
unsigned long attack(const char *socket, unsigned long messages, uint64_t seed);

#endif
