/* plt.c - stubs have the names of the functions that they call, whichever linker made them */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "build_dir.h"
#include "symbols/elf/plt.h"

/* main() calls f3, f1 and f2 in this order. The address of f2 is taken, so it needs no lazy stub.
 */
static const char source[] =
	"#ifdef LIBRARY\n"
	"void f1(void) {} void f2(void) {} void f3(void) {}\n"
	"#else\n"
	"void f1(void), f2(void), f3(void);\n"
	"void (*volatile taken)(void);\n"
	"static void real(void) {}\n"
	"static void *choose(void) { return (void *)real; }\n"
	"__attribute__((ifunc(\"choose\"))) void indirect(void);\n"
	"int main(void) { f3(); f1(); f2(); indirect(); taken = f2; return 0; }\n"
	"#endif\n";

static void set_up(void)
{
	build_dir_open(source, "store");
	build_dir_run("gcc -DLIBRARY -shared -fPIC -o libf.so a.c");
}

TestSuite(plt, .init = set_up, .fini = build_dir_close);

static const char *name_at(const struct plt *plt, __u64 address)
{
	for (size_t i = 0; i < plt->n; i++) {
		if (plt->stub[i].start <= address && address < plt->stub[i].end)
			return plt->stub[i].name;
	}
	return "?";
}

/* The targets of the calls in main() are the stubs, as objdump decodes them. */
static void expect_names(const char *options)
{
	static const char *const names[] = { "f3@plt", "f1@plt", "f2@plt", "*@plt" };
	unsigned long long target;
	char command[512];
	struct plt plt;
	FILE *calls;
	size_t n = 0;
	Elf *elf;
	int fd;

	snprintf(command, sizeof(command), "gcc -O1 -fno-inline %s -o a a.c -L. -lf", options);
	build_dir_run(command);
	snprintf(command, sizeof(command), "%s/a", build_dir);
	fd = open(command, O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	cr_assert_eq(plt_read(&plt, elf), 0);
	snprintf(command, sizeof(command),
		 "objdump -d --no-show-raw-insn %s/a | "
		 "awk '/^[0-9a-f]* <main>:/ { on = 1 } on && ($2 ~ /call/ || $2 == \"bl\") "
		 "{ print $3 } /^$/ { on = 0 }'",
		 build_dir);
	calls = popen(command, "r");
	while (n < 4 && fscanf(calls, "%llx", &target) == 1) {
		cr_expect_str_eq(name_at(&plt, target), names[n], "%s: call %zu is of %s", options,
				 n, name_at(&plt, target));
		n++;
	}
	cr_expect_eq(n, 4, "%s: %zu calls", options, n);
	pclose(calls);
	plt_fini(&plt);
	elf_end(elf);
	close(fd);
}

static bool has(const char *tool)
{
	char command[64];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	return system(command) == 0;
}

Test(plt, names_stubs_of_bfd)
{
	expect_names("-fuse-ld=bfd -fPIE -pie");
	expect_names("-fuse-ld=bfd -fPIE -pie -Wl,-z,now");
	expect_names("-fuse-ld=bfd -fno-PIE -no-pie");
#if defined(__x86_64__)
	expect_names("-fuse-ld=bfd -fPIE -pie -fcf-protection -Wl,-z,ibtplt");
#endif
}

Test(plt, names_stubs_of_gold)
{
	if (!has("ld.gold"))
		cr_skip_test("no ld.gold here");
	expect_names("-fuse-ld=gold -fPIE -pie");
	expect_names("-fuse-ld=gold -fPIE -pie -Wl,-z,now");
}

Test(plt, names_stubs_of_lld)
{
	if (!has("ld.lld"))
		cr_skip_test("no ld.lld here");
	expect_names("-fuse-ld=lld -fPIE -pie");
#if defined(__x86_64__)
	expect_names("-fuse-ld=lld -fPIE -pie -Wl,-z,retpolineplt");
	expect_names("-fuse-ld=lld -fPIE -pie -Wl,-z,retpolineplt,-z,now");
	expect_names("-fuse-ld=lld -fPIE -pie -fcf-protection");
#endif
}

Test(plt, names_stubs_of_mold)
{
	if (!has("mold"))
		cr_skip_test("no mold here");
	expect_names("-fuse-ld=mold -fPIE -pie");
	expect_names("-fuse-ld=mold -fPIE -pie -Wl,-z,now");
}
