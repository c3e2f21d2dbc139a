/* debug_file.c - an ELF file's symbols and DWARF, or its separate debug file's, by libdwfl */
#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/sanitize.h"
#include "profile/profile.h"
#include "base/hex.h"
#include "debug_file.h"
#include "elf_file.h"
#include "elf_image.h"
#include "symbols/proc/file_account.h"
#include "separate_debug.h"
#include "read_budget.h"
#include "unpack_limit.h"
#include "base/clocks.h"
#include "base/progress.h"

#define DEBUGINFOD_TIME_S 60
#define DEBUGINFOD_BYTES_MAX (4l << 30) /* of a file, which a server may say is of any size */

/* Says whether the time for downloads, counted from the first one's progress, is over. */
static bool late(void)
{
	static __u64 end_ns;

	if (!end_ns)
		end_ns = now_ns() + DEBUGINFOD_TIME_S * 1000000000ull;
	return now_ns() >= end_ns;
}

/*
 * libdebuginfod is called only where it is installed, so its header is not needed either: these are
 * debuginfod_set_progressfn() and debuginfod_find_debuginfo() of libdebuginfod.so.1.
 */
typedef void set_progress(debuginfod_client *client,
			  int (*on_progress)(debuginfod_client *, long, long));
typedef int find_debuginfo(debuginfod_client *client, const unsigned char *id, int bytes,
			   char **path);

static bool shown;

static int on_progress(debuginfod_client *client, long done, long total)
{
	if (progress_wanted()) {
		progress_fetch(done, total);
		shown = true;
	}
	return late() || done > DEBUGINFOD_BYTES_MAX || total > DEBUGINFOD_BYTES_MAX;
}

/* Says whether DEBUGINFOD_URLS names a server. */
static bool debuginfod_servers(void)
{
	const char *urls = getenv("DEBUGINFOD_URLS");

	return urls && *urls;
}

/* A function of libdebuginfod, which libdw has loaded for @client if it is installed. */
static void *function(debuginfod_client *client, const char *name)
{
	void *so = client ? dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_NOLOAD) : NULL;

	return so ? dlsym(so, name) : NULL;
}

/*
 * Limits the downloads of @dwfl to DEBUGINFOD_TIME_S seconds for all downloads of a profilctl
 * process, and each to DEBUGINFOD_BYTES_MAX, and shows their progress on a terminal. Does nothing
 * if DEBUGINFOD_URLS is empty.
 */
static void limit_debuginfod(Dwfl *dwfl)
{
	set_progress *set;
	debuginfod_client *client;

	if (!debuginfod_servers())
		return;
	client = dwfl_get_debuginfod_client(dwfl);
	set = (set_progress *)function(client, "debuginfod_set_progressfn");
	if (set)
		set(client, on_progress);
}

/*
 * Downloads the debug file with the build id @id of @bytes, or takes it from libdebuginfod's cache.
 * Returns a descriptor or a negative errno.
 */
static int debuginfod_fetch(Dwfl *dwfl, const unsigned char *id, int bytes)
{
	find_debuginfo *find;
	debuginfod_client *client;

	if (!debuginfod_servers() || bytes <= 0)
		return -ENOENT;
	client = dwfl_get_debuginfod_client(dwfl);
	find = (find_debuginfo *)function(client, "debuginfod_find_debuginfo");
	return find ? find(client, id, bytes, NULL) : -ENOSYS;
}

/* Erases the line of progress. */
static void progress_end_debuginfod(void)
{
	if (shown)
		progress_clear();
	shown = false;
}

/* An entry takes a hundred bytes, and as many while they are sorted. */
#define FOREIGN_SYMBOLS_MAX (512 << 10)

struct debug_file {
	Dwfl *dwfl;
	Dwfl_Module *module;
	int separate;		      /* the separate debug file */
	bool fetched;		      /* the servers were asked for it */
	char *path;		      /* of the file with the DWARF; NULL: unknown */
	char *folder;		      /* of that */
	bool unknown;		      /* a section is compressed as this libelf cannot read it */
	__u64 unpacked;		      /* what it unpacks to */
	__u64 charged;		      /* the same, if it has an account */
	struct file_account *account; /* the maker's; NULL: no other user can have made it */
	bool packed;		      /* its debug information takes too much: it is not read */
	struct read_budget budget;    /* for the debug information, or the symbols */

	/* What dwz(1) has moved to a file that several debug files share. */
	bool has_alternate;
	int alternate_fd;
	Elf *alternate_elf;
	Dwarf *alternate;
};

struct debug_file *debug_file_close(struct debug_file *f)
{
	if (!f)
		return NULL;
	dwfl_end(f->dwfl);
	dwarf_end(f->alternate);
	if (f->account)
		file_account_give(f->account, f->charged);
	read_budget_end(&f->budget);
	elf_end(f->alternate_elf);
	closep(&f->alternate_fd);
	closep(&f->separate);
	free(f->folder);
	free(f->path);
	free(f);
	return NULL;
}

static void debug_file_closep(struct debug_file **f)
{
	debug_file_close(*f);
}

static void elf_endp(Elf **elf)
{
	elf_end(*elf);
}

static int open_separate(int fd)
{
	char build_id[PROFILE_BUILD_ID_MAX];

	elf_file_build_id(fd, build_id, sizeof(build_id));
	return separate_debug_open(fd, build_id);
}

static int fetch(const struct debug_file *f, Dwfl_Module *module)
{
	const unsigned char *id;
	GElf_Addr at;
	int bytes = dwfl_module_build_id(module, &id, &at);

	return debuginfod_fetch(f->dwfl, id, bytes);
}

/*
 * Decides whether the file @fd may be unpacked. Beyond its limit a file has the symbols that need
 * no unpacking, and no lines. A program of another user has foreign debug files, whose ever they
 * are: it can have the build id of any.
 */
static void check_packed(struct debug_file *f, Elf *elf, int fd)
{
	__u64 bytes = unpack_dwarf_bytes(elf);

	f->unpacked += bytes;
	if (!f->account)
		f->account = file_account_of(fd);
	if (bytes > (f->account ? UNPACK_FILE_BYTES : UNPACK_TRUSTED_BYTES))
		f->packed = true;
	else if (f->account &&
		 (!unpack_abbreviations_within(elf) || !file_account_take(f->account, bytes)))
		f->packed = true;
	else if (f->account)
		f->charged += bytes;
	f->unknown |= unpack_is_unknown(elf);
}

static void check_separate(struct debug_file *f)
{
	Elf *elf = elf_begin(f->separate, ELF_C_READ_MMAP, NULL);

	if (elf)
		check_packed(f, elf, f->separate);
	elf_end(elf);
}

/*
 * libdwfl's own search would open any path that .gnu_debuglink names, devices included, and would
 * load libdebuginfod and its 40 libraries, in 20 ms, even if there is no server to ask.
 */
static int find_in_module(Dwfl_Module *module, void **userdata, const char *name, Dwarf_Addr base,
			  const char *file, const char *link, GElf_Word crc, char **found)
{
	struct debug_file *f = *userdata;

	if (f->separate < 0 && !f->fetched) {
		f->separate = fetch(f, module);
		if (f->separate >= 0)
			check_separate(f);
		if (f->separate >= 0 && f->packed) /* libdwfl would unpack it at once */
			close(steal_fd(f->separate));
	}
	f->fetched = true;
	return f->separate < 0 ? -1 : fcntl(f->separate, F_DUPFD_CLOEXEC, 0);
}

/* Says it once: there can be any number of such files. */
static void note_packed(const struct debug_file *f, const char *path)
{
	static bool noted;
	char clean[PATH_MAX];

	if (f->packed && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
		log_notice("%s: its debug information takes more memory or time than is allowed "
			   "for files of other users; it is not read",
			   sanitize(clean, sizeof(clean), path));
}

/* The same for symbols. */
static void note_symbols(struct debug_file *f)
{
	static bool noted;
	char clean[PATH_MAX];

	if (!__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
		log_notice("%s: it has more symbols than are read from files of other users",
			   sanitize(clean, sizeof(clean),
				    dwfl_module_info(f->module, NULL, NULL, NULL, NULL, NULL, NULL,
						     NULL)));
}

static void note_unknown(const struct debug_file *f)
{
	static bool noted;
	char clean[PATH_MAX];

	if (f->unknown && !__atomic_exchange_n(&noted, true, __ATOMIC_RELAXED))
		log_notice("%s: its debug information is compressed with zstd, which libelf %s "
			   "does not read: there are no lines and inlined functions",
			   sanitize(clean, sizeof(clean), f->path ? f->path : "a file"),
			   dwfl_version(NULL));
}

/* libdwfl would unpack .gnu_debugdata: beyond the limit it must not find it. */
static void check_symbols(struct debug_file *f, Elf *elf, int fd)
{
	Dwarf_Addr bias;
	Elf_Scn *scn;
	GElf_Shdr sh;

	struct read_budget budget;
	bool within;

	read_budget_begin(&budget, file_account_of(fd), FILE_TIME_SYMBOLS);
	within = read_budget_left(&budget) &&
		 unpack_symbols_within(elf, budget.account ? UNPACK_SYMBOLS_BYTES
							   : UNPACK_TRUSTED_BYTES);
	read_budget_end(&budget);
	if (within)
		return;
	elf = dwfl_module_getelf(f->module, &bias);
	scn = elf ? elf_image_section(elf, ".gnu_debugdata", &sh) : NULL;
	if (!scn)
		return;
	sh.sh_name = 0; /* of libdwfl's private copy */
	gelf_update_shdr(scn, &sh);
}

int debug_file_open(struct debug_file **out, int fd, const char *path)
{
	static const Dwfl_Callbacks callbacks = {
		.find_debuginfo = find_in_module,
		.debuginfo_path = (char **)&debug_file_path,
	};
	__cleanup(debug_file_closep) struct debug_file *f = calloc(1, sizeof(*f));
	__cleanup(elf_endp) Elf *elf = NULL;
	void **userdata;
	int copy;

	if (!f)
		return -ENOMEM;
	f->alternate_fd = f->separate = -1;
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	/* libdwfl would also unpack a file that is compressed as a whole. */
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return -ENOEXEC;
	check_packed(f, elf, fd);
	f->separate = open_separate(fd);
	if (f->separate >= 0)
		check_separate(f);
	f->path = separate_debug_path(f->separate < 0 ? fd : f->separate);
	f->folder = f->path ? strndup(f->path, (size_t)(strrchr(f->path, '/') - f->path)) : NULL;
	f->dwfl = dwfl_begin(&callbacks);
	if (!f->dwfl)
		return -ENOMEM;
	limit_debuginfod(f->dwfl);

	copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return -errno;
	dwfl_report_begin(f->dwfl);
	/* With base 0 and add_p_vaddr, the module's addresses are the file's virtual addresses. */
	f->module = dwfl_report_elf(f->dwfl, path, path, copy, 0, true);
	if (!f->module)
		close(copy);
	dwfl_report_end(f->dwfl, NULL, NULL);
	if (!f->module)
		return -ENOEXEC;
	dwfl_module_info(f->module, &userdata, NULL, NULL, NULL, NULL, NULL, NULL);
	*userdata = f;
	check_symbols(f, elf, fd);
	note_packed(f, path);
	*out = steal(f);
	return 0;
}

int debug_file_nsymbols(struct debug_file *f)
{
	int n = dwfl_module_getsymtab(f->module);

	progress_end_debuginfod();
	if (f->account && n > FOREIGN_SYMBOLS_MAX) {
		note_symbols(f);
		return 0;
	}
	return n;
}

const char *debug_file_symbol(struct debug_file *f, int i, GElf_Sym *sym, GElf_Addr *address,
			      Elf **elf)
{
	return dwfl_module_getsym_info(f->module, i, sym, address, NULL, elf, NULL);
}

/*
 * Sets the supplementary file of @dwarf, which is in the separate debug file or in the file itself.
 * Without one, libdw would open any path that .gnu_debugaltlink names; the value -1 is libdw's own
 * mark that there is none.
 */
static void set_alternate(struct debug_file *f, Dwarf *dwarf)
{
	char build_id[PROFILE_BUILD_ID_MAX];
	const char *name;
	const void *id;
	ssize_t bytes = dwelf_dwarf_gnu_debugaltlink(dwarf, &name, &id);

	f->has_alternate = true;
	if (bytes <= 0)
		return;
	hex_write(build_id, sizeof(build_id), id, (size_t)bytes);
	f->alternate_fd = separate_debug_open_alternate(f->folder, name, build_id);
	if (f->alternate_fd < 0)
		f->alternate_fd = debuginfod_fetch(f->dwfl, id, (int)bytes);
	if (f->alternate_fd >= 0)
		f->alternate_elf = elf_begin(f->alternate_fd, ELF_C_READ_MMAP, NULL);
	if (f->alternate_elf)
		check_packed(f, f->alternate_elf, f->alternate_fd);
	if (f->packed)
		note_packed(f, name);
	else
		f->alternate = dwarf_begin_elf(f->alternate_elf, DWARF_C_READ, NULL);
	dwarf_setalt(dwarf, f->alternate ? f->alternate : (Dwarf *)-1);
}

__u64 debug_file_unpacked_bytes(const struct debug_file *f)
{
	return f->unpacked;
}

bool debug_file_is_packed(const struct debug_file *f)
{
	return f->packed;
}

const char *debug_file_path_of(const struct debug_file *f)
{
	return f->path;
}

const char *debug_file_folder(const struct debug_file *f)
{
	return f->folder;
}

bool debug_file_is_trusted(const struct debug_file *f)
{
	return !f->account;
}

Dwarf *debug_file_dwarf(struct debug_file *f, Dwarf_Addr *bias)
{
	Dwarf *dwarf = f->packed ? NULL : dwfl_module_getdwarf(f->module, bias);

	note_unknown(f);
	if (dwarf && !f->has_alternate)
		set_alternate(f, dwarf);
	progress_end_debuginfod();
	note_packed(f, dwfl_module_info(f->module, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	return f->packed ? NULL : dwarf;
}

void debug_file_resume(struct debug_file *f)
{
	f->budget.account = f->account;
	read_budget_resume(&f->budget);
}

void debug_file_begin_symbols(struct debug_file *f)
{
	f->budget.kind = FILE_TIME_SYMBOLS;
	debug_file_resume(f);
}

bool debug_file_has_symbols_within(struct debug_file *f)
{
	bool within = read_budget_left(&f->budget);

	if (!within)
		note_symbols(f);
	return within;
}

void debug_file_pause(struct debug_file *f)
{
	read_budget_pause(&f->budget);
}

bool debug_file_is_within(struct debug_file *f)
{
	if (read_budget_left(&f->budget))
		return true;
	f->packed = true;
	note_packed(f, dwfl_module_info(f->module, NULL, NULL, NULL, NULL, NULL, NULL, NULL));
	return false;
}
