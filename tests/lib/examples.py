#!/usr/bin/env python3
"""examples.py - runs the example commands of README.md, CONTRIBUTING.md and the man pages

usage: examples.py replay PROFILCTL | kernel PROFILCTL | list

Runs each example that needs a daemon which replays at most, or each one that needs the kernel, with the
daemon of PROFIL_SOCKET, in a folder that has the files that examples name: a program with debug information
and profiles of it. Prints a line for each example that ends with an unexpected status. An example that no
rule below sets aside is run, so that a new one has to work or to be listed here. "list" prints where each
example is run, or why it is not.
"""
import concurrent.futures, datetime, glob, gzip, json, os, re, shlex, shutil, subprocess, sys, tempfile

KERNEL = "kernel"

# The first pattern that matches says why an example is not run over replay: KERNEL, a reason, or the test that runs it.
ASIDE = [
    (r"^(apt|git clone|make|tar|\./install\.sh|tests/run\.sh|build/tests/)", "installs, builds or tests the project itself"),
    (r"^podman ", "needs an image: tests/night/kernel/image.sh"),
    (r"^systemctl", "needs systemd: tests/night/vm/systemd.sh"),
    (r"^usermod", "changes the machine's users"),
    (r"^curl --unix-socket|^go tool pprof|^ssh", "needs profil-http at its installed socket: tests/gate/replay/http.sh"),
    (r"^cc |^(LD_PRELOAD=\S+ )?\./spin", "tests/gate/kernel/readme.sh, tests/gate/replay/headers.sh"),
    (r"^cd ", "after what makes the folder"),
    (r"^clang|^llvm-bolt|^gprof|--check", "tests/gate/replay/compilers.sh, tests/gate/replay/run.sh"),
    (r"^profilctl .*--unit ", "needs systemd: tests/gate/kernel/selectors.sh has units"),
    (r"^profilctl .*-e usdt:python", "needs a Python with probes: tests/gate/kernel/event-counts.sh"),
    (r"^profilctl .* perl words.pl", "tests/demo.sh"),
    (r"^profilctl run ", "tests/gate/replay/run.sh"),
    (r"^profilctl ((attach|record) .*(-e|--off-cpu|--wall|-g)|machine|top|record -a)\b", KERNEL),
]

APP = """int parse_line(int n) { int s = 0; for (volatile int i = 0; i < n; i++) s += i; return s; }
int main(int n, char **v) { return v[0] ? parse_line(n) & 0 : 1; }
"""


def examples(path):
    text = open(path).read()
    if path.endswith(".md"):
        text = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
        lines = re.findall(r"^    (?:\$ )?((?:sudo |build/|profil|curl|go |cc |make|tar|git |tests/).*)", text, re.M)
    else:
        text = text.replace("\\-", "-").replace("\\e", "\\")
        lines = re.findall(r"^\.Dl [#$] (.*)", text, re.M)
        for block in re.findall(r"^\.Bd -literal.*?\n(.*?)^\.Ed", text, re.S | re.M):
            lines += re.findall(r"^[#$] (.*)", re.sub(r"\\\n\s*", "", block), re.M)
    for line in lines:
        line = re.sub(r"\s{2,}#.*", "", line)
        for command in line.split(" && "):
            yield re.sub(r"^(sudo )?((build|\.)/(?=profil))?", "", command.strip())


def aside(command):
    return next((why for pattern, why in ASIDE if re.search(pattern, command)), None)


def offset_and_size(app, name):
    for line in subprocess.run(["nm", "-S", app], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if words[-1] == name:
            return int(words[0], 16), int(words[1], 16)
    sys.exit(f"no {name} in {app}")


def prepare(folder):
    os.chdir(folder)
    open("app.c", "w").write(APP)
    subprocess.run(["gcc", "-g", "-O1", "-no-pie", "-o", "app", "app.c"], check=True)
    os.link("app", "server")
    app = os.path.join(folder, "app")
    notes = subprocess.run(["readelf", "-nW", app], capture_output=True, text=True, check=True).stdout
    address, size = offset_and_size(app, "parse_line")
    base = 0x400000
    at = address - base
    profile = {
        "schema": "profil/1", "command": "./app", "pid": 1, "started": 1700000000, "command_status": 0,
        "tick_ns": 1000000, "duration_ns": 100000000, "cpu_ns": 100000000,
        "samples": {"total": 100, "binned": 100, "unmatched": 0, "lost": 0},
        "functions": [{"name": "parse_line", "object": app, "samples": 100, "offset": at, "size": size, "named": True}],
        "objects": [{"path": app, "build_id": re.search("Build ID: (.*)", notes)[1], "vaddr": base, "program": True}],
        "places": [[0, at + 4, 1, 100]],
        "stacks": {"samples": 100, "without": 0, "cuts": [], "ends": [{"end": "whole", "samples": 100, "without_frame": 0}],
                   "frames": [["parse_line", 0, at], ["malloc", 0, at]],
                   "nodes": [[0, 1, 0, at, 0], [1, 0, 0, at + 4, 100]]},
    }
    for name in "profile a.profil build.profil before.profil after.profil app.profile BEFORE AFTER".split():
        json.dump(profile, open(name, "w"))
    open("FILE", "w").write("text " * 1000)
    os.link("FILE", "archive.tar")
    os.mkdir("DIR")
    del profile["stacks"]
    for day in range(3):
        began = datetime.datetime.now().replace(hour=3, minute=12, second=0, microsecond=0) - datetime.timedelta(days=day)
        for moment in began, datetime.datetime.now() - datetime.timedelta(minutes=5 + day):
            profile["started"] = int(moment.timestamp())
            utc = moment.astimezone(datetime.timezone.utc)
            with gzip.open(f"DIR/machine-{utc:%Y%m%dT%H%M%SZ}-60s.json.gz", "wt") as out:
                json.dump(profile, out)


def run(command, profilctl, sleeper):
    """The command with operands of this machine. Returns what is wrong, or None."""
    it = re.sub(r"\b(4711|PID)\b", str(sleeper), command)
    it = re.sub(r"-d [0-9]+", "-d 0.05", it)
    it = re.sub(r"COMMAND(\.\.\.)?|\bmake\b", "true", it)
    if re.search("--since|yesterday", it) and "--spool" not in it:
        it = re.sub(r"^(profilctl \w+)", r"\1 --spool DIR", it)
    if re.match(r"profilctl attach", it) and "-d" not in it:
        it += " -d 0.05"
    if re.match(r"profilctl (machine )?top", it):
        it += " -n 1 -i 0.05"
    if re.match(r"profilctl machine spool", it):
        it += " -d 0.05"
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(".", folder, dirs_exist_ok=True)
        script = f"profilctl() {{ {shlex.quote(profilctl)} \"$@\"; }}; {it}"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", script], cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lacks = command.startswith("profilctl doctor") and done.returncode == 5
    # The command has run, and says that samples were lost, as they can be on a busy machine.
    lost = done.returncode == 3 and re.search(r"samples? (was|were) lost", done.stderr)
    if done.returncode and not lacks and not lost:
        return f"{command}: status {done.returncode}: {(done.stderr or done.stdout).strip()[-300:]}"
    return None


def main():
    root = os.path.realpath(os.path.join(os.path.dirname(__file__), "../.."))
    pages = subprocess.run(["git", "ls-files", "*.[1-8]"], cwd=root, capture_output=True, text=True).stdout.split()
    pages = pages or [os.path.relpath(p, root) for p in glob.glob(f"{root}/src/*/*.[1-8]")]
    found = [c for f in ["README.md", "CONTRIBUTING.md", *pages] for c in examples(os.path.join(root, f))]
    found = list(dict.fromkeys(found))
    if sys.argv[1] == "list":
        for command in found:
            print(f"{aside(command) or 'replay'}\t{command}")
        return
    profilctl = os.path.realpath(sys.argv[2])
    sleeper = subprocess.Popen(["sleep", "1000"])
    with tempfile.TemporaryDirectory() as folder:
        try:
            prepare(folder)
            mine = [c for c in found if aside(c) == (KERNEL if sys.argv[1] == KERNEL else None)]
            with concurrent.futures.ThreadPoolExecutor(1 if sys.argv[1] == KERNEL else 4) as pool:
                for wrong in filter(None, pool.map(lambda c: run(c, profilctl, sleeper.pid), mine)):
                    print(wrong)
            if len(mine) < 10:
                print(f"only {len(mine)} examples were found")
        finally:
            sleeper.kill()
            os.chdir(root)


main()
