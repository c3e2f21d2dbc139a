/* debugfile.c - where the symbols went that were split off an ELF file */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <elfutils/libdwelf.h>
#include <zlib.h>

#include "core/scope.h"

#include "debugfile.h"
#include "fetch.h"

const char *debugfile_dir = "/usr/lib/debug";

struct identity {
	const unsigned char *id; /* the build id */
	ssize_t len;		 /* not positive: it has none */
};

static struct identity identify(Elf *elf)
{
	const void *id = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &id);

	return (struct identity){ id, len };
}

static bool has_identity(int fd, const struct identity *want)
{
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	struct identity got = identify(elf);
	bool same = got.len > 0 && got.len == want->len && !memcmp(got.id, want->id, got.len);

	elf_end(elf);
	return same;
}

static bool has_checksum(int fd, GElf_Word want)
{
	unsigned char buf[65536];
	uLong crc = crc32(0, NULL, 0);
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0)
		crc = crc32(crc, buf, (uInt)n);
	return n == 0 && crc == want;
}

static int open_by_build_id(const struct identity *want)
{
	__cleanup(closep) int fd = -1;
	char path[PATH_MAX], hex[160];
	int at = 0;

	if (want->len < 2 || want->len > 64)
		return -ENOENT;
	for (ssize_t i = 0; i < want->len; i++)
		at += snprintf(hex + at, sizeof(hex) - at, i ? "%02x" : "%02x/", want->id[i]);
	snprintf(path, sizeof(path), "%s/.build-id/%s.debug", debugfile_dir, hex);

	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && has_identity(fd, want) ? steal_fd(fd) : -ENOENT;
}

static int open_fetched(const struct identity *want)
{
	__cleanup(closep) int fd = -1;

	if (want->len <= 0)
		return -ENOENT;
	fd = fetch_debugfile(want->id, (size_t)want->len);
	return fd >= 0 && has_identity(fd, want) ? steal_fd(fd) : -ENOENT;
}

/* The three places that gdb looks in as well. */
static int open_by_link(const struct identity *want, const char *path, const char *link,
			GElf_Word crc)
{
	const struct {
		const char *root, *below;
	} places[] = { { "", "" }, { "", "/.debug" }, { debugfile_dir, "" } };
	const char *slash = strrchr(path, '/');

	if (!slash || strchr(link, '/'))
		return -ENOENT;
	for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
		__cleanup(closep) int fd = -1;
		char file[PATH_MAX];
		int n;

		n = snprintf(file, sizeof(file), "%s%.*s%s/%s", places[i].root, (int)(slash - path),
			     path, places[i].below, link);
		if (n < 0 || (size_t)n >= sizeof(file) || !strcmp(file, path))
			continue;
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && (want->len > 0 ? has_identity(fd, want) : has_checksum(fd, crc)))
			return steal_fd(fd);
	}
	return -ENOENT;
}

int debugfile_open(Elf *elf, const char *path)
{
	struct identity want = identify(elf);
	const char *link;
	GElf_Word crc;
	int fd;

	fd = open_by_build_id(&want);
	if (fd >= 0)
		return fd;
	link = dwelf_elf_gnu_debuglink(elf, &crc);
	fd = link ? open_by_link(&want, path, link, crc) : -ENOENT;
	return fd >= 0 ? fd : open_fetched(&want);
}
