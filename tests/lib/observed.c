/* observed.c - processes to be observed, and the offsets and build ids of their files */
#include <criterion/criterion.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observed.h"

struct child child_fork(void (*work)(const char *arg), const char *arg)
{
	struct child c;
	char byte;
	int fds[2];

	cr_assert(pipe2(fds, O_CLOEXEC) == 0);
	c.pid = fork();
	cr_assert(c.pid >= 0, "fork: %s", strerror(errno));
	if (!c.pid) {
		close(fds[1]);
		if (read(fds[0], &byte, 1) == 1)
			work(arg);
		_exit(0);
	}
	close(fds[0]);
	c.go = fds[1];
	return c;
}

void child_start(struct child *c)
{
	cr_assert(write(c->go, "", 1) == 1);
	close(c->go);
}

void child_wait(struct child *c)
{
	int status;

	cr_assert_eq(waitpid(c->pid, &status, 0), c->pid);
	cr_assert(WIFEXITED(status) && !WEXITSTATUS(status), "wait status 0x%x", status);
}

void child_run(struct child *c)
{
	child_start(c);
	child_wait(c);
}

struct offset_search {
	uintptr_t address;
	uint64_t offset;
};

static int search_offset(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct offset_search *s = arg;

	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD &&
		    s->address - (info->dlpi_addr + p->p_vaddr) < p->p_memsz)
			s->offset = s->address - (info->dlpi_addr + p->p_vaddr) + p->p_offset;
	}
	return 0;
}

uint64_t observed_offset(uintptr_t address)
{
	struct offset_search s = { .address = address };

	dl_iterate_phdr(search_offset, &s);
	cr_assert(s.offset, "no file is mapped there");
	return s.offset;
}

unsigned int build_id_of(const char *path, uint8_t id[64])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	const uint8_t *at;
	unsigned int n = 0;

	cr_assert(fd >= 0 && fstat(fd, &st) == 0, "%s: %s", path, strerror(errno));
	at = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert(at != MAP_FAILED);
	close(fd);
	for (int i = 0; i < ((const ElfW(Ehdr) *)at)->e_phnum; i++) {
		const ElfW(Phdr) *p = (const void *)(at + ((const ElfW(Ehdr) *)at)->e_phoff +
						     (size_t)i * sizeof(*p));

		for (uint64_t o = 0; p->p_type == PT_NOTE && o + 12 < p->p_filesz;) {
			const ElfW(Nhdr) *note = (const void *)(at + p->p_offset + o);

			if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4) {
				n = note->n_descsz;
				memcpy(id, (const uint8_t *)(note + 1) + 4, n < 64 ? n : 64);
			}
			o += 12 + ((note->n_namesz + 3) & ~3u) + ((note->n_descsz + 3) & ~3u);
		}
	}
	munmap((void *)at, (size_t)st.st_size);
	return n;
}

void expect_build_id(const struct profil_image *image, const char *path)
{
	uint8_t id[64] = { 0 };
	unsigned int n = build_id_of(path, id);

	cr_expect_eq(image->build_id_bytes, n, "%s: a build id of %u bytes, not %u", path,
		     image->build_id_bytes, n);
	cr_expect(!memcmp(image->build_id, id, n), "%s: another build id", path);
}
