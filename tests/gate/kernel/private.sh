#!/bin/bash
# private.sh - a private daemon ends with its profilctl and leaves no files, whatever ends profilctl
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

exec 2>/dev/null # bash reports every killed process
ctl=$BUILD/profilctl
export PROFIL_SOCKET=$dir/none TMPDIR=$dir/tmp
mkdir "$TMPDIR"

folders() {
	find "$TMPDIR" -mindepth 1 -maxdepth 1 -name 'profilctl.*'
}

no_folder() {
	test -z "$(folders)"
}

# Starts profilctl with a command that creates the file "began".
begin() { # VERB
	rm -f "$dir/began"
	# shellcheck disable=SC2016 # another shell's
	# bash starts background jobs with SIGINT and SIGQUIT ignored.
	env --default-signal "$ctl" "$1" -- sh -c 'touch "$1"; exec sleep 1000' - "$dir/began" >/dev/null &
	profilctl=$!
	await "$profilctl" test -e "$dir/began"
	private=$(pgrep -P "$profilctl" -x profild)
	await "$profilctl" sleeps
}

# The shell has become sleep(1): a child of profilctl, or of the keeper of its command.
sleeps() {
	sleeper=$(pgrep -P "$profilctl,$(pgrep -d , -P "$profilctl")" -x sleep)
}

ended() { # PID
	! alive "$1"
}

for verb in record run; do
	for signal in HUP INT TERM QUIT PIPE KILL; do
		begin $verb
		test "$verb" = run || check "$verb removes its directory before the command ends" await $$ no_folder
		kill -$signal "$profilctl"
		test "$verb$signal" != runPIPE || kill "$profilctl" # a closed pipe does not end it
		check "SIG$signal ends profilctl $verb" await $$ ended "$profilctl"
		check "the private daemon ends when SIG$signal ends profilctl $verb" await $$ ended "$private"
		test "$verb$signal" = runKILL || check "profilctl $verb leaves no directory on SIG$signal" await $$ no_folder
		kill "$sleeper"
	done
done
check "profilctl run leaves its directory on SIGKILL" test -n "$(folders)"
check "doctor reports the directory of a killed profilctl" grep -q '1 folder of a killed profilctl' <(touch -d '10 seconds ago' "$(folders)" && "$ctl" doctor)
begin run
check "the next profilctl removes the directory of a killed one, and keeps its own" test "$(folders | wc -l)" -eq 1
"$ctl" record -- true >/dev/null
check "profilctl keeps the directory of one that runs" test "$(folders | wc -l)" -eq 1
touch -d '10 seconds ago' "$(folders)"
"$ctl" record -- true >/dev/null
check "profilctl keeps an old directory of one that runs" test "$(folders | wc -l)" -eq 1
kill "$profilctl" "$sleeper"
check "the last profilctl leaves no directory" await $$ no_folder
finish
