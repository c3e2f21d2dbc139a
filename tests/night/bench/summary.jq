# summary.jq - from lines "part subject metric value" to medians, and what the project promised of them
#
# A limit's value is made of medians of all rounds. How far it can be trusted, each round's own says:
# of seven rounds, the median of many more would lie from @low to @high seven times in eight. Where the
# limit is between those, this run cannot tell: "sure" is false.

def median: sort | if length % 2 == 1 then .[(length - 1) / 2] else (.[length / 2] + .[length / 2 - 1]) / 2 end;

[split("\n")[] | select(. != "") | split("\t")
 | {part: .[0], subject: .[1], metric: .[2], value: (.[3] | tonumber)}]
| group_by([.part, .subject, .metric])
| map({part: .[0].part, subject: .[0].subject, metric: .[0].metric, values: map(.value)}
      | . + {min: (.values | min), median: (.values | median), max: (.values | max)})
| . as $results

# What the formulas below are made of: the medians, or what round @i brought; what is measured once
# is the same in each.
| def world($i):
    map({key: "\(.part) \(.subject) \(.metric)",
         value: (if $i == null then .median elif (.values | length) == 1 then .values[0]
                 elif (.values | length) == $rounds then .values[$i] else null end)})
    | from_entries;
  # By the order of the rounds' values. One without a value (nan) could be anywhere.
  def interval:
    (length as $n | [$n / 2 - 0.85 * ($n | sqrt), 0] | max | floor) as $k
    | {low: (map(if isnan then -infinite else . end) | sort[$k]), high: (map(if isnan then infinite else . end) | sort[-1 - $k])};
  def limits($m):
    def of($part; $subject; $metric): $m["\($part) \($subject) \($metric)"];
    # A limit on a number; null where something was not measured, nan where the divisor drowned in noise.
    def limit($what; $limit; value): {what: $what, limit: $limit, value: (try value catch null)};
    def over($a; $b): if $a == null or $b == null then null elif $b <= 0 then nan else $a / $b end;
    def lost($hz; $s): of("overhead-\($hz)"; $s; "lost_ppm") - of("overhead-\($hz)"; "none"; "lost_ppm");
    def gap($hz; $s): of("overhead-\($hz)"; $s; "gap_ns");
    def cpu($kind; $s): of($kind; $s; "cpu_s") - of($kind; "none"; "cpu_s");
    def mirror($s): of("mirror"; $s; "ns_per_s");
    def machine($s; $metric): of("machine"; $s; $metric);
    def off($x): if $x == null then null else ($x - 1 | fabs) end;
    [
      ("100", "250" | . as $hz
       | limit("overhead at \($hz) Hz / that of perf record -F 250 -p"; 0.1; over(lost($hz; "profil"); lost("250"; "perf-p"))),
         limit("overhead at \($hz) Hz / that of glibc sprofil"; 0.5; over(lost($hz; "profil"); lost($hz; "glibc-sprofil")))),
      limit("all asleep at 250 Hz: timer interrupts a second more"; 10;
            of("asleep"; "profil"; "interrupts_per_s") - of("asleep"; "none"; "interrupts_per_s")),
      limit("many profiles, all asleep: timer interrupts a second more"; 10;
            of("asleep"; "fleet"; "interrupts_per_s") - of("asleep"; "none"; "interrupts_per_s")),
      limit("many profiles, all asleep: wake-ups of profild"; 0; of("asleep"; "fleet"; "wakeups")),
      ("1000", "9999" | . as $hz
       | limit("interruption at \($hz) Hz / that of an empty program"; 1.02; over(gap($hz; "profil"); gap($hz; "floor"))),
         limit("added to an expiry at \($hz) Hz / what perf adds"; 0.25; over(of("handler-\($hz)"; "profil"; "added_ns"); of("handler-\($hz)"; "perf-p"; "added_ns")))),
      limit("forks: overhead / that of perf -p"; 0.3; over(cpu("forks"; "profil"); cpu("forks"; "perf-p"))),
      limit("switches: overhead / that of perf -p"; 0.02; over(cpu("switches"; "profil"); cpu("switches"; "perf-p"))),
      (["hit-1", 2.5], ["hit-4096", 3], ["miss", 1.6] | . as $p
       | limit("BPF program, \($p[0]) / empty"; $p[1]; over(of("program"; $p[0]; "run_ns"); of("program"; "floor"; "run_ns")))),
      limit("machine: a sample, hot / empty"; 3.5; over(machine("machine"; "run_ns"); machine("floor"; "run_ns"))),
      limit("machine: a sample, hot / a hit of profil()"; 2; over(machine("machine"; "run_ns"); machine("hit"; "run_ns"))),
      limit("machine: the whole interruption / that of an empty program"; 1.05;
            over(machine("machine"; "gap_ns"); machine("floor"; "gap_ns"))),
      limit("machine: CPU time in user space / perf record -a"; 0.05;
            over(machine("profil"; "cpu_ns"); machine("perf-a"; "cpu_ns"))),
      limit("machine: bytes written"; 0; machine("profil"; "written_bytes")),
      limit("machine: resident memory, late / early"; 1.05;
            over(machine("memory"; "resident_kib_late"); machine("memory"; "resident_kib_early"))),
      limit("machine: memory in the kernel, late / early"; 1;
            over(machine("memory"; "kernel_kib_late"); machine("memory"; "kernel_kib_early"))),
      ("5", "32", "122" | . as $n | ["fp", 1.3], ["cfi", 3] | . as $m
       | limit("-g by \($m[0]), \($n) frames / bpf_get_stack()"; $m[1]; over(of("stacks"; "\($m[0])-\($n)"; "run_ns"); of("stacks"; "get-stack-\($n)"; "run_ns")))),
      limit("-g: bytes written, with the rules in the cache"; 0; of("stacks"; "attach"; "written_bytes")),
      (["resident_kib", "profild", 1.05], ["profilctl_kib", "profilctl", 1.05], ["kernel_kib", "the kernel", 1] | . as $m
       | limit("-a -g: memory of \($m[1]), late / early"; $m[2];
               over(of("stacks"; "memory"; "\($m[0])_late"); of("stacks"; "memory"; "\($m[0])_early")))),
      limit("nothing profiled: wake-ups of profild"; 0; of("idle"; "profild"; "wakeups")),
      limit("nothing profiled: events and links held"; 0; of("idle"; "profild"; "links")),
      limit("mirror: ns a changed bin, where most have"; 100;
            over(of("mirror"; "once-most"; "cpu_ns") - of("mirror"; "once-nothing"; "cpu_ns");
                 of("mirror"; "once-most"; "changed") - of("mirror"; "once-nothing"; "changed"))),
      limit("mirror: ns a changed bin, where one in 65 has"; 100;
            over(mirror("fast-changing") - mirror("wakeups"); of("mirror"; "fast"; "ticks_per_s"))),
      limit("mirror: ns a tenth of a second in which nothing changed, for a profile more"; 1000;
            (mirror("many-unchanged") - mirror("one-unchanged")) / 10 / of("mirror"; "fleet"; "profiles")),
      limit("mirror: many profiles, percent of a CPU"; 0.1; mirror("many-changing") / 1e7),
      limit("mirror: many profiles, percent, in the first second of a buffer"; 0.1; mirror("many-new") / 1e7),
      limit("mirror: many profiles, the same without ten bare wake-ups a second"; 0.1;
            (mirror("many-changing") - mirror("wakeups")) / 1e7),
      limit("mirror: many profiles / its system calls alone"; 1.25; over(mirror("many-changing"); mirror("calls-alone"))),
      limit("mirror: many profiles / one, at equal samples"; 15; over(mirror("many-changing"); mirror("one-changing"))),
      ("on_p50", "off_p50" | limit("profil() \(.), none other / bare connection"; 3;
            over(of("calls"; "alone"; "\(.)_us"); of("calls"; "bare"; "connect_p50_us")))),
      ("on_p50", "off_p50" | limit("profil() \(.), many others / bare connection"; 3;
            over(of("calls"; "among"; "\(.)_us"); of("calls"; "bare"; "connect_p50_us")))),
      ("on_p50", "off_p50", "on_p99", "off_p99" | limit("profil() \(.), many others / none"; 1.1;
            over(of("calls"; "among"; "\(.)_us"); of("calls"; "alone"; "\(.)_us")))),
      ("on_p50", "off_p50" | limit("profil() \(.), many others, us"; 100; of("calls"; "among"; "\(.)_us"))),
      ("on_p99", "off_p99" | limit("profil() \(.), many others, us"; 1000; of("calls"; "among"; "\(.)_us"))),
      limit("profild: KiB resident, without bins"; 6144; of("calls"; "profild"; "resident_kib")),
      limit("profild: bytes a bin"; 4.1; of("calls"; "among"; "bytes_a_bin")),
      limit("profild: ms from start to ready"; 200; of("calls"; "profild"; "start_ms")),
      ("10", "100", "250", "1000", "4000", "10000" | . as $hz | "delivered-\($hz)" as $part
       | limit("delivered at \($hz) Hz: off by"; 0.01; off(of($part; "profil"; "delivered"))),
         limit("70/20/10 at \($hz) Hz: error / (0.46 / sqrt n)"; 1.5;
               of($part; "profil"; "error") * (of($part; "profil"; "ticks") | sqrt) / 0.46)),
      limit("two CPUs on one counter at 10000 Hz: off by"; 0.01; off(of("delivered-10000"; "pair"; "delivered"))),
      limit("bytes after the longer time / after a second"; 1.1;
            [$results[] | select(.part == "bytes" and .subject == "profil")] | over((map(.median) | max); of("bytes"; "profil"; "after_1s")))
    ];

limits(world(null)) as $limits
| [range($rounds) as $i | limits(world($i))] as $each
| {machine: $machine, rounds: $rounds, results: $results,
   limits: [$limits | to_entries[] | .key as $at | .value | select(.value != null)
            | . + ([$each[][$at].value | if . == null then nan else . end] | interval)
            | . + {met: (if .value | isnan then null else .value <= .limit end),
                   sure: (.high <= .limit or .low > .limit)}]}
