#!/usr/bin/python3
"""page.py - profil-http's page in a browser

usage: page.py URL COMMAND [PICTURE]    COMMAND is the name of a busy process, and contains markup

Prints a line "ok NAME" or "FAIL NAME: why" for each fact.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from browser import Browser  # noqa: E402

URL, COMMAND = sys.argv[1:3]
ROWS = "[...document.querySelectorAll('#%s tbody tr:not(.none)')].map((r) => [...r.cells].map((c) => c.textContent))"


def verdict(name, is_so, why=""):
    print(f"ok {name}" if is_so else f"FAIL {name}: {why}", flush=True)


def until(browser, expression, seconds=60):
    end = time.monotonic() + seconds
    while not (value := browser.value(expression)) and time.monotonic() < end:
        time.sleep(0.1)
    return value


def rows(browser, table):
    return browser.value(ROWS % table)


# The page refreshes itself at any time, also once after that was turned off: what belongs together is one expression.
# An interval may lack samples of the busy process, or any.
browser = Browser(seconds=180)
try:
    browser.ask("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    browser.size(1200, 900)
    browser.ask("Page.navigate", url=URL)
    until(browser, "document.readyState == 'complete' && document.getElementById('seconds') !== null")
    browser.value("document.getElementById('seconds').value = '1'")
    filled = until(browser, "['units', 'functions', 'runs'].every((id) => document.querySelector(`#${id} tbody tr:not(.none)`))")
    verdict("the page fills its tables", filled, browser.value("document.body.innerText"))
    first = browser.value("document.getElementById('state').textContent")
    verdict("the page refreshes itself", until(browser, f"document.getElementById('state').textContent != {first!r}"), first)
    found = until(browser, f"[...document.querySelectorAll('#runs td')].some((c) => c.textContent == {COMMAND!r})")
    verdict("a name that is markup is shown as text", found and browser.value("document.querySelectorAll('td img').length") == 0,
            rows(browser, "runs"))
    browser.value("document.getElementById('refresh').checked = false")
    browser.value(f"const s = document.getElementById('search'); s.value = {COMMAND!r}; s.dispatchEvent(new Event('input'))")
    runs = until(browser, f"(() => {{ const found = {ROWS % 'runs'}; return found.length && found }})()")
    verdict("the search leaves the matching rows", runs and all(COMMAND in r for r in runs), runs)
    units, of_unit, of_rows = until(browser, """(() => {
        s.value = '';
        s.dispatchEvent(new Event('input'));
        const button = document.querySelector('#units button');
        if (!button)
            return null;
        button.click();
        const first = (cells) => parseFloat(cells[0].textContent);
        return [document.querySelectorAll('#units tbody tr').length, first(document.querySelector('#units tbody tr').cells),
            functionRows().map(first)];
    })()""") or (0, 0, [])
    verdict("a click on a unit leaves that unit alone", units == 1, units)
    verdict("the functions of a unit and the row of shared files add up to the unit",
            abs(of_unit - sum(of_rows)) < 0.0006 * (len(of_rows) + 1), (of_unit, of_rows))
    if len(sys.argv) > 3:
        browser.value("document.getElementById('all').click()")
        browser.picture(sys.argv[3] + "-light.png")
        browser.size(1200, 900, dark=True)
        browser.picture(sys.argv[3] + "-dark.png")
    for width in 1280, 390:
        browser.size(width, 900)
        cut = browser.value("""(() => { document.getElementById('all').click(); return [...document.querySelectorAll('td')]
            .filter((c) => c.offsetWidth && (c.scrollWidth > c.clientWidth + 1 || c.getBoundingClientRect().right > innerWidth))
            .map((c) => c.textContent).slice(0, 3) })()""")
        verdict(f"no name is cut in {width} pixels", cut == [], cut)
        under = browser.value("""[...document.querySelectorAll('td.share')].filter((c) => {
            const number = c.querySelector('span').getBoundingClientRect(), bar = c.querySelector('progress').getBoundingClientRect();
            return bar.width && bar.left < number.right && bar.right > number.left }).length""")
        verdict(f"no bar lies under its number in {width} pixels", under == 0, under)
        if len(sys.argv) > 3:
            browser.picture(f"{sys.argv[3]}-{width}.png")
    verdict("the page violates no policy, and its script has no error", not browser.said, browser.said)
finally:
    browser.close()
