/* self_setup.h - signals and limits that profilctl changes for itself while it records */
#ifndef PROFIL_PROFILCTL_COLLECT_SELF_SETUP_H
#define PROFIL_PROFILCTL_COLLECT_SELF_SETUP_H

#include <signal.h>
#include <sys/resource.h>

/* The signal mask and limit with which profilctl was started. */
struct self {
	sigset_t mask;
	struct rlimit files;
};

/*
 * Redirects @signals, a list that ends with 0, to a signalfd. SIGHUP stays ignored if it is, as
 * under nohup(1). Returns the descriptor or a negative errno.
 */
int self_signals(struct self *self, const int *signals);

/*
 * Raises RLIMIT_NOFILE to its hard limit: the soft limit only protects programs that use select().
 */
void self_raise_files(struct self *self);

/*
 * Raises the limit and redirects SIGINT, SIGTERM and SIGHUP to a signalfd. Returns the descriptor
 * or a negative errno.
 */
int self_prepare(struct self *self);

/* Restores mask and limit, in a child. */
void self_restore(const struct self *self);

#endif
