#!/bin/bash
# machine-interpreters.sh - functions of Python in the machine's profile, where root has described it
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

python=$(command -v /usr/bin/python3.1[0-4] | head -1)
test "$python" || { skip "functions of Python in the machine's profile" "python3: sudo make deps"; finish; }

# This mount namespace is the test's own.
mkdir -p /var/lib/profil
mount -t tmpfs none /var/lib/profil || exit 1

spin() {
	"$python" -c 'import time
def turning():
    end = time.process_time() + 2
    while time.process_time() < end:
        for n in range(10000):
            n += 1
turning()'
}

samples() {
	"$BUILD/profilctl" machine report -f json |
		jq '[.functions[] | select(.object == "python" and (.name | test("turning"))).samples] | add // 0'
}

daemon_start --rate 97
"$BUILD/profilctl" machine on -F 97 >/dev/null
spin
check "without a description the machine's profile has no function of Python" test "$(samples)" -eq 0
"$BUILD/profilctl" machine off >/dev/null
check "interpreters describes Python" "$BUILD/profilctl" interpreters "$python"
chmod g+w /var/lib/profil/interpreters
"$BUILD/profilctl" machine on -F 97 >/dev/null
spin
check "a description that others may write is not used" test "$(samples)" -eq 0
"$BUILD/profilctl" machine off >/dev/null
chmod g-w /var/lib/profil/interpreters
"$BUILD/profilctl" machine on -F 97 >/dev/null
spin
check "with a description the function that ran has samples" test "$(samples)" -gt 20
finish
