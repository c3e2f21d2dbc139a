# store.py - what profild does with descriptors in the service manager's store that are not its own
#
# A daemon with a profile is killed. Then its store is changed: another object, or another map of its own,
# has the name of each descriptor, names are missing or twice there, and there are names of nothing. The
# next daemon starts, counts for a new profile, has nothing of what it does not know in the store, and the
# daemon after that counts as well.
#
# usage: store.py BUILD DIRECTORY
import os
import select
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../lib"))
from manager import Daemon  # noqa: E402
from outcome import finish, ok  # noqa: E402

USER = 60001
LIMIT_S = 120
STRANGE = "strange"


def null():
    return os.open("/dev/null", os.O_RDWR)


def pipe():
    ends = os.pipe()
    os.close(ends[1])
    return ends[0]


def epoll():
    with select.epoll() as e:
        return os.dup(e.fileno())


def memory():
    fd = os.memfd_create("strange")
    os.ftruncate(fd, 1 << 20)
    return fd


def replaced(make):
    def change(held):
        return [(make(), name) for _, name in held]
    return change


def first(make):
    """An object with each name, before profil's own."""
    def change(held):
        return [(make(), name) for _, name in held] + [(os.dup(fd), name) for fd, name in held]
    return change


def rotated(held):
    """Each name has the next map."""
    return [(os.dup(held[i - 1][0]), name) for i, (_, name) in enumerate(held)]


def halved(begin):
    return lambda held: [(os.dup(fd), name) for fd, name in held[begin::2]]


def more(held):
    return [(os.dup(fd), name) for fd, name in held] + [(null(), f"{STRANGE}-{i}") for i in range(1000)]


CHANGES = {
    "no change": lambda held: [(os.dup(fd), name) for fd, name in held],
    "a device": replaced(null),
    "a pipe": replaced(pipe),
    "an epoll instance": replaced(epoll),
    "a file in memory": replaced(memory),
    "another map": rotated,
    "a device, and the right one behind it": first(null),
    "every second name": halved(0),
    "every other second name": halved(1),
    "a thousand names of nothing": more,
}


def binned(daemon):
    """What a new profile of an ordinary user has counted."""
    env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
    done = subprocess.run([f"{daemon.dir}/victim", "samples", "1"], env=env, capture_output=True, text=True,
                          timeout=LIMIT_S, user=USER, group=USER, extra_groups=[], check=False)
    told = dict(line.split() for line in done.stdout.splitlines())
    return int(told.get("binned", 0))


def with_profile(build, directory):
    """A daemon that was killed while it had a profile, with what it has left."""
    os.mkdir(directory, 0o755)
    daemon = Daemon(build, directory)
    shutil.copy(f"{build}/tests/night/hostile/victim", f"{directory}/victim")
    daemon.start()
    env = dict(os.environ, PROFIL_SOCKET=daemon.socket)
    victim = subprocess.Popen([f"{directory}/victim", "samples", "2"], env=env, stdout=subprocess.DEVNULL,
                              user=USER, group=USER, extra_groups=[])
    try:
        victim.wait(0.5)
    except subprocess.TimeoutExpired:
        pass
    daemon.kill()
    return daemon, victim


def try_change(build, directory, name, change):
    daemon, victim = with_profile(build, directory)
    try:
        held = daemon.store.held
        ok(f"the daemon has left descriptors before the change to {name}", len(held) > 3, str(held))
        changed = change(held)
        daemon.store.clear()
        daemon.store.held = changed
        for turn in "next", "one after it":
            try:
                daemon.start()
            except RuntimeError as e:
                ok(f"the {turn} starts where the store has {name}", False, str(e))
                return
            ok(f"the {turn} starts where the store has {name}", True)
            n = binned(daemon)
            ok(f"the {turn} counts where the store has {name}", n > 0, f"{n} samples; {daemon.said()[-400:]}")
            left = [text for _, text in daemon.store.held if text.startswith(STRANGE)]
            ok(f"the {turn} leaves nothing that it does not know, of {name}", not left, str(len(left)))
            if turn == "next":
                daemon.kill()
        victim.wait(LIMIT_S)
        status = daemon.stop()
        ok(f"it ends well after {name}", status == 0, f"{status}: {daemon.said()[-400:]}")
    finally:
        victim.kill()
        victim.wait()
        daemon.close()


def main():
    build, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
    for i, (name, change) in enumerate(CHANGES.items()):
        try_change(build, f"{directory}/{i}", name, change)
    return finish()


if __name__ == "__main__":
    sys.exit(main())
