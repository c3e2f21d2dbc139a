/* quota.c - charges limited resources to users */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "quota.h"
#include "base/subids.h"

#define NSEC_A_SECOND 1000000000ULL
#define USER_BUCKETS 64

/* A token bucket. It may be overdrawn. */
struct bucket {
	uint64_t at_ns; /* the time of the last refill */
	int64_t left;	/* tokens; negative: overdrawn */
	bool used;	/* false: full, the other members are not valid */
};

struct user {
	struct user *next; /* in its bucket of the hash table */
	struct quota *quota;
	struct user *account; /* itself, or the user that owns its subordinate id: a reference */
	unsigned int refs;    /* each charge has one, too */
	uid_t uid;
	bool root;
	void *own;

	/* Of an account. */
	uint64_t used[N_RESOURCES];
	struct bucket requests;
	struct bucket time;
};

struct quota {
	const struct quota_config *config;
	struct subids *subids;
	struct bucket everyones_time; /* of all users but root together */
	struct user *users[USER_BUCKETS];
	void (*reclaim)(void *arg);
	void *reclaim_arg;
	uint64_t now_ns;		 /* the time of the latest call */
	uint64_t used[N_RESOURCES];	 /* by all users ... */
	uint64_t root_used[N_RESOURCES]; /* ... and of that by root */
};

int quota_new(struct quota **out, const struct quota_config *config)
{
	struct quota *q = calloc(1, sizeof(*q));
	int err;

	if (!q)
		return -ENOMEM;
	q->config = config;
	err = subids_open(&q->subids, config->subuid ? config->subuid : "/etc/subuid",
			  config->passwd ? config->passwd : "/etc/passwd");
	if (err) {
		free(q);
		return err;
	}
	*out = q;
	return 0;
}

struct quota *quota_free(struct quota *q)
{
	for (int i = 0; q && i < USER_BUCKETS; i++) {
		while (q->users[i]) {
			struct user *u = q->users[i];

			q->users[i] = u->next;
			free(u);
		}
	}
	if (q)
		subids_close(q->subids);
	free(q);
	return NULL;
}

/* --- token buckets ---------------------------------------------------------------------------- */

static void refill(struct bucket *b, const struct rate_limit *r, uint64_t now_ns)
{
	int64_t missing = (int64_t)r->burst - b->left;
	unsigned __int128 more;

	if (!b->used || missing <= 0) {
		b->left = (int64_t)r->burst;
		b->at_ns = now_ns;
		b->used = true;
		return;
	}
	if (now_ns <= b->at_ns)
		return;
	more = (unsigned __int128)(now_ns - b->at_ns) * r->a_second / NSEC_A_SECOND;
	if (more >= (unsigned __int128)missing) {
		b->left = (int64_t)r->burst;
		b->at_ns = now_ns;
		return;
	}
	b->left += (int64_t)more;
	/* Advances only by the time that made whole tokens; the rest counts next time. */
	b->at_ns += (uint64_t)(more * NSEC_A_SECOND / r->a_second);
}

static bool is_full(struct bucket *b, const struct rate_limit *r, uint64_t now_ns)
{
	if (!b->used || !r->a_second)
		return true;
	refill(b, r, now_ns);
	return b->left >= (int64_t)r->burst;
}

int user_request(struct user *u, uint64_t now_ns)
{
	const struct rate_limit *r = &u->quota->config->requests;

	if (u->root || !r->a_second)
		return 0;
	u = u->account;
	u->quota->now_ns = now_ns;
	refill(&u->requests, r, now_ns);
	if (u->requests.left < 1)
		return -EAGAIN;
	u->requests.left--;
	return 0;
}

#define PRICE_MOST 16 /* so that no debt lasts long: a user may still have 1.6 % of the time */

/*
 * What a nanosecond of the main thread costs: 1 while all users together keep to their allowance,
 * and more the further it is overdrawn. So the users that use much wait, until their
 * sum is within it; a user of little is served, however many the others are.
 */
static int64_t time_price(struct quota *q, uint64_t now_ns)
{
	const struct rate_limit *r = &q->config->everyones_time_ns;

	if (!r->a_second)
		return 1;
	refill(&q->everyones_time, r, now_ns);
	if (q->everyones_time.left < -(PRICE_MOST - 1) * (int64_t)r->burst)
		q->everyones_time.left = -(PRICE_MOST - 1) * (int64_t)r->burst;
	return q->everyones_time.left < 0 ? 1 - q->everyones_time.left / (int64_t)r->burst : 1;
}

void user_spend(struct user *u, uint64_t now_ns, uint64_t spent_ns)
{
	const struct rate_limit *r = &u->quota->config->time_ns;
	struct quota *q = u->quota;

	if (u->root || !r->a_second)
		return;
	u = u->account;
	q->now_ns = now_ns;
	refill(&u->time, r, now_ns);
	u->time.left -= (int64_t)spent_ns * time_price(q, now_ns);
	q->everyones_time.left -= (int64_t)spent_ns;
}

uint64_t user_wait_ns(struct user *u, uint64_t now_ns)
{
	const struct rate_limit *r = &u->quota->config->time_ns;

	u = u->account;
	if (u->root || !r->a_second || !u->time.used)
		return 0;
	refill(&u->time, r, now_ns);
	if (u->time.left > 0)
		return 0;
	return (uint64_t)(((unsigned __int128)(uint64_t)(1 - u->time.left) * NSEC_A_SECOND +
			   r->a_second - 1) /
			  r->a_second);
}

/* --- users ------------------------------------------------------------------------------------ */

/* Frees users without references whose token buckets are full, in one bucket of the hash table. */
static void sweep(struct quota *q, struct user **place)
{
	while (*place) {
		struct user *u = *place;

		if (u->refs || !is_full(&u->requests, &q->config->requests, q->now_ns) ||
		    !is_full(&u->time, &q->config->time_ns, q->now_ns)) {
			place = &u->next;
			continue;
		}
		*place = u->next;
		free(u);
	}
}

static struct user **bucket_of(struct quota *q, uid_t uid)
{
	return &q->users[(uint32_t)uid * 2654435769u >> 26];
}
_Static_assert(USER_BUCKETS == 1 << (32 - 26), "the bucket is the top bits of the hash");

static struct user *find(struct quota *q, uid_t uid, bool root)
{
	struct user *u = *bucket_of(q, uid);

	while (u && (u->uid != uid || u->root != root))
		u = u->next;
	return u;
}

static int user_new(struct user **out, struct quota *q, uid_t uid, bool root)
{
	struct user **bucket = bucket_of(q, uid), *u;

	sweep(q, bucket);
	u = calloc(1, sizeof(*u));
	if (!u)
		return -ENOMEM;
	u->quota = q;
	u->uid = uid;
	u->root = root;
	u->account = u;
	u->next = *bucket;
	*bucket = u;
	*out = u;
	return 0;
}

static int account_get(struct user **out, struct quota *q, uid_t uid)
{
	struct user *u = find(q, uid, false);
	int err = u ? 0 : user_new(&u, q, uid, false);

	if (!err)
		*out = user_ref(u);
	return err;
}

int user_get(struct user **out, struct quota *q, uid_t uid, bool root)
{
	struct user *u = find(q, uid, root), *account = NULL;
	uid_t owner;
	int err;

	if (u) {
		*out = user_ref(u);
		return 0;
	}
	owner = root ? uid : subids_account(q->subids, uid);
	if (owner != uid) {
		err = account_get(&account, q, owner);
		if (err)
			return err;
	}
	err = user_new(&u, q, uid, root);
	if (err) {
		user_unref(account);
		return err;
	}
	if (account)
		u->account = account;
	*out = user_ref(u);
	return 0;
}

struct user *user_ref(struct user *u)
{
	u->refs++;
	return u;
}

static struct user *user_free(struct user *u)
{
	struct user **place = bucket_of(u->quota, u->uid);

	while (*place != u)
		place = &(*place)->next;
	*place = u->next;
	free(u);
	return NULL;
}

struct user *user_unref(struct user *u)
{
	if (!u)
		return NULL;
	assert(u->refs);
	if (--u->refs)
		return NULL;
	if (u->account != u) {
		u->account = user_unref(u->account);
		return user_free(u);
	}
	/* Kept until its token buckets are full: a new struct would start with full ones. */
	if (u->requests.used || u->time.used)
		return NULL;
	return user_free(u);
}

uid_t user_uid(const struct user *u)
{
	return u->uid;
}

uid_t user_account_uid(const struct user *u)
{
	return u->account->uid;
}

bool user_is_root(const struct user *u)
{
	return u->root;
}

void **user_own(struct user *u)
{
	return &u->own;
}

void quota_each(const struct quota *q, void (*fn)(void *arg, const struct user *u), void *arg)
{
	for (int i = 0; i < USER_BUCKETS; i++) {
		for (const struct user *u = q->users[i]; u; u = u->next) {
			if (u->refs && u->account == u)
				fn(arg, u);
		}
	}
}

/* --- charges ---------------------------------------------------------------------------------- */

uint64_t quota_used(const struct quota *q, const struct user *u, enum resource what)
{
	return u ? u->account->used[what] : q->used[what];
}

uint64_t quota_limit(const struct quota *q, const struct user *u, enum resource what)
{
	if (!u)
		return q->config->machine.of[what];
	return u->root ? UINT64_MAX : q->config->user.of[what];
}

static bool exceeds(uint64_t used, uint64_t n, uint64_t limit)
{
	return used > limit || n > limit - used;
}

/*
 * What an account may hold while the others hold @others: as much as would be left free, so that
 * it is less the fuller the machine is: of k accounts that want all, each gets 1/(k + 1). A quarter
 * of the room is set aside for accounts that hold no more than the least that is of use.
 */
static uint64_t fair_share(const struct quota *q, enum resource what, uint64_t room,
			   uint64_t others, uint64_t n)
{
	uint64_t least = q->config->least.of[what], used = room / 4 + others + n;

	if (!least)
		return UINT64_MAX;
	return used < room && room - used > least ? room - used : least;
}

static int check(const struct user *u, enum resource what, uint64_t n)
{
	const struct quota *q = u->quota;
	uint64_t limit = q->config->machine.of[what], reserve = q->config->reserve.of[what];
	uint64_t others = q->used[what] - q->root_used[what];
	uint64_t room = limit > reserve ? limit - reserve : 0, own = u->account->used[what];
	bool refused = exceeds(q->used[what], n, limit);

	if (!u->root)
		refused |= exceeds(own, n, q->config->user.of[what]) || exceeds(others, n, room) ||
			   exceeds(own, n, fair_share(q, what, room, others, n));
	if (!refused)
		return 0;
	return what == RES_COUNTERS || what == RES_TABLE_BYTES ? -ENOMEM : -EAGAIN;
}

bool quota_full(const struct user *u, enum resource what)
{
	return check(u, what, 1) != 0;
}

static void add(struct user *u, enum resource what, uint64_t n)
{
	u->account->used[what] += n;
	u->quota->used[what] += n;
	if (u->root)
		u->quota->root_used[what] += n;
}

static void subtract(struct user *u, enum resource what, uint64_t n)
{
	assert(u->account->used[what] >= n);
	u->account->used[what] -= n;
	u->quota->used[what] -= n;
	if (u->root)
		u->quota->root_used[what] -= n;
}

void charge_adopt(struct charge *c, struct user *u, enum resource what, uint64_t n)
{
	assert(!c->user);
	add(u, what, n);
	*c = (struct charge){ .user = user_ref(u), .what = what, .n = n };
}

void quota_reclaim_by(struct quota *q, void (*reclaim)(void *arg), void *arg)
{
	q->reclaim = reclaim;
	q->reclaim_arg = arg;
}

int charge_take(struct charge *c, struct user *u, enum resource what, uint64_t n)
{
	struct quota *q = u->quota;
	int err = check(u, what, n);

	if (err && q->reclaim && (what == RES_PROFILES || what == RES_TABLE_BYTES)) {
		q->reclaim(q->reclaim_arg);
		err = check(u, what, n);
	}
	if (!err)
		charge_adopt(c, u, what, n);
	return err;
}

int charge_resize(struct charge *c, uint64_t n)
{
	int err = n > c->n ? check(c->user, c->what, n - c->n) : 0;

	if (err)
		return err;
	subtract(c->user, c->what, c->n);
	add(c->user, c->what, n);
	c->n = n;
	return 0;
}

void charge_give(struct charge *c)
{
	if (!c->user)
		return;
	subtract(c->user, c->what, c->n);
	user_unref(c->user);
	*c = (struct charge){ 0 };
}

void charge_move(struct charge *to, struct charge *from)
{
	assert(!to->user);
	*to = *from;
	*from = (struct charge){ 0 };
}

int charge_transfer(struct charge *c, struct user *u)
{
	struct charge was = *c;
	int err;

	if (c->user == u)
		return 0;
	/* Subtract first, so that the machine's limit does not count it twice. */
	subtract(was.user, was.what, was.n);
	err = check(u, was.what, was.n);
	if (err) {
		add(was.user, was.what, was.n);
		return err;
	}
	*c = (struct charge){ 0 };
	charge_adopt(c, u, was.what, was.n);
	user_unref(was.user);
	return 0;
}
