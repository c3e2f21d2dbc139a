#!/bin/bash
# other-profilers.sh - functions of real programs, by profil and by the profilers of their languages
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"
. tests/lib/other_profilers.sh

repeated() { # TIMES FILE...
	local i

	for ((i = 0; i < $1; i++)); do
		cat "${@:2}"
	done
}

python_program() {
	local python=/usr/bin/python3

	repeated 6 /usr/lib/python3*/_pydecimal.py >"$dir/program.py"
	same cprofile python Pygments "$python" -m cProfile -o "$dir/other" -m pygments -f html -o /dev/null "$dir/program.py"
}

node_program() {
	local terser=$dir/node_modules/.bin/terser

	online npm install --prefix "$dir" terser >"$dir/out" 2>&1
	repeated 3 "$dir"/node_modules/terser/dist/bundle.min.js >"$dir/program.js"
	same cpuprofile node Terser node --no-turbo-inlining --cpu-prof --cpu-prof-dir="$dir" --cpu-prof-name=other \
		"$terser" -c -m -o /dev/null "$dir/program.js"
}

php_program() {
	XDEBUG_MODE=profile same xdebug php PHP_CodeSniffer php8.2 -d xdebug.output_dir="$dir" \
		-d xdebug.profiler_output_name=other -d xdebug.use_compression=0 /usr/bin/phpcs --standard=PSR12 \
		/usr/share/php/PHP/CodeSniffer/src/Files /usr/share/php/PHP/CodeSniffer/src/Tokenizers
}

perl_program() {
	repeated 8 /usr/share/perl/5*/CPAN.pm /usr/share/perl/5*/perl5db.pl >"$dir/program.pod"
	SAMPLES=$dir/other same rows perl pod2man /usr/bin/perl -Itests/lib -MPerlSampler /usr/bin/pod2man "$dir/program.pod"
}

ruby_program() {
	SAMPLES=$dir/other same rows ruby RDoc ruby3.1 -r"$(ruby_sampler)" /usr/bin/rdoc -q --dry-run -o "$dir/rdoc" \
		/usr/lib/ruby/3.1.0/optparse.rb /usr/lib/ruby/3.1.0/{csv,net,rdoc,rubygems}
}

# A Java program that compiles 64 classes with generics and lambdas.
java_program() {
	local class method home

	home=$(dirname "$(dirname "$(readlink -f /usr/bin/javac)")")
	if ! test -e "$home/include/jvmti.h"; then
		lacks "javac: the functions are those of rows" "jvmti.h of a JDK"
		return
	fi
	"${CC:-gcc}" -O2 -shared -fPIC -I"$home/include" -I"$home/include/linux" -o "$dir/sampler.so" \
		tests/programs/java_sampler.c || return
	for class in {1..64}; do
		{
			echo "import java.util.*;"
			echo "class C$class {"
			for method in {1..60}; do
				echo "Map<String, List<Integer>> m$method(List<? extends Number> l, int n) {" \
					"Map<String, List<Integer>> r = new HashMap<>();" \
					"for (int i = 0; i < n; i++) { final int k = i * $method;" \
					"r.computeIfAbsent(\"a\" + k, x -> new ArrayList<>()).add(" \
					"l.stream().mapToInt(Number::intValue).filter(y -> y > k).sum()); } return r; }"
			done
			echo "}"
		} >"$dir/C$class.java"
	done
	same rows java javac /usr/bin/java -XX:-Inline -agentpath:"$dir/sampler.so=$dir/other" \
		-m jdk.compiler/com.sun.tools.javac.Main -nowarn -d "$dir/classes" "$dir"/C*.java
}

daemon_start
python_program
node_program
php_program
perl_program
ruby_program
java_program
finish
