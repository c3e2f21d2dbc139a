/* doctor.c - checks whether this machine can profile, and prints remedies */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/log.h"
#include "base/cleanup.h"
#include "core/observers.h"
#include "core/wire.h"

#include "profilctl/collect/daemon_spawn.h"
#include "profilctl/collect/events.h"
#include "profilctl/collect/private_dir.h"
#include "profilctl/output/output.h"
#include "symbols/interpreters/running.h"
#include "symbols/jit_processes.h"
#include "symbols/proc/kernel_text.h"
#include "symbols/proc/procfs.h"
#include "base/first_line.h"
#include "table/table.h"
#include "base/membership.h"
#include "verb.h"

#define BPF_FS 0xcafe4a11u
#define OLDEST_KERNEL 6, 1

/* Inode numbers of the initial namespaces, the same on every machine (include/linux/proc_ns.h). */
#define INITIAL_PID_NS 0xeffffffcu

enum state {
	STATE_OK,
	STATE_NOTE, /* works with restrictions */
	STATE_LACK, /* nothing can be profiled */
};

struct finding {
	const char *what;
	enum state state;
	char says[256];
	const char *cure; /* if the state is not OK */
};

#define FINDINGS_MAX 24

struct examination {
	const struct options *options;
	bool has_daemon;
	pid_t daemon;		   /* 0: unknown */
	unsigned int image_lookup; /* of the daemon; 0: unknown */
	struct finding finding[FINDINGS_MAX];
	size_t n;
};

__attribute__((format(printf, 5, 6))) static void found(struct examination *e, const char *what,
							enum state state, const char *cure,
							const char *format, ...)
{
	struct finding *f = &e->finding[e->n];
	va_list args;

	if (e->n == FINDINGS_MAX)
		return;
	e->n++;
	f->what = what;
	f->state = state;
	f->cure = cure;
	va_start(args, format);
	vsnprintf(f->says, sizeof(f->says), format, args);
	va_end(args);
}

/* A requirement of a private daemon: a note if a daemon runs, since that has what it needs. */
static enum state lacking(bool ok, const struct examination *e)
{
	return ok ? STATE_OK : e->has_daemon ? STATE_NOTE : STATE_LACK;
}

static unsigned int image_lookup_of(struct client *c, pid_t *pid)
{
	const struct profil_msg_status *m;
	const struct profil_header *answer;

	if (client_ask(c, PROFIL_MSG_STATUS, &answer) ||
	    !wire_fits(answer, sizeof(*m), sizeof(m->user[0]), PROFIL_MSG_USER_MAX))
		return 0;
	m = (const void *)answer;
	*pid = (pid_t)m->pid;
	return m->image_lookup;
}

static void find_daemon(struct examination *e)
{
	struct client *c = NULL;
	int err = client_open(&c, e->options->socket);

	if (!err)
		e->image_lookup = image_lookup_of(c, &e->daemon);
	client_close(c);
	e->has_daemon = !err;
	if (!err)
		found(e, "profild", STATE_OK, NULL, "answers");
	else if (err == -EACCES || err == -EPERM)
		found(e, "profild", geteuid() ? STATE_LACK : STATE_NOTE,
		      "chmod 0666 its socket, or run profilctl as its user",
		      "denies the connection: %s", strerror(-err));
	else
		found(e, "profild", geteuid() ? STATE_LACK : STATE_NOTE,
		      "systemctl enable --now profild.socket; or run profilctl as root, which "
		      "starts a private profild",
		      "does not answer: %s",
		      err == -ECONNREFUSED ? "Connection refused (its socket is stale)"
		      : err == -ENODATA	   ? "it closes the connection"
					   : strerror(-err));
}

static bool may_trace_all(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct set[_LINUX_CAPABILITY_U32S_3] = { 0 };

	return !syscall(SYS_capget, &head, set) && set[0].effective & 1u << CAP_SYS_PTRACE;
}

static void find_privileges(struct examination *e)
{
	unsigned int uid = geteuid();

	if (!uid)
		found(e, "privileges", STATE_OK, NULL, "root");
	else if (e->has_daemon && (may_trace_all() || is_member("profil")))
		found(e, "privileges", STATE_OK, NULL, "user %u may profile the machine, by %s",
		      uid, may_trace_all() ? "CAP_SYS_PTRACE" : "group profil");
	else
		found(e, "privileges", lacking(false, e),
		      e->has_daemon ? "for those of others: sudo, or 'usermod -aG profil USER'"
				    : "sudo profilctl ...",
		      "user %u %s", uid,
		      e->has_daemon ? "may profile processes of its own"
				    : "may not load BPF programs");
}

static void find_kernel(struct examination *e)
{
	const int oldest[] = { OLDEST_KERNEL };
	int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	found(e, "kernel",
	      lacking(major > oldest[0] || (major == oldest[0] && minor >= oldest[1]), e),
	      "boot Linux 6.1 or newer", "%s on %s", u.release, u.machine);
}

static void find_btf(struct examination *e)
{
	bool ok = !access("/sys/kernel/btf/vmlinux", R_OK);

	found(e, "BTF", lacking(ok, e),
	      "boot a kernel built with CONFIG_DEBUG_INFO_BTF=y, as Debian's are",
	      "/sys/kernel/btf/vmlinux is %s", ok ? "readable" : "missing");
}

static void find_lockdown(struct examination *e)
{
	char line[256];

	first_line("/sys/kernel/security/lockdown", line, sizeof(line));
	found(e, "lockdown", lacking(!strstr(line, "[confidentiality]"), e),
	      "boot with lockdown=integrity: confidentiality forbids BPF to read kernel memory",
	      "%s", *line ? line : "none");
}

static unsigned int namespace_of(const char *link)
{
	char text[64];
	ssize_t n = readlink(link, text, sizeof(text) - 1);
	const char *inode;

	text[n < 0 ? 0 : n] = '\0';
	inode = strchr(text, '[');
	return inode ? (unsigned int)strtoul(inode + 1, NULL, 10) : 0;
}

/* Loading BPF programs needs privileges in the initial user namespace. In a pid namespace profild
 * serves the processes of that one. */
static void find_namespaces(struct examination *e)
{
	unsigned int pid = namespace_of("/proc/self/ns/pid");
	unsigned int user = namespace_of("/proc/self/ns/user");
	bool own_pid = pid == INITIAL_PID_NS, own_user = user == INITIAL_USER_NS;

	found(e, "namespaces", lacking(own_user || !user, e),
	      "run profild outside of the container and share /run/profil with it, or start it "
	      "without a user namespace",
	      "%s",
	      !own_user	 ? "a user namespace: root here may not load BPF programs"
	      : !own_pid ? "the processes of this pid namespace"
			 : "the machine's own");
}

/* True if the kernel does not say, too. */
static bool daemon_has(const struct examination *e, int capability)
{
	char text[4096], *line;

	procfs_read(e->daemon, "status", text, sizeof(text));
	line = strstr(text, "\nCapEff:");
	return !line || strtoull(line + strlen("\nCapEff:"), NULL, 16) & 1ull << capability;
}

/* 3 is known to the kernels of Debian and Ubuntu alone. */
static void find_paranoia(struct examination *e)
{
	bool lacks, ok;
	char line[64];
	long value;

	first_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	value = strtol(line, NULL, 10);
	lacks = e->has_daemon && value >= 3 && !daemon_has(e, CAP_SYS_ADMIN);
	ok = !lacks && (e->has_daemon || !geteuid() || value < 2);
	found(e, "paranoia", ok ? STATE_OK : STATE_NOTE,
	      lacks ? "copy perf-events.conf (in share/profil) to "
		      "/etc/systemd/system/profild.service.d/, then systemctl daemon-reload and "
		      "restart profild"
		    : "start profild, which has the privilege: lowering it is not needed",
	      "kernel.perf_event_paranoid is %s%s", *line ? line : "missing",
	      lacks ? ", and profild has no CAP_SYS_ADMIN: no rates above the timer's, no events"
		    : "");
}

static void find_bpffs(struct examination *e)
{
	struct statfs fs;
	bool ok = !statfs("/sys/fs/bpf", &fs) && (unsigned int)fs.f_type == BPF_FS;

	found(e, "bpffs", ok ? STATE_OK : STATE_NOTE, "mount -t bpf bpf /sys/fs/bpf",
	      "/sys/fs/bpf is %s",
	      ok ? "mounted"
		 : "not mounted: a profild without systemd cannot keep "
		   "profiles over a restart");
}

static void find_rate(struct examination *e)
{
	char line[64];

	first_line("/proc/sys/kernel/perf_event_max_sample_rate", line, sizeof(line));
	found(e, "rate", !*line || strtol(line, NULL, 10) >= 1000 ? STATE_OK : STATE_NOTE,
	      "sysctl kernel.perf_event_max_sample_rate=50000: the kernel has lowered it under "
	      "load",
	      "perf events: at most %s per second", *line ? line : "any number");
}

static void find_branches(struct examination *e)
{
	struct event branches;
	int err = event_find(&branches, PROFILE_BRANCHES) ?: event_try(&branches);

	if (err == -EACCES || err == -EPERM) /* find_paranoia() says so */
		return;
	found(e, "branches", err ? STATE_NOTE : STATE_OK,
	      "record without --branches: -f llvm and -f bolt take samples of CPU time as well",
	      "%s%s", err ? "cannot be recorded: " : "the CPU has records of them",
	      err ? event_no_branches(err) : "");
}

/* The machine's stacks, if they are counted. */
static void find_machine(struct examination *e)
{
	__cleanup(closep) int fd = -1;
	struct profil_msg_reply reply = { 0 };
	struct client *c = NULL;
	struct table t = { 0 };
	bool has = e->has_daemon && !client_open(&c, e->options->socket) &&
		   !client_machine(c, PROFIL_MACHINE_QUERY, 0, &reply, &fd) && fd >= 0 &&
		   !table_open(&t, fd) && t.head->stack_mode;

	if (has && t.head->folded)
		found(e, "calls", STATE_NOTE, "profilctl record -a -g, which has a tree of its own",
		      "the machine's tree of calls was full: %llu samples since its profile was "
		      "turned on were moved to a caller",
		      t.head->folded);
	else if (has)
		found(e, "calls", reply.tgid ? STATE_OK : STATE_NOTE,
		      "systemctl enable --now profil-feed, or profilctl machine feed",
		      "the machine's profile has stacks, %s",
		      reply.tgid ? "and is fed unwind rules"
				 : "but no unwind rules: they are cut in code without frame "
				   "pointers");
	table_close(&t);
	client_close(c);
}

static void find_nohz(struct examination *e)
{
	char line[256];
	bool ok;

	first_line("/sys/devices/system/cpu/nohz_full", line, sizeof(line));
	ok = !*line || !strcmp(line, "(null)");
	found(e, "ticks", ok ? STATE_OK : STATE_NOTE,
	      "nothing: profild samples by perf events there, unless --clock tick forbids it",
	      ok ? "every busy CPU has a timer tick" : "CPUs %.200s are nohz_full: no timer tick",
	      line);
}

/* Only a running daemon knows which method works. */
static void find_image_lookup(struct examination *e)
{
	switch (e->image_lookup) {
	case PROFIL_LOOKUP_WALK:
		found(e, "images", STATE_OK, NULL, "are found by a walk of the VMA tree");
		break;
	case PROFIL_LOOKUP_FIND_VMA:
		found(e, "images", STATE_NOTE,
		      "boot another kernel; until then expect unmatched samples in programs that "
		      "map memory all the time (see IMAGE LOOKUP in profild(8))",
		      "are found by bpf_find_vma(): the walk of the VMA tree fails in this kernel");
		break;
	case PROFIL_LOOKUP_PROCESS:
		found(e, "images", STATE_NOTE,
		      "boot another kernel, if possible without PREEMPT_RT (see IMAGE LOOKUP in "
		      "profild(8))",
		      "are not found in this kernel: user-mode samples are counted by process");
		break;
	}
}

static void find_symbols(struct examination *e)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	bool split = !access("/usr/lib/debug/.build-id", R_OK), server = urls && *urls;

	found(e, "symbols", split || server ? STATE_OK : STATE_NOTE,
	      "export DEBUGINFOD_URLS=https://debuginfod.debian.net (or your distribution's), or "
	      "install -dbgsym packages",
	      "%s%s%s", split ? "/usr/lib/debug has debug files" : "", split && server ? ", " : "",
	      server  ? "DEBUGINFOD_URLS is set"
	      : split ? ""
		      : "stripped programs show their exported symbols only");
}

/* What the elfutils of this machine cannot read, though it may be there. */
static void find_debug_formats(struct examination *e)
{
	const char *version = dwfl_version(NULL);
	int minor = 0;
	bool zstd;

	sscanf(version, "0.%d", &minor);
	zstd = minor >= 189;
	found(e, "elfutils", zstd ? STATE_OK : STATE_NOTE,
	      "a release with elfutils 0.189 or newer, as Debian 13; or build without -gz=zstd",
	      "%s reads %s", version,
	      zstd ? "sections compressed with zstd" : "no debug information compressed with zstd");
}

static void find_kernel_names(struct examination *e)
{
	const char *why = kernel_text() ? "" : kernel_text_hidden();

	if (!*why)
		found(e, "kallsyms", STATE_OK, NULL, "has the addresses of the kernel's functions");
	else if (!strcmp(why, KERNEL_HIDDEN_KPTR))
		found(e, "kallsyms", STATE_NOTE, "sysctl kernel.kptr_restrict=1",
		      "kernel.kptr_restrict hides addresses from root, too: functions of the "
		      "kernel have no names");
	else if (!strcmp(why, KERNEL_HIDDEN_PRIVILEGE))
		found(e, "kallsyms", STATE_NOTE, "record as root, or with CAP_SYSLOG",
		      "hides addresses from this user: functions of the kernel have no names");
	else
		found(e, "kallsyms", STATE_NOTE, "boot a kernel with CONFIG_KALLSYMS=y",
		      "/proc/kallsyms cannot be read: functions of the kernel have no names");
}

/* Which interpreters run, and what is seen of them. */
static void find_interpreters(struct examination *e)
{
	struct running_interpreter *r = NULL;
	size_t n = 0;

	running_interpreters(&r, &n);
	for (size_t i = 0; i < n; i++) {
		const char *base = profile_base_name(r[i].path), *others = "";

		if (r[i].processes > 1)
			others = " and others";
		if (r[i].language)
			found(e, r[i].language, STATE_OK, NULL,
			      "%s of process %d%s: its functions are shown", base, (int)r[i].pid,
			      others);
		else
			found(e, "interpreter", STATE_NOTE, "use a version that profilctl(1) names",
			      "%s of process %d%s: of this version only its own functions are "
			      "shown",
			      base, (int)r[i].pid, others);
	}
	running_free(r, n);
}

static void find_jit(struct examination *e)
{
	const struct jit_processes *of = jit_processes();

	for (size_t i = 0; i < jit_nruntimes; i++) {
		if (of[i].unnamed)
			found(e, of[i].runtime->name, STATE_NOTE, of[i].runtime->names_cure,
			      "process %d%s: compiled functions have no names", (int)of[i].first,
			      of[i].unnamed > 1 ? " and others" : "");
	}
}

static void find_objdump(struct examination *e)
{
	bool ok = !system("command -v objdump >/dev/null 2>&1");

	found(e, "objdump", ok ? STATE_OK : STATE_NOTE, "apt-get install binutils", "%s",
	      ok ? "is installed" : "is missing: annotate shows no instructions");
}

static void find_stale(struct examination *e)
{
	size_t n = private_dir_stale(false);

	if (n)
		found(e, "sockets", STATE_NOTE,
		      "the next profilctl that starts a private profild removes them",
		      "%zu folder%s of a killed profilctl in %s", n, n > 1 ? "s" : "",
		      private_dir_parent());
}

static void examine(struct examination *e)
{
	find_daemon(e);
	find_privileges(e);
	find_kernel(e);
	find_btf(e);
	find_lockdown(e);
	find_namespaces(e);
	find_paranoia(e);
	find_bpffs(e);
	find_rate(e);
	find_branches(e);
	find_machine(e);
	find_nohz(e);
	find_image_lookup(e);
	find_symbols(e);
	find_debug_formats(e);
	find_kernel_names(e);
	find_interpreters(e);
	find_jit(e);
	find_objdump(e);
	find_stale(e);
}

static const char *const states[] = { "ok", "note", "lack" };

static int text(const struct finding *f, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		printf("%-5s %-11s %s\n", states[f[i].state], f[i].what, f[i].says);
		if (f[i].state != STATE_OK)
			printf("%17s -> %s\n", "", f[i].cure);
	}
	return 0;
}

static int json(const struct finding *f, size_t n)
{
	json_auto_t *root = NULL;
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(all, json_pack("{ss ss ss ss*}", "what", f[i].what, "state",
						     states[f[i].state], "says", f[i].says, "cure",
						     f[i].state == STATE_OK ? NULL : f[i].cure));
	root = json_pack("{ss so}", "schema", "profil-doctor/1", "findings", all);
	if (!root)
		return -ENOMEM;
	if (json_dumpf(root, stdout, JSON_COMPACT) < 0)
		return -EIO;
	putchar('\n');
	return 0;
}

int verb_doctor(const struct options *o)
{
	struct examination e = { .options = o };
	int status;

	if (o->argc) {
		log_err("doctor: takes no operands: %s", o->argv[0]);
		return CTL_USAGE;
	}
	examine(&e);
	status = output_end(stdout, o, o->format ? json(e.finding, e.n) : text(e.finding, e.n));
	for (size_t i = 0; i < e.n && !status; i++) {
		if (e.finding[i].state == STATE_LACK)
			status = CTL_NO_DAEMON;
	}
	return status;
}
