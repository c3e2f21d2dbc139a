/* container.c - the container and the pod of a cgroup's path */
#include <criterion/criterion.h>

#include "symbols/proc/container.h"

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define TASK "0123456789abcdef0123456789abcdef"
#define POD "8f2b6c1e-54a1-4c1b-9d3e-0a1b2c3d4e5f"
#define POD_ "8f2b6c1e_54a1_4c1b_9d3e_0a1b2c3d4e5f"

static const struct {
	const char *cgroup, *runtime, *id, *name, *pod;
} paths[] = {
	/* docker: systemd's driver, cgroupfs, rootless, one within another */
	{ "/system.slice/docker-" A ".scope", "docker", A, "", "" },
	{ "/system.slice/docker-" A ".scope/init", "docker", A, "", "" },
	{ "/docker/" A, "docker", A, "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/docker-" A ".scope", "docker", A,
	  "", "" },
	{ "/docker/" A "/docker/" B, "docker", B, "", "" },
	{ "/system.slice/docker-" A ".scope/system.slice/docker-" B ".scope", "docker", B, "", "" },
	/* containerd below Kubernetes: systemd's driver, cgroupfs, the one taken for the other */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" POD_
	  ".slice/cri-containerd-" A ".scope",
	  "containerd", A, "", POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/cri-containerd-" A ".scope", "containerd", A,
	  "", POD },
	{ "/kubepods/besteffort/pod" POD "/" A, "", A, "", POD },
	{ "/kubepods/pod" POD "/" A, "", A, "", POD },
	{ "/system.slice/containerd.service/kubepods-burstable-pod" POD_ ".slice:cri-containerd:" A,
	  "containerd", A, "", POD },
	{ "/kubepods.slice/kubepods-pod" TASK ".slice/cri-containerd-" A ".scope", "containerd", A,
	  "", TASK },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice", "", "", "", POD },
	/* Kubernetes within docker (kind), docker within a pod */
	{ "/docker/" B "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-besteffort.slice/"
	  "kubelet-kubepods-besteffort-pod" POD_ ".slice/cri-containerd-" A ".scope",
	  "containerd", A, "", POD },
	{ "/docker/" B "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" POD_ ".slice",
	  "", "", "", POD },
	{ "/kubepods/pod" POD "/" A "/docker/" B, "docker", B, "", POD },
	/* nerdctl, ctr */
	{ "/system.slice/nerdctl-" A ".scope", "containerd", A, "", "" },
	{ "/default/" A, "containerd", A, "", "" },
	{ "/k8s.io/" A, "containerd", A, "", "" },
	/* cri-o: the container, what crun puts into it, its monitor */
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" POD_ ".slice/crio-" A
	  ".scope",
	  "cri-o", A, "", POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/crio-" A ".scope/container", "cri-o", A, "",
	  POD },
	{ "/kubepods.slice/kubepods-pod" POD_ ".slice/crio-conmon-" A ".scope", "", "", "", POD },
	/* podman: as root, rootless, cgroupfs, quadlet, in a pod of its own, its monitor */
	{ "/machine.slice/libpod-" A ".scope/container", "podman", A, "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" A ".scope", "podman",
	  A, "", "" },
	{ "/libpod_parent/libpod-" A, "podman", A, "", "" },
	{ "/system.slice/web.service/libpod-payload-" A, "podman", A, "", "" },
	{ "/machine.slice/machine-libpod_pod_" B ".slice/libpod-" A ".scope/container", "podman", A,
	  "", "" },
	{ "/machine.slice/libpod-conmon-" A ".scope", "", "", "", "" },
	/* ECS: on EC2, on Fargate */
	{ "/ecs/" TASK "/" A, "", A, "", "" },
	{ "/ecs/" TASK "/" TASK "-1234567890", "ecs", TASK "-1234567890", "", "" },
	/* runtimes whose containers have names */
	{ "/lxc.payload.web/system.slice/nginx.service", "lxc", "web", "web", "" },
	{ "/lxc/web", "lxc", "web", "web", "" },
	{ "/machine.slice/machine-web\\x2d1.scope/payload", "systemd-nspawn", "web-1", "web-1",
	  "" },
	{ "/machine.slice/systemd-nspawn@web.service/payload", "systemd-nspawn", "web", "web", "" },
	/* none */
	{ "/", "", "", "", "" },
	{ "", "", "", "", "" },
	{ "/system.slice/ssh.service", "", "", "", "" },
	{ "/system.slice/docker.service", "", "", "", "" },
	{ "/user.slice/user-1000.slice/session-3.scope", "", "", "", "" },
	{ "/machine.slice/machine-qemu\\x2d1\\x2dvm.scope", "", "", "", "" },
	{ "/kubepods.slice/kubepods-burstable.slice", "", "", "", "" },
	{ "/system.slice/podman.service", "", "", "", "" },
	{ "/docker/0123456789ab", "", "", "", "" },
	{ "/docker/" A "0", "", "", "", "" },
	{ "/pod", "", "", "", "" },
};

Test(ctl_container, is_found_in_the_path_of_each_runtime)
{
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		struct container c;
		bool found = container_of(&c, paths[i].cgroup);

		cr_expect_eq(found, *paths[i].id || *paths[i].pod, "%s", paths[i].cgroup);
		cr_expect_str_eq(c.runtime, paths[i].runtime, "%s: %s", paths[i].cgroup, c.runtime);
		cr_expect_str_eq(c.id, paths[i].id, "%s: %s", paths[i].cgroup, c.id);
		cr_expect_str_eq(c.name, paths[i].name, "%s: %s", paths[i].cgroup, c.name);
		cr_expect_str_eq(c.pod, paths[i].pod, "%s: %s", paths[i].cgroup, c.pod);
	}
}

Test(ctl_container, has_a_short_title_and_is_named_by_the_first_digits)
{
	char title[65];
	struct container c;

	container_of(&c, "/docker/" A);
	cr_expect_str_eq(container_title(&c, title, sizeof(title)), "0123456789ab");
	cr_expect(container_is(&c, A) && container_is(&c, "0123456789ab"));
	cr_expect(container_is(&c, "0123"));
	cr_expect_not(container_is(&c, "012"), "less than four digits");
	cr_expect_not(container_is(&c, "0124") || container_is(&c, ""));
	container_of(&c, "/lxc.payload.web");
	cr_expect_str_eq(container_title(&c, title, sizeof(title)), "web");
	cr_expect(container_is(&c, "web"));
	cr_expect_not(container_is(&c, "we"));
	container_of(&c, "/");
	cr_expect_not(container_is(&c, ""));
}
