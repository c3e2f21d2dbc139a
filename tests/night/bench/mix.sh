#!/bin/bash
# mix.sh - a machine at work until it is ended: compiles, python, openssl, sqlite, xz, short processes
#
# usage: mix.sh [FORKS], with which it forks as many times a second as it can, all the time.
cd "$(dirname "${BASH_SOURCE[0]}")/../../.." || exit 1
# All of it is a process group of its own, which ends with it.
test "$(ps -o pgid= -p $$ | tr -d ' ')" = $$ || exec setsid tests/night/bench/mix.sh "$@"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/profil-mix.XXXXXX") || exit 1
trap 'trap "" TERM INT; kill -- -$$; wait; rm -rf "$scratch"; exit 0' TERM INT

have() { command -v "$1" >/dev/null; }

# Runs a command again and again.
again() { # COMMAND...
	if have "$1" || declare -F "$1" >/dev/null; then
		while :; do "$@"; done >/dev/null 2>&1 &
	else
		echo "mix: no $1" >&2
	fi
}

compile() {
	local f

	for f in src/core/*.c src/libprofil/*.c; do
		${CC:-gcc} -O2 -Isrc -Iinclude -D_GNU_SOURCE -c "$f" -o "$scratch/o.o"
	done
}

query() {
	sqlite3 :memory: "create table t(a integer primary key, b text, c real);
		with recursive n(i) as (select 1 union all select i + 1 from n where i < 60000)
			insert into t select i, hex(randomblob(8)), random() / 1e9 from n;
		create index x on t(b); select count(*), avg(c) from t where b like 'A%';
		select b, count(*) from t group by substr(b, 1, 2) order by 2 desc limit 5;"
}

short() {
	local i

	for i in {1..50}; do
		/bin/true
		/usr/bin/printf "%d" "$i"
		echo x | grep -q x
	done
	find /usr/share/doc 2>/dev/null | head -n 2000 | sort | uniq -c
}

pack() {
	tar cf - src | xz -2
	perl -e 'my %h; $h{$_ % 5000} .= "x" for 1..300000; my $s = join ",", sort keys %h;'
}

again compile
again python3 -c '
import hashlib, json, re
d = {str(i): [j * j for j in range(20)] for i in range(2000)}
for k in range(6):
    s = json.dumps(d); e = json.loads(s); re.findall(r"\d+, \d+", s); sorted(e)
    hashlib.sha1(s.encode()).hexdigest(); sum(i * i % 7 for i in range(100000))'
again openssl speed -seconds 1 sha256 aes-128-cbc rsa2048
have sqlite3 && again query
again short
again pack
test -z "${1:-}" || again "${BUILD:-build}/tests/night/bench/work" forks 10000
wait
