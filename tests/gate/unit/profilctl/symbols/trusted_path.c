/* trusted_path.c - paths on which another user could put another file are not trusted */
#include <criterion/criterion.h>
#include <stdio.h>

#include "build_dir.h"
#include "symbols/proc/trusted_path.h"

static void set_up(void)
{
	build_dir_open("", "");
	build_dir_run("mkdir own open sticky && chmod 777 open && chmod 1777 sticky");
	build_dir_run("for d in own open sticky; do touch $d/file && mkdir $d/below && touch "
		      "$d/below/file; done");
	build_dir_run(
		"touch own/writable && chmod 666 own/writable && ln -s ../open/file own/to-open");
	build_dir_run("ln -s ../own/file open/link && ln -s own good && ln -s loop loop");
	build_dir_run("ln -s \"$PWD/own/file\" sticky/absolute && ln -s ../own/file sticky/link");
}

TestSuite(trusted_path, .init = set_up, .fini = build_dir_close);

static enum path_trust trust(const char *path)
{
	char whole[256];

	snprintf(whole, sizeof(whole), "%s/%s", build_dir, path);
	return path_trust(whole);
}

Test(trusted_path, is_of_folders_and_links_that_no_other_user_can_change)
{
	static const struct {
		const char *path;
		enum path_trust trust;
	} cases[] = {
		{ "own/file", PATH_TRUSTED },
		{ "own//below/../file", PATH_TRUSTED },
		{ "good/file", PATH_TRUSTED },
		{ "sticky/file", PATH_TRUSTED }, /* others cannot remove it there */
		{ "sticky/below/file", PATH_TRUSTED },
		{ "sticky/link", PATH_TRUSTED },
		{ "sticky/absolute", PATH_TRUSTED },
		{ "own/none", PATH_NOTHING },
		{ "own/none/none", PATH_NOTHING },
		{ "sticky/none", PATH_UNTRUSTED },
		{ "own/writable", PATH_UNTRUSTED },
		{ "own/to-open", PATH_UNTRUSTED },
		{ "open/file", PATH_UNTRUSTED },
		{ "open/below/file", PATH_UNTRUSTED },
		{ "open/link", PATH_UNTRUSTED },
		{ "open/none", PATH_UNTRUSTED },
		{ "own/below", PATH_UNTRUSTED },
		{ "own/file/none", PATH_UNTRUSTED },
		{ "loop", PATH_UNTRUSTED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		cr_expect_eq(trust(cases[i].path), cases[i].trust, "%s", cases[i].path);
	cr_expect_eq(path_trust("/dev/null"), PATH_UNTRUSTED);
	cr_expect_eq(path_trust("own/file"), PATH_UNTRUSTED);
	cr_expect_eq(path_trust(""), PATH_UNTRUSTED);
}
