/* wire.c - fuzzes the reception of one message with descriptors */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/wire.h"
#include "fuzz.h"

/* Sends the input with @n descriptors; wire_send() would make it well-formed. */
static void put(int sock, const struct input *in, unsigned int nfds)
{
	union {
		char space[CMSG_SPACE(PROFIL_MSG_FDS * sizeof(int))];
		struct cmsghdr align;
	} control;
	int fds[PROFIL_MSG_FDS];
	struct iovec iov = { (void *)(unsigned long)in->at, in->left };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds) {
		for (unsigned int i = 0; i < nfds; i++)
			fds[i] = sock;
		msg.msg_control = control.space;
		msg.msg_controllen = CMSG_SPACE(nfds * sizeof(int));
		control.align.cmsg_level = SOL_SOCKET;
		control.align.cmsg_type = SCM_RIGHTS;
		control.align.cmsg_len = CMSG_LEN(nfds * sizeof(int));
		memcpy(CMSG_DATA(&control.align), fds, nfds * sizeof(int));
	}
	must(sendmsg(sock, &msg, MSG_NOSIGNAL) == (ssize_t)in->left);
}

/* A message that fits is as long as its parts; no sum may wrap. */
static void fits(const struct profil_header *h, size_t n)
{
	static const struct {
		size_t fixed, size;
		unsigned int max;
	} shape[] = {
		{ sizeof(struct profil_header), 0, 0 },
		{ sizeof(struct profil_msg_start), sizeof(struct profil_msg_region),
		  PROFIL_MSG_REGION_MAX },
		{ sizeof(struct profil_msg_list), sizeof(struct profil_msg_profile), ~0u },
	};

	for (size_t i = 0; i < sizeof(shape) / sizeof(shape[0]); i++) {
		__int128 bytes = (__int128)shape[i].size * h->count + shape[i].fixed;

		if (wire_fits(h, shape[i].fixed, shape[i].size, shape[i].max))
			must(bytes == (__int128)n && (!shape[i].size || h->count <= shape[i].max));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static union {
		struct profil_header h;
		uint8_t space[PROFIL_MSG_MAX];
	} msg;
	struct input in = { bytes, n };
	unsigned int nfds = input_byte(&in) % (PROFIL_MSG_FDS + 1), room = input_byte(&in) % 4;
	unsigned int before = descriptors(), got = room;
	size_t limit = input_byte(&in) % 2 ? sizeof(msg) : 64;
	int pair[2], fds[4], err;

	must(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair) == 0);
	put(pair[0], &in, nfds);
	err = wire_recv(pair[1], &msg, limit, fds, &got);
	if (!err) {
		must(in.left <= limit && in.left >= sizeof(msg.h) && got == nfds && nfds <= room);
		must(memcmp(&msg, in.at, in.left) == 0);
		fits(&msg.h, in.left);
		for (unsigned int i = 0; i < got; i++)
			must(close(fds[i]) == 0);
		must(wire_send(pair[1], &msg.h, pair, room % 3) == 0);
	}
	must(err == 0 || err == -EPROTO || err == -ENODATA);
	close(pair[0]);
	close(pair[1]);
	must(descriptors() == before);
	return 0;
}
