#!/bin/bash
# replay-completion.sh - what the shells complete is what profilctl takes
# shellcheck source=tests/system/lib.sh
. "$(dirname "$0")/lib.sh"

PATH=$(realpath "$BUILD"):$PATH
mapfile -t verbs < <(profilctl --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
check "there are verbs" test ${#verbs[@]} -gt 5
mapfile -t options < <(for v in "${verbs[@]}"; do profilctl "$v" --help; done |
	grep -oE -- '^ +(-[a-zA-Z],)? *--[a-z-]+' | sed 's/.*--//' | sort -u | grep -vx help)

for verb in "${verbs[@]}"; do
	for file in src/profilctl/completion/*; do
		check "${file##*/} knows the verb $verb" grep -qwE -- "$verb" "$file"
	done
done
for option in "${options[@]}"; do
	check "zsh knows --$option" grep -qE -- "--${option}[^a-z-]" src/profilctl/completion/_profilctl
	check "fish knows --$option" grep -qE -- "-l $option( |\$)" src/profilctl/completion/profilctl.fish
done
for format in $(profilctl report --help | sed -n 's/^A FORMAT is \(.*\)\./\1/p' | tr -d ,); do
	test "$format" = or || check "all know the format $format" test "$(grep -lw -- "$format" src/profilctl/completion/* | wc -l)" -eq 3
done

# Prints what bash completes at the end of the words.
completes() { # WORD...
	# shellcheck disable=SC1091 # the file that is tested
	bash -c '. src/profilctl/completion/profilctl.bash
		COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
		_profilctl
		echo "${COMPREPLY[@]}"' - "$@"
}

check "bash: verbs" test "$(completes profilctl re)" = "record report"
check "bash: formats" test "$(completes profilctl report -f sp)" = speedscope
check "bash: options" test "$(completes profilctl record --du)" = --duration
check "bash: options of this verb only" test -z "$(completes profilctl list --du)"
check "bash: processes" grep -qw $$ <<<"$(completes profilctl attach $$)"
check "make install puts them where the shells look" env -u MAKEFLAGS make -s install B="$BUILD" \
	SAN="${SAN:-}" DESTDIR="$dir/root" PREFIX=/opt/profil
for file in bash-completion/completions/profilctl zsh/site-functions/_profilctl \
	fish/vendor_completions.d/profilctl.fish; do
	check "$file is there" test -f "$dir/root/opt/profil/share/$file"
done
for shell in zsh fish; do
	file=src/profilctl/completion/_profilctl
	test $shell = zsh || file=src/profilctl/completion/profilctl.fish
	if command -v $shell >/dev/null; then
		check "$shell reads its own" $shell -n $file
	else
		skip "$shell reads its own" "no $shell"
	fi
done
finish
