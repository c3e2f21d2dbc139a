/* jit_feeder.c - unwind rules of code of a JIT compiler, from its jitdump */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/arch.h"
#include "core/unwind_maps.h"
#include "profile/profile.h"
#include "symbols/jit_rows.h"
#include "table/jit_feeder.h"
#include "table/unwind_feeder.h"
#include "table/unwind_pages.h"

#define BASE (5ull << 32) /* of the image */
#define CODE_BYTES 16

/* tools/perf/Documentation/jitdump-specification.txt */
enum record { LOAD, MOVE, UNWINDING_INFO = 4 };

static int dump_of(void)
{
	struct {
		__u32 magic, version, bytes, machine, zero, pid;
		__u64 ns, flags;
	} head = { 0x4a695444, 1, sizeof(head), ARCH_ELF_MACHINE, 0, 1, 0, 0 };
	int fd = memfd_create("dump", MFD_CLOEXEC);

	cr_assert_eq(write(fd, &head, sizeof(head)), (ssize_t)sizeof(head));
	return fd;
}

/* The rules of the code that comes next: the CFA is the stack pointer + 8. @bytes: as it is said. */
static void put_rules(int fd, __u64 bytes)
{
	enum { SP = ARCH_RA_ON_STACK ? 7 : 31, LINK = ARCH_RA_ON_STACK ? 16 : 30 };
	static const __u8 cie[] = { 1, 'z',  'R',  0,  1, 0x78,	       LINK,
				    1, 0x1b, 0x0c, SP, 8, 0x80 | LINK, 1 };
	struct {
		__u32 id, all;
		__u64 ns, bytes, hdr_bytes, mapped;
		struct {
			__u32 bytes, zero;
			__u8 is[16];
		} cie;
		struct {
			__u32 bytes, to_cie, start, n;
			__u8 augmentation, none[3];
		} fde;
		__u32 end, hdr[2];
	} info = { .id = UNWINDING_INFO,
		   .all = sizeof(info),
		   .bytes = bytes,
		   .hdr_bytes = sizeof(info.hdr),
		   .cie.bytes = sizeof(info.cie) - 4,
		   .fde = { sizeof(info.fde) - 4,
			    sizeof(info.cie) + 4,
			    -(CODE_BYTES + (__u32)sizeof(info.cie) + 8),
			    CODE_BYTES,
			    0,
			    { 0 } } };

	memcpy(info.cie.is, cie, sizeof(cie));
	cr_assert_eq(write(fd, &info, sizeof(info)), (ssize_t)sizeof(info));
}

#define RULES_BYTES 56 /* of these, both parts */

static void put_code(int fd, __u64 start, __u64 number)
{
	struct {
		__u32 id, all;
		__u64 ns;
		__u32 pid, tid;
		__u64 vma, start, bytes, number;
		char name[8], code[CODE_BYTES];
	} load = { LOAD, sizeof(load), 0, 1, 1, start, start, CODE_BYTES, number, "code", { 0 } };

	cr_assert_eq(write(fd, &load, sizeof(load)), (ssize_t)sizeof(load));
}

static void put_move(int fd, __u64 from, __u64 to, __u64 number)
{
	struct {
		__u32 id, all;
		__u64 ns;
		__u32 pid, tid;
		__u64 vma, from, to, bytes, number;
	} move = { MOVE, sizeof(move), 0, 1, 1, to, from, to, CODE_BYTES, number };

	cr_assert_eq(write(fd, &move, sizeof(move)), (ssize_t)sizeof(move));
}

static struct unwind_table rows_of(int fd)
{
	const struct object o = { .kind = OBJECT_ANON, .fd = fd };
	struct unwind_table t;

	cr_assert_eq(jit_rows_read(&t, &o, BASE), 0);
	return t;
}

static int kind_at(const struct unwind_table *t, __u32 offset)
{
	const struct profil_unwind_row *row = unwind_table_find(t, offset);

	return row ? row->rule & PROFIL_UNWIND_KIND : -1;
}

Test(jit_rows, are_those_of_the_newest_code)
{
	struct unwind_table t;
	int fd = dump_of();

	put_rules(fd, RULES_BYTES);
	put_code(fd, BASE + 0x1000, 0);
	put_rules(fd, RULES_BYTES);
	put_code(fd, BASE + 0x2000, 1);
	put_code(fd, BASE + 0x2000 + CODE_BYTES / 2, 2); /* without rules */
	put_move(fd, BASE + 0x1000, BASE + 0x3008, 0);
	put_rules(fd, RULES_BYTES);
	put_code(fd, BASE + (1ull << 32), 3); /* in the next image */
	t = rows_of(fd);
	cr_expect_eq(kind_at(&t, 0xfff), -1);
	cr_expect_eq(kind_at(&t, 0x1000), PROFIL_UNWIND_SP);
	cr_expect_eq(kind_at(&t, 0x1000 + CODE_BYTES), PROFIL_UNWIND_NONE);
	cr_expect_eq(kind_at(&t, 0x2007), PROFIL_UNWIND_SP);
	cr_expect_eq(kind_at(&t, 0x2008), PROFIL_UNWIND_NONE);
	cr_expect_eq(kind_at(&t, 0x3008), PROFIL_UNWIND_SP, "it has moved");
	cr_expect_eq(kind_at(&t, 0x3008 + CODE_BYTES), PROFIL_UNWIND_NONE);
	cr_expect_eq(t.n, 6);
	unwind_table_fini(&t);
	close(fd);
}

Test(jit_rows, are_not_of_rules_of_wrong_sizes)
{
	struct unwind_table t;
	int fd = dump_of();

	put_rules(fd, 4);
	put_code(fd, BASE + 0x1000, 0);
	put_rules(fd, RULES_BYTES + 1);
	put_code(fd, BASE + 0x2000, 1);
	put_rules(fd, ~0ull);
	put_code(fd, BASE + 0x3000, 2);
	put_rules(fd, 20); /* the first bytes */
	put_code(fd, BASE + 0x4000, 3);
	t = rows_of(fd);
	cr_expect_eq(t.n, 0);
	unwind_table_fini(&t);
	close(fd);
}

/* --- in the map ------------------------------------------------------------------------------- */

static struct unwind_feeder feeder;
static struct table_reader reader;

/* A table with one image, the memory of a process. */
static void start(int dump)
{
	static _Alignas(PROFIL_UNWIND_PAGE) char bytes[2 * PROFIL_UNWIND_PAGE];
	static __u32 object[] = { 0, 1 };
	struct profil_table *head = (void *)bytes;
	struct profil_image *image = (void *)(bytes + PROFIL_UNWIND_PAGE);
	int fd = memfd_create("unwind", MFD_CLOEXEC);
	__u32 index;

	*head = (struct profil_table){ .images = 1,
				       .used_images = 1,
				       .image_page = 1,
				       .stack_mode = PROFIL_STACK_AUTO,
				       .unwind_pages = PROFIL_UNWIND_IMAGE_PAGE + 256 };
	*image = (struct profil_image){ .kind = PROFIL_IMAGE_ANON, .ready = 1, .base = BASE };
	reader = (struct table_reader){
		.table.head = head, .profile = profile_new(), .object = object, .images = 1
	};
	cr_assert_eq(profile_add_object(reader.profile, PROFILE_ANON, 0, 0, dump, &index), 0);
	cr_assert_eq(ftruncate(fd, (off_t)head->unwind_pages * PROFIL_UNWIND_PAGE), 0);
	cr_assert_eq(unwind_feeder_open(&feeder, fd, &reader.table), 0);
	close(fd);
}

static void stop(void)
{
	unwind_feeder_close(&feeder);
	profile_free(reader.profile);
}

/* Says whether the kernel would find @offset covered by a rule. */
static bool is_fed(__u32 offset)
{
	const struct profil_unwind_image *entry = unwind_entry_of(&feeder, 1);
	struct unwind_table t = { 0 };

	if (feeder.njits)
		feeder.jits[0].next_ns = 0;
	unwind_feeder_update(&feeder, &reader);
	if (!entry->pages || *(__u32 *)unwind_page_at(&feeder, entry->first_page) > offset)
		return false;
	t.row = unwind_page_at(&feeder, entry->row_page);
	t.n = entry->pages * PROFIL_PAGE_ROWS;
	return kind_at(&t, offset) == PROFIL_UNWIND_SP;
}

Test(jit_feeder, feeds_rules_as_the_jitdump_grows, .fini = stop)
{
	int fd = dump_of();

	put_code(fd, BASE + 0x500, 0);
	start(fd);
	cr_expect_not(is_fed(0x500));
	for (__u32 i = 1; i <= 4; i++) {
		for (__u32 k = 0; k < 500; k++) {
			put_rules(fd, RULES_BYTES);
			put_code(fd, BASE + i * 0x10000 + 2 * k * CODE_BYTES, i);
		}
		cr_expect(is_fed(i * 0x10000 + 2 * 499 * CODE_BYTES));
		cr_expect(is_fed(0x10000));
		cr_expect_not(is_fed(0x10000 + CODE_BYTES));
	}
	unwind_feeder_clear(&feeder);
	cr_expect_eq(unwind_entry_of(&feeder, 1)->pages, 0);
	cr_expect(is_fed(0x40000));
}
