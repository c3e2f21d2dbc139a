/* container.c - the container and the pod of a cgroup, by its path */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "container.h"

#define ID_DIGITS 64
#define UUID_BYTES 36
#define LEAST_DIGITS 4

/* Part of a path. */
struct piece {
	const char *s;
	size_t n;
};

static bool is_hex(const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)s[i]))
			return false;
	}
	return n > 0;
}

static bool begins(const struct piece *p, const char *with)
{
	size_t n = strlen(with);

	return p->n >= n && !memcmp(p->s, with, n);
}

/* Removes the suffix @end from @p, if it has it. */
static bool strip_end(struct piece *p, const char *end)
{
	size_t n = strlen(end);

	if (p->n <= n || memcmp(p->s + p->n - n, end, n) != 0)
		return false;
	p->n -= n;
	return true;
}

static void set(char *out, size_t bytes, const char *s, size_t n)
{
	snprintf(out, bytes, "%.*s", (int)n, s);
}

/* The runtimes by what precedes the id in the name of a cgroup, or is the cgroup above it. */
static const struct {
	const char *mark;
	const char *runtime;
} runtimes[] = { { "docker", "docker" },
		 { "cri-containerd", "containerd" },
		 { "nerdctl", "containerd" },
		 { "containerd", "containerd" },
		 { "default", "containerd" },
		 { "k8s.io", "containerd" },
		 { "moby", "docker" },
		 { "crio", "cri-o" },
		 { "libpod-payload", "podman" },
		 { "libpod", "podman" },
		 { "libpod_parent", "podman" },
		 { "buildah", "buildah" },
		 { "ecs", "docker" } };

static const char *runtime_of(const struct piece *mark)
{
	for (size_t i = 0; i < sizeof(runtimes) / sizeof(*runtimes); i++) {
		if (strlen(runtimes[i].mark) == mark->n && begins(mark, runtimes[i].mark))
			return runtimes[i].runtime;
	}
	return "";
}

/*
 * kubepods-burstable-podUID.slice of systemd's driver, in which '-' is '_', or podUID of cgroupfs.
 * The uid of a static pod is a hash of 32 digits.
 */
static bool take_pod(struct container *c, struct piece p)
{
	size_t n;

	if (strip_end(&p, ".slice") ? !memmem(p.s, p.n, "kubepods", 8) : !begins(&p, "pod"))
		return false;
	for (n = UUID_BYTES; n >= 32; n -= 4) {
		const char *uid = p.s + p.n - n;

		if (p.n < n + 3 || memcmp(uid - 3, "pod", 3) != 0)
			continue;
		set(c->pod, sizeof(c->pod), uid, n);
		for (char *s = c->pod; *s; s++)
			*s = *s == '_' ? '-' : *s;
		return true;
	}
	return false;
}

/*
 * MARK-ID.scope of systemd's driver, SLICE:MARK:ID of a runtime that was given the wrong driver, or
 * ID of cgroupfs, where the cgroup above can be the mark. The monitor of a container is outside of
 * it.
 */
static bool take_id(struct container *c, struct piece p, const struct piece *above)
{
	struct piece mark = *above;

	strip_end(&p, ".scope");
	if (p.n < ID_DIGITS || !is_hex(p.s + p.n - ID_DIGITS, ID_DIGITS))
		return false;
	if (p.n > ID_DIGITS) {
		char before = p.s[p.n - ID_DIGITS - 1];
		const char *colon;

		if (before != '-' && before != ':')
			return false;
		mark = (struct piece){ p.s, p.n - ID_DIGITS - 1 };
		colon = memrchr(mark.s, ':', mark.n);
		if (colon) {
			take_pod(c, (struct piece){ p.s, strcspn(p.s, ":") });
			mark.n -= (size_t)(colon + 1 - mark.s);
			mark.s = colon + 1;
		}
		if (memmem(mark.s, mark.n, "conmon", 6))
			return false;
	}
	snprintf(c->runtime, sizeof(c->runtime), "%s", runtime_of(&mark));
	set(c->id, sizeof(c->id), p.s + p.n - ID_DIGITS, ID_DIGITS);
	*c->name = '\0';
	return true;
}

/* Fargate's tasks: /ecs/TASK/TASK-DIGITS, where the task has 32 hex digits. */
static bool take_task(struct container *c, const struct piece *p, const struct piece *above)
{
	if (p->n < 34 || p->n > 64 || above->n != 32 || memcmp(p->s, above->s, 32) != 0 ||
	    !is_hex(p->s, 32) || p->s[32] != '-')
		return false;
	snprintf(c->runtime, sizeof(c->runtime), "ecs");
	set(c->id, sizeof(c->id), p->s, p->n);
	*c->name = '\0';
	return true;
}

/* systemd writes '-' within a name as \x2d. */
static void unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (!strncmp(s, "\\x2d", 4)) {
			*to++ = '-';
			s += 3;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

/* Runtimes whose cgroups have the name of the container, which is its id as well. */
static bool take_name(struct container *c, struct piece p, const struct piece *above)
{
	const char *runtime = NULL;

	if (begins(&p, "lxc.payload.")) {
		p = (struct piece){ p.s + 12, p.n - 12 };
		runtime = "lxc";
	} else if (above->n == 3 && begins(above, "lxc")) {
		runtime = "lxc";
	} else if (begins(&p, "systemd-nspawn@") && strip_end(&p, ".service")) {
		p = (struct piece){ p.s + 15, p.n - 15 };
		runtime = "systemd-nspawn";
	} else if (begins(&p, "machine-") && !begins(&p, "machine-qemu") &&
		   strip_end(&p, ".scope")) {
		p = (struct piece){ p.s + 8, p.n - 8 };
		runtime = "systemd-nspawn";
	}
	if (!runtime || !p.n || p.n >= sizeof(c->name))
		return false;
	snprintf(c->runtime, sizeof(c->runtime), "%s", runtime);
	set(c->name, sizeof(c->name), p.s, p.n);
	unescape(c->name);
	memcpy(c->id, c->name, sizeof(c->id));
	return true;
}

bool container_of(struct container *c, const char *cgroup)
{
	struct piece p = { cgroup, 0 }, above = { "", 0 };
	bool found = false;

	*c = (struct container){ .id = "" };
	while (*p.s) {
		p.s += strspn(p.s, "/");
		p.n = strcspn(p.s, "/");
		if (take_pod(c, p)) {
			/* A container outside of the pod is not in it. */
			*c->id = *c->name = *c->runtime = '\0';
			found = true;
		} else {
			found |= take_id(c, p, &above) || take_task(c, &p, &above) ||
				 take_name(c, p, &above);
		}
		above = p;
		p.s += p.n;
	}
	return found;
}

const char *container_title(const struct container *c, char *out, size_t bytes)
{
	bool hex = strlen(c->id) == ID_DIGITS && is_hex(c->id, ID_DIGITS);

	snprintf(out, bytes, "%.*s", hex && !*c->name ? CONTAINER_SHORT : (int)bytes,
		 *c->name ? c->name : c->id);
	return out;
}

bool container_is(const struct container *c, const char *name)
{
	size_t n = strlen(name);

	if (!*name || !*c->id)
		return false;
	return !strcmp(c->name, name) || !strcmp(c->id, name) ||
	       (n >= LEAST_DIGITS && is_hex(name, n) && !strncmp(c->id, name, n));
}
