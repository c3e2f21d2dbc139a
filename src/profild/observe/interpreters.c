/* interpreters.c - descriptors of interpreters that root has installed, for the machine's profile
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/interpreters_file.h"

#include "interpreters.h"

static int open_file(void)
{
	__cleanup(closep) int fd =
		open(PROFIL_INTERPRETERS_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_uid || st.st_mode & 022) {
		log_warning("%s: not used: it must be a file that root alone may write",
			    PROFIL_INTERPRETERS_FILE);
		return -EPERM;
	}
	return steal_fd(fd);
}

bool interpreters_installed(void)
{
	__cleanup(closep) int fd = open_file();

	return fd >= 0;
}

static int read_file(struct profil_interpreters_file *in)
{
	__cleanup(closep) int fd = open_file();

	if (fd < 0)
		return fd;
	if (read(fd, in, sizeof(*in)) == (ssize_t)sizeof(*in) &&
	    !memcmp(in->magic, PROFIL_INTERPRETERS_MAGIC, sizeof(in->magic)) &&
	    in->version == PROFIL_INTERPRETERS_VERSION && in->interpreters <= PROFIL_INTERPRETERS &&
	    in->files <= PROFIL_INTERPRETER_FILES)
		return 0;
	log_warning("%s: not used: it is damaged, or of another version ('profilctl interpreters' "
		    "writes it anew)",
		    PROFIL_INTERPRETERS_FILE);
	return -EINVAL;
}

/* Puts @f where the kernel looks for it; drops it if there is no room. */
static void put_file(char *map, const struct profil_unwind_file *f)
{
	struct profil_unwind_file *page =
		(void *)(map + profil_unwind_file_page(f->ino) * PROFIL_UNWIND_PAGE);
	__u32 at = profil_unwind_file_at(f->ino);

	for (__u32 i = 0; f->ino && i < PROFIL_UNWIND_FILE_TRIES; i++) {
		struct profil_unwind_file *to = &page[(at + i) % PROFIL_PAGE_UNWIND_FILES];

		if (to->ino && (to->ino != f->ino || to->dev != f->dev))
			continue;
		to->dev = f->dev;
		to->interpreter = f->interpreter;
		to->anonymous = f->anonymous;
		to->ino = f->ino;
		return;
	}
}

/* Gives descriptors to the images that are in the table already: those of an earlier daemon. */
static void put_images(char *map, const char *table, const struct profil_table *header,
		       const struct profil_interpreters_file *in)
{
	struct profil_unwind_image *to =
		(void *)(map + (size_t)PROFIL_UNWIND_IMAGE_PAGE * PROFIL_UNWIND_PAGE);
	const struct profil_image *image =
		(const void *)(table + (size_t)header->image_page * PROFIL_TABLE_PAGE);

	for (__u32 i = 0; i < header->images; i++) {
		for (__u32 k = 0; image[i].kind == PROFIL_IMAGE_FILE && k < in->files; k++) {
			const struct profil_unwind_file *f = &in->file[k];

			if (f->ino == image[i].ino && (!f->dev || f->dev == image[i].dev))
				to[i].interpreter = (__u16)f->interpreter;
		}
	}
}

int interpreters_put(int unwind, int table, const struct profil_table *header)
{
	size_t bytes = (size_t)header->unwind_pages * PROFIL_UNWIND_PAGE;
	size_t table_bytes = (size_t)header->pages * PROFIL_TABLE_PAGE;
	__cleanup(freep) struct profil_interpreters_file *in = calloc(1, sizeof(*in));
	int err = in ? read_file(in) : -ENOMEM;
	char *map, *of;

	if (err < 0)
		return err;
	map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, unwind, 0);
	if (map == MAP_FAILED)
		return -errno;
	memcpy(map + (size_t)PROFIL_UNWIND_INTERPRETER_PAGE * PROFIL_UNWIND_PAGE, in->interpreter,
	       sizeof(in->interpreter));
	for (__u32 i = 0; i < in->files; i++)
		put_file(map, &in->file[i]);
	of = mmap(NULL, table_bytes, PROT_READ, MAP_SHARED, table, 0);
	if (of != MAP_FAILED) {
		put_images(map, of, header, in);
		munmap(of, table_bytes);
	}
	munmap(map, bytes);
	return 0;
}
