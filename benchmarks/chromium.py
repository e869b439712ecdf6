"""The machine's own Chromium, without a window, driven by a pipe: DevTools' protocol and no more.

What drives browsers elsewhere weighs 165 MB, or needs a driver that fits the browser's version. Of
the protocol a few calls are needed, which have been the same for years.
"""

from __future__ import annotations

import base64
import json
import os
import selectors
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, Literal

#: How long a page may take for what is waited for.
PATIENCE_S: Final = 20.0
_FLAGS: Final = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--mute-audio"),
    *(
        "--force-color-profile=srgb",
        "--disable-lcd-text",
        "--hide-scrollbars",
        "--remote-debugging-pipe",
    ),
)


class NotThere(Exception):
    """There is no Chromium on this machine."""


class Failed(Exception):
    """A page did not do what was asked of it."""


def program() -> str:
    """Return where Chromium is; NotThere says how to install it."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    raise NotThere("no Chromium is installed (Debian: apt install chromium)")


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Start Chromium; it ends with the block."""
    to_it, ours_out = os.pipe()
    ours_in, from_it = os.pipe()
    with TemporaryDirectory(prefix="chromium", ignore_cleanup_errors=True) as folder:
        # The protocol is spoken on descriptors 3 and 4.
        talk = f'exec "$0" "$@" 3</dev/fd/{to_it} 4>/dev/fd/{from_it}'
        command = ["sh", "-c", talk, program(), *_FLAGS, f"--user-data-dir={folder}", "about:blank"]
        process = subprocess.Popen(
            command,
            pass_fds=(to_it, from_it),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(to_it)
        os.close(from_it)
        browser = Chromium(ours_in, ours_out)
        try:
            yield browser
        finally:
            try:
                browser.call("Browser.close")
                process.wait(timeout=10)
            except (Failed, OSError, subprocess.TimeoutExpired):
                process.kill()
                process.wait()
            os.close(ours_in)
            os.close(ours_out)


class Chromium:
    """A browser: calls go out, answers and events come in."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._selector = selectors.DefaultSelector()
        self._selector.register(incoming, selectors.EVENT_READ)
        self._left = b""
        self._number = 0
        self._answers: dict[int, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **given: Any) -> dict[str, Any]:
        """Call a method of the protocol; Failed with what the browser says."""
        self._number += 1
        asked = {"id": self._number, "method": method, "params": given}
        if session is not None:
            asked["sessionId"] = session
        waiting = memoryview(json.dumps(asked).encode() + b"\0")
        while waiting:
            waiting = waiting[os.write(self._outgoing, waiting) :]
        until = time.monotonic() + PATIENCE_S
        while (answer := self._answers.pop(self._number, None)) is None:
            self._read(until, method)
        if "error" in answer:
            raise Failed(f"{method}: {answer['error']['message']}")
        found: dict[str, Any] = answer["result"]
        return found

    def page(
        self,
        address: str,
        *,
        width: int = 1280,
        height: int = 860,
        scheme: Literal["light", "dark"] = "light",
        still: bool = False,
    ) -> Page:
        """Open a page of its own, with no memory of others; `still` asks it not to move."""
        context = self.call("Target.createBrowserContext")["browserContextId"]
        target = self.call("Target.createTarget", url="about:blank", browserContextId=context)
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        page = Page(self, attached["sessionId"], target["targetId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        page.call(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        moves = "reduce" if still else "no-preference"
        page.call(
            "Emulation.setEmulatedMedia",
            features=[
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": moves},
            ],
        )
        page.call("Page.navigate", url=address)
        page.until("document.readyState === 'complete' && location.href !== 'about:blank'")
        return page

    def _read(self, until: float, method: str) -> None:
        """Take in all that has come: events may stand behind the answer that is waited for."""
        left_s = until - time.monotonic()
        if left_s <= 0 or not self._selector.select(left_s):
            raise Failed(f"{method}: no answer in {PATIENCE_S:.0f} s")
        more = os.read(self._incoming, 1 << 20)
        if not more:
            raise Failed(f"{method}: the browser has ended")
        *whole, self._left = (self._left + more).split(b"\0")
        for message in map(json.loads, whole):
            if "method" in message:
                self.events.append(message)
            else:
                self._answers[message["id"]] = message


class Page:
    """One page of a browser."""

    def __init__(self, browser: Chromium, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Call a method of the protocol on this page."""
        return self._browser.call(method, self._session, **given)

    def run(self, script: str) -> Any:
        """Return what a script comes to; it may be a promise."""
        told = self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in told:
            thrown = told["exceptionDetails"].get("exception", {})
            raise Failed(f"{script}: {thrown.get('description', told['exceptionDetails']['text'])}")
        return told["result"].get("value")

    def until(self, script: str) -> Any:
        """Return what a script comes to, once that is something; Failed where it never is."""
        # An element is not told as it is: what hangs on it may have no end.
        asked = f"((found) => found instanceof Node ? true : found)({script})"
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            if found := self.run(asked):
                return found
            time.sleep(0.02)
        raise Failed(f"never came: {script}; the page says {self.run('document.body.innerText')!r}")

    def press(self, key: str) -> None:
        """Press a key, as a person does."""
        text = key if len(key) == 1 else "\r" if key == "Enter" else ""
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def type(self, text: str) -> None:
        """Type a text into what has the focus."""
        self.call("Input.insertText", text=text)

    def troubles(self) -> list[str]:
        """Return what went wrong in the page: exceptions, and what its policy forbade."""
        self.run("0")
        found = []
        for event in self._browser.events:
            if event.get("sessionId") != self._session:
                continue
            told = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(told["exceptionDetails"]["exception"].get("description", "thrown"))
            elif event["method"] == "Log.entryAdded" and told["entry"]["level"] == "error":
                found.append(told["entry"]["text"])
        return found

    def refused(self) -> list[int]:
        """Return the status of every refusal that the page got, once it got one.

        The network tells of it in a process of its own, which may be later than the page.
        """
        end = time.monotonic() + PATIENCE_S
        while time.monotonic() < end:
            self.run("0")
            told = (
                event["params"]["response"]["status"]
                for event in self._browser.events
                if event.get("sessionId") == self._session
                and event["method"] == "Network.responseReceived"
            )
            if found := [status for status in told if status >= 400]:
                return found
            time.sleep(0.02)
        raise Failed("the page was refused nothing")

    def asked(self) -> Sequence[str]:
        """Return every address that the page asked for."""
        self.run("0")
        return [
            event["params"]["request"]["url"]
            for event in self._browser.events
            if event.get("sessionId") == self._session
            and event["method"] == "Network.requestWillBeSent"
        ]

    def picture(self, file: Path) -> None:
        """Write what is seen, as PNG."""
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self) -> None:
        """Close the page."""
        self._browser.call("Target.closeTarget", targetId=self._target)
