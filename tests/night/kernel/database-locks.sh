#!/bin/bash
# database-locks.sh - how many backends of PostgreSQL wait for a row's lock, by record --wall and by pg_stat_activity
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
# shellcheck source=tests/lib/database.sh
. "$(dirname "$0")/../../lib/database.sh"

ctl=$(realpath "$BUILD/profilctl")
clients=6

sql() {
	"$database_bin/psql" -h "$dir/db" -U test -qAt postgres "$@"
}

# All clients change one row, which each of them keeps for some milliseconds.
contend() { # SECONDS
	cat >"$dir/script" <<-'END'
		\set ms random(2, 12)
		BEGIN;
		UPDATE contended SET n = n + 1;
		SELECT pg_sleep(:ms / 1000.0);
		COMMIT;
		SELECT pg_sleep(:ms / 1000.0);
	END
	"$database_bin/pgbench" -h "$dir/db" -U test -n -c "$clients" -T "$1" -f "$dir/script" postgres >"$dir/said" 2>&1 &
	pgbench=$!
}

# The backends that wait for a lock, at intervals that are not in step with the clients.
look() { # SECONDS
	local end=$((SECONDS + $1))

	while test "$SECONDS" -lt "$end"; do
		echo "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock';"
		sleep "0.0$((RANDOM % 80 + 10))"
	done | sql >"$dir/looks"
}

# The mean number of backends below ProcSleep(), and that of the looks; red beyond 2 % of the clients and 4 standard errors,
# by the means of 20 batches.
equals() {
	"$ctl" report -f folded "$dir/kept" >"$dir/folded"
	python3 - "$dir/folded" "$dir/looks" "$clients" "$("$ctl" report -f json "$dir/kept" | jq '.duration_ns / .tick_ns')" <<-'END'
		import statistics, sys
		ticks = float(sys.argv[4])
		waits = sum(int(line.rsplit(" ", 1)[1]) for line in open(sys.argv[1]) if ";ProcSleep;" in line) / ticks
		looks = [int(line) for line in open(sys.argv[2])]
		size = len(looks) // 20
		means = [statistics.mean(looks[i * size:(i + 1) * size]) for i in range(20)]
		mean, error = statistics.mean(looks), statistics.stdev(means) / 20 ** 0.5
		print(f"{waits:.3f} by samples, {mean:.3f} by {len(looks)} looks, standard error {error:.3f}")
		sys.exit(mean < 1 or abs(waits - mean) > 0.02 * int(sys.argv[3]) + 4 * error)
	END
}

compare() {
	local attach

	sql -c 'CREATE TABLE contended AS SELECT 0 AS n' || return
	"$ctl" attach -q --wall -F 997 -d 20 -o "$dir/kept" "$postgres" 2>"$dir/stderr" &
	attach=$!
	await_listed "^ *$postgres .* attachment " "$attach"
	contend 20
	look 19
	wait "$attach" || { cat "$dir/stderr"; return 1; }
	wait "$pgbench"
	equals
}

daemon_start
if database_start "waits for a row's lock are those of pg_stat_activity"; then
	check "waits for a row's lock are those of pg_stat_activity" compare
	kill "$postgres"
	wait "$postgres"
fi
daemon_stop
finish
