#!/usr/bin/python3
"""page.py - profil-http's page of a day's spool in a browser, by keyboard alone, and by a drag

usage: page.py URL [PICTURES]

Prints a line "ok NAME" or "FAIL NAME: why" for each fact.
"""
import os
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from browser import Browser  # noqa: E402

URL = sys.argv[1]
PICTURES = sys.argv[2] if len(sys.argv) > 2 else None
PAINT_MS, BRUSH_MS, BRUSHES = 1000, 200, 15
PAINT = "(performance.getEntriesByName('first-contentful-paint')[0] || {}).startTime"
SHOWN = "Number(document.body.dataset.shown || 0)"
FACT = "[...document.querySelectorAll('.fact')].map((e) => e.textContent).join()"
ACTIVE = "document.activeElement.id || document.activeElement.textContent"
# The time from an input to the graph that it asks for.
WATCH = """(() => { window.shownAt = 0; window.inputAt = 0;
    addEventListener('input', () => { inputAt = performance.now() }, true);
    new MutationObserver(() => { shownAt = performance.now() }).observe(document.body, { attributes: true, attributeFilter: ['data-shown'] }) })()"""


def fact(name, is_so, why=""):
    print(f"ok {name}" if is_so else f"FAIL {name}: {why}".replace("\n", " "), flush=True)


def fast(what, most_ms, times):
    """A time that other load of the machine makes longer: page.sh judges it on a quiet one only."""
    took = statistics.median(times)
    print(f"{'ok' if took <= most_ms else 'SLOW'} {what} at most {most_ms} ms: {took:.0f} ms", flush=True)


def until(b, expression, seconds=90):
    end = time.monotonic() + seconds
    while not (value := b.value(expression)) and time.monotonic() < end:
        time.sleep(0.02)
    return value


def visit(b, url):
    b.ask("Page.navigate", url="about:blank")
    until(b, "location.href == 'about:blank'")
    b.ask("Page.navigate", url=url)
    until(b, "document.readyState == 'complete' && document.querySelectorAll('.frame').length > 1")


def complete(b):
    return until(b, "!document.querySelector('.unread')", 300)


def tab_to(b, wanted):
    """Presses Tab until the element with this id or text has the focus."""
    for _ in range(40):
        b.key("Tab")
        if b.value(ACTIVE) == wanted:
            return True
    return False


def after(b, act):
    """What is shown once the graph has been exchanged after act()."""
    n = b.value(SHOWN)
    act()
    until(b, f"{SHOWN} > {n}")
    return b.value(FACT)


def paint(b):
    visit(b, URL)
    cold = until(b, PAINT)
    fast("the first paint of a day's spool takes", PAINT_MS, [cold])
    fact("the spool is read to its end", complete(b))
    times = []
    for _ in range(5):
        visit(b, URL)
        times.append(until(b, PAINT))
    fast("the next first paints take", PAINT_MS, times)


def keys(b):
    visit(b, URL)
    b.value(WATCH)
    fact("Tab comes to the strip", tab_to(b, "span-0-from"), b.value(ACTIVE))
    first, times = b.value(FACT), []
    for _ in range(BRUSHES):
        then = after(b, lambda: b.key("ArrowLeft"))
        times.append(b.value("shownAt - inputAt"))
    fact("an arrow key on the strip shows another span", then != first, then)
    fast("a step of the brush takes", BRUSH_MS, times)
    fact("the focus stays on the strip", b.value(ACTIVE) == "span-0-from", b.value(ACTIVE))
    after(b, lambda: b.key("Home"))
    complete(b)
    step = [b.value("shownAt - inputAt")]
    for _ in range(4):
        after(b, lambda: b.key("ArrowRight"))
        step.append(b.value("shownAt - inputAt"))
    fast("a step of a brush over the whole day takes", BRUSH_MS, step)
    kept = b.value("location.href")
    visit(b, kept)
    complete(b)
    again = b.value(FACT)
    fact("the address shows the same span again", again != "" and "from=" in kept, again)
    fact("Tab comes to compare", tab_to(b, "compare"), b.value(ACTIVE))
    both = after(b, lambda: b.key("Enter"))
    fact("Enter on compare shows two spans", both.startswith("before: ") and "after: " in both, both)
    fact("a comparison says what may be chance", until(b, "document.querySelectorAll('.frame.same').length > 0") and
         b.value("document.querySelector('.flame').textContent.includes('by chance')"))
    after(b, lambda: b.key("Enter"))
    fact("Tab comes to the choice of commands", tab_to(b, "choose-command"), b.value(ACTIVE))
    one = after(b, lambda: b.key("ArrowDown"))
    fact("an arrow key chooses a command", "command=" in b.value("location.search") and one != again, b.value("location.search"))
    fact("the focus stays on the choice", b.value(ACTIVE) == "choose-command", b.value(ACTIVE))
    b.value("document.activeElement.blur()")
    b.key("/")
    fact("/ searches the graph", b.value("document.activeElement === document.querySelector('.flame-tools input[type=search]')"))


def drag(b):
    visit(b, URL)
    complete(b)
    first = b.value(FACT)
    x, y, width = b.value("(({ x, y, width }) => [x, y + 20, width])(document.querySelector('.timeline canvas').getBoundingClientRect())")

    def pull():
        b.mouse("mouseMoved", x + 0.2 * width, y)
        b.mouse("mousePressed", x + 0.2 * width, y)
        b.mouse("mouseMoved", x + 0.4 * width, y)
        b.mouse("mouseReleased", x + 0.4 * width, y)
    after(b, pull)
    until(b, "!new URL(location.href).searchParams.get('from') == false")
    fact("a drag on the strip chooses a span", until(b, f"{FACT} != {first!r}"), b.value(FACT))


def looks(b):
    for width in (390, 1280, 2000):
        for dark in (False, True):
            how = f"page of {width} pixels, {'dark' if dark else 'light'}"
            b.size(width, 900, dark, phone=width < 500)
            visit(b, URL + ("&" if "?" in URL else "?") + "by=unit")
            complete(b)
            wide = b.value("[document.documentElement.scrollWidth, innerWidth]")
            fact(f"the {how}, does not scroll sideways", wide[0] <= wide[1], wide)
            outside = b.value("""[...document.querySelectorAll('button, select, .timeline, .graph')].filter((e) => e.offsetWidth &&
                (e.getBoundingClientRect().left < -1 || e.getBoundingClientRect().right > innerWidth + 1)).map((e) => e.id || e.textContent)""")
            fact(f"the {how}, has all of its controls in the window", outside == [], outside)
            if PICTURES:
                b.picture(f"{PICTURES}-{width}-{'dark' if dark else 'light'}.png")


def main():
    b = Browser(seconds=900)
    try:
        b.ask("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
        b.size(1280)
        paint(b)
        keys(b)
        drag(b)
        looks(b)
        fact("the page violates no policy, and its scripts have no error", not b.said, b.said)
    finally:
        b.close()


main()
