# profilctl.fish - what fish completes after profilctl
set -l verbs record attach run top report diff annotate doctor list status schema
set -l first "not __fish_seen_subcommand_from $verbs"

complete -c profilctl -f
complete -c profilctl -n $first -l help -d 'show help'
complete -c profilctl -n $first -l version -d 'say which one this is'
complete -c profilctl -n $first -a record -d 'run a command and profile it'
complete -c profilctl -n $first -a attach -d 'profile processes that run'
complete -c profilctl -n $first -a run -d 'run a program that profiles itself'
complete -c profilctl -n $first -a top -d 'show what is hot now'
complete -c profilctl -n $first -a report -d 'show a profile that was kept'
complete -c profilctl -n $first -a diff -d 'show what changed'
complete -c profilctl -n $first -a annotate -d "show a function's source"
complete -c profilctl -n $first -a doctor -d 'say what this machine lacks'
complete -c profilctl -n $first -a list -d 'list what the daemon profiles'
complete -c profilctl -n $first -a status -d 'show how the daemon is'
complete -c profilctl -n $first -a schema -d 'print the JSON schema'

set -l profiles '__fish_seen_subcommand_from record attach top'
set -l counts '__fish_seen_subcommand_from record attach run top'
complete -c profilctl -n $counts -s F -l rate -x -d 'ticks a second'
complete -c profilctl -n $counts -l clock -x -a 'tick cpu-clock cycles auto'
complete -c profilctl -n $profiles -l user-only -d 'leave out ticks in kernel mode'
complete -c profilctl -n '__fish_seen_subcommand_from record attach' -s d -l duration -x -d 'stop after so many seconds'
complete -c profilctl -n '__fish_seen_subcommand_from record attach' -l threads -d 'keep apart the threads'
complete -c profilctl -n '__fish_seen_subcommand_from record attach' -l slices -x -d 'show also when'
complete -c profilctl -n '__fish_seen_subcommand_from record attach' -l no-inherit -d 'leave out children'
complete -c profilctl -n '__fish_seen_subcommand_from record attach report' -s o -l output -r -F -d 'write there'
complete -c profilctl -n '__fish_seen_subcommand_from record attach report' -s f -l format -x -a 'text json pprof gmon folded callgrind speedscope gperftools html'
complete -c profilctl -n '__fish_seen_subcommand_from record attach report' -l by -x -a 'function inlined line instruction object thread'
complete -c profilctl -n '__fish_seen_subcommand_from record attach report diff doctor list status' -l json -d 'the same as -f json'
complete -c profilctl -n '__fish_seen_subcommand_from record attach run top doctor list status' -s s -l socket -r -F -d "the daemon's socket"
complete -c profilctl -n '__fish_seen_subcommand_from attach top' -l comm -x -a '(ps -eo comm= | sort -u)'
complete -c profilctl -n '__fish_seen_subcommand_from attach top' -l exe -r -F
complete -c profilctl -n '__fish_seen_subcommand_from attach top' -l unit -x
complete -c profilctl -n '__fish_seen_subcommand_from attach top' -l cgroup -r -F
complete -c profilctl -n '__fish_seen_subcommand_from attach top' -x -a '(__fish_complete_pids)'
complete -c profilctl -n '__fish_seen_subcommand_from top' -s b -l batch -d 'print tables'
complete -c profilctl -n '__fish_seen_subcommand_from top' -s n -l count -x -d 'end after so many'
complete -c profilctl -n '__fish_seen_subcommand_from top' -s i -l interval -x -d 'seconds between them'
complete -c profilctl -n '__fish_seen_subcommand_from report diff annotate' -F
complete -c profilctl -n '__fish_seen_subcommand_from record run' -x -a '(__fish_complete_subcommand)'
