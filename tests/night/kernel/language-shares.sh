#!/bin/bash
# language-shares.sh - shares of functions of each language, by samples and by the clocks of the programs themselves
#
# Newer versions than this machine's are run in a root with Debian 13, which is made once.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

ctl=$BUILD/profilctl
seconds=${PROFIL_TEST_SHARES_S:-10}
newer=$vm_cache/root-trixie

# Compares, at most three times: four standard errors are chance once in 16,000 functions.
shares_of() { # LANGUAGE WHAT SOURCE COMMAND...
	local look said

	for look in 1 2 3; do
		: >"$dir/truth"
		TRUTH=/mnt/truth "$ctl" record -q -g -F 1999 -o "$dir/kept" -- "${@:4}" >"$dir/out" 2>&1 ||
			{ fail "functions of $2 have the shares of the clock" "$(tail -n 3 "$dir/out")"; return; }
		"$ctl" report -f json -o "$dir/json" "$dir/kept"
		"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
		if said=$(python3 tests/lib/shares.py "$dir/json" "$dir/lines" "$dir/truth" "$1" "$3"); then
			ok "functions of $2 have the shares of the clock"
			echo "  ${said//$'\n'/$'\n'  }"
			return
		fi
	done
	fail "functions of $2 have the shares of the clock" "$said (look $look)"
}

here() { # LANGUAGE WHAT SOURCE PROGRAM ARG...
	if command -v "$4" >/dev/null; then
		shares_of "${@:1:3}" "${@:4}" "/mnt/${3##*/}" "$seconds"
	else
		lacks "functions of $2 have the shares of the clock" "$4"
	fi
}

there() { # LANGUAGE WHAT SOURCE PROGRAM ARG...
	shares_of "${@:1:3}" chroot "$newer" "${@:4}" "/mnt/${3##*/}" "$seconds"
}

make_newer() {
	local options

	test ! -d "$newer" || return 0
	mkdir -p "${newer%/*}"
	mapfile -t options < <(apt-config dump | sed -nE 's/^(Acquire::(Check-Valid-Until|Check-Date|https?::Proxy[^ ]*) .*);$/--aptopt=\1/p')
	vm_source trixie | online mmdebstrap --variant=minbase "${options[@]}" \
		--include=ruby,python3,perl,nodejs,openjdk-21-jre-headless trixie "$newer.new" - >"$dir/log" 2>&1 &&
		mv "$newer.new" "$newer"
}

dontinline=(-XX:CompileCommand=quiet '-XX:CompileCommand=dontinline,Shares*::p_*')
programs=tests/programs/shares
chmod 755 "$dir"
cp $programs/* "$dir"
mount --bind "$dir" /mnt || exit 1 # this mount namespace is the test's own
daemon_start --user-rate 1999
here python "Python" $programs/shares.py /usr/bin/python3
here node "Node.js" $programs/shares.js node --single-threaded
XDEBUG_MODE=off here php "PHP" $programs/shares.php php
here ruby "Ruby" $programs/shares.rb ruby
here perl "Perl" $programs/shares.pl /usr/bin/perl
here java "Java" $programs/Shares.java java "${dontinline[@]}"
if ! make_newer; then
	skip "functions of Debian 13's languages have the shares of the clock" "its root cannot be had: $(tail -n 1 "$dir/log")"
	finish
fi
mount --bind "$dir" "$newer/mnt" && mount -t proc proc "$newer/proc" || exit 1
there ruby "Debian 13's Ruby" $programs/shares.rb ruby
there python "Debian 13's Python" $programs/shares.py /usr/bin/python3
there perl "Debian 13's Perl" $programs/shares.pl /usr/bin/perl
there node "Debian 13's Node.js" $programs/shares.js node --single-threaded
there java "Debian 13's Java" $programs/Shares.java java "${dontinline[@]}"
finish
