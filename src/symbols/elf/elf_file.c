/* elf_file.c - an ELF file's build id and code addresses, and the file of an object */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <sys/stat.h>
#include <elfutils/libdwelf.h>

#include "base/cleanup.h"

#include "elf_file.h"
#include "elf_image.h"
#include "base/hex.h"
#include "symbols/proc/guarded_file.h"

#define GO_BUILD_ID_BYTES 20

static bool is_static(Elf *elf)
{
	GElf_Ehdr eh;

	return gelf_getehdr(elf, &eh) && eh.e_type == ET_EXEC;
}

void elf_file_layout(int fd, struct segments *segments, bool *program)
{
	GElf_Shdr sh;
	size_t n = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	*program = false;
	elf_image_segments(segments, elf);
	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++) {
		GElf_Phdr ph;

		/* A static program has no interpreter, but libc.so has one. */
		*program |= gelf_getphdr(elf, (int)i, &ph) && ph.p_type == PT_INTERP;
	}
	*program = (*program && !elf_image_section_of_type(elf, SHT_GNU_verdef, &sh)) ||
		   is_static(elf);
	elf_end(elf);
}

/*
 * The Go build id, for files without a GNU one. It is a long text, of which the last part, a hash
 * of the contents, is used. Returns its length; 0: none.
 */
static size_t go_build_id(Elf *elf, const unsigned char **id)
{
	size_t name_at, text_at;
	GElf_Shdr sh;
	GElf_Nhdr nh;
	Elf_Data *note = elf_image_bytes(elf, ".note.go.buildid", &sh);

	if (!note || !gelf_getnote(note, 0, &nh, &name_at, &text_at))
		return 0;
	*id = (const unsigned char *)note->d_buf + text_at;
	*id += nh.n_descsz > GO_BUILD_ID_BYTES ? nh.n_descsz - GO_BUILD_ID_BYTES : 0;
	return nh.n_descsz < GO_BUILD_ID_BYTES ? nh.n_descsz : GO_BUILD_ID_BYTES;
}

void elf_file_build_id(int fd, char *out, size_t bytes)
{
	const unsigned char *id;
	const void *raw = NULL;
	ssize_t len;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	len = dwelf_elf_gnu_build_id(elf, &raw);
	id = raw;
	if (len <= 0)
		len = (ssize_t)go_build_id(elf, &id);
	hex_write(out, bytes, id, len > 0 ? (size_t)len : 0);
	elf_end(elf);
}

static __s64 mtime_ns(const struct stat *st)
{
	return st->st_mtim.tv_sec * 1000000000ll + st->st_mtim.tv_nsec;
}

void elf_file_identify(struct object *o, int fd)
{
	struct stat st;

	if (!*o->build_id)
		elf_file_build_id(fd, o->build_id, sizeof(o->build_id));
	if (*o->build_id || fstat(fd, &st) < 0)
		return;
	o->file_bytes = (__u64)st.st_size;
	o->file_mtime_ns = mtime_ns(&st);
}

/* Says whether @fd is the file of @o. */
static bool is_same(const struct object *o, int fd)
{
	char build_id[PROFILE_BUILD_ID_MAX];
	struct stat st;

	elf_file_build_id(fd, build_id, sizeof(build_id));
	if (*o->build_id)
		return !strcmp(build_id, o->build_id);
	return !*build_id && o->file_bytes && !fstat(fd, &st) &&
	       (__u64)st.st_size == o->file_bytes && mtime_ns(&st) == o->file_mtime_ns;
}

int elf_file_open(const struct object *o)
{
	__cleanup(closep) int fd = -1;

	if (o->fd >= 0) {
		fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -ENOENT : steal_fd(fd);
	}
	if (*o->path != '/' || (!*o->build_id && !o->file_bytes))
		return -ENOENT;
	fd = guarded_file_open(o->path, NULL);
	return fd >= 0 && is_same(o, fd) ? steal_fd(fd) : -ENOENT;
}
