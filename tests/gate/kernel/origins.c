/* origins.c - samples in code whose mapping has a misleading file, or none: JIT code that is mapped
 * twice, copies of a program's text
 */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "synthetic.h"
#include "tests/programs/loops.h"
#include "tests/lib/observed.h"
#include "tests/lib/observer.h"

SYNTHETIC_SUITE(synth_origins, true);

#define PAGE_BYTES 4096u
#define CODE_BYTES (2u * PAGE_BYTES)
#define CODE (PROT_READ | PROT_EXEC)

static void observe_self(struct observer *o)
{
	struct profil_msg_observe ask = observer_ask(PROFIL_SCOPE_PROCESSES, SYNTHETIC_TICK_NS);
	int err = observer_open(o, &d, &ask);

	cr_assert(!err, "OBSERVE: %s", strerror(err));
	cr_assert_eq(observer_add(o, getpid()), 0);
}

/* @n samples of the calling thread at @pc. */
static void give(uintptr_t pc, uint32_t n)
{
	struct synth_count a = { .user_pc = pc,
				 .ns = (uint64_t)SYNTHETIC_TICK_NS * n,
				 .clock_ns = SYNTHETIC_TICK_NS,
				 .periods = n,
				 .flags = PROFIL_TARGET_TICK,
				 .wide = 1,
				 .user_mode = 1 };

	SYNTHETIC_RUN(&s, count, &a);
}

struct spot_at {
	uint32_t image;
	uint32_t offset;
};

static int is_at(const void *arg, uint64_t key)
{
	const struct spot_at *at = arg;

	return !(key & (PROFIL_PLACE_SUM | PROFIL_PLACE_FOLDED)) &&
	       profil_place_image(key) == at->image && profil_place_offset(key) == at->offset;
}

/* Expects @n samples of address @pc in code of this process. */
static void expect_own(const struct observer *o, const char *what, uintptr_t pc, uint64_t n)
{
	struct spot_at at = { .image = observer_find(o, PROFIL_IMAGE_ANON, NULL),
			      .offset = (uint32_t)pc };

	cr_expect_eq(observer_count_by(o, is_at, &at), n, "%s", what);
}

/* Expects @n samples of this program's @address in its file. */
static void expect_program(const struct observer *o, const char *what, uintptr_t address,
			   uint64_t n)
{
	struct spot_at at = { .image = observer_find(o, PROFIL_IMAGE_FILE, "kernel-tests"),
			      .offset = (uint32_t)observed_offset(address) };

	cr_expect_eq(observer_count_by(o, is_at, &at), n, "%s", what);
}

/* --- code that the process makes -------------------------------------------------------------- */

/* Gives samples in two pages of code, and expects them there. Returns them. */
static uint64_t give_in(const struct observer *o, const char *what, const char *code)
{
	static uint32_t n = 2;

	cr_assert(code && code != MAP_FAILED, "%s: %s", what, strerror(errno));
	give((uintptr_t)code + 8, n += 2);
	give((uintptr_t)code + PAGE_BYTES + 16, n + 1);
	expect_own(o, what, (uintptr_t)code + 8, n);
	expect_own(o, what, (uintptr_t)code + PAGE_BYTES + 16, n + 1);
	return 2 * n + 1;
}

/* Maps the code in file @fd twice, executable at its second page, and closes @fd. */
static const char *map_twice(int fd)
{
	const char *code;
	void *writable;

	cr_assert(fd >= 0 && ftruncate(fd, CODE_BYTES + PAGE_BYTES) == 0, "%s", strerror(errno));
	writable = mmap(NULL, CODE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, PAGE_BYTES);
	code = mmap(NULL, CODE_BYTES, CODE, MAP_SHARED, fd, PAGE_BYTES);
	cr_assert(writable != MAP_FAILED);
	close(fd);
	return code;
}

static int open_file(bool keeps)
{
	char path[] = "/dev/shm/profil-code-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);

	if (!keeps)
		unlink(path);
	return fd;
}

/* Maps a deleted file for reading only. */
static const char *map_read_only(void)
{
	char path[] = "/dev/shm/profil-code-XXXXXX";
	__cleanup(closep) int fd = mkostemp(path, O_CLOEXEC);
	__cleanup(closep) int again = open(path, O_RDONLY | O_CLOEXEC);

	cr_assert(fd >= 0 && again >= 0 && ftruncate(fd, CODE_BYTES) == 0);
	unlink(path);
	return mmap(NULL, CODE_BYTES, CODE, MAP_SHARED, again, 0);
}

Test(synth_origins, of_memory_that_is_presented_as_a_file_are_the_process)
{
	int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
	int segment = shmget(IPC_PRIVATE, CODE_BYTES, 0700);
	struct observer o;
	uint64_t n = 0;

	observe_self(&o);
	n += give_in(&o, "anonymous memory",
		     mmap(NULL, CODE_BYTES, CODE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
	n += give_in(&o, "shared anonymous memory",
		     mmap(NULL, CODE_BYTES, CODE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
	n += give_in(&o, "/dev/zero", mmap(NULL, CODE_BYTES, CODE, MAP_PRIVATE, zero, 0));
	n += give_in(&o, "/dev/zero, shared", mmap(NULL, CODE_BYTES, CODE, MAP_SHARED, zero, 0));
	n += give_in(&o, "a memfd that is mapped twice",
		     map_twice(memfd_create("doublemapper", MFD_CLOEXEC)));
	n += give_in(&o, "a deleted file that is mapped twice", map_twice(open_file(false)));
	n += give_in(&o, "a deleted file that is mapped read-only", map_read_only());
	n += give_in(&o, "System V shared memory", shmat(segment, NULL, SHM_EXEC));
	shmctl(segment, IPC_RMID, NULL);
	close(zero);
	cr_expect_eq(observer_check(&o), n);
	observer_close(&o);
}

Test(synth_origins, of_a_file_that_was_opened_for_writing_are_the_process)
{
	char path[] = "/dev/shm/profil-code-XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC);
	struct observer o;

	observe_self(&o);
	give_in(&o, "a file with a name", map_twice(fd));
	unlink(path);
	observer_close(&o);
}

Test(synth_origins, of_huge_pages_are_the_process)
{
	size_t bytes = 2u << 20;
	void *code = mmap(NULL, bytes, CODE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
	struct observer o;

	if (code == MAP_FAILED)
		cr_skip_test("no huge pages are reserved: %s", strerror(errno));
	observe_self(&o);
	give_in(&o, "huge pages", code);
	observer_close(&o);
}

/* --- copies of a program's text --------------------------------------------------------------- */

/* Replaces @pages pages of this program's text from loop 0 on by a copy, in memory with @flags. */
static void move_text(size_t pages, int flags)
{
	void *text = (void *)loop_at(0);
	void *copy = mmap(NULL, pages * PAGE_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC,
			  flags | MAP_ANONYMOUS, -1, 0);

	cr_assert(copy != MAP_FAILED);
	memcpy(copy, text, pages * PAGE_BYTES);
	cr_assert_eq(mprotect(copy, pages * PAGE_BYTES, CODE), 0);
	cr_assert_eq(mremap(copy, pages * PAGE_BYTES, pages * PAGE_BYTES,
			    MREMAP_MAYMOVE | MREMAP_FIXED, text),
		     text);
}

static void expect_moved(const char *what)
{
	uintptr_t second = loop_at(0) + PAGE_BYTES + 32;
	struct observer o;

	observe_self(&o);
	give(loop_at(3) + 4, 5);
	give(second, 7);
	expect_program(&o, what, loop_at(3) + 4, 5);
	expect_program(&o, what, second, 7);
	cr_expect_eq(observer_check(&o), 12);
	cr_expect_eq(observer_find(&o, PROFIL_IMAGE_ANON, NULL), 0, "%s", what);
	observer_close(&o);
}

Test(synth_origins, of_a_copied_text_are_in_its_file)
{
	move_text(1, MAP_PRIVATE);
	expect_moved("one page");
	move_text(2, MAP_PRIVATE);
	expect_moved("two pages");
	move_text(1, MAP_SHARED);
	expect_moved("two mappings of two kinds");
	move_text(2, MAP_SHARED);
	expect_moved("shared memory");
}

Test(synth_origins, of_code_behind_a_text_are_the_process)
{
	const char *end = NULL, *code;
	struct observer o;
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	unsigned long lo, hi;

	/* Code next to a mapping of the program, but not between two of them. */
	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2 && strstr(line, "kernel-tests"))
			end = (const char *)hi;
	}
	cr_assert(end);
	fclose(maps);
	code = mmap((void *)(uintptr_t)end, CODE_BYTES, CODE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	observe_self(&o);
	give_in(&o, "code behind the program", code);
	observer_close(&o);
}
