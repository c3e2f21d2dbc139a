#!/bin/bash
# completion.sh - the shells complete every verb, option and format of profilctl
# shellcheck source=tests/system/lib/lib.sh
. "$(dirname "$0")/../lib/lib.sh"

PATH=$(realpath "$BUILD"):$PATH
mapfile -t verbs < <(profilctl --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
check "profilctl --help lists the verbs" test ${#verbs[@]} -gt 5
mapfile -t options < <(for v in "${verbs[@]}"; do profilctl "$v" --help; done |
	grep -oE -- '^ +(-[a-zA-Z],)? *--[a-z-]+' | sed 's/.*--//' | sort -u | grep -vx help)

for verb in "${verbs[@]}"; do
	for file in src/profilctl/completion/*; do
		check "${file##*/} completes the verb $verb" grep -qwE -- "$verb" "$file"
	done
done
for option in "${options[@]}"; do
	check "zsh completes --$option" grep -qE -- "--${option}[^a-z-]" src/profilctl/completion/_profilctl
	check "fish completes --$option" grep -qE -- "-l $option( |\$)" src/profilctl/completion/profilctl.fish
done
for format in $(profilctl report --help | sed -n 's/^A FORMAT is \(.*\)\./\1/p' | tr -d ,); do
	test "$format" = or || check "bash, zsh and fish complete the format $format" test "$(grep -lw -- "$format" src/profilctl/completion/* | wc -l)" -eq 3
done

# Prints bash's completions of the last WORD.
completes() { # WORD...
	# shellcheck disable=SC1091 # the file that is tested
	bash -c '. src/profilctl/completion/profilctl.bash
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_profilctl
		echo "${COMPREPLY[@]}"' - "$@"
}

check "bash completes verbs" test "$(completes profilctl re)" = "record report"
check "bash completes formats" test "$(completes profilctl report -f sp)" = speedscope
check "bash completes options" test "$(completes profilctl record --du)" = --duration
check "bash completes the options of this verb only" test -z "$(completes profilctl list --du)"
check "bash completes pids" grep -qw $$ <<<"$(completes profilctl attach $$)"
check "make install installs the completions" env -u MAKEFLAGS make -s install B="$BUILD" \
	SAN="${SAN:-}" DESTDIR="$dir/root" PREFIX=/opt/profil
for file in bash-completion/completions/profilctl zsh/site-functions/_profilctl \
	fish/vendor_completions.d/profilctl.fish; do
	check "make install installs $file" test -f "$dir/root/opt/profil/share/$file"
done
for shell in zsh fish; do
	file=src/profilctl/completion/_profilctl
	test $shell = zsh || file=src/profilctl/completion/profilctl.fish
	if command -v $shell >/dev/null; then
		check "$shell parses its completion file" $shell -n $file
	else
		skip "$shell parses its completion file" "no $shell"
	fi
done
finish
