#!/bin/bash
# false-descriptors.sh - clients whose descriptors of interpreters change at random while they are used
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$(realpath "$BUILD/profilctl")
gid=60100 alice=61201 bob=61202 # they need no entry in /etc/passwd or /etc/group
hz=9999
seconds=5

chmod 755 "$dir"
printf 'root:x:0:\nprofil:x:%d:\n' $gid >"$dir/group"
chmod 644 "$dir/group"
# shellcheck disable=SC2016 # another shell's
under=(unshare --mount sh -c 'mount --bind "$0" /etc/group && exec "$@"' "$dir/group")
daemon_start --user-rate $hz --rate 997
under=()
chmod 711 "$dir"

cat >"$dir/turn.py" <<'END'
import os, time
def named_by_its_owner(n):
    return named_by_its_owner(n - 1) + 1 if n else sum(range(20000))
end = time.monotonic() + float(os.environ["SPIN"])
while time.monotonic() < end: named_by_its_owner(30)
END
cat >"$dir/turn.js" <<'END'
function turn(n) { return n ? turn(n - 1) + 1 : Array.from({ length: 500 }, Math.sqrt).length; }
for (const end = Date.now() + 1000 * process.env.SPIN; Date.now() < end;) turn(30);
END
cat >"$dir/turn.php" <<'END'
<?php function turn($n) { return $n ? turn($n - 1) + 1 : array_sum(range(1, 5000)); }
for ($end = microtime(true) + getenv("SPIN"); microtime(true) < $end;) turn(30);
END
cat >"$dir/turn.rb" <<'END'
def turn(n) = n > 0 ? turn(n - 1) + 1 : (1..2000).sum { |i| i % 7 }
stop = Time.now + ENV["SPIN"].to_f
turn(30) while Time.now < stop
END
cat >"$dir/turn.pl" <<'END'
use Time::HiRes "time";
sub turn { my $n = shift; return turn($n - 1) + 1 if $n; my $s = 0; $s += $_ for 1 .. 5000; $s }
for (my $end = time + $ENV{SPIN}; time < $end;) { turn(30) }
END
cat >"$dir/Turn.java" <<'END'
public class Turn {
	static long turn(int n) { if (n > 0) return turn(n - 1) + 1; long s = 0; for (int i = 0; i < 20000; i++) s += i; return s; }
	public static void main(String[] a) {
		long end = System.nanoTime() + (long)(1e9 * Double.parseDouble(System.getenv("SPIN")));
		while (System.nanoTime() < end) turn(30);
	}
}
END
chmod 644 "$dir"/turn.* "$dir/Turn.java"

# Records COMMAND with descriptors that change at random.
lied_to() { # LANGUAGE COMMAND...
	local recorder

	SPIN=$seconds "$ctl" record -q -g -F $hz -f json -o "$dir/json" -- "${@:2}" >"$dir/stdout" 2>"$dir/stderr" &
	recorder=$!
	python3 tests/lib/false_descriptors.py $recorder >"$dir/lies" 2>&1
	wait $recorder
	check "record of $1 outlives false descriptors" test $? -eq 0
	check "descriptors of $1 were changed a thousand times" test "$(cat "$dir/lies")" -ge 1000
	check "samples of $1 add up" jq -e \
		'.samples | .total > 1000 and .total == .binned + .unmatched + .lost' "$dir/json"
}

# A neighbour's recording for all of the time, of which the functions are known.
SPIN=$((7 * seconds)) "$ctl" record -q -g -F 499 -f json -o "$dir/neighbour" -- /usr/bin/python3 "$dir/turn.py" &
neighbour=$!
lied_to Python /usr/bin/python3 "$dir/turn.py"
lied_to Node.js node "$dir/turn.js"
lied_to PHP php "$dir/turn.php"
lied_to Ruby ruby "$dir/turn.rb"
lied_to Perl /usr/bin/perl "$dir/turn.pl"
lied_to Java java -Xint "$dir/Turn.java"
wait $neighbour
check "the neighbour's recording ends" test $? -eq 0
check "the neighbour's functions are its own" jq -e \
	'[.functions[] | select(.object == "python" and .samples > 0) | .name] | index("named_by_its_owner") and all(test("^[A-Za-z0-9_<>(). ]+$"))' \
	"$dir/neighbour"

# Alice is in group profil: she may count the samples of all users, but not read bob's memory.
canary=canary_$(od -An -N8 -tx8 /dev/urandom | tr -d ' ')
sed "s/named_by_its_owner/$canary/g" "$dir/turn.py" >"$dir/canary.py"
SPIN=$((2 * seconds)) setpriv --reuid=$bob --regid=$bob --clear-groups /usr/bin/python3 "$dir/canary.py" &
programs=($!)
SPIN=$((2 * seconds)) setpriv --reuid=$alice --regid=$alice --groups=$gid /usr/bin/python3 "$dir/turn.py" &
programs+=($!)
setpriv --reuid=$alice --regid=$alice --groups=$gid \
	"$ctl" record -q -a -g -F $hz -d $seconds -f json >"$dir/json" 2>"$dir/stderr" &
recorder=$!
python3 tests/lib/false_descriptors.py $recorder >"$dir/lies" 2>&1
wait $recorder
check "a recording of the whole machine outlives false descriptors" test $? -eq 0
check "its descriptors were changed a thousand times" test "$(cat "$dir/lies")" -ge 1000
check "its samples add up" jq -e '.samples | .total > 1000 and .total == .binned + .unmatched + .lost' "$dir/json"
# shellcheck disable=SC2016 # another shell's
check "no name of another user's process is in it" sh -c '! grep -q "$1" "$2"' "$canary" "$dir/json"
wait "${programs[@]}"
daemon_stop
finish
