/* hostile_rules.h - a client whose unwind rules are missing, or change during the walk */
#ifndef PROFIL_TEST_HOSTILE_RULES_H
#define PROFIL_TEST_HOSTILE_RULES_H

#include "core/observe_maps.h"
#include "core/unwind_maps.h"
#include "stacks.h"

/* Walks by rules alone end with @root in images for which the client has set @looked and no rules.
 */
void rules_expect_missing(const struct daemon *d, enum profil_unwind_looked looked,
			  enum profil_stack_root root, struct stack_demand demand);

/*
 * Two observers: one changes its rules at random, so its walks may end anywhere, but each of its
 * samples is counted. The other one's walks are unaffected.
 */
void rules_expect_lies_spoil_no_other(const struct daemon *d, struct stack_demand demand);

#endif
