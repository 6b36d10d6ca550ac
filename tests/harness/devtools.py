"""Headless Chromium for as long as a test wants, in the machine's own time: pages stay open while things happen.

Spoken over two pipes (Chrome DevTools Protocol): one JSON text a message, with a zero byte behind it.
"""

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness.checks import Skip

# A browser that says nothing for so long hangs.
PATIENCE = 120


def high(descriptor):
    """The same descriptor with a number that nothing else is given."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD, 20)
    os.close(descriptor)
    return copy


class Page:
    """One page of a browser of its own."""

    def __init__(self, address, width=1280, height=1800):
        program = shutil.which("chromium")
        if not program:
            raise Skip("chromium is missing (apt-get install chromium)")
        self.profile = tempfile.TemporaryDirectory(prefix="manxdb-chromium-", ignore_cleanup_errors=True)
        (theirs_in, self.to), (self.answers, theirs_out) = [tuple(map(high, os.pipe())) for _ in range(2)]

        def hand_over():
            os.dup2(theirs_in, 3)
            os.dup2(theirs_out, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             f"--window-size={width},{height}", f"--user-data-dir={self.profile.name}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=hand_over)
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.read, self.session = 0, b"", None
        target = self.ask("Target.createTarget", url=address)["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def ask(self, method, **parameters):
        """The result of a command; what the browser says meanwhile is passed over."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" in self.read:
                text, self.read = self.read.split(b"\0", 1)
                answer = json.loads(text)
                if answer.get("id") == self.number:
                    if "error" in answer:
                        raise AssertionError(f"{method}: {answer['error']}")
                    return answer["result"]
            ready, _, _ = select.select([self.answers], [], [], max(0, deadline - time.monotonic()))
            more = os.read(self.answers, 1 << 20) if ready else b""
            if not more:
                raise AssertionError(f"the browser does not answer {method}")
            self.read += more

    def value(self, script):
        """What an expression is on the page."""
        done = self.ask("Runtime.evaluate", expression=script, returnByValue=True)
        if "exceptionDetails" in done:
            raise AssertionError(f"{script}: {done['exceptionDetails']}")
        return done["result"].get("value")

    def text(self):
        """What a reader sees; nothing while the page is still being read."""
        return self.value("document.readyState != 'loading' ? document.body.innerText : ''")

    def wait(self, what, holds):
        """The text of the page once it is as wanted."""
        deadline = time.monotonic() + PATIENCE
        while not holds(text := self.text()):
            if time.monotonic() > deadline:
                raise AssertionError(f"the page does not say {what}:\n{text}")
            time.sleep(0.1)
        return text

    def picture(self, path, scheme):
        """A screenshot of all of the page, `light` or `dark`; its bytes."""
        self.ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        shot = base64.b64decode(self.ask("Page.captureScreenshot", captureBeyondViewport=True)["data"])
        Path(path).write_bytes(shot)
        return shot

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.to)
        os.close(self.answers)
        self.profile.cleanup()
