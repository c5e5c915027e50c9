"""Whose connections a client uses: those of its process and of the event loop that runs, or those of the caller.

A process that was forked has the connections of its parent, too, and would read what another one asked for. An event
loop that has ended leaves connections on which a call fails, or waits for ever.
"""

from __future__ import annotations

import os
import threading

import httpx
from anyio.lowlevel import RunVar

from svc_client.deadlines import with_deadlines

_RUN: RunVar[object] = RunVar("run of svc_client")
"""Something else in each run of an event loop."""


class ProcessConnections:
    """Of a blocking client."""

    def __init__(self, given: httpx.Client | None) -> None:
        self._given = given
        self._own = (os.getpid(), with_deadlines(httpx.Client())) if given is None else None

    def http(self) -> httpx.Client:
        """The httpx client of this process."""
        if self._given is not None:
            return self._given
        process = os.getpid()
        own = self._own
        if own is None or own[0] != process:
            own = self._own = (process, with_deadlines(httpx.Client()))
        return own[1]

    def close(self) -> None:
        """Close those of this process that are not the caller's."""
        if self._own is not None and self._own[0] == os.getpid():
            self._own[1].close()


class LoopConnections:
    """Of a client under asyncio or trio."""

    def __init__(self, given: httpx.AsyncClient | None) -> None:
        self._given, self.are_given = given, given is not None
        self._tls = httpx.create_ssl_context() if given is None else True
        self._own = threading.local()  # a thread runs one event loop at a time

    def http(self) -> httpx.AsyncClient:
        """The httpx client of this run of an event loop."""
        if self._given is not None:
            return self._given
        run = _RUN.get(None)
        if run is None:
            _RUN.set(run := object())
        if getattr(self._own, "run", None) is not run:
            self._own.run, self._own.http = run, httpx.AsyncClient(verify=self._tls)
        return self._own.http

    async def aclose(self) -> None:
        """Close those of this run that are not the caller's."""
        if self._given is None:
            await self.http().aclose()
