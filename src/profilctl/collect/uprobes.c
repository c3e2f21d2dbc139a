/* uprobes.c - calls of a function, or of a static probe, as events */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <linux/types.h>

#include "base/cleanup.h"
#include "core/observe_maps.h"
#include "uprobes.h"
#include "symbols/elf/elf_image.h"

/* Offsets in the file. */
struct probe_point {
	__u64 offset;
	__u64 semaphore; /* what counts the probe's users; 0: none */
};

/* The note of a static probe: three addresses, then provider, name and arguments as strings. */
#define STAPSDT "stapsdt"
#define STAPSDT_TYPE 3
#define STAPSDT_BASE ".stapsdt.base"

/* The offset in the file of @vaddr, in whatever segment; 0: none. */
static __u64 offset_of(Elf *elf, __u64 vaddr)
{
	GElf_Phdr ph;

	for (int i = 0; gelf_getphdr(elf, i, &ph); i++) {
		if (ph.p_type == PT_LOAD && vaddr - ph.p_vaddr < ph.p_filesz)
			return vaddr - ph.p_vaddr + ph.p_offset;
	}
	return 0;
}

static bool find_symbol(struct probe_point *out, Elf *elf, GElf_Word type, const char *name)
{
	GElf_Shdr sh;
	Elf_Scn *scn = elf_image_section_of_type(elf, type, &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Sym sym;

	for (int i = 0; data && gelf_getsym(data, i, &sym); i++) {
		const char *is = elf_strptr(elf, sh.sh_link, sym.st_name);

		if (GELF_ST_TYPE(sym.st_info) != STT_FUNC || sym.st_shndx == SHN_UNDEF || !is ||
		    strcmp(is, name))
			continue;
		out->offset = offset_of(elf, sym.st_value);
		return out->offset;
	}
	return false;
}

/*
 * Finds the function @name in the ELF file @fd, or the static probe @name of @provider. Returns 0,
 * -ENOENT if it has none of that name, or -ENOEXEC.
 */
static int probe_function(struct probe_point *out, int fd, const char *name)
{
	Elf *elf;
	int err;

	*out = (struct probe_point){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(elf) != ELF_K_ELF)
		err = -ENOEXEC;
	else if (find_symbol(out, elf, SHT_SYMTAB, name) || find_symbol(out, elf, SHT_DYNSYM, name))
		err = 0;
	else
		err = -ENOENT;
	elf_end(elf);
	return err;
}

/* Says whether the note's @desc, of @n bytes, is the probe's. A prelinked file has moved by @by. */
static bool read_note(struct probe_point *out, Elf *elf, const char *desc, size_t n, __u64 base,
		      const char *provider, const char *name)
{
	const char *strings = desc + 3 * sizeof(__u64);
	__u64 at[3];
	size_t left;

	if (n <= sizeof(at) || desc[n - 1])
		return false;
	left = n - sizeof(at);
	if (strcmp(strings, provider) || strlen(strings) + 1 >= left ||
	    strcmp(strings + strlen(strings) + 1, name))
		return false;
	memcpy(at, desc, sizeof(at));
	out->offset = offset_of(elf, at[0] + (base ? base - at[1] : 0));
	out->semaphore = at[2] ? offset_of(elf, at[2] + (base ? base - at[1] : 0)) : 0;
	return out->offset;
}

static bool find_note(struct probe_point *out, Elf *elf, const char *provider, const char *name)
{
	GElf_Shdr sh, base = { 0 };
	Elf_Scn *scn = elf_image_section(elf, ".note.stapsdt", &sh);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t at = 0, title, desc;
	GElf_Nhdr note;

	if (!elf_image_section(elf, STAPSDT_BASE, &base))
		base.sh_addr = 0;
	while (data && (at = gelf_getnote(data, at, &note, &title, &desc)) > 0) {
		const char *bytes = data->d_buf;

		if (note.n_type == STAPSDT_TYPE && note.n_namesz == sizeof(STAPSDT) &&
		    !memcmp(bytes + title, STAPSDT, sizeof(STAPSDT)) &&
		    read_note(out, elf, bytes + desc, note.n_descsz, base.sh_addr, provider, name))
			return true;
	}
	return false;
}

static int probe_static(struct probe_point *out, int fd, const char *provider, const char *name)
{
	Elf *elf;
	int err = -ENOEXEC;

	*out = (struct probe_point){ 0 };
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	if (elf_kind(elf) == ELF_K_ELF)
		err = find_note(out, elf, provider, name) ? 0 : -ENOENT;
	elf_end(elf);
	return err;
}

/*
 * The kernel makes a tracepoint of each line that is written to tracefs's uprobe_events. A
 * definition costs nothing until an event is opened for it. Its name follows from the file and the
 * offset: a second definition finds the first, also one that a killed profilctl has left.
 */
#define UPROBE "uprobe:"
#define USDT "usdt:"

/* The daemon closes the event soon after it was used. */
#define BUSY_TRIES 100
#define BUSY_NS 10000000

static int events_folder = -1;
static char defined[64]; /* "-:GROUP/NAME"; "": nothing */

bool uprobe_is(const char *name)
{
	return !strncmp(name, UPROBE, strlen(UPROBE)) || !strncmp(name, USDT, strlen(USDT));
}

static int open_in(const char *folders, const char *name)
{
	__cleanup(freep) char *list = strdup(folders);
	char *rest = list, *folder, path[PATH_MAX];
	struct stat st;

	while (rest && (folder = strsep(&rest, ":"))) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s", folder, name);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && !fstat(fd, &st) && S_ISREG(st.st_mode))
			return fd;
		if (fd >= 0)
			close(fd);
	}
	return -ENXIO;
}

static int open_file(const char *name)
{
	static const char libraries[] =
		"/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib/aarch64-linux-gnu:"
		"/usr/lib/aarch64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib:/usr/local/lib";
	const char *folders = getenv("PATH");
	int fd;

	if (strchr(name, '/')) {
		fd = open(name, O_RDONLY | O_CLOEXEC);
		return fd < 0 ? -ENXIO : fd;
	}
	fd = open_in(libraries, name);
	return fd < 0 && folders ? open_in(folders, name) : fd;
}

/* Writes a line to uprobe_events. */
static int put(const char *line)
{
	__cleanup(closep) int fd =
		openat(events_folder, "../uprobe_events", O_WRONLY | O_APPEND | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? -EOPNOTSUPP : -errno;
	return write(fd, line, strlen(line)) < 0 ? -errno : 0;
}

static void undefine(void)
{
	const struct timespec pause = { 0, BUSY_NS };

	for (int i = 0; *defined && i < BUSY_TRIES && put(defined) == -EBUSY; i++)
		nanosleep(&pause, NULL);
	*defined = '\0';
}

/* Splits the name behind its kind: FILE:FUNCTION or FILE:PROVIDER:NAME. */
static int find_point(struct probe_point *point, int *file, char *name, bool is_static)
{
	char *last = strrchr(name, ':'), *provider = NULL;

	if (!last || !last[1])
		return -ENOENT;
	*last++ = '\0';
	if (is_static) {
		provider = strrchr(name, ':');
		if (!provider)
			return -ENOENT;
		*provider++ = '\0';
	}
	*file = open_file(name);
	if (*file < 0)
		return *file;
	return is_static ? probe_static(point, *file, provider, last)
			 : probe_function(point, *file, last);
}

static int define(struct event *e, int file, const struct probe_point *point)
{
	char line[256], id[32], path[80], semaphore[32] = "";
	struct stat st;
	int err;

	if (fstat(file, &st) < 0)
		return -errno;
	snprintf(id, sizeof(id), "p%llx_%llx", (unsigned long long)(st.st_dev ^ st.st_ino << 20),
		 point->offset);
	if (point->semaphore)
		snprintf(semaphore, sizeof(semaphore), "(0x%llx)", point->semaphore);
	snprintf(line, sizeof(line), "p:profil/%s /proc/self/fd/%d:0x%llx%s", id, file,
		 point->offset, semaphore);
	err = put(line);
	if (err < 0 && err != -EEXIST)
		return err;
	snprintf(defined, sizeof(defined), "-:profil/%s", id);
	atexit(undefine);
	snprintf(path, sizeof(path), "profil/%s/id", id);
	err = event_read_id(e, events_folder, path);
	e->type = PROFIL_EVENT_UPROBE;
	return err;
}

int uprobe_define(struct event *e, const char *name)
{
	bool is_static = !strncmp(name, USDT, strlen(USDT));
	__cleanup(freep) char *rest = strdup(strchr(name, ':') + 1);
	__cleanup(closep) int file = -1;
	struct probe_point point;
	int err = rest ? find_point(&point, &file, rest, is_static) : -ENOMEM;

	if (err < 0)
		return err;
	events_folder = events_open_tracefs();
	return events_folder < 0 ? events_folder : define(e, file, &point);
}
