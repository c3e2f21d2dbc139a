/* build_dir.c - a directory for a test, with a C file that it compiles */
#include "build_dir.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/separate_debug.h"

#define TEMPLATE "/tmp/profil-symbols.XXXXXX"

char build_dir[] = TEMPLATE;
static char search[64];

void build_dir_run(const char *command)
{
	char line[1024];

	if (strstr(command, "gcc") && system("command -v gcc >/dev/null") != 0)
		cr_skip_test("no gcc here, to build what is to be read");
	snprintf(line, sizeof(line), "cd %s && %s", build_dir, command);
	cr_assert_eq(system(line), 0, "%s failed", command);
}

void build_dir_open(const char *source, const char *store)
{
	char path[128];
	FILE *f;

	cr_assert_not_null(mkdtemp(build_dir));
	snprintf(path, sizeof(path), "%s/a.c", build_dir);
	f = fopen(path, "w");
	cr_assert_eq(fputs(source, f) < 0 || fclose(f), 0);
	snprintf(search, sizeof(search), ":.debug:%s/%s", build_dir, store);
	debug_file_path = search;
}

void build_dir_close(void)
{
	build_dir_run("rm -rf \"$PWD\"");
	memcpy(build_dir, TEMPLATE, sizeof(build_dir));
}
