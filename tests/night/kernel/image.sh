#!/bin/bash
# image.sh - the OCI image under podman, with this kernel, as deploy/ has it: record, the machine's stacks, their feeder, push
#
# "make image" builds it; "make tests" does not.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

needs podman "the image runs"
needs node "the image runs"
archive=$(echo "$BUILD"/image/profil-*.tar)
busy=profil-busy-$$ server=profil-server-$$ feed=profil-feed-$$ receiver='' named=()
trap '{ "${engine[@]}" rm -f -t 0 "$busy" "$feed"; "${engine[@]}" rm -f -t 0 "$server"; } >/dev/null 2>&1; test -z "${named[*]}" || kill "${named[@]}" 2>/dev/null; test -z "$receiver" || kill "$receiver"; lib_end' EXIT
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
	local name=$1 options=(--rm) c

	test "$name" = - || options=(-d --name "$name")
	for c in $2; do options+=(--cap-add "$c"); done
	"${engine[@]}" run --read-only --cap-drop all --network host \
		--ulimit "nofile=$(ulimit -n):$(ulimit -Hn)" --ulimit "nproc=4096:4096" "${options[@]}" --group-add profil \
		-v "$dir/run:/run/profil" -v "$dir/spool:/var/lib/profil-spool" -v "$dir/state:/var/lib/profil-push" \
		-v /sys/fs/cgroup:/sys/fs/cgroup:ro "${@:3}"
}

capabilities() { # SERVICE
	python3 -c '
import sys, yaml
pod = [d for d in yaml.safe_load_all(open("deploy/kubernetes.yaml")) if d["kind"] == "DaemonSet"][0]["spec"]["template"]["spec"]
assert not pod.get("hostPID") and pod["shareProcessNamespace"] and pod["securityContext"]["supplementalGroups"] == [971]
composed = yaml.safe_load(open("deploy/compose.yaml"))["services"]
assert {c["name"] for c in pod["containers"]} == set(composed)
for c in pod["containers"]:
    s, other = c["securityContext"], composed[c["name"]]
    assert s["readOnlyRootFilesystem"] and not s["allowPrivilegeEscalation"] and s["capabilities"]["drop"] == ["ALL"], c["name"]
    assert other["read_only"] and other["cap_drop"] == ["ALL"] and other["cap_add"] == s["capabilities"]["add"], c["name"]
    assert other["command"] == c["command"] or c["name"] != "feed", c["name"]
    assert other["command"][0] == c["command"][0] and "/proc:/proc:ro" in other["volumes"] or c["name"] != "feed", c["name"]
    if c["name"] == sys.argv[1]: print(*s["capabilities"]["add"])' "$1"
}

of_unit() { # CAPABILITY...
	local c

	for c; do grep -q "^CapabilityBoundingSet=.*CAP_$c\b" systemd/profil{d,-spool,-feed}.service || return 1; done
}

check "the manifests have the same capabilities" capabilities profild
# shellcheck disable=SC2046 # words
check "the units have these capabilities, too" of_unit $(capabilities profild) $(capabilities spool) $(capabilities feed)
check "a container runs profild with them alone" run "$server" "$(capabilities profild)" --security-opt seccomp=unconfined "$image" profild --machine=97,stacks
await $$ test -S "$dir/run/profil.sock"
# This shell has the mounts of the host's process 1, which the manifests name.
among_all=(--pid "container:$server" -v /proc:/proc:ro)
check "a container that has the host's /proc feeds its stacks" run "$feed" "$(capabilities feed)" "${among_all[@]}" "$image" profilctl machine feed --mounts-of $$
is_fed() {
	run - "" "$image" profilctl machine status --json | jq -e '.stacks and .feeder > 0'
}
check "profild lets it" await $$ is_fed

# It has no frame pointers, and is in no image.
"${CC:-gcc}" -O2 -fomit-frame-pointer -fno-optimize-sibling-calls -o "$dir/calls" -x c - <<'END' || exit 1
static volatile unsigned long spun;
__attribute__((noipa)) static void hot(void) { for (int i = 0; i < 100000; i++) spun++; }
__attribute__((noipa)) static void outer(void) { hot(); spun++; }
int main(void) { for (;;) outer(); }
END
id=$(run "$busy" "" -v "$dir/calls:/calls:ro" "$image" /calls)

# Starts a program in a cgroup as lxc's and systemd's, whose names are those of the container and of the unit.
cgroups=$(findmnt -n -o TARGET -t cgroup2 | head -n 1)
start_in() { # CGROUP
	mkdir "$cgroups/$1"
	sh -c 'echo $$ >"$1/cgroup.procs" && exec "$0"' "$dir/calls" "$cgroups/$1" &
	named+=("$!")
}
end_named() {
	kill "${named[@]}"
	wait "${named[@]}" 2>/dev/null
	named=()
	await $$ rmdir "$cgroups/lxc.payload.profil-web-$$" "$cgroups/profil-web-$$.service"
}
spool() { # ARGS...
	run - "$1" "${@:2}" "$image" profilctl machine spool -i 4 -d 9 /var/lib/profil-spool
}
start_in "lxc.payload.profil-web-$$"
start_in "profil-web-$$.service"
check "a container spools the machine's profile" spool "$(capabilities spool)"
report() { # ARGS...
	run - "" "$image" profilctl report --since -1h "$@"
}
check "a container beside it carries its id" grep -q " ${id:0:12}$" <(report --by container)
check "its samples are those of its command" grep -q " calls$" <(report --by command)
report --container "${id:0:12}" -f folded >"$dir/folded"
# shellcheck disable=SC2016 # awk's
check "99 % of its stacks are whole once they are fed, without frame pointers" awk '/rules not read yet/ { next } { n += $NF } !/\[cut/ && /calls[^;]*;.*calls[^;]*;.*calls[^;]* [0-9]+$/ { whole += $NF }
	END { print whole " of " n; exit !(n > 100 && whole >= 0.99 * n) }' "$dir/folded"

# Restarted, a container of podman keeps its id, one of lxc and a unit their names: each is in cgroups with new numbers.
before=$(find "$dir/spool" -name '*.json.gz' | wc -l)
end_named
check "the container is restarted" "${engine[@]}" restart -t 0 "$busy"
start_in "lxc.payload.profil-web-$$"
start_in "profil-web-$$.service"
check "with the host's /proc a container spools names as well" spool "$(capabilities spool) $(capabilities feed)" "${among_all[@]}"
end_named
check "functions of a file outside of the image have names in stacks" grep -q ';main;outer;hot ' <(report --container "${id:0:12}" -f folded)
check "files of the image have functions" grep -q ';__libc_start_main;' "$dir/folded"
check "the kernel's functions have names" jq -e '.functions | any(.object == "[kernel]" and .named)' <(report -f json)
# shellcheck disable=SC2016 # the container's
run - "" --pid "container:$server" "$image" profilctl record -f json -o /run/profil/recorded -- sh -c 'i=0; while [ $i -lt 2000000 ]; do i=$((i+1)); done' 2>"$dir/said"
check "record profiles a command in a container" jq -e '.samples.total > 0 and .samples.binned > 0' "$dir/run/recorded"
tests/lib/otlp_receiver.js "$dir/in" &
receiver=$!
await "$receiver" test -e "$dir/in/port"
check "a container pushes the spool" run - "" "$image" profilctl machine push --once "http://127.0.0.1:$(cat "$dir/in/port")"
check "the receiver has each profile" test "$(find "$dir/in" -name '*.otlp' | wc -l)" = "$(find "$dir/spool" -name '*.json.gz' | wc -l)"
series() { # FILE...
	/usr/bin/python3 tests/lib/otlp.py resources "$@" | grep -oE "container.id=$id|container.name=profil-web-$$|systemd.unit=profil-web-$$.service" | sort -u
}
mapfile -t files < <(find "$dir/in" -name '*.otlp' | sort)
check "the profiles have the containers and the unit as resources" test "$(series "${files[@]:0:before}" | wc -l)" = 3
check "they have the same series after a restart" test "$(series "${files[@]:before}")" = "$(series "${files[@]:0:before}")"
check "pushed stacks of the container are whole" grep -qE "^[0-9]+ $id( [^ ]+)* main outer hot$" <(/usr/bin/python3 tests/lib/otlp.py owned "${files[@]:before}")
finish
