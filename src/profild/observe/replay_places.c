/* replay_places.c - attachments with --replay: their tables stay empty */
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "attachment.h"
#include "base/cleanup.h"
#include "table.h"

static int replay_prepare(struct place_source *source, const struct attachment *a)
{
	return 0;
}

static int replay_open(struct place_source *source, struct attachment *a, struct profil_observer *o,
		       struct profil_table *header)
{
	__cleanup(closep) int fd = memfd_create("profil_table", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)header->pages * PROFIL_TABLE_PAGE) < 0 ||
	    pwrite(fd, header, sizeof(*header), 0) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) < 0)
		return -errno;
	if (header->stack_mode && header->unwind_pages)
		return -EOPNOTSUPP;
	a->table = steal_fd(fd);
	a->source = a;
	return 0;
}

static int replay_ready(struct place_source *source, struct attachment *a)
{
	return 0;
}

static int replay_begin(struct place_source *source, struct attachment *a)
{
	return 0;
}

static int replay_recover(struct place_source *source, struct attachment *a,
			  struct profil_observer *o, struct profil_table *header)
{
	return -ENOENT;
}

static int replay_add(struct place_source *source, struct attachment *a, pid_t tgid)
{
	return 0;
}

static uint64_t replay_total(struct place_source *source, const struct attachment *a)
{
	return 0;
}

static void replay_close(struct place_source *source, struct attachment *a)
{
}

static const struct place_source_ops ops = {
	.prepare = replay_prepare,
	.open = replay_open,
	.ready = replay_ready,
	.recover = replay_recover,
	.begin = replay_begin,
	.add = replay_add,
	.total = replay_total,
	.close = replay_close,
	.forget = replay_close,
};

/* The samples of the file are only for profiles that processes start themselves. */
struct place_source replay_places = { .ops = &ops };
