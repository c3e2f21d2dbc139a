#!/bin/bash
# top.sh - top on a terminal: the screen, resizing, keys, and CPU time
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/verdict.sh
. tests/lib/verdict.sh

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
${CC:-gcc} -O2 -g -o "$spin" tests/programs/spin.c -ldl -pthread || exit 1

needs tmux "top on a terminal"

terminal() {
	tmux -S "$dir/tmux" -f /dev/null "$@"
}

shown() {
	terminal capture-pane -p
}

# Waits until the command succeeds on the screen, which is in $dir/screen. It changes with each of top's tables, and
# may be seen when half of it has been drawn.
screen_is() { # COMMAND...
	local limit=$((SECONDS + 60))

	until shown >"$dir/screen" && "$@" <"$dir/screen" >"$dir/why"; do
		if test "$SECONDS" -ge "$limit"; then
			cat "$dir/why" "$dir/screen"
			return 1
		fi
		read -r -t 0.2 <>"$dir/never" || :
	done
}

screen_has() { # PATTERN
	screen_is grep -Eq -- "$1" || { echo "no \"$1\" on it"; return 1; }
}

lacks_hot() {
	! grep ' hot '
}

# The heading has a line of its own, the columns are below their names, and no line wraps.
# shellcheck disable=SC2016 # awk's variables
looks_right() { # COLUMNS LINES
	screen_is awk -v columns="$1" -v lines="$2" -v one="$one" '
		length > columns { print "too wide: " $0; bad = 1 }
		NR == 1 && !/^profilctl top - [0-9:]+, [0-9.]+ s: [0-9]+ samples at [0-9.]+ Hz, [0-9]+ process(es)?/ { print "first: " $0; bad = 1 }
		NR == 3 && !/^self % .* pid  command +function +object$/ { print "third: " $0; bad = 1 }
		NR == 3 { at = index($0, "function"); object = index($0, "object") }
		/ hot +spin$/ && (index($0, " hot") + 1 != at || substr($0, object) != "spin") { print "columns: " $0; bad = 1 }
		/^ *[0-9.]+ +/ { rows++ }
		/^ *[0-9.]+ / && $0 ~ " " one " +spin +hot +spin$" { hot++ }
		END { if (rows < 2 || !hot || NR > lines) { print rows " rows, " hot + 0 " of hot, on " NR " lines"; bad = 1 } exit bad }'
}

# Presses the keys and waits until the screen matches.
key() { # NAME PATTERN KEY...
	local name=$1 pattern=$2

	shift 2
	terminal send-keys "$@"
	check "$name" screen_has "$pattern"
}

# Prints the part of a CPU that process PID uses for some seconds.
cpu_part() { # FACTOR PID
	local cpu_ns began since

	read -r began _ <"/proc/$2/schedstat" && since=$(date +%s%N)
	sleep "$1"
	read -r cpu_ns _ <"/proc/$2/schedstat"
	awk -v a="$((cpu_ns - began))" -v b="$(($(date +%s%N) - since))" 'BEGIN { print a / b }'
}

mkfifo "$dir/never"
daemon_start
"$spin" split 1000 &
one=$!
"$spin" calls 1000 &
other=$!
terminal new-session -d -x 80 -y 24 "PROFIL_SOCKET=$PROFIL_SOCKET $ctl top"
terminal set-option -g status off
until "$ctl" list | grep -q "(machine)"; do read -r -t 0.1 <>"$dir/never" || :; done
terminal resize-window -x 90 -y 30 # before the first table
terminal resize-window -x 80 -y 24
check "the table fits 80 x 24" looks_right 80 24
terminal resize-window -x 200 -y 50
check "the table fits 200 x 50" looks_right 200 50
terminal resize-window -x 40 -y 10
check "top keeps its heading at 40 x 10" screen_has '^profilctl top - [0-9:]+, [0-9.]+ s'
terminal resize-window -x 80 -y 24
check "the table fits 80 x 24 again" looks_right 80 24
equivalent "top uses less than 1 % of a CPU" 0 0.01 cpu_part "$(terminal list-panes -F '#{pane_pid}')"

key "h shows the keys" '^space, p +pause' h
key "q leaves the help" '^profilctl top - [0-9:]+,' q
key "s sorts by function" '^sorted by function; h: help' s
key "s sorts by object" '^sorted by object' s
key "s sorts by process" '^sorted by process' s
key "s sorts by samples again" '^[0-9.]+ s of CPU time' s
key "/ opens the filter" '^filter: _' /
key "the filter shows what is typed" '^filter: cold_' c o l d
key "enter keeps the filter" '^filter: cold$' Enter
check "the filter hides other functions" screen_is lacks_hot
key "escape ends the filter" ' hot +spin$' Escape
key "space pauses" '^paused; ' Space
key "/ opens the filter in a pause" '^filter: hot_' / h o t
key "enter keeps the filter in a pause" '^paused; filter: hot' Enter
key "enter annotates the function" "^hot in .*/spin: [0-9]+ samples" Enter
check "the annotation has the source" screen_has 'spin.c'
key "q leaves the function" '^paused; filter: hot' q
key "space ends the pause" '^filter: hot' Space
key "escape ends the filter again" '^[0-9.]+ s of CPU time' Escape
terminal send-keys q
gone() {
	local limit=$((SECONDS + 60))

	while terminal has-session 2>/dev/null; do
		test "$SECONDS" -lt "$limit" || return
	done
}
check "q ends top" gone

# With stacks, of one process.
terminal new-session -d -x 100 -y 40 "PROFIL_SOCKET=$PROFIL_SOCKET $ctl top -g -F 499 -i 2 $one" # no interval without samples
check "top -g shows inclusive shares beside own shares" screen_has '^self %  incl % '
check "inclusive shares are at least the own shares" screen_has '^ *([0-9.]+) +(\1|[1-9][0-9.]+) .* hot '
key "c shows the callers of the hottest function" '^callers of (hot|cold), [0-9]+ samples' c
check "callers reach the start of the thread" screen_has '^ *[0-9.]+ %.* (_start|__libc_start_main)$'
check "top -g says how many stacks are complete" screen_has '^[0-9.]+ % of the stacks reach'
key "q leaves the callers" '^profilctl top - [0-9:]+,' q
key "t shows the call tree from the start of the thread" '^ *[0-9.]+ %.* _start$' t
key "escape leaves the call tree" '^profilctl top - [0-9:]+,' Escape
terminal send-keys q
check "q ends top -g" gone

# Without a terminal, on a dumb one, and for programs.
tables() { # COMMAND...
	"$@" >"$dir/tables" && test "$(grep -c '^profilctl top' "$dir/tables")" -eq 2 &&
		grep -q ' hot ' "$dir/tables" && ! grep -q $'\033' "$dir/tables"
}
check "top prints tables without a terminal" tables "$ctl" top -n 2 -i 0.5
check "top prints tables on a dumb terminal" tables env TERM=dumb script -qec "$ctl top -n 2 -i 0.5" /dev/null
check "top --json prints an object for each interval" test "$("$ctl" top --json -n 2 -i 0.5 |
	jq -s 'map(select(.schema == "profil/1" and .samples.total > 0 and .duration_ns > 4e8)) | length')" -eq 2
# Of 100 samples, a twentieth of what there is on an idle machine, hot has 70 %, and the most: 1 in 45,000 fails.
"$ctl" top -g -b -n 1 -i 2 -F 999 "$one" >"$dir/calls"
check "top -g prints the callers of the hottest function after the table" grep -q '^callers of hot, ' "$dir/calls"
check "top -g --json has the stacks of the interval" test "$("$ctl" top -g --json -n 1 -i 2 -F 499 "$one" |
	jq -c '.stacks | [.samples > 0, ([.nodes[][4]] | add) == .samples, any(.frames[]; .[0] == "hot")]')" = '[true,true,true]'
uid=$((1000000 + $$)) # another run of this test is no user without processes
setpriv --reuid=$uid --regid=$uid --clear-groups "$ctl" top -n 2 -i 0.2 >"$dir/empty" 2>"$dir/said"
check "top returns 0 for a user without processes" test $? -eq 0
check "top shows a user without processes empty tables" test "$(grep -c ': 0 samples' "$dir/empty")" -eq 2
kill "$one" "$other"
wait "$one" "$other" 2>/dev/null
daemon_stop
finish
