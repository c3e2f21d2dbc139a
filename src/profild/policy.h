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
 * May @peer, connected through @sock, profile the process behind @pidfd? Root may; who is in group
 * profil may, unless the process is set-id or not dumpable; its own user may with @maps, its
 * /proc/PID/maps as he opened it: that he could is the kernel's own word that he may look. Returns
 * the pid in *@tgid, or -EACCES, or -ESRCH where it has gone, or -EBADF where @pidfd is none.
 */
int policy_attach(pid_t *tgid, const struct profild *d, int sock, const struct ucred *peer,
		  int pidfd, int maps);

/* May @uid make a request at @now_ns? -EAGAIN where there have been too many just now. */
int policy_request(struct profild *d, uid_t uid, uint64_t now_ns);

/* Forgets all allowances. */
void policy_close(struct profild *d);

/* May one more connection come from @uid, who has @own of @all? */
int policy_connect(const struct profild *d, uid_t uid, uint32_t own, uint32_t all);

#endif
