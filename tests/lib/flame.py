#!/usr/bin/python3
"""flame.py - drives the flame graph of an HTML report with real keys and a real mouse

usage: flame.py PROFILCTL PROFILE OTHER LARGE DIR

Prints a line "ok NAME" or "FAIL NAME: why" for each fact.
"""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from browser import Browser  # noqa: E402

CTL, PROFILE, OTHER, LARGE, DIR = sys.argv[1:]
NASTY = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\"> & \\ ' \" \u2028   end"

# The frames on the page: name, left, width, row.
FRAMES = """[...document.querySelectorAll(".frame")].map((e) => [e.getAttribute("aria-label").replace(/, [^,]*$/, ""),
    e.getBoundingClientRect().x, e.getBoundingClientRect().width, e.getBoundingClientRect().y])"""
FOCUSED = "document.querySelector('.focused').getAttribute('aria-label').replace(/, [^,]*$/, '')"
DETAILS = "[...document.querySelectorAll('.details > *')].map((e) => e.textContent)"
FOUND = "document.querySelector('.flame-tools output').textContent"
GRAPH = "(({ x, y, width }) => [x, y, width])(document.querySelector('.graph').getBoundingClientRect())"
# The least contrast of text on a frame, by the formula of WCAG.
CONTRAST = """(() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const light = (colour) => { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
        const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).map((v) => v / 255).map((v) =>
            v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05 };
    return Math.min(...[...document.querySelectorAll(".frame")].map((e) => { const s = getComputedStyle(e);
        const [a, b] = [light(s.color), light(s.backgroundColor)]; return Math.max(a, b) / Math.min(a, b) })) })()"""


def fact(name, got, wanted=True):
    print(f"ok {name}" if got == wanted else f"FAIL {name}: {got!r}, not {wanted!r}".replace("\n", " "), flush=True)


def page(name, *args):
    path = os.path.join(DIR, name)
    subprocess.run([CTL, *args, "-f", "html", "-o", path], check=True)
    return path


def frame(b, name, nth=0):
    return [f for f in b.value(FRAMES) if f[0] == name][nth]


def at(b, name, nth=0):
    """The middle of a frame."""
    _, x, width, y = frame(b, name, nth)
    return x + width / 2, y + 9


def share(b, name):
    """The width of a frame as a percentage of the graph's."""
    whole = frame(b, "all samples")[2]
    return round(100 * frame(b, name)[2] / whole)


def mouse(b):
    b.mouse("mouseMoved", *at(b, "hot"))
    fact("hover shows the frame's function, samples and share", b.value(DETAILS), ["hot (spin)", "7,850 samples, 98.74 %, 7.850 s; self 7,000, 88.05 %"])
    b.click(*at(b, "hot"))
    fact("a click makes the frame as wide as the graph", (share(b, "hot"), share(b, "main")), (100, 100))
    fact("a zoomed graph has only the frames above and below", [f[0] for f in b.value(FRAMES)], ["all samples", "main", "hot", "inner", "hot", "cold", "do_it"])
    b.mouse("mouseMoved", *at(b, "cold"))
    fact("hover in a zoomed graph shows the share of the visible samples", b.value(DETAILS)[1], "300 samples, 3.77 %, 3.82 % of what is shown, 0.300 s; self 300, 3.77 %")
    b.click(*at(b, "main"))
    fact("a click on a caller zooms out to the caller", (share(b, "hot"), share(b, "cold")), (99, 4))
    b.key("Escape")
    b.key("Escape")
    fact("Escape ends the zoom", share(b, "main"), 99)


def keys(b):
    walk = []
    for key in ("Home", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowRight", "ArrowRight", "ArrowLeft", "ArrowDown", "ArrowUp", "ArrowUp"):
        b.key(key)
        walk.append(b.value(FOCUSED))
    fact("arrow keys move the focus from frame to frame", walk, ["all samples", "main", "hot", "inner", "hot", "do_it", "hot", "cold", "hot", "hot"])
    fact("the focused frame is described", b.value(DETAILS)[0], "hot (spin)")
    b.key("Enter")
    fact("Enter zooms in on the focused frame", share(b, "hot"), 100)
    b.key("Escape")
    fact("Escape ends the zoom and keeps the focus", (share(b, "main"), b.value(FOCUSED)), (99, "hot"))


def search(b):
    b.value("document.activeElement.blur()")
    b.key("/")
    fact("/ searches without a click into the graph", b.value("document.activeElement === document.querySelector('.flame-tools input')"))
    b.type("COLD")
    fact("a search counts each sample once", b.value(FOUND), "1 functions: 320 samples, 4.03 %")
    fact("a search marks the frames that it finds", b.value("[...document.querySelectorAll('.hit')].map((e) => e.getAttribute('aria-label')).join()"),
         "cold, 3.77 %,cold, 0.25 %")
    b.key("Escape")
    fact("Escape ends the search", (b.value(FOUND), b.value("document.querySelectorAll('.hit, .miss').length")), ("", 0))
    b.key("/")
    b.type("/^(hot|cold) /")
    fact("a search by regular expression counts a recursion once", b.value(FOUND), "2 functions: 7,870 samples, 98.99 %")
    b.key("Escape")
    b.key("/")
    b.type("/(/")
    fact("a search reports an invalid regular expression", b.value(FOUND), "no regular expression")
    b.key("Escape")


def callers(b):
    x, y = b.value("(({ x, y }) => [x + 5, y + 5])(document.querySelector('.flame-tools button').getBoundingClientRect())")
    b.click(x, y)
    first = b.value(FRAMES)
    fact("the caller view begins with the innermost functions", [f[0] for f in first if f[3] == first[1][3]][:3], ["hot", "inner", "cold"])
    b.mouse("mouseMoved", *at(b, "cold"))
    fact("the caller view shows a function's own samples", b.value(DETAILS)[1], "320 samples, 4.03 %, 0.320 s")
    b.click(x, y)
    fact("the same button ends the caller view", share(b, "main"), 99)


def links(b):
    """A zoomed place has an address, which opens the same place."""
    b.click(*at(b, "hot"))
    address = b.value("location.hash")
    b.value("location.hash = '#zoom=0'")
    while b.value("document.querySelectorAll('.above').length"):  # the browser ends when that takes too long
        pass
    fact("the address of the whole graph shows it", share(b, "main"), 99)
    b.value(f"location.hash = {address!r}")
    while not b.value("document.querySelectorAll('.above').length"):
        pass
    fact("the address of a zoomed place shows it", (address.startswith("#zoom="), share(b, "hot")), (True, 100))
    b.value("location.hash = '#zoom=100000'")
    fact("an address of another page changes nothing", share(b, "hot"), 100)


def looks(b, path, name):
    for width in (390, 1280, 2000):
        for dark in (False, True):
            how = f"{name} of {width} pixels, {'dark' if dark else 'light'}"
            b.size(width, 900, dark, phone=width < 500)
            b.open(path)
            x, _, wide = b.value(GRAPH)
            outside = [f for f in b.value(FRAMES) if f[1] < x - 1 or f[1] + f[2] > x + wide + 1]
            fact(f"the {how}, does not scroll sideways", b.value("[document.documentElement.scrollWidth, innerWidth]"), [width, width])
            fact(f"the {how}, has the page's width", (wide > 0.9 * min(width, 1536) - 40, outside), (True, []))
            contrast = b.value(CONTRAST)
            fact(f"the {how}, has a text contrast of at least 4.5 ({contrast:.1f})", contrast >= 4.5)


def one(b):
    path = page("flame.html", "report", PROFILE)
    looks(b, path, "flame graph")
    b.size(1280)
    b.open(path)
    mouse(b)
    keys(b)
    search(b)
    callers(b)
    links(b)
    b.open(page("flame-again.html", "report", PROFILE))
    fact("the graph is at the top of the window", b.value(GRAPH)[1] < 360)
    fact("a legend has the colours of program and kernel", b.value("""[...document.querySelectorAll(".legend .place")].map((e) => e.textContent +
        (getComputedStyle(e).backgroundColor !== "rgba(0, 0, 0, 0)")).join()"""), "the programtrue,the kerneltrue")
    b.mouse("mouseMoved", *at(b, next(f[0] for f in b.value(FRAMES) if f[0].startswith("</script>"))))
    fact("a name with markup is shown as text", b.value(DETAILS)[0].replace("\n", " "), f"{NASTY} (spin)".replace("\n", " "))
    fact("a name with markup adds no element", b.value("[document.title, document.images.length, document.scripts.length]"), ["spin split", 0, 4])
    fact("the page says how many stacks are complete", "99.71 % of the stacks reach the start of their thread" in b.value("document.body.innerText"))


def large(b):
    path = page("large.html", "report", LARGE)
    fact("a page of 120000 contexts has at most 5 MB", os.stat(path).st_size <= 5000000)
    b.open(path)
    total = int(b.value("document.querySelector('table').dataset.total"))
    fact("a page of 120000 contexts has every sample", b.value(DETAILS)[1].split(" ")[0], f"{total:,}")
    fact("a page of 120000 contexts draws more than 1000 frames", b.value("document.querySelectorAll('.frame').length") > 1000)


def flat(b):
    """main calls 2000 functions with 3 samples each, after one that is drawn."""
    p = json.load(open(PROFILE))
    roots = len(p["stacks"]["ends"])
    p["stacks"]["frames"] = [["main", 1, 16], ["wide", 1, 32]] + [[f"narrow_{i}", 1, 64 * i + 64] for i in range(2000)]
    p["stacks"]["nodes"] = [[0, 0, 1, 20, 0], [roots, 1, 1, 33, 600]] + [[roots, 2 + i, 1, 64 * i + 65, 3] for i in range(2000)]
    path = os.path.join(DIR, "flat")
    json.dump(p, open(path, "w"))
    b.open(page("flat.html", "report", path))
    fact("what is too narrow to be drawn is summed up in a box", b.value("[...document.querySelectorAll('.narrow')].map((e) => e.title.split(':')[0]).join()"),
         "2,000 more, 75.47 % together")
    fact("the box has the width of its sum", b.value("""Math.round(100 * document.querySelector(".narrow").offsetWidth /
        document.querySelector(".graph").clientWidth)"""), 75)


def two(b):
    """The program before and after cold became three times as hot."""
    path = page("two.html", "diff", PROFILE, OTHER)
    looks(b, path, "differential flame graph")
    b.size(1280)
    b.open(path)
    b.mouse("mouseMoved", *at(b, "cold"))
    fact("hover in a diff shows both profiles", b.value(DETAILS), [
        "cold (spin)", "before: 300 samples, 3.77 %, 0.300 s; self 300, 3.77 %",
        "after: 900 samples, 10.53 %, 0.900 s; self 900, 10.53 %", "change: +6.75 points"])
    colour = "(name) => [...document.querySelectorAll('.frame')].filter((e) => e.getAttribute('aria-label').startsWith(name)).map((e) => e.classList[1]).join()"
    fact("a diff colours significant growth alone",
         [b.value(f"({colour})('{name}')") for name in ("cold, 7", "inner", "do_it", "main")], ["more", "same", "same", "same"])
    b.click(*at(b, "cold"))
    fact("a click in a diff zooms in", share(b, "cold"), 100)
    b.key("Escape")
    b.key("/")
    b.type("cold")
    fact("a search in a diff counts both profiles", b.value(FOUND), "1 functions: before 320 samples, 4.03 %; after 920 samples, 10.76 %")
    fact("the table of a diff marks significant changes", b.value("[...document.querySelectorAll('.rises, .falls')].map((r) => r.cells[6].textContent + r.cells[0].textContent).join()"),
         "cold+6.74 *,hot-6.64 *")
    b.open(page("two.html", "diff", OTHER, PROFILE))
    fact("a diff colours a function that shrank", b.value(f"({colour})('cold, 7')"), "less")
    fact("no name in a diff adds an element", b.value("[document.title, document.images.length, document.scripts.length]"), ["profilctl diff", 0, 4])


def sleeps(b):
    """The same two as profiles of sleeps, whose changes are not judged."""
    paths = [os.path.join(DIR, f"sleeps-{n}") for n in (1, 2)]
    for source, path in zip((PROFILE, OTHER), paths):
        with open(source) as f, open(path, "w") as to:
            json.dump({**json.load(f), "event": "off-cpu"}, to)
    b.open(page("sleeps.html", "diff", *paths))
    colour = "(name) => [...document.querySelectorAll('.frame')].filter((e) => e.getAttribute('aria-label').startsWith(name)).map((e) => e.classList[1]).join()"
    fact("a diff of sleeps colours every change of a share",
         [b.value(f"({colour})('{name}')") for name in ("cold, 7", "inner", "main")], ["more", "less", "more"])
    fact("a diff of sleeps does not tell of chance", b.value("document.querySelector('.flame').textContent.includes('chance')"), False)
    b.mouse("mouseMoved", *at(b, "do_it"))
    fact("a change of sleeps is not said to be chance", b.value(DETAILS)[-1], "change: -0.04 points")


def times(b):
    """A strip of three slices of 0.1 s: the graph shows the samples of those that are chosen."""
    path = os.path.join(DIR, "slices")
    subprocess.run([os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/stacks.py"), path, "slices"], check=True)
    b.size(1280)
    b.open(page("slices.html", "report", path))
    said = "document.querySelector('.said').textContent.split(' samples')[0]"
    fact("a strip of time begins with all samples", b.value(said), "0 s to 0.3 s: 7,943")
    x, y, width, height = b.value("(({ x, y, width, height }) => [x, y, width, height])(document.querySelector('.timeline').getBoundingClientRect())")
    b.mouse("mousePressed", x + width * 0.4, y + height / 2)
    b.mouse("mouseMoved", x + width * 0.5, y + height / 2)
    b.mouse("mouseReleased", x + width * 0.6, y + height / 2)
    fact("a drag chooses a slice", b.value(said), "0.1 s to 0.2 s: 90")
    fact("the graph has the calls of that slice alone", sorted({f[0] for f in b.value(FRAMES)}), ["[anon]+0x10000000000", "all samples", "cold", "do_it", "hot", "main"])
    b.mouse("mouseMoved", *at(b, "cold"))
    fact("and its samples", b.value(DETAILS)[1], "30 samples, 33.33 %, 0.030 s; self 30, 33.33 %")
    b.value("(() => { const s = document.getElementById('span-0-from'); s.value = 0; s.oninput(); })()")
    fact("a slider moves the span's end", b.value(said), "0 s to 0.2 s: 7,150")


def threads(b):
    """Of stacks that begin at their thread: the strip has the samples of the thread that is zoomed to."""
    path = os.path.join(DIR, "threads")
    subprocess.run([os.path.join(os.path.dirname(os.path.abspath(__file__)), "../programs/stacks.py"), path, "threads"], check=True)
    b.size(1280)
    b.open(page("threads.html", "report", path))
    said = "document.querySelector('.said').textContent.split('. Drag')[0]"
    fact("a strip of all threads has all samples", b.value(said), "0 s to 0.3 s: 123 samples")
    b.click(*at(b, "two (12)"))
    fact("zoomed to a thread it has the thread's", b.value(said), "0 s to 0.3 s: 40 samples of two (12)")
    b.value("(() => { const s = document.getElementById('span-0-to'); s.value = 0.1; s.oninput(); })()")
    fact("a span without samples of the thread", b.value(said), "0 s to 0.1 s: 0 samples of two (12)")
    b.key("Escape")
    fact("zoomed out again it has all threads'", b.value(said), "0 s to 0.1 s: 60 samples")


def main():
    b = Browser(seconds=140)
    try:
        one(b)
        two(b)
        sleeps(b)
        times(b)
        threads(b)
        large(b)
        flat(b)
        fact("no page has a script error or loads anything", b.said, [])
    finally:
        b.close()


main()
