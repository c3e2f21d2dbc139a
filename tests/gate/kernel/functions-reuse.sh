#!/bin/bash
# functions-reuse.sh - functions at the addresses of functions that are gone have their own names and lines
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

ctl=$BUILD/profilctl

# Runs the program, which makes, calls and frees four functions in turns, and lists its lines with samples.
lines_of() { # COMMAND...
	"$ctl" record -q -F 499 -o "$dir/kept" -- "$@" >"$dir/out" 2>&1
	"$ctl" report -a --by line "$dir/kept" >"$dir/lines"
}

# Each of the patterns is found.
has_all() { # PATTERN...
	local pattern

	for pattern; do
		grep -qE "$pattern" "$dir/lines" || { echo "no $pattern in:"; cat "$dir/lines"; return 1; }
	done
}

python() {
	cat >"$dir/made.py" <<-'END'
		import time, types
		def made():
		    n = 0
		    for i in range(100000):
		        n += i
		i = 0
		while time.process_time() < 1.5:
		    types.FunctionType(made.__code__.replace(co_firstlineno=1000 * (i % 4 + 1)), globals())()
		    i += 1
	END
	lines_of /usr/bin/python3 "$dir/made.py"
	check "functions of Python with one address have their own lines" \
		has_all ' made.py:100[0-9] made ' ' made.py:200[0-9] made ' ' made.py:300[0-9] made ' ' made.py:400[0-9] made '
}

perl() {
	cat >"$dir/made.pl" <<-'END'
		no warnings;
		for (my $i = 0; $i < 240; $i++) {
			my $k = $i % 4;
			my $line = [5000, 1000, 3000, 2000]->[$k];
			eval "\n#line $line \"/made$k.pl\"\nsub made { my \$t = shift;\n my \$n = 0;\n for (my \$x = 0; \$x < \$t; \$x++) {\n \$n += 1; \$n *= 3; \$n %= 1000003;\n }\n return \$n }\n1"
				or die $@;
			made(100000);
		}
	END
	lines_of /usr/bin/perl "$dir/made.pl"
	check "subs of Perl with one address have their own lines" \
		has_all ' made0.pl:500[0-9] main::made ' ' made1.pl:100[0-9] main::made ' ' made2.pl:300[0-9] main::made ' \
		' made3.pl:200[0-9] main::made '
	check "and only those" sh -c "! grep ' main::made ' '$dir/lines' |
		grep -vE ' (made0.pl:500|made1.pl:100|made2.pl:300|made3.pl:200)[0-9] main::made '"
}

php() {
	local name="functions of PHP with one address have their own names"

	command -v php8.2 >/dev/null || { skip "$name" "no PHP 8.2 is installed"; return; }
	cat >"$dir/made.php" <<-'END'
		<?php
		function text() {
			return "return function(\$t) { \$n = 0;\n for (\$i = 0; \$i < \$t; \$i++) {\n \$n += 1; \$n *= 3; \$n %= 1000003;\n}\n return \$n; };";
		}
		for ($i = 0; $i < 240; $i++) {
			switch ($i % 4) {
			case 0: $f = eval(text()); break;
			case 1: $f = eval(text()); break;
			case 2: $f = eval(text()); break;
			case 3: $f = eval(text()); break;
			}
			$f(200000);
			unset($f);
		}
	END
	lines_of php8.2 -n "$dir/made.php"
	check "$name" has_all " made.php\(7\) : eval" " made.php\(8\) : eval" " made.php\(9\) : eval" " made.php\(10\) : eval"
	cat >"$dir/classes.php" <<-'END'
		<?php
		$o = new class { function alpha() { for ($i = 0; $i < 100000; $i++); } function beta() { $this->alpha(); } };
		while (getrusage()["ru_utime.tv_sec"] < 1) $o->beta();
	END
	lines_of php8.2 -n "$dir/classes.php"
	check "methods of a class without a name have theirs" has_all ' class@anonymous::alpha '
}

java() {
	local name="classes of Java with one address have their own names" class

	command -v javac >/dev/null || { skip "$name" "no JDK is installed"; return; }
	for class in GenA GenB GenC GenD; do
		echo "public class $class implements Runnable {
			static long sum; public void run() { for (int i = 0; i < 2000000; i++) sum += i; } }" >"$dir/$class.java"
	done
	cat >"$dir/Made.java" <<-'END'
		import java.nio.file.*;
		public class Made {
			static class Loader extends ClassLoader {
				Loader() { super(null); }
				Class<?> define(byte[] b) { return defineClass(null, b, 0, b.length); }
			}
			static void once(byte[] b) throws Exception {
				((Runnable)new Loader().define(b).getDeclaredConstructor().newInstance()).run();
			}
			public static void main(String[] from) throws Exception {
				for (int i = 0; i < 48; i++) {
					once(Files.readAllBytes(Path.of(from[0], "Gen" + "ABCD".charAt(i % 4) + ".class")));
					System.gc();
					System.gc();
				}
			}
		}
	END
	javac -d "$dir" "$dir"/Gen?.java "$dir/Made.java" || exit 1
	lines_of java -XX:+UseSerialGC -Xint -cp "$dir" Made "$dir"
	check "$name" has_all ' GenA.run ' ' GenB.run ' ' GenC.run ' ' GenD.run '
}

daemon_start
python
perl
php
java
daemon_stop
finish
