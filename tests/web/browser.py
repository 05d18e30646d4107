"""Headless Chromium over its DevTools pipe: open a page, act on it, read what the console said. No package needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
         "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe"]
PATIENCE = 180  # seconds: of a machine that does much else


class Browser:
    """One Chromium; `with Browser() as browser: page = browser.open(file)`. Messages of the console gather in `console`."""

    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_read, self.command = os.pipe()
        self.answer, answer_write = os.pipe()

        def pipes():  # Chromium reads commands from 3 and writes answers to 4
            read, write = os.dup(command_read), os.dup(answer_write)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([CHROMIUM, *FLAGS, f"--user-data-dir={self.profile.name}", "about:blank"],
                                        preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        os.close(command_read)
        os.close(answer_write)
        self.buffer, self.number, self.session, self.console = b"", 0, None, []
        self.session = self.call("Target.attachToTarget", targetId=self._page(), flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        # What one test chose (the theme) is not what the next one finds.
        self.call("Page.addScriptToEvaluateOnNewDocument", source="try { localStorage.clear(); } catch { }")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pipe in (self.command, self.answer):
            os.close(pipe)
        self.profile.cleanup()

    def _page(self):
        """The first page; on a busy machine Chromium answers before it has one."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for target in self.call("Target.getTargets")["targetInfos"]:
                if target["type"] == "page":
                    return target["targetId"]
            time.sleep(0.05)
        raise TimeoutError("Chromium has no page")

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.answer], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium did not answer")
            part = os.read(self.answer, 1 << 20)
            if not part:
                raise RuntimeError("Chromium ended")
            self.buffer += part
        text, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, timeout=PATIENCE, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.command, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + timeout
        while True:
            answer = self._message(deadline)
            self._note(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _note(self, message):
        parameters = message.get("params", {})
        if message.get("method") == "Runtime.consoleAPICalled":
            self.console.append(" ".join(str(each.get("value", each.get("description"))) for each in parameters["args"]))
        elif message.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.console.append(details.get("exception", {}).get("description", details["text"]))
        elif message.get("method") == "Log.entryAdded":
            self.console.append(parameters["entry"]["text"])

    def value(self, script):
        """What the expression is in the page, as JSON."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"].get("exception", {}).get("description"))
        return answer["result"].get("value")

    def open(self, file, fragment="", width=1280, height=900, dark=False, drawn="document.documentElement.dataset.drawn !== undefined"):
        """Opens a file afresh and waits until the page says that it is drawn: until the expression `drawn` is true."""
        self.console.clear()
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=file.absolute().as_uri() + fragment)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            if self.value(f"document.readyState === 'complete' && ({drawn})"):
                return self
            if self.console:
                break
            time.sleep(0.05)
        raise AssertionError(f"{file.name} was not drawn: {self.console}")

    def key(self, key):
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, text=key if kind == "keyDown" and len(key) == 1 else "")

    def click(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def click_on(self, selector):
        """The middle of the first element that the selector finds."""
        x, y = self.value(f"""(() => {{ const at = document.querySelector({json.dumps(selector)});
            at.scrollIntoView({{ block: "center", behavior: "instant" }}); const box = at.getBoundingClientRect();
            return [box.left + box.width / 2, box.top + box.height / 2]; }})()""")
        self.click(x, y)

    def document(self):
        return self.value("document.documentElement.outerHTML")

    def screenshot(self, file, whole=False):
        """A picture for people; `whole`: all of the page, not what the window shows."""
        options = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            options = {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **options)["data"]))

    def picture(self, file):
        """What the window shows, small, for a README."""
        answer = self.call("Page.captureScreenshot", format="webp", quality=82)
        file.write_bytes(base64.b64decode(answer["data"]))

    def pdf(self, file):
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True, paperWidth=8.27, paperHeight=11.69)
        file.write_bytes(base64.b64decode(answer["data"]))
