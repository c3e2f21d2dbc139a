#!/bin/bash
# kernel-top.sh - top on a terminal: what is on the screen, when it is resized, and what it costs
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
spin=$dir/spin
seconds=${PROFIL_TEST_TOP_S:-10}
${CC:-gcc} -O2 -g -o "$spin" tests/system/programs/spin.c -ldl -pthread || exit 1

if ! command -v tmux >/dev/null; then
	skip "top on a terminal" "no tmux: sudo make deps"
	finish
fi

terminal() {
	tmux -S "$dir/tmux" -f /dev/null "$@"
}

shown() {
	terminal capture-pane -p
}

# Waits until the screen matches, as it may change at each of top's tables.
screen_has() { # PATTERN
	local limit=$((SECONDS + 20))

	until shown | grep -Eq -- "$1"; do
		if test "$SECONDS" -ge "$limit"; then
			echo "no \"$1\" on:"
			shown
			return 1
		fi
		read -r -t 0.2 <>"$dir/never" || :
	done
}

# The heading is a line of its own, the columns stand under their names, and nothing is wrapped.
looks_right() { # COLUMNS LINES
	screen_has "^profilctl top - [0-9:]+, [0-9.]+ s: [0-9]+ samples at [0-9.]+ Hz, [0-9]+ processes" &&
		screen_has "^ *[0-9.]+ +[0-9.]+- *[0-9.]+ +[0-9]+ +[0-9.]+  hot +spin$" || return
	shown >"$dir/screen"
	awk -v columns="$1" -v lines="$2" '
		length > columns { print "too wide: " $0; bad = 1 }
		NR == 1 && !/^profilctl top/ { print "first: " $0; bad = 1 }
		NR == 3 && !/^self %   95 % of it   samples   seconds  function +object$/ { print "third: " $0; bad = 1 }
		NR == 3 { at = index($0, "function"); object = index($0, "object") }
		/ hot +spin$/ && (index($0, "hot") != at || index($0, "spin") != object) { print "columns: " $0; bad = 1 }
		/^ *[0-9.]+ +[0-9.]+-/ { rows++ }
		END { if (rows < 2 || NR > lines) { print rows " rows on " NR " lines"; bad = 1 } exit bad }' "$dir/screen" ||
		{ cat "$dir/screen"; false; }
}

cpu_ticks() { # PID
	awk '{ print $14 + $15 }' "/proc/$1/stat"
}

# In so many seconds, on a busy machine.
cost() {
	local top used counted

	top=$(terminal list-panes -F '#{pane_pid}')
	used=$(cpu_ticks "$top") counted=$(cpu_ticks "$daemon")
	sleep "$seconds"
	used=$(($(cpu_ticks "$top") - used)) counted=$(($(cpu_ticks "$daemon") - counted))
	check "in $seconds s it takes $used ticks of CPU time, less than 1 % (and the daemon $counted)" \
		test $((used * 100)) -lt $((seconds * $(getconf CLK_TCK)))
}

mkfifo "$dir/never"
daemon_start
"$spin" split 1000 &
one=$!
"$spin" calls 1000 &
other=$!
terminal new-session -d -x 80 -y 24 "PROFIL_SOCKET=$PROFIL_SOCKET $ctl top"
terminal set-option -g status off
until "$ctl" list | grep -qw "$one"; do read -r -t 0.1 <>"$dir/never" || :; done
terminal resize-window -x 90 -y 30 # before there is any table
terminal resize-window -x 80 -y 24
check "at 80 x 24 it looks right" looks_right 80 24
terminal resize-window -x 200 -y 50
check "at 200 x 50 it looks right" looks_right 200 50
terminal resize-window -x 40 -y 10
check "at 40 x 10 it goes on" screen_has '^profilctl top - [0-9:]+, [0-9.]+ s'
terminal resize-window -x 80 -y 24
check "at 80 x 24 again it looks right" looks_right 80 24
cost
terminal send-keys q
gone() {
	local limit=$((SECONDS + 20))

	while terminal has-session 2>/dev/null; do
		test "$SECONDS" -lt "$limit" || return
	done
}
check "q ends it" gone
kill "$one" "$other"
wait "$one" "$other" 2>/dev/null
daemon_stop
finish
