#!/bin/bash
# language-shares.sh - shares of functions of each language, by samples and by the clocks of the programs themselves
#
# Other versions than this machine's are run in roots with other releases of Debian, each made once.
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/night/vm/fetch.sh
. tests/night/vm/fetch.sh

ctl=$BUILD/profilctl
seconds=${PROFIL_TEST_SHARES_S:-10}

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

there() { # ROOT LANGUAGE WHAT SOURCE PROGRAM ARG...
	shares_of "${@:2:3}" chroot "$1" "${@:5}" "/mnt/${4##*/}" "$seconds"
}

make_root() { # RELEASE PACKAGES
	local root=$vm_cache/root-$1 packages

	IFS=, read -r -a packages <<<"$2"
	! chroot "$root" dpkg -s "${packages[@]}" >/dev/null 2>&1 || return 0
	rm -rf "$root"
	mkdir -p "$vm_cache"
	vm_root "$1" "$2" "$root.new" >"$dir/log" 2>&1 &&
		mv "$root.new" "$root"
}

# The root has the programs of /mnt, and what Python's multiprocessing wants.
enter() { # RELEASE PACKAGES
	local root=$vm_cache/root-$1

	if ! make_root "$@"; then
		skip "functions of the languages of Debian's $1 have the shares of the clock" "its root cannot be had: $(tail -n 1 "$dir/log")"
		return 1
	fi
	mount --bind "$dir" "$root/mnt" && mount -t proc proc "$root/proc" && mount -t tmpfs none "$root/dev/shm"
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
if enter trixie ruby,python3,perl,nodejs,php-cli,openjdk-21-jre-headless; then
	root=$vm_cache/root-trixie
	there "$root" ruby "Debian 13's Ruby" $programs/shares.rb ruby
	there "$root" python "Debian 13's Python" $programs/shares.py /usr/bin/python3
	there "$root" perl "Debian 13's Perl" $programs/shares.pl /usr/bin/perl
	there "$root" node "Debian 13's Node.js" $programs/shares.js node --single-threaded
	there "$root" php "Debian 13's PHP" $programs/shares.php php
	there "$root" java "Debian 13's Java" $programs/Shares.java java "${dontinline[@]}"
fi
if enter bullseye python3.9; then
	there "$vm_cache/root-bullseye" python "Python 3.9" $programs/shares.py /usr/bin/python3.9
fi
if enter sid python3.14,python3.15,perl,nodejs,openjdk-25-jre-headless; then
	root=$vm_cache/root-sid
	there "$root" python "Python 3.14" $programs/shares.py /usr/bin/python3.14
	there "$root" python "Python 3.15" $programs/shares.py /usr/bin/python3.15
	there "$root" perl "Debian sid's Perl" $programs/shares.pl /usr/bin/perl
	there "$root" node "Debian sid's Node.js" $programs/shares.js node --single-threaded
	there "$root" java "Java 25" $programs/Shares.java java "${dontinline[@]}"
fi
finish
