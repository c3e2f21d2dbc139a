#!/bin/bash
# completion.sh - the shells complete every verb, option and format of profilctl, and nothing else
# shellcheck source=tests/lib/lib.sh
. "$(dirname "$0")/../../lib/lib.sh"

PATH=$(realpath "$BUILD"):$PATH
completions=$PWD/src/profilctl/completion
mapfile -t verbs < <(profilctl --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
check "profilctl --help lists the verbs" test ${#verbs[@]} -gt 5

# Prints the options that the help of a verb lists: what its lines begin with.
listed() { # VERB...
	profilctl "$@" --help | awk '/^ +-/ { print $1; if ($1 ~ /,$/) print $2 }' | sed 's/,$//; s/\[.*//'
}

# Prints bash's completions of the last word, one per line.
in_bash() { # WORD...
	# shellcheck disable=SC2016 # the variables of the other shell
	bash -c '. "$0"
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_profilctl
		printf "%s\n" "${COMPREPLY[@]}"' "$completions/profilctl.bash" "$@"
}

# Prints fish's completions of the last word, without their descriptions.
in_fish() { # LINE
	# shellcheck disable=SC2016
	fish --no-config -c 'source $argv[1]; complete -C "$argv[2]"' "$completions/profilctl.fish" "$1" | cut -f 1
}

# Prints the arguments with which zsh's completion calls _arguments, and those of _describe.
in_zsh() { # WORD...
	# shellcheck disable=SC2016
	zsh -fc '_arguments() { print -rl -- "$@" }
		_describe() { print -rl -- "${(@P)2}" }
		_call_program() { shift; "$@" }
		complete() {
			local -a words=("$@")
			local CURRENT=$#
			. $file
		}
		file=$0
		complete "$@"' "$completions/_profilctl" "$@"
}

options_bash() { # VERB...
	in_bash profilctl "$@" -
}

# fish offers an option with an optional value twice, the second time with "=".
options_fish() { # VERB...
	in_fish "profilctl $* -" | sed 's/=$//'
}

# The option of each spec: "(-F)--rate[samples per second]:rate: ".
options_zsh() { # VERB...
	in_zsh profilctl "$@" - | sed -nE 's/^(\([^)]*\))?(--?[a-zA-Z-]+)(=-)?\[.*/\2/p'
}

verbs_bash() {
	in_bash profilctl '' | grep -v '^-'
}

verbs_fish() {
	in_fish 'profilctl '
}

verbs_zsh() {
	in_zsh profilctl '' | sed -n 's/^\([a-z]*\):.*/\1/p'
}

# Compares two lists and prints where they differ.
same() { # EXPECTED GOT
	diff <(sort -u <<<"$1") <(sort -u <<<"$2")
}

for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		lacks "$shell completes what the help lists" "$shell"
		continue
	fi
	check "$shell completes the verbs that the help lists" same "$(printf '%s\n' "${verbs[@]}")" "$(verbs_$shell)"
	for verb in "${verbs[@]}" "machine "{on,off,status,report,top,diff,spool}; do
		# shellcheck disable=SC2086 # machine's parts are a second word
		check "$shell completes the options of $verb --help, and no other" same "$(listed $verb)" "$(options_$shell $verb)"
	done
done

formats=$(profilctl report --help | sed -n 's/^A FORMAT is \(.*\)\./\1/p' | tr -d , | sed 's/ or / /')
check "bash completes the formats" same "${formats// /$'\n'}" "$(in_bash profilctl report -f '')"
check "bash completes the formats of two profiles" same $'text\njson\nhtml' "$(in_bash profilctl machine diff -f '')"
if command -v fish >/dev/null; then
	check "fish completes the formats" same "${formats// /$'\n'}" "$(in_fish 'profilctl report -f ')"
fi
if command -v zsh >/dev/null; then
	check "zsh completes the formats" grep -qxF -- "(-f)--format[output format, see below]:format:($formats)" <(in_zsh profilctl report -)
fi
check "bash completes verbs" test "$(in_bash profilctl re | xargs)" = "record report"
check "bash completes options" test "$(in_bash profilctl record --du)" = --duration
check "bash completes pids" grep -qw $$ <<<"$(in_bash profilctl attach $$)"
check "bash completes no option after an option that takes a number" test -z "$(in_bash profilctl top -n -)"
check "bash completes the command of record after its options" test -z "$(in_bash profilctl record -F 99 -- true -)"

# Any user can name a process like that.
# shellcheck disable=SC2016 # nothing is to be expanded
name='$(>ran)'
cp "$(command -v sleep)" "$dir/$name"
"$dir/$name" 60 &
named=$!
cd "$dir" || exit 1
check "bash completes the names of processes" grep -qxF -- "$name" <<<"$(in_bash profilctl attach --comm '')"
check "bash does not expand the names of processes" test ! -e ran
cd - >/dev/null || exit 1
kill $named

check "make install installs the completions" env -u MAKEFLAGS flock "$BUILD" make -s install B="$BUILD" \
	SAN="${SAN:-}" DESTDIR="$dir/root" PREFIX=/opt/profil
for file in bash-completion/completions/profilctl zsh/site-functions/_profilctl \
	fish/vendor_completions.d/profilctl.fish; do
	check "make install installs $file" test -f "$dir/root/opt/profil/share/$file"
done
for shell in zsh fish; do
	file=$completions/_profilctl
	test $shell = zsh || file=$completions/profilctl.fish
	if command -v $shell >/dev/null; then
		check "$shell parses its completion file" $shell -n "$file"
	else
		lacks "$shell parses its completion file" "$shell"
	fi
done
finish
