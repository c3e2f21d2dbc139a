#!/usr/bin/python3
"""browser.py - a headless chromium driven through a pipe, with real keys and a real mouse"""
import base64
import fcntl
import json
import os
import select
import subprocess
import tempfile
import time

KEYS = {"Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Home": 36, "Tab": 9}


class Browser:
    """Starts offline. Collects messages of the console and failed loads in said."""

    def __init__(self, seconds=60):
        self.end = time.monotonic() + seconds
        self.dir = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        high = [fcntl.fcntl(fd, fcntl.F_DUPFD, 100) for fd in (theirs_in, theirs_out)]
        # chromium reads from descriptor 3 and writes to 4.
        self.process = subprocess.Popen(
            ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--disable-background-networking",
             "--disable-component-update", "--hide-scrollbars", f"--user-data-dir={self.dir.name}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=lambda: (os.dup2(high[0], 3), os.dup2(high[1], 4)), pass_fds=(3, 4), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for fd in (theirs_in, theirs_out, *high):
            os.close(fd)
        self.input, self.output, self.pending, self.id, self.said = ours_in, ours_out, b"", 0, []
        self.session, self.loaded = None, set()
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")
        self.ask("Page.setLifecycleEventsEnabled", enabled=True)
        self.ask("Network.emulateNetworkConditions", offline=True, latency=0, downloadThroughput=0, uploadThroughput=0)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.dir.cleanup()

    def message(self):
        while b"\0" not in self.pending:
            left = self.end - time.monotonic()
            if left <= 0 or not select.select([self.input], [], [], left)[0]:
                raise TimeoutError("the browser has not answered in time")
            more = os.read(self.input, 1 << 16)
            if not more:
                raise EOFError("the browser has ended")
            self.pending += more
        message, self.pending = self.pending.split(b"\0", 1)
        message = json.loads(message)
        method = message.get("method", "")
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.said.append(json.dumps(message["params"]))
        if method == "Page.lifecycleEvent" and message["params"]["name"] == "load":
            self.loaded.add(message["params"]["loaderId"])
        return message

    def ask(self, method, **params):
        self.id += 1
        request = {"id": self.id, "method": method, "params": params}
        if self.session:
            request["sessionId"] = self.session
        os.write(self.output, json.dumps(request).encode() + b"\0")
        while True:
            message = self.message()
            if message.get("id") == self.id:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]

    def size(self, width, height=900, dark=False, phone=False):
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=phone)
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def open(self, path):
        loader = self.ask("Page.navigate", url="file://" + os.path.abspath(path))["loaderId"]
        while loader not in self.loaded:  # the event may come before the answer
            self.message()

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def key(self, key):
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        code = KEYS.get(key, ord(key.upper()) if len(key) == 1 and key.isalnum() else 0)
        self.ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **({"text": text} if text else {}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        for key in text:
            self.key(key)

    def mouse(self, kind, x, y):
        pressed = {"button": "left", "clickCount": 1} if kind != "mouseMoved" else {}
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **pressed)

    def click(self, x, y):
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y)
        self.mouse("mouseReleased", x, y)

    def picture(self, path, **clip):
        shot = self.ask("Page.captureScreenshot", format="png", **({"clip": {**clip, "scale": 1}} if clip else {}))
        with open(path, "wb") as f:
            f.write(base64.b64decode(shot["data"]))
