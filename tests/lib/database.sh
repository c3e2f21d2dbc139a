#!/bin/bash
# database.sh - a PostgreSQL server of a test's own, for pgbench
# shellcheck disable=SC2034,SC2154 # what a test and lib.sh set and read

for database_bin in /usr/lib/postgresql/*/bin; do :; done

# Starts the server in $dir under an unprivileged uid, with the tables of pgbench. Sets $postgres. Without
# PostgreSQL it skips WHAT and fails.
database_start() { # WHAT
	local user=(setpriv --reuid=65534 --regid=65534 --clear-groups)

	if ! test -x "$database_bin/initdb" || ! test -x "$database_bin/pgbench"; then
		lacks "$1" "postgresql"
		return 1
	fi
	mkdir "$dir/db" && chown 65534:65534 "$dir/db"
	if ! "${user[@]}" "$database_bin/initdb" -D "$dir/db" -A trust -U test >"$dir/out" 2>&1; then
		fail "initdb makes a database" "initdb: $(tail -n 3 "$dir/out")"
		return 1
	fi
	"${user[@]}" "$database_bin/postgres" -D "$dir/db" -k "$dir/db" -h '' >"$dir/out" 2>&1 &
	postgres=$!
	until "$database_bin/pgbench" -h "$dir/db" -U test -i -q postgres >"$dir/said" 2>&1; do
		alive "$postgres" || break
	done
}

# Eight clients for so many seconds, in the background. Each transaction is one of three, chosen at random,
# so that the clients do not fall in step with each other and with a timer. Sets $pgbench.
database_load() { # SECONDS
	"$database_bin/pgbench" -h "$dir/db" -U test -c 8 -j 2 -T "$1" -b tpcb-like -b simple-update \
		-b select-only@8 postgres >"$dir/said" 2>&1 &
	pgbench=$!
}
