#!/bin/bash
# http-exact.sh - profil-http's profiles add up, also across clock steps; its stacks have callers
#
# usage: tests/night/kernel/http-exact.sh
# shellcheck disable=SC2016 # what is in quotes is for awk, and for eval
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

# The three parts must begin and end with the same snapshots as the whole. A reader that is more than
# 100 ms late, as on a busy machine, misses a snapshot and tries again.
chain() { # WHAT
	local words try

	for try in {1..20}; do
		"$client" chain "$sock" 3 "$dir/part" "$1" >"$dir/chain" || return
		read -r -a words <"$dir/chain"
		test "${words[1]#*-}" = "${words[2]%-*}" && test "${words[2]#*-}" = "${words[3]%-*}" &&
			test "${words[0]}" = "${words[1]%-*}-${words[3]#*-}" && return 0
	done
	echo "after $try attempts: ${words[*]}"
	return 1
}

test_sum() { # WHAT
	local what="three consecutive seconds of '$1' add up, place by place, to all three seconds"

	test -x "$dir/checkprofile" || { lacks "$what" "google/pprof"; return; }
	if ! chain "$1" >"$dir/said" 2>&1; then
		fail "$what" "$(cat "$dir/said")"
		return
	fi
	check "$what" "$dir/checkprofile" -sum "$dir/part1" "$dir/part2" "$dir/part3" "$dir/partall"
}

# The functions have no frame pointers: the kernel needs the unwind tables that the feeder makes.
build_calls() {
	cat >"$dir/calls.c" <<-'END'
		volatile unsigned long sink;
		__attribute__((noipa)) static int called_inner(int n)
		{
			for (int i = 0; i < 100000; i++)
				sink += i ^ n;
			return n;
		}
		__attribute__((noipa)) static int called_outer(int n)
		{
			return called_inner(n) + 1;
		}
		int main(void)
		{
			for (;;)
				sink += called_outer(1);
		}
	END
	gcc -O2 -fomit-frame-pointer -o "$dir/calls" "$dir/calls.c"
}

# pprof prints each stack with its samples, innermost function first.
stacks_have_callers() {
	pprof -traces "http://127.0.0.1:$port/debug/pprof/stacks?seconds=2" >"$dir/traces" || return
	awk '
		/----/ { at = 0 }
		$NF == "called_inner" { at = 1; n++; next }
		at == 1 && $NF == "called_outer" { at = 2; next }
		at == 2 && $NF == "main" { whole++ }
		{ at = at == 2 ? 3 : 0 }
		END { print n + 0, "stacks, whole:", whole + 0; exit !whole || whole < n }
	' "$dir/traces" || { cat "$dir/traces"; return 1; }
}

pprof() {
	PPROF_TMPDIR=$dir HOME=$dir go tool pprof "$@"
}

stacks_have_samples() {
	get '/debug/pprof/stacks?seconds=2' -o "$dir/stacks" || return
	"$dir/checkprofile" "$dir/stacks" >"$dir/sums" || return
	cat "$dir/sums"
	awk '$2 < 100 { bad = 1 } END { exit bad }' "$dir/sums"
}

# Two busy processes for 2 s at 199 Hz: 796 samples on two CPUs, 398 on one.
test_stacks() {
	local what="stacks have the callers of functions without frame pointers" calls

	if ! test -x "$dir/checkprofile"; then
		lacks "$what" "google/pprof"
		return
	fi
	check "a program without frame pointers is built" build_calls
	"$dir/calls" &
	calls=$!
	started+=("$calls")
	await_busy "$calls" "$dir/calls"
	get '/debug/pprof/stacks?seconds=1' -o "$dir/first" # the tables of a new program are made
	check "profiles with stacks are valid and have the samples of two seconds" stacks_have_samples
	check "$what" stacks_have_callers
	test_sum stacks
	check "the caller of a function is named by go tool pprof -peek" eval \
		'pprof -peek called_inner "$dir/stacks" | grep -q called_outer'
	kill "$calls"
}

# Profiles of 1 to 3 s one after the other, while the clock is set forward by an hour, then back by two,
# and the machine is suspended for half an hour, as far as profil-http can see. A profile during which
# that happens ends early.
step_clocks() {
	local shift seconds n=0 files=() end=$((SECONDS + 60))

	for shift in "3600 0" "-3600 0" "-1800 1800"; do
		read -r -a seconds <<<"$shift"
		n=$((n + 2))
		until files=("$dir"/step.part.*) && test "${#files[@]}" -ge "$n" && test -e "${files[0]}"; do
			test "$SECONDS" -lt "$end" || return
			sleep 0.1
		done
		shift_clocks "${seconds[@]}"
	done
}

# No profile is doubled: together they have at most the CPU time of their durations. 0.2 s for each are for
# the time between the clock and the first or last place that a snapshot reads.
durations_are_true() {
	awk -v cpus="$(nproc)" -v took="$1" '
		{ ns += $3; all += $5; n++; if ($5 <= 0 || $5 > 1e9 * took) bad = 1 }
		END {
			print n, "profiles,", ns / 1e9, "s of CPU time in", all / 1e9, "s, which took", took, "s"
			exit bad || n < 7 || ns <= 0 || ns > cpus * (1.1 * all + 2e8 * n) || all > 1e9 * (took + 1)
		}' "$dir/stepped"
}

# A reader that is late, as each is that asks while a step ends a profile early, misses the snapshot of the
# profile before.
test_clock_steps() {
	local what="profiles across clock steps and a suspend add up to the difference of the totals" began=$SECONDS
	local set=$dir/set.sock steps said status

	test -x "$dir/checkprofile" || { lacks "$what" "google/pprof"; return; }
	shifter_start
	"${shifted[@]}" "$BUILD/profil-http" --socket "$PROFIL_SOCKET" --group "$reader" --listen "$set" &
	started+=("$!")
	until curl -s --unix-socket "$set" -o "$dir/first" http://localhost/metrics; do
		if ! alive "${started[-1]}"; then
			break
		fi
	done
	began=$SECONDS
	"$client" soak "$set" 16 "$dir/step." 1 >"$dir/steps" &
	steps=$!
	step_clocks
	wait "$steps"
	status=$?
	check "profiles are answered across clock steps" test "$status" -eq 0
	said=$("$dir/checkprofile" -soak "$dir/steps" 20 2>&1)
	status=$?
	printf '# %s\n' "$said"
	check "$what" eval "test $status -eq 0 || { echo '$said'; false; }"
	"$dir/checkprofile" "$dir"/step.part.* >"$dir/stepped"
	check "profiles across clock steps have positive durations and no doubled samples" \
		durations_are_true $((SECONDS - began))
	check "profiles begin at the time that the stepped clock shows" awk -v now="$(date +%s)" '
		{ at = $4 / 1e9 - now; if (at > 3000) ahead = 1; if (at < -3000) behind = 1 }
		END { exit !ahead || !behind }' "$dir/stepped"
	kill "${started[-1]}"
}

if ! test -x "$BUILD/profil-http"; then
	lacks "profil-http was built" "libmicrohttpd"
	finish
fi
if ! command -v go >/dev/null || ! test -d /usr/share/gocode/src/github.com/google/pprof; then
	lacks "profiles add up" "golang-go or golang-github-google-pprof-dev"
	finish
fi
check "the checker builds with google/pprof's profile package" build_checker
daemon_start --machine=199 --ephemeral
bash -c 'while :; do :; done' &
started+=("$!")
port=$(free_port)
http_start --listen "127.0.0.1:$port"
"$BUILD/profilctl" machine on -g 2>>"$dir/log"
"$BUILD/profilctl" machine feed 2>>"$dir/log" &
started+=("$!")
test_sum profile
test_stacks
test_clock_steps
kill "$http"
wait "$http"
daemon_stop
finish
