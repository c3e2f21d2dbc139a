/* elf_file.c - an ELF file's build id and code addresses, and the file of an object */
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <string.h>
#include <elfutils/libdwelf.h>

#include "base/cleanup.h"

#include "elf_file.h"
#include "base/hex.h"
#include "base/regular_file.h"

#define GO_BUILD_ID_BYTES 20

Elf_Scn *elf_file_section(Elf *elf, GElf_Word type)
{
	Elf_Scn *scn = NULL;

	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr sh;

		if (gelf_getshdr(scn, &sh) && sh.sh_type == type)
			return scn;
	}
	return NULL;
}

static bool is_static(Elf *elf)
{
	GElf_Ehdr eh;

	return gelf_getehdr(elf, &eh) && eh.e_type == ET_EXEC;
}

void elf_file_layout(int fd, __u64 *vaddr, bool *program)
{
	size_t n = 0;
	Elf *elf;

	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	*vaddr = 0;
	*program = false;
	elf_getphdrnum(elf, &n);
	for (size_t i = n; i-- > 0;) {
		GElf_Phdr ph;

		if (!gelf_getphdr(elf, (int)i, &ph))
			continue;
		if (ph.p_type == PT_LOAD && ph.p_flags & PF_X)
			*vaddr = ph.p_vaddr - ph.p_offset;
		/* A static program has no interpreter, but libc.so has one. */
		*program |= ph.p_type == PT_INTERP;
	}
	*program = (*program && !elf_file_section(elf, SHT_GNU_verdef)) || is_static(elf);
	elf_end(elf);
}

/*
 * The Go build id, for files without a GNU one. It is a long text, of which the last part, a hash
 * of the contents, is used. Returns its length; 0: none.
 */
static size_t go_build_id(Elf *elf, const unsigned char **id)
{
	Elf_Scn *scn = NULL;
	size_t names;

	if (elf_getshdrstrndx(elf, &names) < 0)
		return 0;
	while ((scn = elf_nextscn(elf, scn))) {
		Elf_Data *note = elf_getdata(scn, NULL);
		size_t name_at, text_at;
		const char *name;
		GElf_Shdr sh;
		GElf_Nhdr nh;

		name = gelf_getshdr(scn, &sh) ? elf_strptr(elf, names, sh.sh_name) : NULL;
		if (!name || strcmp(name, ".note.go.buildid") != 0 || !note ||
		    !gelf_getnote(note, 0, &nh, &name_at, &text_at))
			continue;
		*id = (const unsigned char *)note->d_buf + text_at;
		*id += nh.n_descsz > GO_BUILD_ID_BYTES ? nh.n_descsz - GO_BUILD_ID_BYTES : 0;
		return nh.n_descsz < GO_BUILD_ID_BYTES ? nh.n_descsz : GO_BUILD_ID_BYTES;
	}
	return 0;
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

int elf_file_open(const struct object *o)
{
	__cleanup(closep) int fd = -1;
	char build_id[PROFILE_BUILD_ID_MAX];

	if (o->fd >= 0) {
		fd = fcntl(o->fd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? -ENOENT : steal_fd(fd);
	}
	if (*o->path != '/' || !*o->build_id)
		return -ENOENT;
	fd = regular_file_open(o->path);
	if (fd < 0)
		return -ENOENT;
	elf_file_build_id(fd, build_id, sizeof(build_id));
	return strcmp(build_id, o->build_id) ? -ENOENT : steal_fd(fd);
}
