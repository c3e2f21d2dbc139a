# profilctl.bash - what bash completes after profilctl: verbs and options are those of its help

# Prints the help of a verb, or of a part of machine.
_profilctl_help() { # "VERB [PART]"
	# shellcheck disable=SC2086 # one word or two
	profilctl $1 --help 2>/dev/null
}

# Prints each option of a verb, the letter before the long name, that has the rest of a pattern.
_profilctl_options() { # VERB [REST]
	_profilctl_help "$1" | sed -nE "s/^  (-[a-zA-Z],|   ) (--[a-z-]+)${2-}.*/\1 \2/p" | tr -d ,
}

# Prints the long name of an option that takes a value.
_profilctl_valued() { # VERB OPTION
	_profilctl_options "$1" ' [A-Z]' | awk -v option="$2" '$1 == option || $2 == option { print $NF; exit }'
}

# Prints the values of an option, one per line; fails where they are names of files.
_profilctl_values() { # VERB LONG_NAME
	case $1\ $2 in
	*diff\ --format) printf '%s\n' text json html ;;
	*\ --format) _profilctl_help "$1" | sed -n 's/^A FORMAT is \(.*\) or \(.*\)\./\1, \2/p' | tr -s ', ' '\n' ;;
	*\ --by) printf '%s\n' function inlined line instruction object process command thread cgroup unit container host wait lock ;;
	*\ --clock) printf '%s\n' tick cpu-clock cycles auto ;;
	*\ --event) profilctl list --events 2>/dev/null | awk '{ print $1 }' ;;
	*\ --comm) ps -eo comm= | sort -u ;;
	*\ --unit) systemctl list-units --plain --no-legend 2>/dev/null | cut -d ' ' -f 1 ;;
	*\ --pid) ps -eo pid= | tr -d ' ' ;;
	*\ --input | *\ --output | *\ --socket | *\ --exe | *\ --cgroup | *\ --spool) return 1 ;;
	esac
}

# Prints the number of the word with which the command of record or run begins.
_profilctl_command() {
	local i

	for ((i = 2; i < COMP_CWORD; i++)); do
		case ${COMP_WORDS[i]} in
		--)
			i=$((i + 1))
			break
			;;
		-*)
			if test "${COMP_WORDS[i + 1]}" = =; then
				i=$((i + 2))
			elif test "$(_profilctl_valued "${COMP_WORDS[1]}" "${COMP_WORDS[i]}")"; then
				i=$((i + 1))
			fi
			;;
		*) break ;;
		esac
	done
	echo "$i"
}

# Completes to the lines that begin like the word. Not by compgen -W, which would expand names of
# processes as the shell's own words.
_profilctl_take() { # WORD
	local line

	while IFS= read -r line; do
		[[ $line && $line == "$1"* ]] && COMPREPLY+=("$line")
	done
}

_profilctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} verb=${COMP_WORDS[1]} option values from

	COMPREPLY=()
	if test "$COMP_CWORD" -eq 1; then
		_profilctl_take "$cur" < <(
			profilctl --help 2>/dev/null | sed -n 's/^  \([a-z]*\) .*/\1/p'
			printf '%s\n' --help --version
		)
		return
	fi
	if test "$verb" = record || test "$verb" = run; then
		from=$(_profilctl_command)
		if test "$from" -lt "$COMP_CWORD"; then
			declare -F _command_offset >/dev/null && _command_offset "$from"
			return
		fi
	fi
	if test "$verb" = machine && test "$COMP_CWORD" -gt 2 && [[ ${COMP_WORDS[2]} =~ ^[a-z]+$ ]]; then
		verb="machine ${COMP_WORDS[2]}"
	fi
	option=$(_profilctl_valued "$verb" "${COMP_WORDS[COMP_CWORD - 1]}")
	if test "$option" && values=$(_profilctl_values "$verb" "$option"); then
		_profilctl_take "$cur" <<<"$values"
	elif test "$option"; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
	elif [[ $cur == -* ]]; then
		_profilctl_take "$cur" < <(_profilctl_options "$verb" | tr -s ' ' '\n')
	else
		case $verb in
		record | run) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
		machine) _profilctl_take "$cur" < <(printf '%s\n' on off status report top diff spool push feed) ;;
		attach | top) _profilctl_take "$cur" < <(_profilctl_values "$verb" --pid) ;;
		machine\ spool) mapfile -t COMPREPLY < <(compgen -d -- "$cur") ;;
		report | diff | machine\ diff | annotate | optimize) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
		esac
	fi
}
complete -o filenames -F _profilctl profilctl
