/* membership.c - the groups of the peer of a socket */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <grp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/membership.h"

/* The groups first, first + 1, ... of a new socket's ends. Returns as a process does: 0 for right.
 */
static int many_groups(gid_t first, gid_t n)
{
	int ends[2];
	gid_t groups[1000];

	for (gid_t i = 0; i < n; i++)
		groups[i] = first + i;
	if (setgroups(n, groups) || socketpair(AF_UNIX, SOCK_STREAM, 0, ends))
		return 2;
	return peer_is_member(ends[0], first + n - 1) && peer_is_member(ends[0], first) &&
			       !peer_is_member(ends[0], first + n)
		       ? 0
		       : 1;
}

Test(membership, knows_each_of_many_groups)
{
	const gid_t counts[] = { 1, 256, 257, 1000 };

	if (geteuid())
		cr_skip_test("needs root");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		int status;
		pid_t pid = fork();

		if (!pid)
			_exit(many_groups(70000, counts[i]));
		cr_assert(eq(int, waitpid(pid, &status, 0), pid));
		cr_expect(eq(int, status, 0), "%u groups", counts[i]);
	}
}

Test(membership, has_no_peer_in_a_file)
{
	cr_expect(not(peer_is_member(0, 0)));
}
