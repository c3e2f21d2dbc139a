#!/bin/bash
# optimize.sh - what programs gain by profiles for compilers: optimize.sh build|measure FOLDER [PROGRAM...]
#
# "build" fetches the sources of SQLite, Lua and zstd by npm and apt-get, compiles each with clang -O2, records eight runs
# with the training input as root, and compiles it again with the profile, and by BOLT. "measure" runs profilctl optimize
# --check with an input of another kind, 21 rounds in turns unless ROUNDS is set, on a machine that does nothing else: a
# minute or two for each program. It prints the rows of profilctl(1)'s table.
set -u
cd "$(dirname "$0")/../../.." || exit 1

ctl=$PWD/${BUILD:-build}/profilctl
clang=$(command -v clang-19 || command -v clang)
flags=(-O2 -g -fdebug-info-for-profiling '-Wl,--build-id,--emit-relocs')

sources_sqlite() {
	npm pack --silent better-sqlite3 && tar xzf better-sqlite3-*.tgz && ln -s package/deps/sqlite3 source || return
	cat >main.c <<-'END'
		#include <stdio.h>
		#include <sqlite3.h>
		int main(int argc, char **argv)
		{
			static char sql[1 << 16];
			char *error = NULL;
			FILE *f = fopen(argv[1], "r");
			sqlite3 *db;
			sql[fread(sql, 1, sizeof(sql) - 1, f)] = '\0';
			if (argc != 2 || sqlite3_open(":memory:", &db) || sqlite3_exec(db, sql, NULL, NULL, &error))
				return fprintf(stderr, "%s\n", error ? error : "cannot open"), 1;
			return 0;
		}
	END
	cat >train <<-'END'
		create table t(a integer primary key, b int, c text);
		with recursive n(x) as (select 1 union all select x + 1 from n limit 200000)
			insert into t select x, x * 7919 % 10007, 'name ' || x * 31 % 977 from n;
		create index by_b on t(b);
		select count(*), sum(b) from t where c like 'name 1%';
		select c, count(*), avg(b) from t group by c order by 2 desc, 1 limit 10;
		select count(*) from t x join t y on y.b = x.a where x.a < 20000;
		update t set b = b + 1 where a % 3 = 0;
		select max(length(c)) from t where b between 100 and 5000;
	END
	cat >other <<-'END'
		create table customers(id integer primary key, city text, spent real default 0);
		create table orders(id integer primary key, customer int references customers, day int, cents int);
		with recursive n(x) as (select 0 union all select x + 1 from n limit 20000)
			insert into customers(id, city) select x, substr('ParisRomeOsloBernKyiv', x * 13 % 17 + 1, 4) from n;
		with recursive n(x) as (select 1 union all select x + 1 from n limit 150000)
			insert into orders select x, x * 104729 % 20011, x % 365, abs(x * 48271 % 99991) from n;
		create index by_customer on orders(customer, day);
		update customers set spent = (select total(cents) / 100 from orders where customer = customers.id);
		select city, round(avg(spent), 2), max(spent) from customers group by city having count(*) > 10 order by 2;
		select day, sum(cents) over (order by day rows 100 preceding) from orders order by cents desc limit 5;
		delete from orders where cents % 10 = 7;
		select count(distinct day || ':' || cents / 1000) from orders;
	END
}

sources_lua() {
	apt_source lua5.4 && ln -s lua5.4-*/src source || return
	echo "#define DEB_HOST_MULTIARCH \"$(dpkg-architecture -qDEB_HOST_MULTIARCH)\"" >source/lua5.4-deb-multiarch.h
	cat >train <<-'END'
		local words = {}
		for i = 1, 200000 do words[i] = string.format("%x", i * 7919 % 1000003) end
		table.sort(words)
		local n = 0
		for _, w in ipairs(words) do n = n + #w:gsub("[a-f]+", "<%0>"):upper() end
		local function fib(k) return k < 2 and k or fib(k - 1) + fib(k - 2) end
		local counts = {}
		for i = 1, 2000000 do local k = i * 31 % 977; counts[k] = (counts[k] or 0) + 1 end
		print(n, fib(30), #counts)
	END
	cat >other <<-'END'
		local Body = {}
		Body.__index = Body
		function Body.new(x, v) return setmetatable({ x = x, v = v }, Body) end
		function Body:move(d) self.x = self.x + self.v * d; if self.x > 1 then self.v = -self.v end end
		local bodies = {}
		for i = 1, 50 do bodies[i] = Body.new(i / 50, math.sin(i)) end
		for step = 1, 40000 do for _, b in ipairs(bodies) do b:move(0.01) end end
		local function tree(d) if d == 0 then return {} end return { tree(d - 1), tree(d - 1) } end
		local function check(t) return t[1] and 1 + check(t[1]) + check(t[2]) or 1 end
		local sum = 0
		for _ = 1, 12 do sum = sum + check(tree(14)) end
		local out = {}
		for i = 1, 100000 do out[#out + 1] = table.concat({ i, i * i, "x" }, ",") end
		print(sum, #table.concat(out, "\n"), select(2, table.concat(out, "\n"):gsub("1(%d)x?", "%1")))
	END
}

sources_zstd() {
	apt_source libzstd && ln -s libzstd-*/lib source || return
	cat >main.c <<-'END'
		#include <stdio.h>
		#include <stdlib.h>
		#include <zstd.h>
		int main(int argc, char **argv)
		{
			static char in[8 << 20];
			size_t n = fread(in, 1, sizeof(in), fopen(argv[1], "r")), room = ZSTD_compressBound(n), packed = 0;
			char *out = malloc(room), *back = malloc(sizeof(in));
			for (int level = 1; level <= 9; level += 2) {
				packed = ZSTD_compress(out, room, in, n, level);
				for (int i = 0; i < 10; i++)
					if (argc != 2 || ZSTD_decompress(back, sizeof(in), out, packed) != n)
						return 1;
			}
			return printf("%zu %zu\n", n, packed) < 0;
		}
	END
	cp "$(command -v perl)" train
	cat /usr/share/perl/5*/*.p[ml] /usr/share/perl/5*/*/*.pm >other
}

apt_source() { # PACKAGE
	mkdir -p lists/partial
	# shellcheck disable=SC2016 # apt-get's own variables
	apt-get indextargets --format 'deb-src $(SITE) $(RELEASE) main' 'Created-By: Packages' | sort -u >list
	set -- "$1" -qq -o Dir::Etc::sourcelist="$PWD/list" -o Dir::Etc::sourceparts=/dev/null -o Dir::State::lists="$PWD/lists"
	apt-get "${@:2}" update && apt-get "${@:2}" source "$1"
}

compile_sqlite() { # FLAGS...
	"$clang" "${flags[@]}" "$@" -Isource main.c source/sqlite3.c -lm
}

compile_lua() { # FLAGS...
	local files=()

	mapfile -t files < <(find source/ -name '*.c' ! -name luac.c | sort)
	"$clang" "${flags[@]}" "$@" -DLUA_USE_POSIX -Isource "${files[@]}" -lm
}

compile_zstd() { # FLAGS...
	local files=()

	mapfile -t files < <(find source/common source/compress source/decompress -name '*.c' | sort)
	"$clang" "${flags[@]}" "$@" -DZSTD_DISABLE_ASM -Isource main.c "${files[@]}"
}

build() { # PROGRAM
	local i

	mkdir -p "$1" && cd "$1" && { test -e source || "sources_$1" >log 2>&1; } && "compile_$1" -o plain || return
	for i in {1..8}; do
		"$ctl" record -q --user-only -F 9999 -o "profile.$i" -- ./plain train >>log || return
	done
	"$ctl" optimize -o llvm.prof plain profile.[1-8] && "compile_$1" -fprofile-sample-use=llvm.prof -o llvm &&
		"$ctl" optimize -f bolt -o bolt.fdata plain profile.[1-8] &&
		llvm-bolt-19 plain -o bolt -data=bolt.fdata -nl -reorder-blocks=ext-tsp -reorder-functions=hfsort \
			-skip-funcs='luaV_execute.*' >>log 2>&1 # of Lua, whose computed jumps BOLT cannot move
}

measure() { # PROGRAM
	local kind said

	local program=$1

	cd "$program" || return
	for kind in llvm bolt; do
		said=$("$ctl" optimize ${ROUNDS:+--rounds "$ROUNDS"} --optimized "./$kind" --check '{} other' ./plain) || return
		sed -nE "s/^before: ([0-9.]+ s).*after: ([0-9.]+ s).*/| $program | $kind | \1 | \2 |/p" <<<"$said" | tr -d '\n'
		sed -n '2s/$/ |/p' <<<"$said"
	done
}

verb=$1 folder=$2
mkdir -p "$folder" && cd "$folder" || exit 1
shift 2
test $# -gt 0 || set -- sqlite lua zstd
case $verb in build | measure) ;; *) echo "optimize.sh: build or measure, not $verb" >&2; exit 2 ;; esac
for program in "$@"; do
	("$verb" "$program") || { echo "optimize.sh: $verb $program failed: see $folder/$program/log" >&2; exit 1; }
done
