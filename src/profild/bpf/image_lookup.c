/* image_lookup.c - chooses how the BPF programs find the image of a pc: a self-test at start
 *
 * The BPF programs walk the VMA tree without mmap_lock (bpf/vma.bpf.h). They depend on the layout
 * of the kernel's maple tree, which is not a stable interface. So before the first sample the
 * daemon runs the program mapping_query(), which calls the function that samples call, for
 * addresses of the daemon's own process, and compares the answers with /proc/self/maps: the first,
 * the middle and the last byte of each mapping, and both ends of each hole. If an answer differs,
 * the daemon tests bpf_find_vma() in the same way. If that fails too, samples are counted by
 * process, without an image.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "core/observe_maps.h"
#include "image_lookup.h"
#include "profild/skeleton.h"

/*
 * Environment variable for tests: the name of a method. The self-test of the methods before it
 * queries the addresses one page further, and so fails. The worst that the variable can do is to
 * make the daemon's own profiles less certain.
 */
#define TEST_VARIABLE "PROFIL_TEST_IMAGE_LOOKUP"

#define MAPS_BYTES (256 * 1024) /* some thousand mappings; a daemon has about a hundred */
#define ATTEMPTS 3		/* our mappings may change between the answers and the file */

struct self_test {
	int program;
	uint64_t shift; /* added to each queried address; not 0: the test is to fail */
	uint64_t vdso;
	uint64_t end; /* of the latest mapping */
	unsigned int queries;
};

static const char *const names[] = {
	[PROFIL_LOOKUP_WALK] = "walk",
	[PROFIL_LOOKUP_FIND_VMA] = "find-vma",
	[PROFIL_LOOKUP_PROCESS] = "process",
};

/* Reads /proc/self/maps without allocating memory, which would change the mappings. */
static int read_maps(char *text, size_t bytes)
{
	__cleanup(closep) int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	size_t n = 0;
	ssize_t got = 1;

	while (fd >= 0 && got > 0 && n < bytes - 1) {
		got = read(fd, text + n, bytes - 1 - n);
		if (got > 0)
			n += (size_t)got;
	}
	text[n] = '\0';
	return fd < 0 || got < 0 ? -errno : got ? -E2BIG : 0;
}

/* Says whether mapping_query() finds @want at @address. */
static bool finds(struct self_test *t, uint64_t address, const struct profil_mapping_query *want)
{
	struct profil_mapping_query q = { .address = address + t->shift };
	LIBBPF_OPTS(bpf_test_run_opts, run, .ctx_in = &q, .ctx_size_in = sizeof(q));

	t->queries++;
	if (bpf_prog_test_run_opts(t->program, &run) < 0)
		return false;
	if (!want->kind || !q.kind)
		return want->kind == q.kind;
	return q.kind == want->kind && q.start == want->start && q.end == want->end &&
	       (q.kind != PROFIL_IMAGE_FILE || q.offset == want->offset);
}

/* Says whether mapping_query() finds no mapping in the hole before @start, if there is one. */
static bool finds_hole(struct self_test *t, uint64_t start)
{
	static const struct profil_mapping_query none;

	return t->end == start || (finds(t, t->end, &none) && finds(t, start - 1, &none));
}

static bool finds_line(struct self_test *t, const char *line)
{
	struct profil_mapping_query want = { 0 };
	unsigned long start, end, offset, inode;

	if (sscanf(line, "%lx-%lx %*s %lx %*s %lu", &start, &end, &offset, &inode) != 4)
		return false;
	if ((int64_t)end < 0) /* the vsyscall page, which has no VMA */
		return true;
	if (!finds_hole(t, start))
		return false;
	want.start = start;
	want.end = end;
	want.offset = offset;
	want.kind = inode	       ? PROFIL_IMAGE_FILE
		    : start == t->vdso ? PROFIL_IMAGE_VDSO
				       : PROFIL_IMAGE_ANON;
	t->end = end;
	return finds(t, start, &want) && finds(t, start + (end - start) / 2, &want) &&
	       finds(t, end - 1, &want);
}

/* Says whether mapping_query() agrees with /proc/self/maps, which is read into @text. */
static bool finds_all(struct self_test *t, char *text)
{
	char *rest = text;
	const char *line;

	if (read_maps(text, MAPS_BYTES) < 0)
		return false;
	t->queries = 0;
	t->end = (uint64_t)sysconf(_SC_PAGESIZE); /* nothing is mapped at 0 */
	while ((line = strsep(&rest, "\n"))) {
		if (*line && !finds_line(t, line))
			return false;
	}
	return t->queries > 0;
}

/* There bpf_find_vma() always fails with interrupts off: it could not release mmap_lock. */
static bool is_preempt_rt(void)
{
	struct utsname u;

	return !uname(&u) && strstr(u.version, "PREEMPT_RT");
}

/* Says whether the method that is set now works. @fails: for a test, it is to fail. */
static bool works(const struct profil_bpf *skel, bool fails)
{
	__cleanup(freep) char *text = malloc(MAPS_BYTES);
	struct self_test t = {
		.program = bpf_program__fd(skel->progs.mapping_query),
		.shift = fails ? (uint64_t)sysconf(_SC_PAGESIZE) : 0,
		.vdso = getauxval(AT_SYSINFO_EHDR),
	};

	for (int i = 0; text && i < ATTEMPTS; i++) {
		if (finds_all(&t, text))
			return true;
	}
	return false;
}

static enum profil_image_lookup first_for_test(void)
{
	const char *name = secure_getenv(TEST_VARIABLE);

	for (int i = PROFIL_LOOKUP_WALK; name && i <= PROFIL_LOOKUP_PROCESS; i++) {
		if (!strcmp(name, names[i]))
			return (enum profil_image_lookup)i;
	}
	return PROFIL_LOOKUP_WALK;
}

enum profil_image_lookup image_lookup_choose(const struct profil_bpf *skel)
{
	enum profil_image_lookup first = first_for_test();

	skel->data->image_lookup = PROFIL_LOOKUP_WALK;
	if (works(skel, first > PROFIL_LOOKUP_WALK))
		return PROFIL_LOOKUP_WALK;
	skel->data->image_lookup = PROFIL_LOOKUP_FIND_VMA;
	if (!is_preempt_rt() && works(skel, first > PROFIL_LOOKUP_FIND_VMA)) {
		log_warning("image lookup: the lock-free walk of the VMA tree failed its self-test "
			    "in this kernel: using bpf_find_vma(); samples taken while mmap_lock "
			    "is held have no image");
		return PROFIL_LOOKUP_FIND_VMA;
	}
	skel->data->image_lookup = PROFIL_LOOKUP_PROCESS;
	log_warning(
		"image lookup: neither the lock-free walk of the VMA tree nor bpf_find_vma() "
		"works in this kernel: counting user-mode samples by process, without an image");
	return PROFIL_LOOKUP_PROCESS;
}
