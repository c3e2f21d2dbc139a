/* kernel_ticks.c - the expected number of ticks, and the daemon's answers about profiles */
#include <criterion/criterion.h>
#include <errno.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "core/wire.h"
#include "kernel_ticks.h"
#include "state.h"

unsigned long ticks_timer_hz(void)
{
	struct timespec period;

	clock_getres(CLOCK_MONOTONIC_COARSE, &period);
	return (1000000000ul + (unsigned long)period.tv_nsec / 2) / (unsigned long)period.tv_nsec;
}

/* The daemon drains profiles in turn, so each was drained between two drains of this one. */
void ticks_await_mirror(void)
{
	static unsigned short buf[LOOPS];
	unsigned short seen;

	cr_assert_eq(ticks_profile(buf), 0, "profil: %s", strerror(errno));
	for (int i = 0; i < 2; i++) {
		seen = ((volatile unsigned short *)buf)[0];
		while (((volatile unsigned short *)buf)[0] == seen)
			loop_for(0, 1000000);
	}
	cr_assert_eq(sprofil(NULL, 0, NULL, 0), 0);
}

void ticks_expect(unsigned long ticks, const struct loop_time *t, unsigned long period_ns,
		  double percent, double few, const char *what)
{
	double least = (double)t->cpu_ns / (double)period_ns;
	double most = (double)t->task_ns / (double)period_ns;

	most = most > least ? most : least;
	cr_expect((double)ticks >= least * (1 - percent / 100) - few &&
			  (double)ticks <= most * (1 + percent / 100) + few,
		  "%s: %lu ticks in %.0f ticks' worth of CPU time, %.0f by the task clock", what,
		  ticks, least, most);
}

#define VERDICT "python3 tests/lib/verdict.py "

static void ticks_look(FILE *out, double (*batch)(unsigned int, void *), unsigned int factor,
		       void *arg)
{
	for (int i = 0; i < 20; i++) {
		double x = batch(factor, arg);

		if (x == x)
			fprintf(out, "%.9g\n", x);
		else
			fputs("none\n", out);
	}
	cr_assert_eq(fclose(out), 0);
}

void ticks_equivalent(double (*batch)(unsigned int factor, void *arg), void *arg, double expected,
		      double effect, const char *what)
{
	char dir[] = "/tmp/profil-looks.XXXXXX", ask[400], path[64], said[512] = "more";
	int n;

	cr_assert(mkdtemp(dir), "mkdtemp: %s", strerror(errno));
	n = snprintf(ask, sizeof(ask), VERDICT "equivalent %g %g", expected, effect);
	for (unsigned int factor = 1; factor <= 16 && !strncmp(said, "more", 4); factor *= 4) {
		FILE *verdict;

		if (factor == 16 && system(VERDICT "quiet ${PROFIL_TEST_QUIET_S:-600}")) {
			strcpy(said, "no verdict: the machine did not become quiet");
			break;
		}
		snprintf(path, sizeof(path), "%s/%u", dir, factor);
		ticks_look(fopen(path, "we"), batch, factor, arg);
		n += snprintf(ask + n, sizeof(ask) - (size_t)n, " %s", path);
		verdict = popen(ask, "re");
		cr_assert(verdict && fgets(said, sizeof(said), verdict), "%s", ask);
		pclose(verdict);
	}
	snprintf(ask, sizeof(ask), "rm -r %s", dir);
	(void)!system(ask);
	if (!strncmp(said, "no verdict", 10))
		cr_skip_test("no verdict: %s: %s", what, said + 11);
	cr_expect(!strncmp(said, "ok", 2), "%s: %s", what, said);
}

void ticks_expect_spell(unsigned long ticks, const struct loop_time *t, unsigned long period_ns)
{
	ticks_expect(ticks, t, period_ns, 10, 10, "a loop");
}

void ticks_expect_100(unsigned long ticks, const struct loop_time *t, const char *what)
{
	ticks_expect(ticks, t, TICKS_PERIOD_NS, 10, 15, what);
}

int ticks_list(const struct daemon *d, pid_t pid, struct profil_msg_profile *out)
{
	static union {
		struct profil_msg_list m;
		char space[PROFIL_MSG_MAX];
	} answer;
	__cleanup(closep) int sock = client_open(d, NULL);
	struct profil_header ask;

	wire_header(&ask, PROFIL_MSG_LIST, sizeof(ask), 0, 0);
	cr_assert(client_send(sock, &ask, sizeof(ask)), "LIST: %s", strerror(errno));
	cr_assert(client_recv(sock, &answer, sizeof(answer)) >= sizeof(answer.m) &&
			  answer.m.h.type == PROFIL_MSG_LIST,
		  "no answer to LIST");
	for (__u32 i = 0; i < answer.m.h.count; i++) {
		*out = answer.m.profile[i];
		if (out->tgid == (__u32)pid && !out->attachment)
			return 1;
	}
	return 0;
}

unsigned long long ticks_matched(const struct daemon *d)
{
	struct profil_msg_profile p;

	return ticks_list(d, getpid(), &p) ? p.total - p.unmatched : 0;
}

unsigned long long ticks_conserved(const struct daemon *d, unsigned long long binned)
{
	struct profil_msg_profile p = { 0 };

	cr_assert(ticks_list(d, getpid(), &p), "the profile has ended");
	cr_expect_eq(p.total, binned + p.unmatched + p.lost,
		     "total %llu != %llu binned + %llu unmatched + %llu lost", p.total, binned,
		     p.unmatched, p.lost);
	return p.lost;
}

void ticks_await_profiles(const struct daemon *d, unsigned int n)
{
	struct profil_msg_status status;

	AWAIT((client_status(d, &status), status.profiles == n));
}

void ticks_need_bpffs(void)
{
	struct statfs fs;

	cr_assert(statfs(TICKS_BPFFS, &fs) == 0, TICKS_BPFFS ": %s", strerror(errno));
	if ((unsigned long)fs.f_type != BPF_FS_MAGIC)
		cr_assert(mount("bpf", TICKS_BPFFS, "bpf", 0, NULL) == 0,
			  "mount " TICKS_BPFFS ": %s", strerror(errno));
}

/* The directory is named after the FNV-1a hash of the socket's path. */
const char *ticks_stored(const struct daemon *d, const char *name)
{
	static char path[256];
	unsigned long long hash = 14695981039346656037ull;

	for (const char *c = d->socket; *c; c++)
		hash = (hash ^ (unsigned char)*c) * 1099511628211ull;
	snprintf(path, sizeof(path), TICKS_BPFFS "/profil-%016llx/%s", hash, name);
	return path;
}
