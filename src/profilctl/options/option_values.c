/* option_values.c - reads the values of options */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "analysis/paired.h"
#include "base/cleanup.h"

#include "core/observe_maps.h"
#include "formats/format.h"
#include "symbols/proc/cgroups.h"
#include "profilctl/util/time_words.h"
#include "analysis/view_state.h"
#include "option_values.h"

#define STRING(x) #x
#define NUMBER(x) STRING(x)

#define COMM_BYTES 15 /* of a process's name at most */

#define IS_SECONDS "must be from 0.001 to 1000000000 seconds"
#define IS_NAME "must not be empty"
#define IS_SECOND_EVENT "there is another event already; give one"
#define ROWS_NAMES                                                                               \
	"function, inlined, line, instruction, object, process, command, thread, cgroup, unit, " \
	"container, host, wait or lock"

static bool whole(unsigned long long *out, const char *arg)
{
	char *end;

	errno = 0;
	*out = strtoull(arg, &end, 10);
	return !errno && end != arg && !*end && *arg >= '0' && *arg <= '9';
}

const char *value_rate(struct options *o, char *arg)
{
	unsigned long long hz;

	if (!whole(&hz, arg) || hz < OPTIONS_RATE_MIN || hz > OPTIONS_RATE_MAX)
		return "must be a whole number from " NUMBER(OPTIONS_RATE_MIN) " to " NUMBER(
			OPTIONS_RATE_MAX) " Hz";
	o->rate_hz = hz;
	return NULL;
}

const char *value_number(__u64 *out, const char *arg)
{
	unsigned long long n;

	if (!whole(&n, arg) || !n)
		return "must be a whole number from 1 on";
	*out = n;
	return NULL;
}

const char *value_text(const char **out, const char *arg)
{
	*out = arg;
	return *arg ? NULL : IS_NAME;
}

const char *value_seconds(__u64 *ns, const char *arg)
{
	char *end;
	double s = strtod(arg, &end);

	if (end == arg || *end || !isfinite(s) || s < 0.001 || s > 1e9)
		return IS_SECONDS;
	*ns = (__u64)(s * 1e9);
	return NULL;
}

const char *value_check(struct options *o, char *arg)
{
	o->check = arg;
	return strstr(arg, "{}") ? NULL : "must have {} where the program stands";
}

const char *value_rounds(struct options *o, char *arg)
{
	unsigned long long n;

	if (!whole(&n, arg) || n < PAIRED_ROUNDS_MIN || n > 1000)
		return "must be a whole number from " NUMBER(PAIRED_ROUNDS_MIN) " to 1000";
	o->rounds = n;
	return NULL;
}

const char *value_limit(struct options *o, char *arg)
{
	char *end;

	o->least_percent = strtod(arg, &end);
	if (end == arg || *end || !(o->least_percent >= 0 && o->least_percent <= 100))
		return "must be from 0 to 100";
	o->all |= o->least_percent == 0;
	return NULL;
}

/* When full, slices are merged in pairs, so their maximum is even. */
const char *value_slices(struct options *o, char *arg)
{
	char *end;
	unsigned long n = strtoul(arg, &end, 10);

	if (end == arg || *end != 'x' || n < 2 || n > OPTIONS_SLICES_MAX || n % 2)
		return "must be an even number from 2 to " NUMBER(
			OPTIONS_SLICES_MAX) ", an x, and seconds, as in 60x1";
	o->nslices = n;
	return value_seconds(&o->slice_ns, end + 1);
}

/* The kernel cuts the names of processes. */
const char *value_comm(struct options *o, char *arg)
{
	if (strlen(arg) > COMM_BYTES)
		arg[COMM_BYTES] = '\0';
	o->select.comm = arg;
	return *arg ? NULL : IS_NAME;
}

/* A name without a type is that of a service, as for systemctl. */
const char *value_unit(struct options *o, char *arg)
{
	static char unit[NAME_MAX + 1];
	int n = snprintf(unit, sizeof(unit), "%s%s", arg, strchr(arg, '.') ? "" : ".service");

	if (n >= (int)sizeof(unit))
		return "is too long for the name of a unit";
	o->select.unit = unit;
	return *arg ? NULL : IS_NAME;
}

/* An id as runtimes print it, "docker://0123..." or "0123...". */
static const char *container(const char **out, const char *arg)
{
	const char *scheme = strstr(arg, "://");

	*out = scheme ? scheme + 3 : arg;
	return **out ? NULL : IS_NAME;
}

const char *value_container(struct options *o, char *arg)
{
	return container(&o->select.container, arg);
}

const char *value_only_container(struct options *o, char *arg)
{
	return container(&o->filter.container, arg);
}

const char *value_fail_on(struct options *o, char *arg)
{
	char *end;

	o->fail_percent = strtod(arg, &end);
	end += *end == '%';
	return *end || !(o->fail_percent > 0 && o->fail_percent <= 100)
		       ? "must be more than 0, and at most 100 %"
		       : NULL;
}

const char *value_header(struct options *o, char *arg)
{
	if (!strchr(arg, ':') || strpbrk(arg, "\r\n"))
		return "must be NAME: VALUE";
	if (o->nheaders == OPTIONS_HEADERS_MAX)
		return "there are too many; the limit is " NUMBER(OPTIONS_HEADERS_MAX);
	o->header[o->nheaders++] = arg;
	return NULL;
}

/* Accepts a cgroup's path with the mount point, or without the first or with a last slash, too. */
const char *value_cgroup(struct options *o, char *arg)
{
	static char path[PATH_MAX];
	size_t n;

	if (!*arg || strlen(arg) + 1 >= sizeof(path))
		return "must be a path, as 'cat /proc/PID/cgroup' shows it";
	snprintf(path, sizeof(path), "%s%s", *arg == '/' ? "" : "/", arg);
	for (n = strlen(path); n > 1 && path[n - 1] == '/'; n--)
		path[n - 1] = '\0';
	o->select.cgroup = cgroups_below_mount(path);
	if (!*o->select.cgroup)
		o->select.cgroup = "/";
	return NULL;
}

/* What is wrong with @path as the file of a program: no process executes a script itself. */
static const char *no_program(const char *path)
{
	__cleanup(closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char begin[4] = "";
	struct stat st;

	if (stat(path, &st) < 0)
		return strerror(errno);
	if (!S_ISREG(st.st_mode))
		return "not a file; the path of a program is needed, see 'ls -l /proc/PID/exe'";
	if (fd < 0 || read(fd, begin, sizeof(begin)) < 2)
		return NULL; /* a user can execute a file without permission to read it */
	if (!memcmp(begin, "#!", 2))
		return "a script, which its interpreter executes: --comm NAME selects it by the "
		       "name of its processes";
	if (memcmp(begin, "\177ELF", sizeof(begin)) != 0)
		return "not a program; --comm NAME selects processes by name";
	return NULL;
}

const char *value_exe(struct options *o, char *arg)
{
	static char path[PATH_MAX];

	o->select.exe = realpath(arg, path);
	return o->select.exe	 ? no_program(path)
	       : errno == ENOENT ? "no such file; its path is needed, see 'ls -l /proc/PID/exe'"
				 : strerror(errno);
}

const char *value_format(struct options *o, char *arg)
{
	static char names[256] = "must be ";

	o->format = format_find(arg);
	if (o->format)
		return NULL;
	format_names(names + strlen("must be "), sizeof(names) - strlen("must be "));
	return names;
}

const char *value_json(struct options *o, char *arg)
{
	o->format = format_find("json");
	return NULL;
}

const char *value_by(struct options *o, char *arg)
{
	return rows_by_find(&o->by, arg) ? "must be " ROWS_NAMES : NULL;
}

/* perf's sort keys: the finest one determines the rows of text. */
const char *value_sort(struct options *o, char *arg)
{
	static const struct {
		const char *key;
		enum rows_by by;
		int fineness;
	} keys[] = {
		{ "overhead", ROWS_FUNCTION, 0 }, { "comm", ROWS_COMMAND, 1 },
		{ "command", ROWS_COMMAND, 1 },	  { "dso", ROWS_OBJECT, 2 },
		{ "object", ROWS_OBJECT, 2 },	  { "pid", ROWS_PROCESS, 3 },
		{ "process", ROWS_PROCESS, 3 },	  { "tid", ROWS_THREAD, 4 },
		{ "thread", ROWS_THREAD, 4 },	  { "sym", ROWS_FUNCTION, 5 },
		{ "symbol", ROWS_FUNCTION, 5 },	  { "function", ROWS_FUNCTION, 5 },
		{ "srcline", ROWS_LINE, 6 },	  { "line", ROWS_LINE, 6 },
	};
	int finest = -1;

	while (*arg) {
		size_t n = strcspn(arg, ","), i = 0;

		while (i < sizeof(keys) / sizeof(*keys) &&
		       (strlen(keys[i].key) != n || strncmp(keys[i].key, arg, n) != 0))
			i++;
		if (i == sizeof(keys) / sizeof(*keys))
			return "rows are sorted by samples; use --by " ROWS_NAMES;
		if (keys[i].fineness > finest) {
			finest = keys[i].fineness;
			o->by = keys[i].by;
		}
		arg += n + (arg[n] == ',');
	}
	return NULL;
}

const char *value_clock(struct options *o, char *arg)
{
	static const char *const clocks[] = { "tick", "cpu-clock", "cycles", "auto" };

	for (size_t i = 0; i < sizeof(clocks) / sizeof(*clocks); i++) {
		if (!strcmp(arg, clocks[i])) {
			o->clock = arg;
			o->clock_by_event = false;
			return NULL;
		}
	}
	return "must be tick, cpu-clock, cycles or auto";
}

/* Off-CPU time is only counted by stacks. */
const char *value_off_cpu(struct options *o, char *arg)
{
	if (o->event && !options_off_cpu(o))
		return IS_SECOND_EVENT;
	o->event = PROFILE_OFF_CPU;
	if (!o->stack_mode)
		o->stack_mode = PROFIL_STACK_AUTO;
	return NULL;
}

/* The states are in the stacks. */
const char *value_wall(struct options *o, char *arg)
{
	if (o->event && !options_wall(o))
		return IS_SECOND_EVENT;
	o->event = PROFILE_WALL;
	if (!o->stack_mode)
		o->stack_mode = PROFIL_STACK_AUTO;
	return NULL;
}

const char *value_latency(struct options *o, char *arg)
{
	if (o->event && !options_latency(o))
		return IS_SECOND_EVENT;
	o->event = PROFILE_LATENCY;
	return NULL;
}

/* They are counted as stacks, but need no rules to unwind any. */
const char *value_branches(struct options *o, char *arg)
{
	if (o->event && !options_branches(o))
		return IS_SECOND_EVENT;
	o->event = PROFILE_BRANCHES;
	if (!o->stack_mode)
		o->stack_mode = PROFIL_STACK_FP;
	return NULL;
}

const char *value_record_wakers(struct options *o, char *arg)
{
	o->record_wakers = true;
	return value_wall(o, arg);
}

const char *value_states(struct options *o, char *arg)
{
	o->filter.state = arg;
	return view_states(arg) ? NULL : "must be of running, runnable and asleep, with commas";
}

/* Accepts perf's modifier ":u"; no tracepoint has that name. */
const char *value_event(struct options *o, char *arg)
{
	size_t n = strlen(arg);

	if (n > 2 && !strcmp(arg + n - 2, ":u")) {
		o->user_only = true;
		arg[n - 2] = '\0';
	}
	if (!strcmp(arg, PROFILE_OFF_CPU))
		return value_off_cpu(o, arg);
	if (!strcmp(arg, PROFILE_WALL))
		return value_wall(o, arg);
	if (!strcmp(arg, PROFILE_BRANCHES))
		return value_branches(o, arg);
	if (o->event && strcmp(o->event, arg) != 0)
		return IS_SECOND_EVENT;
	o->event = arg;
	if (!strcmp(arg, "cpu-clock") || !strcmp(arg, "task-clock")) {
		o->clock = "cpu-clock";
		o->clock_by_event = true;
		o->event = NULL;
	}
	return *arg ? NULL : IS_NAME;
}

const char *value_call_graph(struct options *o, char *arg)
{
	static const char *const modes[] = {
		[PROFIL_STACK_AUTO] = "auto", [PROFIL_STACK_CFI] = "cfi", [PROFIL_STACK_FP] = "fp"
	};

	o->stack_mode = PROFIL_STACK_AUTO;
	if (!arg)
		return NULL;
	for (__u32 mode = PROFIL_STACK_AUTO; mode <= PROFIL_STACK_FP; mode++) {
		if (!strcmp(arg, modes[mode])) {
			o->stack_mode = mode;
			return NULL;
		}
	}
	return "must be auto, cfi (unwind tables) or fp (frame pointers)";
}

const char *value_kernel_stacks(struct options *o, char *arg)
{
	o->kernel_stacks = true;
	if (!o->stack_mode)
		o->stack_mode = PROFIL_STACK_AUTO;
	return NULL;
}

const char *value_pid(struct options *o, char *arg)
{
	for (char *pid; (pid = strsep(&arg, ",")); o->npids++) {
		if (options_add(o, pid) < 0)
			return strerror(ENOMEM);
	}
	return NULL;
}

const char *value_max_age(struct options *o, char *arg)
{
	if (time_length_parse(&o->max_age_s, arg) < 0 || o->max_age_s < 1)
		return "must be a length of time, as 7d or 36h";
	return NULL;
}

static const char *read_bytes(__u64 *out, const char *arg)
{
	static const char units[] = "KMGT";
	char *end;
	unsigned long long n = strtoull(arg, &end, 10);
	const char *unit = *end ? strchr(units, *end) : NULL;
	int shift = unit ? 10 * (int)(unit - units + 1) : 0;

	if (*arg < '0' || *arg > '9' || !n || (*end && (!unit || end[1])) || n > ~0ull >> shift)
		return "must be a number of bytes, with K, M, G or T behind it";
	*out = n << shift;
	return NULL;
}

const char *value_max_size(struct options *o, char *arg)
{
	return read_bytes(&o->max_bytes, arg);
}

const char *value_max_daily(struct options *o, char *arg)
{
	return read_bytes(&o->daily_bytes, arg);
}

const char *value_mounts_of(struct options *o, char *arg)
{
	unsigned long long pid;

	if (!whole(&pid, arg) || !pid || pid > INT_MAX)
		return "must be the number of a process";
	o->mounts_of = (pid_t)pid;
	return NULL;
}

const char *value_nothing(struct options *o, char *arg)
{
	return NULL;
}
