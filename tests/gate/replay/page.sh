#!/bin/bash
# page.sh - profil-http's page has the samples of a span of the spool, of two, and of what is chosen
# shellcheck disable=SC2016 # what is in quotes is for jq
# shellcheck source=tests/lib/http.sh
. "$(dirname "$0")/../../lib/http.sh"

needs curl "profil-http shows a spool"
reader=$(id -gn)
spool=$dir/spool
nasty='</script><img src=x>&"'
t=1795305600
mkdir "$spool"
daemon_start
# shellcheck disable=SC2119 # it has no further options
http_start --spool "$spool"

# Adds a minute: web.service alone runs /bin/web, N samples of hot; it and the container run libc, 2 N and 4 N.
keep() { # MINUTE N [STACKS]
	local start=$((t + 60 * $1))

	jq -nc --argjson t "$start" --argjson n "$2" --arg nasty "$nasty" --argjson stacks "${3:-false}" '
		def function(name; object; index; samples): {name: name, object: object, object_index: index, samples: samples,
			offset: 4096, size: 64, named: true};
		def object(path): {path: path, build_id: "", vaddr: 0, segments: [], program: (path == "/bin/web"), pid: 0};
		def group(command; cgroup; unit): {command: command, pid: 0, tid: 0, uid: 0, start_ns: 0, thread: null, cgroup: cgroup,
			unit: unit, samples: 0};
		{schema: "profil/1", command: "the whole machine", pid: 0, started: $t, command_status: null, tick_ns: 10000000,
		duration_ns: 60000000000, cpu_ns: 0, processes: 0,
		samples: {total: (7 * $n + 3), binned: (7 * $n), unmatched: 2, lost: 1},
		functions: [function("malloc"; "/lib/libc.so.6"; 1; 6 * $n), function($nasty; "/bin/web"; 0; $n)],
		objects: [object("/bin/web"), object("/lib/libc.so.6")],
		groups: [group("[others]"; null; null), group("web"; "/system.slice/web.service"; "web.service"),
			group("db"; "/system.slice/docker-\("0123456789abcdef" * 4).scope"; "docker.scope")],
		places: [[0, 4100, 1, $n], [1, 4100, 1, 6 * $n]],
		sums: [[0, 0, 0, $n, 1], [1, 0, 0, 2 * $n, 1], [1, 0, 0, 4 * $n, 2]]}
		| if $stacks then .stacks = {samples: (7 * $n), without: 0, ends: [{end: "whole", samples: (7 * $n), without_frame: 0}],
			cuts: [], frames: [["main", 0, 4096], ["malloc", 1, 4096]],
			nodes: [[0, 0, 0, 4100, $n], [1, 1, 1, 4100, 6 * $n]]} else . end
	' | gzip >"$spool/machine-$(date -u -d "@$start" +%Y%m%dT%H%M%SZ)-60s.json.gz"
}

# The page at "/?QUERY", once all files are read.
page() { # QUERY
	until get "/?$1" -o "$dir/page.html" && ! grep -q 'still to be read' "$dir/page.html"; do
		test -s "$dir/page.html" || return 1
	done
	sed -n '/class="flame-data">/,/<\/script>/p' "$dir/page.html" | sed 's/.*class="flame-data">//; s/<\/script>.*//' >"$dir/flame"
}

span() { # FIRST BEHIND
	echo "from=$((t + 60 * $1))&to=$((t + 60 * $2))"
}

# Frames with their own samples, as "NAME N", sorted by name.
frames() {
	jq -r '. as $d | (2 + .sides) as $step | [range(0; .nodes | length; $step)] | map($d.nodes[. + 1] as $f | $d.nodes[.:. + $step] |
		select((.[2] // 0) + (.[3] // 0) > 0) | "\($d.frames[$f][0]) \(.[2:] | join(" "))") | sort | join(", ")' "$dir/flame"
}

is() { # NAME QUERY WANT
	local got

	got=$(page "$2" && frames)
	if test "$got" = "$3"; then ok "$1"; else fail "$1" "?$2: $got, not $3"; fi
}

check "without profiles the page says how to get some" grep -q "systemctl enable --now profil-spool" <(get /)
keep 0 1
keep 1 10
keep 2 100
keep 3 1000 true
keep 40 10000
is "a span has the samples of its minutes" "$(span 0 2)" "$nasty 11, [lost] 2, [unmatched] 4, malloc 66"
is "a span within a minute that has not its middle is empty" "$(span 4 5)" ""
check "and says so" grep -q "no such samples" "$dir/page.html"
is "the newest quarter of an hour is shown first" "" "$nasty 10000, [lost] 1, [unmatched] 2, malloc 60000"
check "a function is below its file" jq -e --arg nasty "$nasty" '.frames | map(.[1]) | sort == ["", "", "", "libc.so.6", "libc.so.6", "web", "web"]' "$dir/flame"
is "minutes with stacks have them" "$(span 3 4)" "[lost] 1, [unmatched] 2, main 1000, malloc 6000"
is "a unit has the functions that it alone ran" "$(span 0 2)&unit=web.service" "(functions not distinguished) 22, $nasty 11"
is "a container has its share of a file that others run" "$(span 0 2)&container=0123456789ab" "(functions not distinguished) 44"
is "a command has its functions" "$(span 0 2)&command=web" "(functions not distinguished) 22, $nasty 11"
is "two choices that exclude each other leave nothing" "$(span 0 2)&command=web&unit=docker.scope" ""
is "native code is all of it" "$(span 0 2)&language=native" "$nasty 11, malloc 66"
is "and none of it is Python" "$(span 0 2)&language=python" ""
is "by unit stacks begin with unit and command" "$(span 1 2)&by=unit" "(functions not distinguished) 20, (functions not distinguished) 40, $nasty 10, [lost] 1, [unmatched] 2"
check "units and commands are frames" jq -e '[.frames[] | select(.[1] | startswith("[")) | .[0]] | sort == ["db", "docker.scope", "web", "web.service"]' "$dir/flame"
is "two spans are compared, before and after" "$(span 2 3)&vfrom=$((t + 60))&vto=$((t + 120))" \
	"$nasty 10 100, [lost] 1 1, [unmatched] 2 2, malloc 60 600"
check "the table of a comparison has both shares" grep -q "85.71 %</td><td class=\"samples\" data-v=\"85.714286\">85.71 %" "$dir/page.html"
is "each minute is in one of two adjacent spans" "$(span 0 2)&vfrom=$((t + 120))&vto=$((t + 240))" \
	"$nasty 100 11, [lost] 2 2, [unmatched] 4 4, main 1000 0, malloc 600 66, malloc 6000 0"
check "names with markup add no element" test "$(grep -c '<img' "$dir/page.html")" = 0
check "names to choose from have their share" grep -q '<option value="docker.scope">docker.scope (57.1 %)' <(page "$(span 0 2)" && cat "$dir/page.html")
check "the choice is in the page" grep -q '<option selected value="web.service">' <(get "/?unit=web.service")
check "the strip has all minutes, with the CPUs in use" sh -c "sed -n 's/.*\"strip\":\\[/[/p' '$dir/page.html' | grep -q '^\\[\\[$t,60,0.00167\\],'"
check "the page's policy allows no script and no style but its own" grep -q \
	"^Content-Security-Policy: default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; base-uri 'none'" <(get / -D - -o /dev/null)
check "the page has no style and no script in it" test "$(grep -c ' style=\|<style\|javascript:\| on[a-z]*="' "$dir/page.html")" = 0
check "the page is not to be stored" grep -qi "^Cache-Control: no-store" <(get / -D - -o /dev/null)
for query in "from=5" "from=2&to=1" "from=x&to=9" "from=-1&to=9" "from=1&to=9&vfrom=1" "by=hair" "language=$(printf %040d 0)" "unit=$(printf %0600d 0)"; do
	check "?${query:0:30} gets 400" has_status 400 "/?$query"
done
printf 'no profile' | gzip >"$spool/machine-20261122T080000Z-60s.json.gz"
check "a damaged file is named and the others are shown" test "$(page "$(span 0 2)" && frames)" = "$nasty 11, [lost] 2, [unmatched] 4, malloc 66"
rm "$spool"/*
await "$http" eval 'get / | grep -q "There are no profiles"'
check "what the spool has removed is not shown" grep -q "There are no profiles" <(get /)
daemon_stop
finish
