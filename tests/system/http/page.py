#!/usr/bin/python3
"""page.py - profil-http's page in a browser

usage: page.py URL COMMAND [PICTURE]    COMMAND is the name of a busy process, and contains markup

Prints a line "ok NAME" or "FAIL NAME: why" for each fact.
"""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from browser import Browser  # noqa: E402

URL, COMMAND = sys.argv[1:3]
ROWS = "[...document.querySelectorAll('#%s tbody tr:not(.none)')].map((r) => [...r.cells].map((c) => c.textContent))"


def verdict(name, is_so, why=""):
    print(f"ok {name}" if is_so else f"FAIL {name}: {why}", flush=True)


def until(browser, expression, seconds=20):
    end = time.monotonic() + seconds
    while not browser.value(expression) and time.monotonic() < end:
        time.sleep(0.1)
    return browser.value(expression)


def rows(browser, table):
    return browser.value(ROWS % table)


browser = Browser()
try:
    browser.ask("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=-1)
    browser.size(1200, 900)
    browser.ask("Page.navigate", url=URL)
    until(browser, "document.readyState == 'complete' && document.getElementById('seconds') !== null")
    browser.value("document.getElementById('seconds').value = '1'")
    until(browser, "document.querySelectorAll('#functions tbody tr').length > 0")
    verdict("the page fills its tables", rows(browser, "units") and rows(browser, "functions") and rows(browser, "runs"),
            browser.value("document.body.innerText"))
    first = browser.value("document.getElementById('state').textContent")
    verdict("the page refreshes itself", until(browser, f"document.getElementById('state').textContent != {first!r}"), first)
    found = until(browser, f"[...document.querySelectorAll('#runs td')].some((c) => c.textContent == {COMMAND!r})")
    verdict("a name that is markup is shown as text", found and browser.value("document.querySelectorAll('td img').length") == 0,
            rows(browser, "runs"))
    browser.value("document.getElementById('refresh').checked = false")
    browser.value(f"const s = document.getElementById('search'); s.value = {COMMAND!r}; s.dispatchEvent(new Event('input'))")
    runs = rows(browser, "runs")
    verdict("the search leaves the matching rows", runs and all(COMMAND in r for r in runs), runs)
    browser.value("s.value = ''; s.dispatchEvent(new Event('input')); document.querySelector('#units button').click()")
    verdict("a click on a unit leaves that unit alone", len(rows(browser, "units")) == 1, rows(browser, "units"))
    of_unit = browser.value("parseFloat(document.querySelector('#units tbody td').textContent)")
    of_rows = browser.value("functionRows().map((cells) => parseFloat(cells[0].textContent))")
    verdict("the functions of a unit and the row of shared files add up to the unit",
            abs(of_unit - sum(of_rows)) < 0.0006 * (len(of_rows) + 1), (of_unit, of_rows))
    if len(sys.argv) > 3:
        browser.value("document.getElementById('all').click()")
        browser.picture(sys.argv[3] + "-light.png")
        browser.size(1200, 900, dark=True)
        browser.picture(sys.argv[3] + "-dark.png")
    verdict("the page violates no policy, and its script has no error", not browser.said, browser.said)
finally:
    browser.close()
