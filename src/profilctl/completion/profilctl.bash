# profilctl.bash - what bash completes after profilctl
_profilctl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} verb=${COMP_WORDS[1]} i
	local formats='text json pprof gmon folded callgrind speedscope gperftools html'
	local options

	COMPREPLY=()
	if test "$COMP_CWORD" -eq 1; then
		mapfile -t COMPREPLY < <(compgen -W \
			'record attach run top machine report diff annotate doctor list status schema --help --version' -- "$cur")
		return
	fi
	case $prev in
	-f | --format) mapfile -t COMPREPLY < <(compgen -W "$formats" -- "$cur") ;;
	--by) mapfile -t COMPREPLY < <(compgen -W 'function inlined line instruction object process command thread cgroup unit' -- "$cur") ;;
	--clock) mapfile -t COMPREPLY < <(compgen -W 'tick cpu-clock cycles auto' -- "$cur") ;;
	-e | --event) mapfile -t COMPREPLY < <(compgen -W "$(profilctl list --events 2>/dev/null | awk '{ print $1 }')" -- "$cur") ;;
	--comm) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo comm= | sort -u)" -- "$cur") ;;
	--unit)
		mapfile -t COMPREPLY < <(compgen -W \
			"$(systemctl list-units --plain --no-legend 2>/dev/null | cut -d ' ' -f 1)" -- "$cur")
		;;
	-p | --pid) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=)" -- "$cur") ;;
	-i | --input | -o | --output | -s | --socket | --exe | --cgroup | --spool) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	-F | --rate | -d | --duration | -n | --count | --rows | --percent-limit | --interval | --slices | --object | --process | --command | --function | --callers | --callees | --since | --until | --max-age | --max-size) ;;
	*) false ;;
	esac && return

	if test "$verb" = record || test "$verb" = run; then # what stands after the options is a command line
		for ((i = 2; i < COMP_CWORD; i++)); do
			case ${COMP_WORDS[i]} in
			-F | --rate | -d | --duration | -o | --output | -f | --format | --clock | -s | --socket | --by | --slices | -p | --pid | -e | --event | -c | --count)
				i=$((i + 1))
				;;
			--)
				i=$((i + 1))
				break
				;;
			-*) ;;
			*) break ;;
			esac
		done
		if test "$i" -lt "$COMP_CWORD"; then
			declare -F _command_offset >/dev/null && _command_offset "$i"
			return
		fi
	fi
	case $cur in
	-*)
		options=$(profilctl "$verb" --help 2>/dev/null | grep -oE -- '(^|[ ,])--?[a-zA-Z-]+' | tr -d ' ,')
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
		return
		;;
	esac
	case $verb in
	record | run) mapfile -t COMPREPLY < <(compgen -c -- "$cur") ;;
	machine) mapfile -t COMPREPLY < <(compgen -W 'on off status report top diff spool' -- "$cur") ;;
	attach | top) mapfile -t COMPREPLY < <(compgen -W "$(ps -eo pid=)" -- "$cur") ;;
	report | diff | annotate) mapfile -t COMPREPLY < <(compgen -f -- "$cur") ;;
	esac
}
complete -o filenames -F _profilctl profilctl
