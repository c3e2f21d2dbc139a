#!/bin/bash
# image.sh - the OCI image under podman, with this kernel: record, the machine's spool, push; containers beside it are named
#
# "make image" builds it; "make tests" does not.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs podman "the image runs"
needs node "the image runs"
archive=$(echo "$BUILD"/image/profil-*.tar)
busy=profil-busy-$$ server=profil-server-$$ receiver=
trap '"${engine[@]}" rm -f -t 0 "$busy" "$server" >/dev/null 2>&1; test -z "$receiver" || kill "$receiver"; lib_end' EXIT
engine=(podman --log-level=error)
# crun wants cgroup2 alone.
test "$(stat -f -c %T /sys/fs/cgroup)" = cgroup2fs || engine+=(--runtime runc --cgroup-manager cgroupfs)
mkdir "$dir/run" "$dir/spool" "$dir/state" "$dir/in"

if ! test -e "$archive"; then
	fail "$archive" "there is no image: 'make image' builds it"
	finish
fi
image=$(podman load -q -i "$archive" | sed -n 's/^Loaded image: //p')

# As deploy/ has it: no host's processes, no capability but the named ones.
run() { # NAME_OR_- CAPABILITIES ARGS...
	local name=$1 options=() c

	for c in $2; do options+=(--cap-add "$c"); done
	test "$name" = - || options+=(-d --name "$name")
	"${engine[@]}" run --rm --read-only --cap-drop all --network host \
		--ulimit "nofile=$(ulimit -n):$(ulimit -Hn)" --ulimit "nproc=4096:4096" "${options[@]}" --group-add profil \
		-v "$dir/run:/run/profil" -v "$dir/spool:/var/lib/profil-spool" -v "$dir/state:/var/lib/profil-push" \
		-v /sys/fs/cgroup:/sys/fs/cgroup:ro "${@:3}"
}

capabilities() { # SERVICE
	python3 -c '
import sys, yaml
pod = [d for d in yaml.safe_load_all(open("deploy/kubernetes.yaml")) if d["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]
assert not pod.get("hostPID") and pod["securityContext"]["supplementalGroups"] == [971]
composed = yaml.safe_load(open("deploy/compose.yaml"))["services"]
for c in pod["containers"]:
    s, other = c["securityContext"], composed[c["name"]]
    assert s["readOnlyRootFilesystem"] and not s["allowPrivilegeEscalation"] and s["capabilities"]["drop"] == ["ALL"], c["name"]
    assert other["read_only"] and other["cap_drop"] == ["ALL"] and other["cap_add"] == s["capabilities"]["add"], c["name"]
    assert other["command"][0] == c["command"][0], c["name"]
    if c["name"] == sys.argv[1]: print(*s["capabilities"]["add"])' "$1"
}

of_unit() { # CAPABILITY...
	local c

	for c; do grep -q "^CapabilityBoundingSet=.*CAP_$c\b" systemd/profild.service systemd/profil-spool.service || return 1; done
}

check "the manifests have the same capabilities" capabilities profild
# shellcheck disable=SC2046 # words
check "the units have these capabilities, too" of_unit $(capabilities profild) $(capabilities spool)
check "a container runs profild with them alone" run "$server" "$(capabilities profild)" --security-opt seccomp=unconfined "$image" profild --machine
await $$ test -S "$dir/run/profil.sock"
id=$(run "$busy" "" "$image" sh -c 'while :; do :; done')
check "a container spools the machine's profile" run - "$(capabilities spool)" "$image" profilctl machine spool -i 4 -d 9 /var/lib/profil-spool
report() { # ARGS...
	run - "" "$image" profilctl report --since -1h "$@"
}
check "a container beside it carries its id" grep -q " ${id:0:12}$" <(report --by container)
check "its samples are those of its command" grep -q " sh$" <(report --by command)
check "files of the image have functions" grep -q "libc.so.6" <(report)
check "the kernel's functions have names" jq -e '.functions | any(.object == "[kernel]" and .named)' <(report -f json)
# shellcheck disable=SC2016 # the container's
run - "" --pid "container:$server" "$image" profilctl record -f json -o /run/profil/recorded -- sh -c 'i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done' 2>"$dir/said"
check "record profiles a command in a container" jq -e '.samples.total > 0 and .samples.binned > 0' "$dir/run/recorded"
tests/lib/otlp_receiver.js "$dir/in" &
receiver=$!
await "$receiver" test -e "$dir/in/port"
check "a container pushes the spool" run - "" "$image" profilctl machine push --once "http://127.0.0.1:$(cat "$dir/in/port")"
check "the receiver has each profile" test "$(find "$dir/in" -name '*.otlp' | wc -l)" = "$(find "$dir/spool" -name '*.json.gz' | wc -l)"
check "the profiles name the container" grep -qa "$id" "$dir"/in/*.otlp
finish
