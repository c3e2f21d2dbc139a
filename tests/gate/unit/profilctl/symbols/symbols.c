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

#include "build_dir.h"
#include "base/cleanup.h"
#include "symbols/elf/debug_file.h"
#include "symbols/elf_symbols.h"
#include "base/truncated_file.h"

/*
 * The functions contain marks instead of code, by which the test finds them in the file without
 * reading ELF. "bare" is a symbol without size, as in assembly; "inner" is a label in a function;
 * "hidden" is local; there is a gap before "after".
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

static void set_up(void)
{
	build_dir_open(source, "");
}

TestSuite(symbols, .init = set_up, .fini = build_dir_close);

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

	snprintf(f->path, sizeof(f->path), "%s/%s", build_dir, name);
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

/* Only dynamic symbols remain. */
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

/* Crystal's names: what is behind '@' is no version of a symbol. */
Test(symbols, keeps_names_with_an_at_sign_apart)
{
	struct file f;

	build_dir_run("for n in '*Foo@Base#run<Int32>:Int32' '*Foo@Other#run<Int32>:Int32' "
		      "'~Proc(Nil)@src/main.cr:12'; do i=$((i + 1)); "
		      "echo \".type \\\"$n\\\",@function\n\\\"$n\\\": "
		      ".ascii \\\"<mark-$i\\\"\n.size \\\"$n\\\",7\"; done > c.s && "
		      "gcc -o c a.c c.s");
	file_open(&f, "c");
	is(&f, "<mark-1", "*Foo@Base#run<Int32>:Int32");
	is(&f, "<mark-2", "*Foo@Other#run<Int32>:Int32");
	is(&f, "<mark-3", "~Proc(Nil)@src/main.cr:12");
	file_close(&f);
}

/* More than any fixed number of labels that have sizes can be in a function. */
Test(symbols, finds_a_function_behind_many_in_it)
{
	struct symbols_range r;
	struct file f;

	build_dir_run("{ echo '.globl main, outer\n.type outer,@function\nmain:'; "
		      "echo 'outer: .ascii \"<outer-mark\"'; "
		      "for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do "
		      "echo \".type in$i,@function\nin$i: .byte 1\n.size in$i,1\"; done; "
		      "echo '.ascii \"<end-mark\"\n.size outer,.-outer'; } > b.s && gcc -o b b.s");
	file_open(&f, "b");
	symbols_find(f.symbols, offset_of(&f, "<end-mark") + 2, &r);
	cr_expect_eq(r.kind, SYMBOLS_NAMED);
	cr_expect(!strncmp(r.name, "outer", r.name_len), "is %.*s", (int)r.name_len, r.name);
	cr_expect_eq(r.start, offset_of(&f, "<outer-mark"));
	symbols_find(f.symbols, offset_of(&f, "<outer-mark") + strlen("<outer-mark"), &r);
	cr_expect(!strncmp(r.name, "in1", r.name_len));
	file_close(&f);
}

Test(symbols, resolves_in_pie)
{
	build_dir_run("gcc -O2 -pie -fPIE -o a a.c");
	all_are_known("a");
}

Test(symbols, resolves_at_fixed_addresses)
{
	build_dir_run("gcc -O2 -no-pie -fno-pie -o a a.c");
	all_are_known("a");
}

Test(symbols, resolves_in_shared_library)
{
	build_dir_run("gcc -O2 -shared -fPIC -o a.so a.c");
	all_are_known("a.so");
}

Test(symbols, resolves_dynamic_symbols_of_stripped_library)
{
	build_dir_run("gcc -O2 -shared -fPIC -o a.so a.c && strip a.so");
	exported_are_known("a.so");
}

Test(symbols, finds_functions_of_stripped_program_by_fdes)
{
	struct symbols_range r;
	struct file f;

	build_dir_run("gcc -O2 -pie -fPIE -o a a.c && strip a");
	file_open(&f, "a");
	symbols_find(f.symbols, offset_of(&f, "<after-mark") + 3, &r);
	cr_expect_eq(r.kind, SYMBOLS_FRAME);
	cr_expect_eq(r.start, offset_of(&f, "<after-mark"));
	cr_expect_eq(r.end, r.start + strlen("<after-mark"), "an FDE's function ends with it");
	file_close(&f);
}

/* "bare" has no FDE; it lies between "hidden" and "after", which have one each. */
/* The tables are at the end of the file: all are cut off when the first name is looked up. */
Test(symbols, survive_a_truncated_file)
{
	struct symbols_range r;
	struct file f;

	truncated_file_reads_as_zeroes();
	build_dir_run("gcc -O2 -shared -fPIC -Wl,-z,max-page-size=4096 -o a.so a.c");
	file_open(&f, "a.so");
	cr_assert_gt(f.size, 4096);
	cr_assert_eq(ftruncate(f.fd, 4096), 0);
	for (__u64 at = 0; at < f.size; at += 64)
		symbols_find(f.symbols, at, &r);
	for (size_t i = 4096; i < f.size; i++)
		cr_assert_eq(f.bytes[i], 0);
	file_close(&f);
}

Test(symbols, code_between_fdes_is_at_most_a_page)
{
	struct symbols_range r;
	struct file f;
	__u64 at;

	build_dir_run("gcc -O2 -pie -fPIE -o a a.c && strip a");
	file_open(&f, "a");
	at = offset_of(&f, "<bare-mark");
	symbols_find(f.symbols, at + 3, &r);
	cr_expect_eq(r.kind, SYMBOLS_PAGE);
	cr_expect_eq(r.start, offset_of(&f, "<hidden-mark") + strlen("<hidden-mark"));
	cr_expect_eq(r.end, offset_of(&f, "<after-mark"));
	cr_expect_eq(r.upto, r.end);
	file_close(&f);
}

/* At most a page of 4096 bytes, even if the next FDE is far away. */
Test(symbols, code_far_from_fdes_is_a_page)
{
	struct symbols_range r;
	struct file f;
	__u64 at;

	build_dir_run("sed 's/.ascii ...gap-mark...n.balign 64/.skip 20000\\\\n.ascii "
		      "\\\\\"<gap-mark\\\\\"\\\\n.skip 20000/' a.c > b.c && grep -q 20000 b.c && "
		      "gcc -O2 -pie -fPIE -o a b.c && strip a");
	file_open(&f, "a");
	at = offset_of(&f, "<gap-mark");
	symbols_find(f.symbols, at, &r);
	cr_expect_eq(r.kind, SYMBOLS_PAGE);
	cr_expect_eq(r.start, at / 4096 * 4096);
	cr_expect_eq(r.end, r.start + 4096);
	file_close(&f);
}

Test(symbols, finds_debug_file_by_build_id)
{
	build_dir_run("gcc -O2 -pie -fPIE -Wl,--build-id -o a a.c && "
		      "id=$(readelf -n a | sed -n 's/.*Build ID: //p') && "
		      "d=.build-id/$(echo $id | cut -c 1-2) && mkdir -p $d && "
		      "objcopy --only-keep-debug a $d/$(echo $id | cut -c 3-).debug && strip a");
	all_are_known("a");
}

/* Programs of Fedora have their function symbols, compressed, in a section .gnu_debugdata. */
Test(symbols, reads_local_symbols_from_gnu_debugdata)
{
	if (system("command -v xz >/dev/null") != 0)
		cr_skip_test("no xz here, to compress the section");
	build_dir_run("gcc -O2 -pie -fPIE -o a a.c && objcopy --only-keep-debug a mini && xz mini "
		      "&& strip a "
		      "&& "
		      "objcopy --add-section .gnu_debugdata=mini.xz a");
	all_are_known("a");
}

Test(symbols, fetches_debug_file_from_a_server)
{
	char url[64], cache[64];

	snprintf(url, sizeof(url), "file://%s", build_dir);
	snprintf(cache, sizeof(cache), "%s/cache", build_dir);
	setenv("DEBUGINFOD_URLS", url, 1);
	setenv("DEBUGINFOD_CACHE_PATH", cache, 1);
	build_dir_run("gcc -O2 -pie -fPIE -Wl,--build-id -o a a.c && "
		      "d=buildid/$(readelf -n a | sed -n 's/.*Build ID: //p') && mkdir -p $d && "
		      "objcopy --only-keep-debug a $d/debuginfo && strip a");
	all_are_known("a");
}

Test(symbols, finds_debug_file_by_debuglink)
{
	build_dir_run("gcc -O2 -no-pie -fno-pie -Wl,--build-id=none -o a a.c && "
		      "objcopy --only-keep-debug a a.debug && strip a && "
		      "objcopy --add-gnu-debuglink=a.debug a && mkdir .debug && mv a.debug .debug");
	all_are_known("a");
}

Test(symbols, refuses_debug_file_of_another_build)
{
	struct file f;

	build_dir_run("gcc -O2 -pie -fPIE -Wl,--build-id=none -o a a.c && "
		      "objcopy --only-keep-debug a a.debug && strip a && "
		      "objcopy --add-gnu-debuglink=a.debug a && echo >> a.debug");
	file_open(&f, "a");
	is(&f, "<sized-mark", NULL);
	file_close(&f);
}

/* prelink(8) moves the segments of a file, long after its symbols were split off. */
Test(symbols, translates_debug_file_of_a_moved_program)
{
	struct file f;
	Elf64_Ehdr *e;
	Elf64_Phdr *p;

	build_dir_run("gcc -O2 -no-pie -fno-pie -Wl,--build-id=none -o a a.c && "
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

Test(symbols, drops_symbol_versions)
{
	struct file f;

	build_dir_run("sed -e 's/after/impl/g' -e 's/impl-mark/after-mark/' "
		      "-e 's/int main/asm(\".symver impl, after@@V1\");int main/' a.c > v.c && "
		      "echo 'V1 { *; };' > v.map && "
		      "gcc -O2 -shared -fPIC -Wl,--version-script=v.map -o v.so v.c");
	file_open(&f, "v.so");
	is(&f, "<after-mark", "after");
	file_close(&f);
}

/* The names of stubs are those of objdump. */
Test(symbols, names_plt_stubs_by_their_target)
{
	unsigned long long start;
	struct symbols_range r;
	struct file f;
	char path[128];
	FILE *said;

	build_dir_run("echo 'int one(void); int two(void); int f(void) { return one() + two(); }' "
		      "> p.c && "
		      "gcc -O2 -shared -fPIC -o p.so p.c && strip p.so && "
		      "objdump -d p.so | sed -n 's/^\\([0-9a-f]*\\) <two@plt>:/0x\\1/p' > said");
	snprintf(path, sizeof(path), "%s/said", build_dir);
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

Test(symbols, resolves_in_the_vdso)
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

Test(symbols, refuses_a_file_that_is_not_elf)
{
	struct symbols *s;
	char path[128];
	__cleanup(closep) int fd = -1;

	snprintf(path, sizeof(path), "%s/a.c", build_dir);
	fd = open(path, O_RDONLY);
	cr_expect_lt(symbols_open(&s, fd, path), 0);
}

/* A file that is truncated or damaged anywhere has fewer symbols or none, and crashes nothing. */
Test(symbols, survives_damaged_files)
{
	struct file f;

	build_dir_run("gcc -O2 -shared -fPIC -o a.so a.c");
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
