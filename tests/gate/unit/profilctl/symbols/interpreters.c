/* interpreters.c - descriptors of the interpreters that are installed here */
#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "build_dir.h"
#include "core/observe_maps.h"
#include "symbols/interpreters/interpreter.h"

static int describe(struct profil_interpreter *d, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;

	if (fd < 0)
		return -errno;
	err = interpreter_open(d, fd, path);
	close(fd);
	return err;
}

Test(interpreters, describes_no_ordinary_program)
{
	struct profil_interpreter d;

	cr_expect_eq(describe(&d, "/proc/self/exe"), -ENOENT);
	cr_expect_eq(describe(&d, "/etc/passwd"), -ENOENT);
}

/* The N of the python3.N that is installed as python3, or 0. */
static int python_minor(void)
{
	char name[64] = "";
	int minor = 0;

	if (readlink("/usr/bin/python3", name, sizeof(name) - 1) > 0)
		(void)sscanf(name, "python3.%d", &minor);
	return minor;
}

/* Debian's python3 is stripped; its loop has a cold part, which has no symbol. */
Test(interpreters, describes_debians_python)
{
	struct profil_interpreter d;
	int err = describe(&d, "/usr/bin/python3");

	if (err == -ENOENT)
		cr_skip_test("there is no /usr/bin/python3");
	if (python_minor() > 14) {
		cr_assert_eq(err, -EOPNOTSUPP);
		return;
	}
	cr_assert_eq(err, 0);
	cr_expect_eq(d.language, PROFIL_LANGUAGE_PYTHON);
	cr_expect_gt(d.loop[0].end, d.loop[0].start);
	for (int i = 1; i < PROFIL_INTERPRETER_LOOPS; i++) {
		cr_expect_geq(d.loop[i].end, d.loop[i].start);
		cr_expect(d.loop[i].start >= d.loop[0].end || d.loop[i].end <= d.loop[0].start,
			  "a cold part lies outside of the loop");
	}
}

/* The builtins are a range without unwind information. */
Test(interpreters, describes_v8_by_its_constants_for_debuggers)
{
	struct profil_interpreter d;
	int err = describe(&d, "/usr/bin/node");

	if (err == -ENOENT)
		err = describe(&d, "/usr/lib/x86_64-linux-gnu/libnode.so.108");
	if (err == -ENOENT)
		cr_skip_test("there is no node");
	cr_assert_eq(err, 0);
	cr_expect_eq(d.kind, PROFIL_INTERPRETER_V8);
	cr_expect_eq(d.language, PROFIL_LANGUAGE_JAVASCRIPT);
	cr_expect_eq(d.v8.frame_function, -16);
	cr_expect_eq(d.v8.frame_context, -8);
	cr_expect_geq(d.loop[0].end - d.loop[0].start, 256 << 10);
}

/* A library with the constants of a version of V8, and code without unwind information. */
static int describe_v8(struct profil_interpreter *d, const char *fields)
{
	__cleanup(freep) char *source = NULL;
	char path[64];
	int err;

	cr_assert_geq(
		asprintf(&source,
			 "#define C(name, value) int v8dbg_##name = value;\n"
			 "C(off_fp_function, -16) C(off_fp_context, -8) "
			 "C(class_Script__name__Object, 16)\n"
			 "C(class_Map__instance_type__uint16_t, 12) "
			 "C(class_String__length__int32_t, 12)\n"
			 "C(class_SeqOneByteString__chars__char, 16) C(FirstNonstringType, 128)\n"
			 "C(type_SharedFunctionInfo__SHARED_FUNCTION_INFO_TYPE, 282)\n"
			 "C(type_Script__SCRIPT_TYPE, 167) C(type_JSFunction__JS_FUNCTION_TYPE, "
			 "2065)\n"
			 "C(OneByteStringTag, 8) C(SmiShiftSize, 31) "
			 "C(scopeinfo_idx_ncontextlocals, 2)\n"
			 "%s\nasm(\".text\\n.skip 1 << 19\");\nint behind(void) { return 0; }\n",
			 fields),
		0);
	build_dir_open(source, "store");
	build_dir_run("gcc -shared -o v8.so a.c");
	snprintf(path, sizeof(path), "%s/v8.so", build_dir);
	err = describe(d, path);
	build_dir_close();
	return err;
}

Test(interpreters, describes_node_18_22_and_24)
{
	struct profil_interpreter d;

	cr_assert_eq(describe_v8(&d,
				 "C(class_JSFunction__shared__SharedFunctionInfo, 24)"
				 "C(class_SharedFunctionInfo__name_or_scope_info__Object, 16)"
				 "C(class_SharedFunctionInfo__script_or_debug_info__HeapObject, 32)"
				 "C(scopeinfo_idx_first_vars, 3)"),
		     0);
	cr_expect_eq(d.v8.shared_name, 16);
	cr_expect_eq(d.v8.scope_first, 32);
	cr_expect_eq(d.v8.scope_position, 0);
	cr_assert_eq(
		describe_v8(&d,
			    "C(class_JSFunction__shared__SharedFunctionInfo, 32)"
			    "C(class_SharedFunctionInfo__name_or_scope_info__Tagged_Object_, 16)"
			    "C(class_SharedFunctionInfo__script__Tagged_HeapObject_, 32)"
			    "C(scopeinfo_idx_first_vars, 3)"),
		0);
	cr_expect_eq(d.v8.shared_script, 32);
	cr_assert_eq(describe_v8(&d, "C(class_JSFunction__shared__SharedFunctionInfo, 32)"
				     "C(class_SharedFunctionInfo__name_or_scope_info__"
				     "Tagged_NameOrScopeInfoT_, 24)"
				     "C(class_SharedFunctionInfo__script__Tagged_HeapObject_, 40)"
				     "C(scopeinfo_idx_first_vars, 5)"),
		     0);
	cr_expect_eq(d.v8.shared_name, 24);
	cr_expect_eq(d.v8.scope_position, 32);
	cr_expect_eq(d.v8.scope_first, 48);
	cr_expect_eq(describe_v8(&d, "C(scopeinfo_idx_first_vars, 3)"), -EOPNOTSUPP);
}

static void expect_linked(const char *path, __u8 language)
{
	struct profil_interpreter d;
	int err = describe(&d, path);

	if (err == -ENOENT)
		cr_skip_test("there is no %s", path);
	cr_assert_eq(err, 0);
	cr_expect_eq(d.kind, PROFIL_INTERPRETER_LINKED);
	cr_expect_eq(d.language, language);
	cr_expect_gt(d.loop[0].end - d.loop[0].start, 8 << 10);
}

Test(interpreters, describes_debians_php)
{
	expect_linked("/usr/bin/php8.2", PROFIL_LANGUAGE_PHP);
}

/* What the library exports for debuggers has the address of the code cache. */
Test(interpreters, describes_debians_java)
{
	struct profil_interpreter d;
	int err = describe(&d, "/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so");

	if (err == -ENOENT)
		cr_skip_test("there is no Java 17");
	cr_assert_eq(err, 0);
	cr_expect_eq(d.kind, PROFIL_INTERPRETER_HOTSPOT);
	cr_expect_eq(d.language, PROFIL_LANGUAGE_JAVA);
	cr_expect_neq(d.runtime, 0);
	cr_expect_eq(d.hotspot.blob_method, 112);
}

/* The operations that its loop calls have no symbols in newer versions. */
Test(interpreters, describes_debians_perl)
{
	struct profil_interpreter d;
	int err = describe(&d, "/usr/bin/perl");

	if (err == -ENOENT)
		cr_skip_test("there is no /usr/bin/perl");
	cr_assert_eq(err, 0);
	cr_expect_eq(d.kind, PROFIL_INTERPRETER_PERL);
	cr_expect_eq(d.language, PROFIL_LANGUAGE_PERL);
	cr_expect_neq(d.perl.op_statement, 0);
	cr_expect_eq(d.operations & 1, 0, "the first range is the loop");
	cr_expect_neq(d.operations, 0);
	for (int i = 0; i < PROFIL_INTERPRETER_LOOPS; i++) {
		if (d.operations & 1u << i)
			cr_expect_gt(d.loop[i].end - d.loop[i].start, 1 << 10);
	}
}

/* Its loop has no symbol: it is the largest function that rb_vm_exec() calls. */
Test(interpreters, describes_debians_ruby)
{
	expect_linked("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1", PROFIL_LANGUAGE_RUBY);
}

/* A library of which only what Debian 13's exports has symbols. */
static int describe_ruby(struct profil_interpreter *d, const char *version)
{
	__cleanup(freep) char *source = NULL;
	char path[64];
	int err;

	cr_assert_geq(
		asprintf(
			&source,
			"#define HIDDEN __attribute__((visibility(\"hidden\")))\n"
			"#define ALONE static __attribute__((noipa))\n"
			"const char ruby_version[] = \"%s.0\";\n"
			"HIDDEN __thread char *ec __attribute__((tls_model(\"global-dynamic\")));\n"
			"int rb_block_given_p(void) { return ec[16]; }\n"
			"ALONE int small(int n) { return n * 3; }\n"
			"ALONE int loop(int n) { asm(\".skip 10000\"); return n; }\n"
			"ALONE int exec(int n) { asm(\".skip 500\"); return loop(n) + 1; }\n"
			"int rb_iseq_eval(int n) { return exec(small(n)); }\n",
			version),
		0);
	build_dir_open(source, "store");
	build_dir_run("gcc -O2 -fPIC -fno-stack-protector -shared -o ruby.so a.c");
	snprintf(path, sizeof(path), "%s/ruby.so", build_dir);
	err = describe(d, path);
	build_dir_close();
	return err;
}

Test(interpreters, describes_ruby_3_3_by_what_it_exports)
{
	struct profil_interpreter d;

	cr_assert_eq(describe_ruby(&d, "3.3"), 0);
	cr_expect_eq(d.language, PROFIL_LANGUAGE_RUBY);
	cr_expect_eq(d.linked.string, PROFIL_STRING_RUBY_3_3);
	cr_expect_eq(d.linked.frame_bytes, 56);
	cr_expect_geq(d.loop[0].end - d.loop[0].start, 10000);
	cr_expect_leq(d.loop[0].end - d.loop[0].start, 10100);
	cr_expect_neq(d.runtime, 0);
	cr_assert_eq(describe_ruby(&d, "3.1"), 0);
	cr_expect_eq(d.linked.frame_bytes, 64);
	cr_expect_eq(describe_ruby(&d, "3.2"), -EOPNOTSUPP);
}
