# profilctl.fish - what fish completes after profilctl: verbs and options are those of its help

# Says whether the first word after profilctl is this verb; without one, whether there is none yet.
# Each part of machine counts as a verb.
function __profilctl_verb # [VERB [PART]]
    set -l words (commandline -opc)
    set -l part
    test "$words[2]" = "$argv[1]"; or return
    test "$argv[1]" != machine; and return
    contains -- "$words[3]" on off status report top diff spool; and set part $words[3]
    test "$part" = "$argv[2]"
end

complete -c profilctl -f
complete -c profilctl -n __profilctl_verb -l help -d 'show help'
complete -c profilctl -n __profilctl_verb -l version -d 'print the version'
complete -c profilctl -n '__profilctl_verb machine' -x -a 'on off status report top diff spool push feed'
complete -c profilctl -n '__profilctl_verb machine spool' -x -a '(__fish_complete_directories)'
for verb in record run
    complete -c profilctl -n "__profilctl_verb $verb" -x -a '(__fish_complete_subcommand)'
end
for verb in attach top
    complete -c profilctl -n "__profilctl_verb $verb" -x -a '(__fish_complete_pids)'
end
for verb in report diff 'machine diff' annotate interpreters optimize
    complete -c profilctl -n "__profilctl_verb $verb" -F
end

for line in (profilctl --help 2>/dev/null)
    set -l verb (string match -r '^  ([a-z]+) +(.*)$' -- $line); and complete -c profilctl -n __profilctl_verb -a $verb[2] -d $verb[3]
end
for verb in (profilctl --help 2>/dev/null | string replace -rf '^  ([a-z]+) .*$' '$1') 'machine '{on,off,status,report,top,diff,spool,push,feed}
    set -l help (profilctl (string split ' ' $verb) --help 2>/dev/null)
    set -l formats (string replace -rf '^A FORMAT is (.*) or (.*)\.$' '$1 $2' -- $help | string replace -a , '')
    string match -q '*diff' $verb; and set formats text json html

    # A line: "  -F, --rate HZ  samples per second ..."; a value in brackets is optional.
    for line in (string replace -rf '^  [- ](\w| )[, ] --([a-z-]+)((?: \S+|\[=\w+\])?)  +([^;(]*).*$' '$1;$2;$3;$4' -- $help)
        set -l part (string split ';' -- $line)
        set -l name $part[2]
        set -l option -c profilctl -n "__profilctl_verb $verb" -l $name -d (string trim -- $part[4])

        test "$part[1]" != ' '; and set -a option -s $part[1]
        if string match -q ' *' -- $part[3]
            switch $name
                case input output socket exe cgroup spool
                    set -a option -r -F
                case '*'
                    set -a option -x
            end
        end
        switch $name
            case format
                set -a option -a "$formats"
            case by
                set -a option -a 'function inlined line instruction object process command thread cgroup unit container host wait lock'
            case clock
                set -a option -a 'tick cpu-clock cycles auto'
            case call-graph
                set -a option -a 'auto cfi fp'
            case event
                set -a option -a "(profilctl list --events 2>/dev/null | string split -f1 ' ')"
            case comm
                set -a option -a '(ps -eo comm= | sort -u)'
            case unit
                set -a option -a "(systemctl list-units --plain --no-legend 2>/dev/null | string split -f1 ' ')"
            case pid
                set -a option -a '(__fish_complete_pids)'
        end
        complete $option
    end
end
