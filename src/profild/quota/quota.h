/* quota.h - charges limited resources to users */
#ifndef PROFIL_PROFILD_QUOTA_QUOTA_H
#define PROFIL_PROFILD_QUOTA_QUOTA_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "core/resource.h"

/*
 * Every limited resource is charged to the user that uses it when it is taken, and discharged when
 * it is given back; both take constant time. No other code limits what a user may have.
 *
 * A charge is a member of the object that holds the resource (a connection, a target, a table, a
 * slot that waits for an RCU grace period). The object's constructor takes the charge and its
 * destructor gives it back, so it can neither outlive the object nor leak. When the resource passes
 * to another object (a target's counters, to the list that waits for a grace period), charge_move()
 * moves the charge.
 *
 * Users of one subordinate range (subuid(5)) are one account, that of the range's owner: a person
 * can have all of them. What this file says of a user's charges and limits is true of its account.
 *
 * Limits: each user has its own, and the machine has one, of which a part is reserved for root. As
 * the machine's room fills, the share of each user shrinks; see fair_share().
 * Root has no limit of its own. Root is a client of uid 0 with CAP_SYS_PTRACE in the initial user
 * namespace; uid 0 without it (in a container, with an empty bounding set) is an ordinary user.
 *
 * A struct user exists while it has a charge or a reference, or until its token buckets are full
 * again.
 */
struct limits {
	uint64_t of[N_RESOURCES];
};

/* A token bucket: refilled by @a_second (0: no limit) up to @burst. */
struct rate_limit {
	uint64_t a_second;
	uint64_t burst;
};

struct quota_config {
	struct limits user;
	struct limits machine;
	struct limits reserve; /* the part of the machine's limit that only root may use */
	struct limits least;   /* a share does not shrink below this; 0: shares do not shrink */
	struct rate_limit requests;	     /* of one user */
	struct rate_limit time_ns;	     /* of the main thread, for one user ... */
	struct rate_limit everyones_time_ns; /* ... and for all but root together */
	const char *subuid;		     /* NULL: /etc/subuid */
	const char *passwd;		     /* NULL: /etc/passwd */
};

struct quota;
struct user;

/* The caller keeps @config; a change to it takes effect with the next charge. */
int quota_new(struct quota **out, const struct quota_config *config);

/* Before profiles or tables are refused, @reclaim gives back charges of what is gone. */
void quota_reclaim_by(struct quota *q, void (*reclaim)(void *arg), void *arg);
/* All charges must have been given back. */
struct quota *quota_free(struct quota *q);

/*
 * A reference to the user with @uid, as root (see above) or as an ordinary one. -ENOMEM.
 */
int user_get(struct user **out, struct quota *q, uid_t uid, bool root);
struct user *user_ref(struct user *u);
struct user *user_unref(struct user *u); /* takes NULL; returns NULL */

uid_t user_uid(const struct user *u);
uid_t user_account_uid(const struct user *u);
bool user_is_root(const struct user *u);

/* A pointer that another layer may keep in each user; NULL at first; must be NULL at the end. */
void **user_own(struct user *u);

/* All zero: empty. Must not be copied: use charge_move(). */
struct charge {
	struct user *user;
	enum resource what;
	uint64_t n;
};

/*
 * Charges @n of @what to @u in the empty @c. Returns -ENOMEM (memory: counters, tables) or -EAGAIN
 * if that would exceed a limit; @c then stays empty.
 */
int charge_take(struct charge *c, struct user *u, enum resource what, uint64_t n);

/* The same without a limit: for what exists already, such as the profiles of an earlier daemon. */
void charge_adopt(struct charge *c, struct user *u, enum resource what, uint64_t n);

/* Changes the amount of a charge. On an error it is unchanged. Lowering it never fails. */
int charge_resize(struct charge *c, uint64_t n);

/* Gives the charge back; @c is empty afterwards. Accepts an empty one. */
void charge_give(struct charge *c);

/* Moves the charge to the empty @to. */
void charge_move(struct charge *to, struct charge *from);

/* Charges all of it to @u instead. On an error it is unchanged. */
int charge_transfer(struct charge *c, struct user *u);

/* The use and the limit of @u; NULL: of the machine. UINT64_MAX: no limit. */
uint64_t quota_used(const struct quota *q, const struct user *u, enum resource what);
uint64_t quota_limit(const struct quota *q, const struct user *u, enum resource what);

/* True if @u is at its limit of @what. */
bool quota_full(const struct user *u, enum resource what);

/* Calls @fn for every account, as the user that owns it. @fn must not give back a charge of that
 * user. */
void quota_each(const struct quota *q, void (*fn)(void *arg, const struct user *u), void *arg);

/* Takes a token for one request of @u at time @now_ns; -EAGAIN if none is left. */
int user_request(struct user *u, uint64_t now_ns);

/*
 * user_spend(): the main thread, or a thread on its behalf, has worked for @u for @spent_ns, until
 * @now_ns. While all users together exceed their allowance it counts more. user_wait_ns(): the
 * time during which it should do nothing more for @u; 0 while tokens are left.
 */
void user_spend(struct user *u, uint64_t now_ns, uint64_t spent_ns);
uint64_t user_wait_ns(struct user *u, uint64_t now_ns);

#endif
