/* perfmap.c - names of compiled code from /tmp/perf-PID.map */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbols/jit_codes.h"
#include "symbols/jitdump.h"
#include "symbols/perf_map.h"
#include "symbols/elf_symbols.h"
#include "symbols/proc/file_account.h"

static int file_of(const char *text)
{
	int fd = memfd_create("map", 0);

	cr_assert_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

Test(ctl_perfmap, names_addresses)
{
	struct symbols_range r;
	struct symbols *s;
	int fd = file_of("7f0000001000 20 first\n7f0000001020 10 with blanks in it\n");

	cr_assert_eq(symbols_open_perfmap(&s, fd), 0);
	symbols_find(s, 0x7f000000101f, &r);
	cr_expect_eq(r.kind, SYMBOLS_NAMED);
	cr_expect(!strncmp(r.name, "first", r.name_len));
	cr_expect_eq(r.end, 0x7f0000001020);
	symbols_find(s, 0x7f0000001020, &r);
	cr_expect(!strncmp(r.name, "with blanks in it", r.name_len));
	symbols_find(s, 0x7f0000001030, &r);
	cr_expect_eq(r.kind, SYMBOLS_PAGE);
	symbols_close(s);
	close(fd);
}

Test(ctl_perfmap, keeps_the_later_name_and_skips_invalid_lines)
{
	struct perfmap map;
	int fd = file_of("1000 10 old\nrubbish\n2000 zz x\n3000 0 empty\n4000 10\n"
			 "ffffffffffffffff 10 around\n1000 20 new");

	cr_assert_eq(perfmap_read(&map, fd), 0);
	cr_assert_eq(map.n, 1);
	cr_expect_str_eq(map.name[0].name, "new");
	cr_expect_eq(map.name[0].bytes, 0x20);
	perfmap_fini(&map);
	close(fd);
}

static void expect_name(struct symbols *s, __u64 address, const char *name)
{
	struct symbols_range r;

	symbols_find(s, address, &r);
	if (!name)
		cr_expect_eq(r.kind, SYMBOLS_PAGE, "%llx is %.*s", address, (int)r.name_len,
			     r.name);
	else
		cr_expect(r.kind == SYMBOLS_NAMED && r.name_len == strlen(name) &&
				  !memcmp(r.name, name, r.name_len),
			  "%llx is %.*s, not %s", address, (int)r.name_len, r.name, name);
	cr_expect(r.start <= address && address < r.upto && r.upto <= r.end);
}

/* A JIT compiler reuses memory: the last line that covers an address is right. */
Test(ctl_perfmap, the_last_line_that_covers_an_address_names_it)
{
	struct symbols *s;
	int fd = file_of("1000 100 old0\n1100 100 old1\n1200 100 old2\n1300 200 old3\n"
			 "1000 400 new\n"
			 "2000 400 outer\n2100 100 inner\n"
			 "3800 800 later\n3000 1000 over\n");

	cr_assert_eq(symbols_open_perfmap(&s, fd), 0);
	expect_name(s, 0x1000, "new");
	expect_name(s, 0x1250, "new");
	expect_name(s, 0x13ff, "new");
	expect_name(s, 0x1400, "old3");
	expect_name(s, 0x1500, NULL);
	expect_name(s, 0x2050, "outer");
	expect_name(s, 0x2100, "inner");
	expect_name(s, 0x2200, "outer");
	expect_name(s, 0x3900, "over");
	symbols_close(s);
	close(fd);
}

Test(ctl_perfmap, a_line_can_replace_any_number_of_earlier_ones)
{
	static char text[64 << 10];
	struct symbols *s;
	size_t n = 0;
	int fd;

	for (int i = 0; i < 1000; i++)
		n += (size_t)sprintf(text + n, "%x 10 old%d\n", 0x10000 + 16 * i, i);
	sprintf(text + n, "10000 %x new\n", 16 * 1000);
	fd = file_of(text);
	cr_assert_eq(symbols_open_perfmap(&s, fd), 0);
	for (int i = 0; i < 1000; i++)
		expect_name(s, 0x10000u + 16u * (unsigned int)i + 3, "new");
	symbols_close(s);
	close(fd);
}

Test(ctl_perfmap, reads_only_a_file_of_the_process)
{
	char path[64];
	int fd;

	cr_expect_lt(perfmap_open(getpid()), 0);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY, 0644);
	cr_assert_geq(fd, 0);
	cr_expect_geq(perfmap_open(getpid()), 0);
	if (geteuid() == 0) {
		cr_assert_eq(fchown(fd, 65534, 65534), 0);
		cr_expect_lt(perfmap_open(getpid()), 0, "another user's file");
	}
	unlink(path);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_expect_lt(perfmap_open(getpid()), 0, "a link");
	unlink(path);
	cr_assert_eq(mkfifo(path, 0600), 0);
	cr_expect_lt(perfmap_open(getpid()), 0, "a pipe");
	unlink(path);
	close(fd);
}

/* Leaves the account of file @fd, which is a memfd of any maker, @bytes. */
static void leave_bytes(int fd, __u64 bytes)
{
	struct file_account *a = file_account_of(fd);

	cr_assert_not_null(a);
	cr_assert(file_account_take(a, file_account_bytes_left(a) - bytes));
}

static int large_file(size_t bytes)
{
	int fd = memfd_create("map", 0);
	char text[1 << 16];

	memset(text, 'x', sizeof(text));
	for (size_t n = 0; n < bytes; n += sizeof(text))
		cr_assert_eq(write(fd, text, sizeof(text)), (ssize_t)sizeof(text));
	return fd;
}

Test(ctl_perfmap, has_no_names_of_an_unreadable_file)
{
	struct symbols *s;
	struct perfmap map;
	int fd = large_file(1 << 20);

	leave_bytes(fd, 1 << 20);
	cr_expect_eq(perfmap_read(&map, fd), -EFBIG);
	perfmap_fini(&map);
	cr_expect_eq(symbols_open_perfmap(&s, fd), -EFBIG);
	close(fd);
	cr_expect_eq(perfmap_read(&map, fd), -EBADF);
	perfmap_fini(&map);
}

Test(ctl_perfmap, has_no_names_when_its_lines_are_more_than_the_user_may_have)
{
	static char lines[32 << 10];
	struct perfmap map;
	int fd;

	memset(lines, '\n', sizeof(lines) - 1);
	fd = file_of(lines);
	leave_bytes(fd, 1 << 20);
	cr_expect_eq(perfmap_read(&map, fd), -EFBIG);
	perfmap_fini(&map);
	close(fd);
}

Test(ctl_perfmap, a_process_that_has_ended_has_none)
{
	pid_t pid = fork();

	if (!pid)
		_exit(0);
	cr_assert_eq(waitpid(pid, NULL, 0), pid);
	cr_expect_lt(perfmap_open(pid), 0);
}

/* A byte of the file must not cost a byte of memory if it costs the file's owner nothing. */
Test(ctl_perfmap, ends_at_a_nul_in_a_sparse_file)
{
	struct perfmap map;
	int fd = file_of("1000 10 first\n");

	cr_assert_eq(ftruncate(fd, 200 << 20), 0);
	cr_assert_eq(perfmap_read(&map, fd), 0);
	cr_expect_eq(map.n, 1);
	cr_expect_lt(map.held_bytes, 4096, "%zu bytes are held", map.held_bytes);
	perfmap_fini(&map);
	close(fd);
}

Test(ctl_perfmap, shares_its_memory_among_all_maps_of_a_user)
{
	struct perfmap a, b;
	int fd = large_file(10 << 16);

	leave_bytes(fd, 1 << 20);
	cr_assert_eq(perfmap_read(&a, fd), 0);
	cr_expect_eq(perfmap_read(&b, fd), -EFBIG);
	perfmap_fini(&b);
	perfmap_fini(&a);
	cr_expect_eq(perfmap_read(&b, fd), 0, "the memory was given back");
	perfmap_fini(&b);
	close(fd);
}

/* A map of user @owner. */
static int file_of_user(uid_t owner)
{
	int fd = file_of("1000 10 function\n");

	cr_assert_eq(fchown(fd, owner, (gid_t)-1), 0);
	cr_assert_eq(fchmod(fd, 0600), 0);
	return fd;
}

static int read_result(int fd)
{
	struct perfmap map;
	int err = perfmap_read(&map, fd);

	perfmap_fini(&map);
	return err;
}

Test(ctl_perfmap, of_one_user_takes_no_room_or_time_of_another_users)
{
	enum { ONE = 4000000001u, OTHER = 4000000002u, THIRD = 4000000003u };
	int one, other, third;

	if (geteuid())
		cr_skip_test("needs root, to give files to other users");
	one = file_of_user(ONE);
	other = file_of_user(OTHER);
	third = file_of_user(THIRD);
	leave_bytes(one, 0);
	cr_expect_eq(read_result(one), -EFBIG);
	cr_expect_eq(read_result(other), 0);
	file_account_use_time(file_account_for(OTHER), FILE_TIME,
			      file_account_time_left(file_account_for(OTHER), FILE_TIME));
	cr_expect_eq(read_result(other), -EFBIG);
	cr_expect_eq(read_result(third), 0);
	close(one);
	close(other);
	close(third);
}

/* A jitdump: its head, and code of @bytes at @start, whose name is followed by the code. */
static size_t put_head(char *out, __u32 magic)
{
	struct {
		__u32 magic, version, bytes, machine, zero, pid;
		__u64 ns, flags;
	} head = { magic, 1, sizeof(head), 62, 0, 1, 0, 0 };

	memcpy(out, &head, sizeof(head));
	return sizeof(head);
}

static size_t put_record(char *out, __u32 id, __u64 start, __u64 bytes, const char *name)
{
	struct {
		__u32 id, all;
		__u64 ns;
		__u32 pid, tid;
		__u64 vma, start, bytes, number;
	} load = { id, 0, 0, 1, 1, start, start, bytes, 0 };
	size_t name_bytes = strlen(name) + 1;

	load.all = (__u32)(sizeof(load) + name_bytes + bytes);
	memcpy(out, &load, sizeof(load));
	memcpy(out + sizeof(load), name, name_bytes);
	memset(out + sizeof(load) + name_bytes, 0xc3, bytes);
	return load.all;
}

static size_t put_move(char *out, __u64 to, __u64 number)
{
	struct {
		__u32 id, all;
		__u64 ns;
		__u32 pid, tid;
		__u64 vma, from, to, bytes, number;
	} move = { 1, sizeof(move), 0, 1, 1, to, 0, to, 0, number };

	memcpy(out, &move, sizeof(move));
	return sizeof(move);
}

/* Lines 10 and 11 of @file, which begin at @first and 4 bytes later. */
static size_t put_lines(char *out, __u64 start, __u64 first, const char *file)
{
	size_t name_bytes = strlen(file) + 1;
	struct {
		__u64 address;
		__u32 line, discriminator;
	} line[] = { { first, 10, 0 }, { first + 4, 11, 0 } };
	struct {
		__u32 id, all;
		__u64 ns, start, n;
	} info = { 2, (__u32)(sizeof(info) + sizeof(line) + name_bytes + 2), 0, start, 2 };

	memcpy(out, &info, sizeof(info));
	out += sizeof(info);
	memcpy(out, &line[0], sizeof(line[0]));
	memcpy(out + sizeof(line[0]), file, name_bytes);
	out += sizeof(line[0]) + name_bytes;
	memcpy(out, &line[1], sizeof(line[1]));
	memcpy(out + sizeof(line[1]), "\xff", 2);
	return info.all;
}

#define JITDUMP 0x4a695444u
#define LOAD 0
#define DEBUG_LINES 2

/* Reads the @n bytes as a map. */
static struct perfmap map_of(const char *bytes, size_t n)
{
	struct perfmap map;
	int fd = memfd_create("dump", 0);

	cr_assert_eq(write(fd, bytes, n), (ssize_t)n);
	cr_assert_eq(perfmap_read(&map, fd), 0);
	close(fd);
	return map;
}

Test(ctl_perfmap, a_jitdump_names_the_newest_code_of_each_address)
{
	static char dump[1 << 16];
	size_t n = put_head(dump, JITDUMP);
	struct perfmap map;

	n += put_record(dump + n, LOAD, 0x1000, 0x100, "old");
	n += put_record(dump + n, DEBUG_LINES, 0x1000, 0x40, "lines");
	n += put_record(dump + n, LOAD, 0x3000, 0x10, "two\nlines");
	n += put_record(dump + n, LOAD, 0x1000, 0x80, "new");
	map = map_of(dump, n);
	cr_assert_eq(map.n, 3);
	cr_expect_str_eq(map.name[0].name, "new");
	cr_expect_eq(map.name[0].bytes, 0x80);
	cr_expect_str_eq(map.name[1].name, "old");
	cr_expect_eq(map.name[1].start, 0x1080);
	cr_expect_str_eq(map.name[2].name, "two lines");
	perfmap_fini(&map);
	/* The last record is still being written. */
	map = map_of(dump, n - 1);
	cr_expect_eq(map.n, 3);
	perfmap_fini(&map);
	map = map_of(dump, n - 0x80 - 10);
	cr_expect_eq(map.n, 2);
	perfmap_fini(&map);
	/* Of another byte order, it is text without a line. */
	put_head(dump, __builtin_bswap32(JITDUMP));
	map = map_of(dump, n);
	cr_expect_eq(map.n, 0);
	perfmap_fini(&map);
}

/* Sizes that do not fit their record, or would end the file where it began. */
static void expect_too_large(int fd, __u64 left)
{
	struct perfmap map;

	leave_bytes(fd, left);
	cr_expect_eq(perfmap_read(&map, fd), -EFBIG, "%llu bytes are left", left);
	perfmap_fini(&map);
}

Test(ctl_perfmap, a_jitdump_has_no_names_when_they_are_more_than_the_user_may_have)
{
	static char dump[1 << 19];
	size_t n = put_head(dump, JITDUMP);
	int fd = memfd_create("dump", 0);
	char name[101];

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	for (__u64 i = 0; i < 2000; i++)
		n += put_record(dump + n, LOAD, 0x10000 + 16 * i, 16, name);
	cr_assert_eq(write(fd, dump, n), (ssize_t)n);
	expect_too_large(fd, 100 << 10);
	expect_too_large(fd, 1000);
	close(fd);
}

Test(ctl_perfmap, a_jitdump_of_wrong_sizes_ends_or_lacks_their_code)
{
	static char dump[1 << 16];
	size_t head = put_head(dump, JITDUMP), n = head;
	__u64 more = ~0ull;
	__u32 none = 0;
	struct perfmap map;

	n += put_record(dump + n, LOAD, 0x1000, 0x10, "larger");
	memcpy(dump + head + 40, &more, sizeof(more));
	n += put_record(dump + n, LOAD, 0x2000, 0x10, "right");
	map = map_of(dump, n);
	cr_assert_eq(map.n, 1);
	cr_expect_str_eq(map.name[0].name, "right");
	perfmap_fini(&map);
	memcpy(dump + head + 4, &none, sizeof(none));
	map = map_of(dump, n);
	cr_expect_eq(map.n, 0);
	perfmap_fini(&map);
}

static void expect_line(const struct jit_codes *c, __u64 address, const char *file, int line)
{
	char found[64] = "";

	cr_expect_eq(jit_codes_line(c, address, found, sizeof(found)), line, "%llx", address);
	cr_expect_str_eq(found, file, "%llx", address);
}

/* Writes the @n bytes to a new file, as whose jitdump @o has. */
static void jitdump_of(struct object *o, const char *bytes, size_t n)
{
	*o = (struct object){ .kind = OBJECT_ANON, .fd = memfd_create("dump", 0) };
	cr_assert_eq(write(o->fd, bytes, n), (ssize_t)n);
}

Test(ctl_perfmap, a_jitdump_has_lines_and_bytes_of_its_newest_code)
{
	static char dump[1 << 16];
	size_t n = put_head(dump, JITDUMP);
	unsigned char bytes[64];
	struct jit_codes *c;
	struct object o;

	n += put_lines(dump + n, 0x1000, 0x1000, "/old");
	n += put_record(dump + n, LOAD, 0x1000, 0x100, "old");
	n += put_lines(dump + n, 0x1000, 0x1040, "/of.v8"); /* behind an ELF header */
	n += put_record(dump + n, LOAD, 0x1000, 0x80, "new");
	n += put_lines(dump + n, 0x9000, 0x3000, "/of.another");
	n += put_record(dump + n, LOAD, 0x3000, 0x10, "without");
	n += put_lines(dump + n, 0x5000, 0x5000, "/no\x1b[text");
	n += put_record(dump + n, LOAD, 0x5000, 0x10, "strange");
	jitdump_of(&o, dump, n);
	cr_assert_eq(jit_codes_open(&c, &o), 0);
	expect_line(c, 0x1000, "/of.v8", 10);
	expect_line(c, 0x107f, "/of.v8", 11);
	expect_line(c, 0x1080, "/old", 11);
	expect_line(c, 0x3000, "", 0);
	expect_line(c, 0x5000, "", 0);
	expect_line(c, 0x7000, "", 0);
	cr_expect_eq(jit_codes_read(c, 0x1080, bytes, sizeof(bytes)), sizeof(bytes));
	cr_expect_eq(bytes[0], 0xc3);
	cr_expect_eq(jit_codes_read(c, 0x300f, bytes, sizeof(bytes)), 1);
	cr_expect_eq(jit_codes_read(c, 0x3010, bytes, sizeof(bytes)), 0);
	jit_codes_close(c);
	close(o.fd);
}

/* All records have the number 0, of which the first is meant. */
Test(ctl_perfmap, code_of_a_jitdump_keeps_its_name_and_lines_when_it_moves)
{
	static char dump[1 << 16];
	size_t n = put_head(dump, JITDUMP);
	struct jit_codes *c;
	struct perfmap map;
	struct object o;

	n += put_move(dump + n, 0x8000, 0); /* before there is any */
	n += put_lines(dump + n, 0x1000, 0x1000, "/source");
	n += put_record(dump + n, LOAD, 0x1000, 0x10, "moves");
	n += put_record(dump + n, LOAD, 0x2000, 0x10, "stays");
	n += put_move(dump + n, 0x4000, 0);
	n += put_move(dump + n, 0x6000, 1); /* of no code */
	map = map_of(dump, n);
	cr_assert_eq(map.n, 3);
	cr_expect_eq(map.name[2].start, 0x4000);
	cr_expect_str_eq(map.name[2].name, "moves");
	perfmap_fini(&map);
	jitdump_of(&o, dump, n);
	cr_assert_eq(jit_codes_open(&c, &o), 0);
	expect_line(c, 0x4004, "/source", 11);
	expect_line(c, 0x6000, "", 0);
	jit_codes_close(c);
	close(o.fd);
}

/* What was written after the functions were named is not read, and no other file at the path. */
Test(ctl_perfmap, a_jitdump_is_found_again_as_it_was)
{
	static char dump[1 << 16];
	size_t head = put_head(dump, JITDUMP), n = head;
	char path[] = "/tmp/profil-jitdump-XXXXXX";
	struct object o = { .kind = OBJECT_ANON, .fd = mkstemp(path) };
	struct jit_codes *c;

	n += put_lines(dump + n, 0x1000, 0x1000, "/then");
	n += put_record(dump + n, LOAD, 0x1000, 0x10, "then");
	cr_assert_eq(write(o.fd, dump, n), (ssize_t)n);
	cr_assert_eq(jit_codes_identify(&o), 0);
	cr_assert_str_eq(o.jitdump, path);
	n = put_lines(dump, 0x1000, 0x1000, "/later");
	n += put_record(dump + n, LOAD, 0x1000, 0x10, "later");
	cr_assert_eq(write(o.fd, dump, n), (ssize_t)n);
	close(o.fd);
	o.fd = -1;
	cr_assert_eq(jit_codes_open(&c, &o), 0);
	expect_line(c, 0x1000, "/then", 10);
	jit_codes_close(c);
	o.file_mtime_ns++;
	cr_expect_eq(jit_codes_open(&c, &o), -ENOENT);
	unlink(path);
	free(o.jitdump);
}

Test(ctl_perfmap, finds_the_jitdump_that_the_process_has_mapped)
{
	char path[64], map[64], dump[512];
	size_t n = put_head(dump, JITDUMP);
	void *mark;
	int fd, found;

	n += put_record(dump + n, LOAD, 0x1000, 0x10, "code");
	snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
	fd = open(path, O_CREAT | O_EXCL | O_RDWR, 0644);
	cr_assert_eq(write(fd, dump, n), (ssize_t)n);
	cr_expect_lt(perfmap_open_any(getpid()), 0, "it is not mapped");
	mark = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(mark, MAP_FAILED);
	cr_expect_lt(perfmap_open(getpid()), 0, "it is no perf map");
	snprintf(map, sizeof(map), "/tmp/perf-%d.map", (int)getpid());
	close(open(map, O_CREAT | O_EXCL | O_RDWR, 0644));
	found = perfmap_open_any(getpid());
	cr_expect(found >= 0 && jitdump_is(found), "it has more than the perf map has");
	close(found);
	unlink(map);
	if (geteuid() == 0) {
		cr_assert_eq(fchown(fd, 65534, 65534), 0);
		cr_expect_lt(perfmap_open_any(getpid()), 0, "another user's file");
	}
	munmap(mark, 4096);
	unlink(path);
	close(fd);
}
