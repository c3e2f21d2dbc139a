/* fuse.c - a FUSE file system of one file, whose server answers neither READ nor FLUSH */
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
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "fuse.h"
#include "hostile.h"

#define FILE_BYTES (1 << 20)
#define FILE_NODE 2
#define FOREVER_S 1000000

static char mount_point[] = "/tmp/profil-hostile.XXXXXX";
static char file_path[sizeof(mount_point) + 8];
static pid_t server;

static void reply(int dev, uint64_t unique, int err, const void *body, size_t bytes)
{
	struct fuse_out_header h = { .len = (uint32_t)(sizeof(h) + bytes),
				     .error = -err,
				     .unique = unique };
	struct iovec iov[] = { { &h, sizeof(h) }, { (void *)(unsigned long)body, bytes } };

	if (writev(dev, iov, bytes ? 2 : 1) < 0 && errno == ENODEV)
		_exit(0);
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .size = node == FILE_NODE ? FILE_BYTES : 0,
				   .blocks = FILE_BYTES / 512,
				   .mode = node == FILE_NODE ? S_IFREG | 0666 : S_IFDIR | 0777,
				   .nlink = 1,
				   .uid = getuid(),
				   .gid = getgid(),
				   .blksize = 4096 };
}

static void serve_init(int dev, uint64_t unique)
{
	struct fuse_init_out out = { .major = FUSE_KERNEL_VERSION,
				     .minor = 31,
				     .max_write = 4096,
				     .max_background = 64,
				     .congestion_threshold = 48 };

	reply(dev, unique, 0, &out, sizeof(out));
}

static void serve_attr(int dev, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = FOREVER_S, .attr = attr_of(in->nodeid) };

	reply(dev, in->unique, 0, &out, sizeof(out));
}

static void serve_lookup(int dev, const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out out = { .nodeid = FILE_NODE,
				      .generation = 1,
				      .entry_valid = FOREVER_S,
				      .attr_valid = FOREVER_S,
				      .attr = attr_of(FILE_NODE) };

	if (strcmp(name, "maps") != 0)
		reply(dev, in->unique, ENOENT, NULL, 0);
	else
		reply(dev, in->unique, 0, &out, sizeof(out));
}

static void serve_one(int dev, const struct fuse_in_header *in)
{
	struct fuse_open_out open_out = { .fh = 1 };

	switch (in->opcode) {
	case FUSE_INIT:
		serve_init(dev, in->unique);
		return;
	case FUSE_GETATTR:
		serve_attr(dev, in);
		return;
	case FUSE_LOOKUP:
		serve_lookup(dev, in, (const char *)(in + 1));
		return;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		reply(dev, in->unique, 0, &open_out, sizeof(open_out));
		return;
	case FUSE_READ:
	case FUSE_FLUSH:
		return; /* never answered */
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return; /* requests without a reply */
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(dev, in->unique, 0, NULL, 0);
		return;
	default:
		reply(dev, in->unique, ENOSYS, NULL, 0);
	}
}

static void serve(int dev)
{
	static union {
		struct fuse_in_header in;
		char space[1 << 17];
	} msg;

	for (;;) {
		ssize_t n = read(dev, &msg, sizeof(msg));

		if (n < 0 && errno == ENODEV)
			_exit(0);
		if (n >= (ssize_t)sizeof(msg.in))
			serve_one(dev, &msg.in);
	}
}

static void write_file(const char *path, const char *text)
{
	__cleanup(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		attack_skip("%s: %s", path, strerror(errno));
}

/* Enters a user and mount namespace in which an ordinary user may mount. */
static void unshare_user(void)
{
	char map[64];
	uid_t uid = getuid();
	gid_t gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		attack_skip("no user namespaces: %s", strerror(errno));
	write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	write_file("/proc/self/gid_map", map);
}

/* Mounts as fusermount3, which is set-uid root, does: a user's file system in the initial user
 * namespace. */
static void mount_as(uid_t uid, int dev)
{
	char options[128];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", dev, uid,
		 uid);
	if (mount("hostile", mount_point, "fuse", MS_NOSUID | MS_NODEV, options) < 0) {
		rmdir(mount_point);
		attack_skip("mount of a FUSE file system: %s", strerror(errno));
	}
}

int fuse_start(uid_t uid)
{
	int dev;

	if (getuid())
		unshare_user();
	else if (unshare(CLONE_NEWNS) < 0 ||
		 mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		attack_skip("no mount namespace: %s", strerror(errno));
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (dev < 0 || !mkdtemp(mount_point))
		attack_skip("/dev/fuse: %s", strerror(errno));
	if (chown(mount_point, uid, uid) < 0)
		attack_fail("chown");
	mount_as(uid, dev);
	attack_become(uid);
	server = attack_fork();
	if (server == 0)
		serve(dev);
	close(dev);
	snprintf(file_path, sizeof(file_path), "%s/maps", mount_point);
	return fuse_open();
}

int fuse_open(void)
{
	return open(file_path, O_RDWR | O_CLOEXEC);
}

void fuse_end(void)
{
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	umount2(mount_point, MNT_DETACH);
	rmdir(mount_point);
}
