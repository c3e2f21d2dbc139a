/* served.c - a program on a file system that its user serves, and which then falls silent
 *
 * usage: served plain|overlay open|read|flush
 *
 * In a user and mount namespace: a FUSE file system, with "overlay" below an overlay, through which
 * the kernel asks the server, for each process that opens the file. A program on it spins. From
 * "under way" on, the server answers nothing ("open"), nothing after the next OPEN ("read"), or no
 * FLUSH ("flush"). Started by root, it becomes ATTACKER first.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "tests/lib/hostile.h"

#define FILE_NODE 2
#define NAME "spin"

static char *image;
static size_t image_bytes;
static const char *mute_at;
static volatile sig_atomic_t armed;
static bool mute;

static void on_arm(int signal)
{
	armed = 1;
}

static void reply(int dev, uint64_t unique, int err, const void *body, size_t bytes)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + bytes),
				     .error = -err,
				     .unique = unique };
	struct iovec iov[] = { { &h, sizeof(h) }, { (void *)(unsigned long)body, bytes } };

	if (writev(dev, iov, bytes ? 2 : 1) < 0 && errno == ENODEV)
		_exit(0);
}

/* Nothing is cached: each look-up asks again. */
static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = node == FILE_NODE ? image_bytes : 0,
				   .mode = node == FILE_NODE ? S_IFREG | 0755 : S_IFDIR | 0755,
				   .nlink = 1,
				   .uid = getuid(),
				   .gid = getgid(),
				   .blksize = 4096 };
}

static void serve_read(int dev, const struct fuse_in_header *in, const struct fuse_read_in *r)
{
	size_t n = r->offset < image_bytes ? image_bytes - r->offset : 0;

	reply(dev, in->unique, 0, image + r->offset, n < r->size ? n : r->size);
}

static void serve_one(int dev, const struct fuse_in_header *in)
{
	struct fuse_init_out init = { .major = FUSE_KERNEL_VERSION,
				      .minor = 31,
				      .max_write = 4096,
				      .max_background = 64,
				      .congestion_threshold = 48 };
	struct fuse_entry_out entry = { .nodeid = FILE_NODE,
					.generation = 1,
					.attr = attr_of(FILE_NODE) };
	struct fuse_attr_out attr = { .attr = attr_of(in->nodeid) };
	struct fuse_open_out open_out = { .fh = 1 };
	struct fuse_statfs_out statfs_out = { .st = { .bsize = 4096, .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		reply(dev, in->unique, 0, &init, sizeof(init));
		return;
	case FUSE_LOOKUP:
		if (strcmp((const char *)(in + 1), NAME) != 0)
			reply(dev, in->unique, ENOENT, NULL, 0);
		else
			reply(dev, in->unique, 0, &entry, sizeof(entry));
		return;
	case FUSE_GETATTR:
		reply(dev, in->unique, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(dev, in->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_READ:
		serve_read(dev, in, (const void *)(in + 1));
		return;
	case FUSE_STATFS:
		reply(dev, in->unique, 0, &statfs_out, sizeof(statfs_out));
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* requests without a reply */
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(dev, in->unique, 0, NULL, 0);
		return;
	default:
		reply(dev, in->unique, ENOSYS, NULL, 0);
	}
}

static bool answers(const struct fuse_in_header *in)
{
	if (!armed)
		return true;
	if (!strcmp(mute_at, "flush"))
		return in->opcode != FUSE_FLUSH;
	if (!strcmp(mute_at, "open") || mute)
		return false;
	mute = in->opcode == FUSE_OPEN;
	return true;
}

static void serve(int dev)
{
	static union {
		struct fuse_in_header in;
		char space[1 << 17];
	} msg;

	signal(SIGUSR1, on_arm);
	for (;;) {
		ssize_t n = read(dev, &msg, sizeof(msg));

		if (n < 0 && errno == ENODEV)
			_exit(0);
		if (n >= (ssize_t)sizeof(msg.in) && answers(&msg.in))
			serve_one(dev, &msg.in);
	}
}

static void write_file(const char *path, const char *text)
{
	__cleanup(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		attack_skip("%s: %s", path, strerror(errno));
}

static void unshare_user(void)
{
	char map[64];
	uid_t uid = getuid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		attack_skip("no user namespaces: %s", strerror(errno));
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "0 %u 1", uid);
	write_file("/proc/self/uid_map", map);
	write_file("/proc/self/gid_map", map);
}

static void read_own_image(void)
{
	__cleanup(closep) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		attack_fail("/proc/self/exe");
	image_bytes = (size_t)st.st_size;
	image = malloc(image_bytes);
	if (!image || read(fd, image, image_bytes) != (ssize_t)image_bytes)
		attack_fail("read");
}

/* Returns the path of the program. */
static const char *mount_all(int dev, bool overlay)
{
	static char path[128];
	char base[] = "/tmp/profil-served.XXXXXX", options[256], low[64], empty[64], top[64];

	if (!mkdtemp(base))
		attack_fail("mkdtemp");
	snprintf(options, sizeof(options), "size=1m,mode=755");
	if (mount("none", base, "tmpfs", 0, options) < 0)
		attack_skip("mount of a tmpfs: %s", strerror(errno));
	snprintf(low, sizeof(low), "%s/low", base);
	snprintf(empty, sizeof(empty), "%s/empty", base);
	snprintf(top, sizeof(top), "%s/top", base);
	if (mkdir(low, 0755) || mkdir(empty, 0755) || mkdir(top, 0755))
		attack_fail("mkdir");
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", dev);
	if (mount("served", low, "fuse", MS_NOSUID | MS_NODEV, options) < 0)
		attack_skip("mount of a FUSE file system: %s", strerror(errno));
	snprintf(options, sizeof(options), "lowerdir=%s:%s", low, empty);
	if (overlay && mount("overlay", top, "overlay", 0, options) < 0)
		attack_skip("mount of an overlay: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/" NAME, overlay ? top : low);
	return path;
}

int main(int argc, char **argv)
{
	const char *path;
	pid_t server, child;
	int dev, begun[2];
	char byte;

	if (argc == 2 && !strcmp(argv[1], "spin")) {
		if (write(STDOUT_FILENO, "", 1) < 0)
			return 1;
		for (;;)
			;
	}
	if (argc != 3)
		return 2;
	mute_at = argv[2];
	if (!getuid())
		attack_become(ATTACKER);
	read_own_image();
	unshare_user();
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (dev < 0)
		attack_skip("/dev/fuse: %s", strerror(errno));
	if (pipe(begun) < 0)
		attack_fail("pipe");
	server = attack_fork();
	if (server == 0) {
		/* The mount needs its INIT answered: the server must run before. */
		serve(dev);
	}
	path = mount_all(dev, !strcmp(argv[1], "overlay"));
	close(dev);
	child = attack_fork();
	if (child == 0) {
		dup2(begun[1], STDOUT_FILENO);
		execl(path, path, "spin", NULL);
		attack_fail(path);
	}
	close(begun[1]);
	if (read(begun[0], &byte, 1) != 1)
		attack_fail("the program on the file system did not start");
	kill(server, SIGUSR1);
	attack_result("pid", child);
	attack_under_way();
	attack_wait(-1);
	kill(server, SIGKILL);
	attack_end_children();
	return 0;
}
