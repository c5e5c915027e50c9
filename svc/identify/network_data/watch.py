"""The network watch: takes up network files that were replaced, added or removed, without a restart.

Owns what is read of the folder, and the look-up in force, which others read and never keep. Receives and sends no
messages; looks at the folder periodically, on a thread, and logs. A file that cannot be used is named in the log, once,
and what was read of it before stays in force. Commands, which need no event loop, do not load this module.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import structlog
import trio

from svc.identify.network.facts import Ranges
from svc.identify.network_data.folder import NOTHING, Entry, FilesInUse, read_folder
from svc.identify.network_data.lookup import VPN_NEIGHBORS, BuiltInRanges, NetworkData
from svc.world import RunSync

log = structlog.get_logger()


class NetworkWatch:
    """Keeps the address look-up up to date with the files of a folder; `data` is the look-up in force."""

    def __init__(
        self, directory: Path | None, built_in: BuiltInRanges | None, vpn_neighbors: int = VPN_NEIGHBORS
    ) -> None:
        """Use only the built-in ranges without a directory; `vpn_neighbors` as for `NetworkData`. Read nothing yet."""
        self._directory = directory
        self._compiled = partial(NetworkData, built_in, vpn_neighbors=vpn_neighbors)
        self._reading = NOTHING
        self._listing_failed = False
        self._soon = trio.Event()
        self.data = self._compiled(NOTHING)

    @property
    def ranges(self) -> Ranges | None:
        """The look-up for the next address; `None` without data. Do not keep it: it is replaced as a whole."""
        return self.data or None

    def read_now(self) -> None:
        """Read the folder on this thread, before the first request. Log unusable files, and that there is no data."""
        self._take_up(self._read_again(self._reading))
        if self.ranges is None:
            log.warning("no network data: every identification is unavailable and free", reason="no_network_data")

    def look_now(self) -> None:
        """Make `run` check the folder now instead of at the end of the interval."""
        self._soon.set()

    async def run(self, run_sync: RunSync, interval_s: float) -> None:
        """Check the folder every `interval_s` seconds, and after `look_now`; return at once if there is none."""
        while self._directory is not None:
            with trio.move_on_after(interval_s):
                await self._soon.wait()
            self._soon = trio.Event()
            self._take_up(await run_sync(partial(self._read_again, self._reading)))

    def _read_again(self, before: FilesInUse) -> tuple[FilesInUse, NetworkData | None] | OSError:
        """Read the folder, on a thread. Return its content, and the look-up if that has changed."""
        if self._directory is None:
            return before, None
        try:
            after = read_folder(self._directory, before)
        except OSError as error:
            return error
        return after, None if after is before else self._compiled(after)

    def _take_up(self, looked: tuple[FilesInUse, NetworkData | None] | OSError) -> None:
        if isinstance(looked, OSError):
            if not self._listing_failed:
                log.error("cannot list the network files, keeping the loaded ones", problem=str(looked))
            self._listing_failed = True
            return
        self._listing_failed = False
        after, data = looked
        before, self._reading = self._reading, after
        if data is not None:
            self.data = data
            _log_changes(before, after)


def _log_changes(before: FilesInUse, after: FilesInUse) -> None:
    for name in before.keys() - after.keys():
        log.info("network file removed", file=name)
    for name, entry in after.items():
        if before.get(name) != entry:
            _log_file(name, entry)


def _log_file(name: str, entry: Entry) -> None:
    source = entry.source
    if entry.problem is not None:
        in_force = "nothing of it is in use" if source is None else "what was read of it before stays in use"
        line = {} if entry.problem.line is None else {"line": entry.problem.line}
        log.error("network file rejected", file=name, problem=entry.problem.says, **line, in_force=in_force)
    elif source is not None:
        built_at = source.built_at.isoformat()
        log.info("network file in use", file=name, kind=source.kind, entries=source.entries, built_at=built_at)
