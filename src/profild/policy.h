/* policy.h - who may profile whom, and how much */
#ifndef PROFIL_POLICY_H
#define PROFIL_POLICY_H

#include <sys/socket.h>

#include "session.h"

/*
 * May @uid start a profile so large, in the place of @old (or NULL)? 0, or -EACCES for the rate,
 * -ENOMEM for the bins, -EAGAIN for the number of profiles or regions.
 */
int policy_start(struct profild *d, uid_t uid, uint32_t start_flags, uint32_t nregions,
		 uint64_t nbins, const struct session *old);

/* The same of a reader's rate, and of one more image with so much. */
int policy_rate(const struct profild *d, uid_t uid, uint64_t period_ns);
int policy_image(struct profild *d, uid_t uid, uint32_t nregions, uint64_t nbins);

/*
 * May @peer profile the process behind @pidfd? @maps is its /proc/PID/maps as @peer opened it: that
 * it could is the kernel's own word that it may look. Returns the pid in *@tgid, or -EACCES, -ESRCH
 * where the process has gone, -EBADF where the descriptors are not what they should be.
 */
int policy_attach(pid_t *tgid, const struct ucred *peer, int pidfd, int maps);

/* May one more connection come from @uid, who has @own of @all? */
int policy_connect(const struct profild *d, uid_t uid, uint32_t own, uint32_t all);

#endif
