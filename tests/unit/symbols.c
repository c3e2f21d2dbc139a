/* symbols.c - functions of real ELF files, stripped in every way that Debian strips */
#include <criterion/criterion.h>
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/scope.h"
#include "profilctl/debugfile.h"
#include "profilctl/symbols.h"

/*
 * The functions are no code but marks that are found again in the file: an oracle that knows
 * nothing of ELF. "bare" is what a linker leaves of assembly without .size; "inner" is a label in
 * a function; "hidden" is local; there is a gap before "after".
 */
static const char source[] =
	"asm(\".text\\n\"\n"
	"\".globl sized\\n.type sized,@function\\nsized: .cfi_startproc\\n"
	".ascii \\\"<sized-mark\\\"\\ninner: .ascii \\\"<inner-mark\\\"\\n"
	".cfi_endproc\\n.size sized, .-sized\\n\"\n"
	"\".globl _sized\\n.set _sized, sized\\n.weak aaa\\n.set aaa, sized\\n\"\n"
	"\".type hidden,@function\\nhidden: .cfi_startproc\\n.ascii \\\"<hidden-mark\\\"\\n"
	".cfi_endproc\\n.size hidden, .-hidden\\n\"\n"
	"\".globl bare\\nbare: .ascii \\\"<bare-mark\\\"\\n\"\n"
	"\".globl after\\n.type after,@function\\n.balign 64\\nafter: .cfi_startproc\\n"
	".ascii \\\"<after-mark\\\"\\n.cfi_endproc\\n.size after, .-after\\n\"\n"
	"\".ascii \\\"<gap-mark\\\"\\n.balign 64\\n\");\n"
	"int main(void) { return 0; }\n";

static char dir[] = "/tmp/profil-symbols.XXXXXX";

static void run(const char *command)
{
	char line[1024];

	if (strstr(command, "gcc") && system("command -v gcc >/dev/null") != 0)
		cr_skip_test("no gcc here, to build what is to be read");
	snprintf(line, sizeof(line), "cd %s && %s", dir, command);
	cr_assert_eq(system(line), 0, "%s failed", command);
}

static void set_up(void)
{
	char path[128];
	FILE *f;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/a.c", dir);
	f = fopen(path, "w");
	cr_assert_eq(fputs(source, f) < 0 || fclose(f), 0);
	debugfile_dir = dir;
}

static void tear_down(void)
{
	run("rm -rf \"$PWD\"");
}

TestSuite(symbols, .init = set_up, .fini = tear_down);

struct file {
	char path[128];
	int fd;
	char *bytes;
	size_t size;
	struct symbols *symbols;
};

static void file_open(struct file *f, const char *name)
{
	struct stat st;

	snprintf(f->path, sizeof(f->path), "%s/%s", dir, name);
	f->fd = open(f->path, O_RDWR);
	cr_assert(f->fd >= 0 && fstat(f->fd, &st) == 0);
	f->size = (size_t)st.st_size;
	f->bytes = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	cr_assert_neq(f->bytes, MAP_FAILED);
	cr_assert_eq(symbols_open(&f->symbols, f->fd, f->path), 0);
}

static void file_close(struct file *f)
{
	symbols_close(f->symbols);
	munmap(f->bytes, f->size);
	close(f->fd);
}

static __u64 offset_of(const struct file *f, const char *mark)
{
	char *at = memmem(f->bytes, f->size, mark, strlen(mark));

	cr_assert_not_null(at, "%s is not in the file", mark);
	return (__u64)(at - f->bytes);
}

/* The function at the third byte of @mark must be @name, and start there; NULL: without a name. */
static void is(const struct file *f, const char *mark, const char *name)
{
	__u64 at = offset_of(f, mark);
	struct symbols_range r;

	symbols_find(f->symbols, at + 2, &r);
	if (!name) {
		cr_expect_neq(r.kind, SYMBOLS_NAMED, "%s is called %.*s", mark, (int)r.name_len,
			      r.name);
		return;
	}
	cr_expect_eq(r.kind, SYMBOLS_NAMED, "%s has no name", mark);
	cr_expect(r.name_len == strlen(name) && !memcmp(r.name, name, r.name_len),
		  "%s is called %.*s, not %s", mark, (int)r.name_len, r.name, name);
	cr_expect_eq(r.start, at, "%s starts at %llx, not %llx", mark, r.start, at);
	cr_expect(r.upto > at + 2 && r.upto <= r.end);
}

static void all_are_known(const char *name)
{
	struct symbols_range r;
	struct file f;

	file_open(&f, name);
	is(&f, "<sized-mark", "sized");
	is(&f, "<hidden-mark", "hidden");
	is(&f, "<bare-mark", "bare");
	is(&f, "<after-mark", "after");
	is(&f, "<gap-mark", NULL);
	symbols_find(f.symbols, offset_of(&f, "<inner-mark"), &r);
	cr_expect(r.name && !strncmp(r.name, "sized", 5), "a label in a function is no function");
	file_close(&f);
}

/* Only what others may link with has a name left. */
static void exported_are_known(const char *name)
{
	struct symbols_range r;
	struct file f;

	file_open(&f, name);
	is(&f, "<sized-mark", "sized");
	is(&f, "<hidden-mark", NULL);
	is(&f, "<after-mark", "after");
	symbols_find(f.symbols, offset_of(&f, "<hidden-mark") + 3, &r);
	cr_expect_eq(r.kind, SYMBOLS_FRAME);
	cr_expect_eq(r.start, offset_of(&f, "<hidden-mark"));
	file_close(&f);
}

Test(symbols, pie)
{
	run("gcc -O2 -pie -fPIE -o a a.c");
	all_are_known("a");
}

Test(symbols, at_fixed_addresses)
{
	run("gcc -O2 -no-pie -fno-pie -o a a.c");
	all_are_known("a");
}

Test(symbols, shared_library)
{
	run("gcc -O2 -shared -fPIC -o a.so a.c");
	all_are_known("a.so");
}

Test(symbols, stripped_library_has_its_dynamic_ones)
{
	run("gcc -O2 -shared -fPIC -o a.so a.c && strip a.so");
	exported_are_known("a.so");
}

Test(symbols, stripped_program_has_its_frames)
{
	struct symbols_range r;
	struct file f;

	run("gcc -O2 -pie -fPIE -o a a.c && strip a");
	file_open(&f, "a");
	symbols_find(f.symbols, offset_of(&f, "<after-mark") + 3, &r);
	cr_expect_eq(r.kind, SYMBOLS_FRAME);
	cr_expect_eq(r.start, offset_of(&f, "<after-mark"));
	file_close(&f);
}

Test(symbols, split_off_and_found_by_build_id)
{
	run("gcc -O2 -pie -fPIE -Wl,--build-id -o a a.c && "
	    "id=$(readelf -n a | sed -n 's/.*Build ID: //p') && "
	    "d=.build-id/$(echo $id | cut -c 1-2) && mkdir -p $d && "
	    "objcopy --only-keep-debug a $d/$(echo $id | cut -c 3-).debug && strip a");
	all_are_known("a");
}

Test(symbols, split_off_and_fetched_from_a_server)
{
	char url[64], cache[64];

	snprintf(url, sizeof(url), "file://%s", dir);
	snprintf(cache, sizeof(cache), "%s/cache", dir);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	run("gcc -O2 -pie -fPIE -Wl,--build-id -o a a.c && "
	    "d=buildid/$(readelf -n a | sed -n 's/.*Build ID: //p') && mkdir -p $d && "
	    "objcopy --only-keep-debug a $d/debuginfo && strip a");
	all_are_known("a");
}

Test(symbols, split_off_and_found_by_link)
{
	run("gcc -O2 -no-pie -fno-pie -Wl,--build-id=none -o a a.c && "
	    "objcopy --only-keep-debug a a.debug && strip a && "
	    "objcopy --add-gnu-debuglink=a.debug a && mkdir .debug && mv a.debug .debug");
	all_are_known("a");
}

Test(symbols, the_debug_file_of_another_build_is_not_taken)
{
	struct file f;

	run("gcc -O2 -pie -fPIE -Wl,--build-id=none -o a a.c && "
	    "objcopy --only-keep-debug a a.debug && strip a && "
	    "objcopy --add-gnu-debuglink=a.debug a && echo >> a.debug");
	file_open(&f, "a");
	is(&f, "<sized-mark", NULL);
	file_close(&f);
}

/* prelink(8) moves the segments of a file, long after its symbols were split off. */
Test(symbols, split_off_before_it_was_moved)
{
	struct file f;
	Elf64_Ehdr *e;
	Elf64_Phdr *p;

	run("gcc -O2 -no-pie -fno-pie -Wl,--build-id=none -o a a.c && "
	    "objcopy --only-keep-debug a a.debug && strip a && "
	    "objcopy --add-gnu-debuglink=a.debug a");
	file_open(&f, "a");
	e = (void *)f.bytes;
	p = (void *)(f.bytes + e->e_phoff);
	for (int i = 0; i < e->e_phnum; i++)
		p[i].p_vaddr += 0x12340000;
	file_close(&f);
	all_are_known("a");
}

Test(symbols, names_lose_their_version)
{
	struct file f;

	run("sed -e 's/after/impl/g' -e 's/impl-mark/after-mark/' "
	    "-e 's/int main/asm(\".symver impl, after@@V1\");int main/' a.c > v.c && "
	    "echo 'V1 { *; };' > v.map && "
	    "gcc -O2 -shared -fPIC -Wl,--version-script=v.map -o v.so v.c");
	file_open(&f, "v.so");
	is(&f, "<after-mark", "after");
	file_close(&f);
}

/* What objdump calls the stub, we do. */
Test(symbols, stubs_are_called_after_what_they_call)
{
	unsigned long long start;
	struct symbols_range r;
	struct file f;
	char path[128];
	FILE *said;

	run("echo 'int one(void); int two(void); int f(void) { return one() + two(); }' > p.c && "
	    "gcc -O2 -shared -fPIC -o p.so p.c && strip p.so && "
	    "objdump -d p.so | sed -n 's/^\\([0-9a-f]*\\) <two@plt>:/0x\\1/p' > said");
	snprintf(path, sizeof(path), "%s/said", dir);
	said = fopen(path, "r");
	cr_assert(said && fscanf(said, "%llx", &start) == 1);
	fclose(said);
	file_open(&f, "p.so");
	symbols_find(f.symbols, start + 4, &r);
	cr_expect_eq(r.kind, SYMBOLS_NAMED);
	cr_expect(r.name_len == 7 && !memcmp(r.name, "two@plt", 7));
	cr_expect_eq(r.start, start);
	file_close(&f);
}

Test(symbols, of_the_vdso)
{
	struct symbols *s;
	bool found = false;

	cr_assert_eq(symbols_open_vdso(&s), 0);
	for (__u64 at = 0; at < 0x4000 && !found; at += 16) {
		struct symbols_range r;

		symbols_find(s, at, &r);
		found = r.kind == SYMBOLS_NAMED && r.name_len > 13 &&
			memmem(r.name, r.name_len, "clock_gettime", 13);
	}
	cr_expect(found);
	symbols_close(s);
}

Test(symbols, what_is_no_elf_file_is_refused)
{
	struct symbols *s;
	char path[128];
	__cleanup(closep) int fd = -1;

	snprintf(path, sizeof(path), "%s/a.c", dir);
	fd = open(path, O_RDONLY);
	cr_expect_lt(symbols_open(&s, fd, path), 0);
}

/* A file that is cut or damaged anywhere has fewer symbols, or none: it never takes us along. */
Test(symbols, damage_does_no_harm)
{
	struct file f;

	run("gcc -O2 -shared -fPIC -o a.so a.c");
	file_open(&f, "a.so");
	srand(1);
	for (int i = 0; i < 3000; i++) {
		struct symbols_range r;
		struct symbols *s;
		size_t at = (size_t)rand() % f.size;
		char was = f.bytes[at];

		f.bytes[at] = (char)rand();
		if (!symbols_open(&s, f.fd, "")) {
			for (__u64 o = 0; o < f.size; o += 97) {
				symbols_find(s, o, &r);
				cr_assert_gt(r.upto, o);
			}
			symbols_close(s);
		}
		if (i % 3)
			f.bytes[at] = was;
	}
	file_close(&f);
}
