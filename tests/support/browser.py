"""A headless Chromium for tests of pages, spoken to over two pipes in the DevTools protocol.

No driver and no port: commands and events are JSON texts that end with a zero byte (`--remote-debugging-pipe`).
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from tests.support.chromium import browser

FLAGS = (
    "--headless",
    "--no-sandbox",  # the tests may run as root, and open nothing but their own service
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--no-first-run",
    "--remote-debugging-pipe",
)
PATIENCE_S = 20
_STILL = """
new Promise(done => {
  const still = () => setTimeout(done, 250);
  let waiting = still();
  const watch = new MutationObserver(() => { clearTimeout(waiting); waiting = still() });
  watch.observe(document, { attributes: true, characterData: true, childList: true, subtree: true });
})
"""
_AS_3_AND_4 = """
import os, sys
os.dup2(int(sys.argv[1]), 3), os.dup2(int(sys.argv[2]), 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from file descriptor 3 and writes events to 4. Here those are long taken by others."""


class Page:
    """One tab. What it asked for and what it complained of is kept."""

    def __init__(self, commands: trio.lowlevel.FdStream, events: trio.lowlevel.FdStream) -> None:
        self.requests: list[Any] = []
        """As the protocol tells of them: `url`, `method`, `headers`, ..."""
        self.complaints: list[str] = []
        """Console errors, exceptions and what the content security policy refused."""
        self._commands = commands
        self._events = events
        self._session: dict[str, str] = {}
        self._numbers = itertools.count(1)
        self._answers: dict[int, Any] = {}
        self._unread = b""

    async def open(self, *, width: int, height: int, dark: bool) -> None:
        target = await self.send("Target.createTarget", url="about:blank")
        attached = await self.send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = {"sessionId": attached["sessionId"]}
        for domain in ("Page", "Network", "Runtime", "Log"):
            await self.send(f"{domain}.enable")
        await self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        await self.prefer("dark" if dark else "light")

    async def prefer(self, scheme: str) -> None:
        """The system changes to light or dark."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        await self.send("Emulation.setEmulatedMedia", features=features)

    async def go(self, url: str) -> None:
        await self.send("Page.navigate", url=url)

    async def run(self, expression: str) -> Any:
        """The value of a JavaScript expression, awaited."""
        answer = await self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def wait_for(self, condition: str) -> Any:
        """The value of the expression, once it is true; the page itself polls."""
        look = f"const look = () => {{ const found = {condition}; found ? done(found) : setTimeout(look, 20) }}; look()"
        return await self.run(f"new Promise(done => {{ {look} }})")

    async def settle(self) -> None:
        """Until nothing in the page has changed for a moment: what a person waits for before the next click."""
        await self.run(_STILL)

    async def send(self, method: str, **parameters: Any) -> Any:
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": parameters, **self._session}
        await self._commands.send_all(json.dumps(command).encode() + b"\0")
        with trio.fail_after(PATIENCE_S):
            while number not in self._answers:
                self._take(await self._receive())
        answer = self._answers.pop(number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    async def _receive(self) -> Any:
        while b"\0" not in self._unread:
            part = await self._events.receive_some()
            assert part, "the browser ended"
            self._unread += part
        message, _, self._unread = self._unread.partition(b"\0")
        return json.loads(message)

    def _take(self, message: Any) -> None:
        if "id" in message:
            self._answers[message["id"]] = message
            return
        told = message["params"]
        match message["method"]:
            case "Network.requestWillBeSent":
                self.requests.append(told["request"])
            case "Log.entryAdded" if told["entry"]["level"] == "error":
                self.complaints.append(told["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(told["exceptionDetails"]["text"])
            case _:
                pass


@asynccontextmanager
async def browser_page(
    directory: Path, *, width: int = 1280, height: int = 1000, dark: bool = False
) -> AsyncGenerator[Page]:
    """A tab of a browser of the test's own; skipped where there is none to run."""
    program = browser().program
    to_browser, from_browser = os.pipe(), os.pipe()
    inherited = (to_browser[0], from_browser[1])
    process = await trio.lowlevel.open_process(
        [sys.executable, "-c", _AS_3_AND_4, *map(str, inherited), *program, *FLAGS, f"--user-data-dir={directory}"],
        pass_fds=inherited,
        stderr=subprocess.DEVNULL,
    )
    os.close(to_browser[0])
    os.close(from_browser[1])
    try:
        async with (
            trio.lowlevel.FdStream(to_browser[1]) as commands,
            trio.lowlevel.FdStream(from_browser[0]) as events,
        ):
            page = Page(commands, events)
            await page.open(width=width, height=height, dark=dark)
            yield page
    finally:
        process.terminate()
        with trio.CancelScope(shield=True):
            await process.wait()
