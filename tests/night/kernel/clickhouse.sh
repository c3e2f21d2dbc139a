#!/bin/bash
# clickhouse.sh - a fleet's rows in ClickHouse: the same numbers as report, and the ten queries with their times
# shellcheck source=tests/lib/spool.sh
. "$(dirname "$0")/../../lib/spool.sh"

hosts=${PROFIL_TEST_HOSTS:-1000} hours=24
type -p clickhouse-server >/dev/null || { lacks "the rows of a fleet in ClickHouse" clickhouse-server; finish; exit; }

# --- a server of our own ---

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
mkdir "$dir/clickhouse"
cat >"$dir/clickhouse/config.xml" <<END
<yandex><logger><level>warning</level><console>1</console></logger><listen_host>127.0.0.1</listen_host>
<http_port>$port</http_port><path>$dir/clickhouse/data/</path><tmp_path>$dir/clickhouse/tmp/</tmp_path>
<users_config>users.xml</users_config><default_profile>default</default_profile>
<default_database>default</default_database><mark_cache_size>67108864</mark_cache_size></yandex>
END
cat >"$dir/clickhouse/users.xml" <<END
<yandex><profiles><default><max_memory_usage>3000000000</max_memory_usage></default></profiles><quotas><default/></quotas>
<users><default><password/><networks><ip>::/0</ip></networks><profile>default</profile><quota>default</quota></default></users>
</yandex>
END
clickhouse-server --config-file="$dir/clickhouse/config.xml" >"$dir/clickhouse/log" 2>&1 &
server=$!
disown # its end is not told
trap 'kill -9 $server "${keepers[@]}" 2>/dev/null; lib_end' EXIT
ask() { # SQL
	curl -sS --fail-with-body "http://127.0.0.1:$port/" --data-binary "$1"
}
await "$server" ask "SELECT 1" >/dev/null

# --- real rows: a spool and a recording with stacks, while programs run ---

daemon_start --machine=97
spool=$dir/spool
mkdir "$spool"
keep "$spool" -i 2
"$ctl" record -a -g -F 97 -o "$dir/record.profil" -- python3 -c '
import hashlib, json, re, zlib
for i in range(20):
    text = json.dumps([{"n": n, "s": str(n) * 9} for n in range(20000)])
    json.loads(text), zlib.compress(text.encode()), hashlib.sha256(text.encode()), re.findall(r"\d+9", text)' 2>/dev/null
await "$keeper" has_profiles "$spool" 3
keepers_end "$keeper"

ask "$(cat deploy/clickhouse/schema.sql)"
for file in "$spool"/*.json.gz "$dir/record.profil"; do
	"$ctl" report -f rows "$file"
done >"$dir/rows"
curl -sS --fail-with-body "http://127.0.0.1:$port/?query=INSERT+INTO+profil+FORMAT+JSONEachRow" --data-binary "@$dir/rows"
"$ctl" report -f json "$spool" "$dir/record.profil" >"$dir/json"

prints "the table has the samples of report" "$(jq -r '"owner\t\([.groups[].samples] | add)\nstack\t\(.samples.total)"' "$dir/json")" \
	ask "SELECT kind, sum(samples) FROM profil GROUP BY kind ORDER BY kind FORMAT TabSeparated"
flat="kind = 'owner' AND function != ''"
"$ctl" report -f rows "$dir/record.profil" | jq -r 'select(.kind == "owner") | .samples' | awk '{ n += $1 } END { print n }' >"$dir/owners"
prints "the functions of owners add up to the recording's" "$(cat "$dir/owners")" ask "SELECT sum(samples) FROM profil WHERE $flat"

# --- the fleet: each host has a part of these rows in each hour ---

columns=time,duration,host,kernel,boot,profile,event,kind,object,build_id,function,stack,command,thread,pid,cgroup,unit
columns+=,container,container_name,pod,samples,value
ask "CREATE TABLE one AS profil ENGINE = Memory" && ask "INSERT INTO one SELECT * FROM profil"
for ((hour = 0; hour < hours; hour++)); do
	for ((host = 0; host < hosts; host += 50)); do
		ask "INSERT INTO profil ($columns) SELECT toDateTime('2026-11-25 00:00:00') + 3600 * $hour AS time, 3600.,
			concat('host-', toString($host + i)) AS host, ${columns#time,duration,host,} FROM one ARRAY JOIN range(50) AS i
			WHERE cityHash64($host + i, $hour, function, stack) % 4 = 0" || break 2
	done
done
prints "the fleet has all hosts and hours" "$hosts	$hours" ask "SELECT uniqExact(host), uniqExact(time) FROM profil WHERE host LIKE 'host-%'"
printf '# rows, samples: %s\n' "$(ask "SELECT count(), sum(samples) FROM profil")"
printf '# bytes per host and day: %s\n' "$(ask "SELECT intDiv(sum(bytes_on_disk), $hosts) FROM system.parts WHERE table = 'profil' AND active")"

# --- the ten queries, each with its time; a hot function and a build of these profiles stand for those asked for ---

hot=$(jq -r '[.functions[] | select(.named)][0].name' "$dir/json")
build=$(jq -r '[.functions[] | select(.named)][0].object_index as $o | .objects[$o].build_id' "$dir/json")
sed -E "s/--.*//; s/'FUNCTION'/'$hot'/g; s/BUILD_ID/$build/; s/AFTER/2026-11-25 12:00:00/g" deploy/clickhouse/queries.sql >"$dir/queries"
number=0
while read -r -d ';' query; do
	number=$((number + 1))
	began=$EPOCHREALTIME
	if ask "$query" >"$dir/answer"; then ok "query $number"; else fail "query $number" "$(head -c 300 "$dir/answer")"; fi
	awk -v n=$number -v a="$began" -v b="$EPOCHREALTIME" 'NR == 1 { printf "# query %d: %.2f s, first row: %s\n", n, b - a, $0 }
		END { if (!NR) printf "# query %d: %.2f s, no row\n", n, b - a }' "$dir/answer"
done <"$dir/queries"
check "there are ten queries" test "$number" = 10
finish
