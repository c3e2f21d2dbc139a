/* doctor.c - what this machine lacks for profiling, and what cures it */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "core/log.h"
#include "core/scope.h"

#include "daemon.h"
#include "output.h"
#include "verb.h"

#define BPF_FS 0xcafe4a11u
#define OLDEST_KERNEL 6, 1

enum state {
	STATE_OK,
	STATE_NOTE, /* less than there could be */
	STATE_LACK, /* nothing can be profiled so */
};

struct finding {
	const char *what;
	enum state state;
	char says[256];
	const char *cure; /* of what is not OK */
};

static void read_line(const char *path, char *out, size_t bytes)
{
	__cleanup(fclosep) FILE *f = fopen(path, "re");

	if (!f || !fgets(out, (int)bytes, f))
		*out = '\0';
	out[strcspn(out, "\n")] = '\0';
}

/* Without a daemon all falls to us, and what we lack stops everything. */
static enum state lacking(bool ok, bool has_daemon)
{
	return ok ? STATE_OK : has_daemon ? STATE_NOTE : STATE_LACK;
}

static bool find_daemon(struct finding *f, const struct options *o)
{
	struct reader *r = NULL;
	int err = reader_open(&r, o->socket);

	reader_close(r);
	f->what = "profild";
	f->state = !err ? STATE_OK : geteuid() ? STATE_LACK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), err ? "does not answer: %s" : "answers", strerror(-err));
	f->cure = err == -EACCES || err == -EPERM
			  ? "ask whoever runs it to let you connect to its socket"
			  : "systemctl enable --now profild.socket; or run profilctl as root, "
			    "which starts one for itself";
	return !err;
}

static void find_privileges(struct finding *f, bool has_daemon)
{
	uid_t uid = geteuid();

	f->what = "privileges";
	f->state = lacking(!uid, has_daemon);
	if (uid)
		snprintf(f->says, sizeof(f->says), "you are user %u: you %s", (unsigned int)uid,
			 has_daemon ? "may profile your own processes"
				    : "cannot load BPF programs");
	else
		snprintf(f->says, sizeof(f->says), "you are root");
	f->cure = has_daemon ? "for others' processes: root, or 'usermod -aG profil USER'"
			     : "sudo profilctl ...";
}

static void find_kernel(struct finding *f, bool has_daemon)
{
	const int oldest[] = { OLDEST_KERNEL };
	int major = 0, minor = 0;
	struct utsname u;

	uname(&u);
	sscanf(u.release, "%d.%d", &major, &minor);
	f->what = "kernel";
	f->state = lacking(major > oldest[0] || (major == oldest[0] && minor >= oldest[1]),
			   has_daemon);
	snprintf(f->says, sizeof(f->says), "%s on %s", u.release, u.machine);
	f->cure = "boot Linux 6.1 or newer";
}

static void find_btf(struct finding *f, bool has_daemon)
{
	bool ok = !access("/sys/kernel/btf/vmlinux", R_OK);

	f->what = "BTF";
	f->state = lacking(ok, has_daemon);
	snprintf(f->says, sizeof(f->says), "/sys/kernel/btf/vmlinux %s",
		 ok ? "is there" : "is not there");
	f->cure = "boot a kernel that was built with CONFIG_DEBUG_INFO_BTF=y, as Debian's are";
}

static void find_lockdown(struct finding *f, bool has_daemon)
{
	char line[256];

	read_line("/sys/kernel/security/lockdown", line, sizeof(line));
	f->what = "lockdown";
	f->state = lacking(!strstr(line, "[confidentiality]"), has_daemon);
	snprintf(f->says, sizeof(f->says), "%s", *line ? line : "none");
	f->cure = "boot with lockdown=integrity: confidentiality keeps BPF from reading anything";
}

static void find_bpffs(struct finding *f)
{
	struct statfs fs;
	bool ok = !statfs("/sys/fs/bpf", &fs) && (unsigned int)fs.f_type == BPF_FS;

	f->what = "bpffs";
	f->state = ok ? STATE_OK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), "/sys/fs/bpf is %smounted%s", ok ? "" : "not ",
		 ok ? "" : ": profiles end with a profild that has no systemd to keep them");
	f->cure = "mount -t bpf bpf /sys/fs/bpf";
}

static void find_rate(struct finding *f)
{
	char line[64];
	long hz;

	read_line("/proc/sys/kernel/perf_event_max_sample_rate", line, sizeof(line));
	hz = strtol(line, NULL, 10);
	f->what = "rate";
	f->state = !*line || hz >= 1000 ? STATE_OK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), "perf events: at most %s a second",
		 *line ? line : "any number");
	f->cure = "sysctl kernel.perf_event_max_sample_rate=50000: the kernel has lowered it under "
		  "load";
}

static void find_paranoia(struct finding *f, bool has_daemon)
{
	char line[64];

	read_line("/proc/sys/kernel/perf_event_paranoid", line, sizeof(line));
	f->what = "paranoia";
	f->state = has_daemon || !geteuid() || strtol(line, NULL, 10) < 2 ? STATE_OK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), "kernel.perf_event_paranoid is %s",
		 *line ? line : "not there");
	f->cure = "no need to lower it: start profild, which has the privileges";
}

static void find_nohz(struct finding *f)
{
	char line[256];

	read_line("/sys/devices/system/cpu/nohz_full", line, sizeof(line));
	f->what = "ticks";
	f->state = *line && strcmp(line, "(null)") != 0 ? STATE_NOTE : STATE_OK;
	if (f->state == STATE_OK)
		snprintf(f->says, sizeof(f->says), "every busy CPU has them");
	else
		snprintf(f->says, sizeof(f->says), "CPUs %.200s have none while they are busy",
			 line);
	f->cure = "run profild with --clock cpu-clock there";
}

static void find_symbols(struct finding *f)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	bool split = !access("/usr/lib/debug/.build-id", R_OK), server = urls && *urls;

	f->what = "symbols";
	f->state = split || server ? STATE_OK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), "%s%s%s", split ? "/usr/lib/debug has some" : "",
		 split && server ? ", and " : "",
		 server	 ? "DEBUGINFOD_URLS names servers"
		 : split ? ""
			 : "of stripped programs only what they export");
	f->cure = "export DEBUGINFOD_URLS=https://debuginfod.debian.net (or your system's), or "
		  "install -dbgsym packages";
}

static void find_objdump(struct finding *f)
{
	bool ok = !system("command -v objdump >/dev/null 2>&1");

	f->what = "objdump";
	f->state = ok ? STATE_OK : STATE_NOTE;
	snprintf(f->says, sizeof(f->says), "%s",
		 ok ? "is there" : "is missing: annotate shows no instructions");
	f->cure = "apt-get install binutils";
}

static size_t examine(struct finding *f, const struct options *o)
{
	bool has_daemon = find_daemon(&f[0], o);

	find_privileges(&f[1], has_daemon);
	find_kernel(&f[2], has_daemon);
	find_btf(&f[3], has_daemon);
	find_lockdown(&f[4], has_daemon);
	find_paranoia(&f[5], has_daemon);
	find_bpffs(&f[6]);
	find_rate(&f[7]);
	find_nohz(&f[8]);
	find_symbols(&f[9]);
	find_objdump(&f[10]);
	return 11;
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
	struct finding f[16];
	size_t n;
	int status;

	if (o->argc) {
		log_err("doctor: takes no arguments");
		return CTL_USAGE;
	}
	n = examine(f, o);
	status = output_end(stdout, o, o->format ? json(f, n) : text(f, n));
	for (size_t i = 0; i < n && !status; i++) {
		if (f[i].state == STATE_LACK)
			status = CTL_NO_DAEMON;
	}
	return status;
}
