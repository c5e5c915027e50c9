"""How a data directory is opened to be served: by one process at a time, and upgraded first where it is older."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import structlog

import svc
from svc.command.changes import apply
from svc.command.data_directory import opened_directory
from svc.features.upgrade.upgrade import Upgraded, upgrade
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, refuse_without_data, risky_modes
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.installation import ServedLimits, claim_region, record_limits
from svc.kernel.store.steps import Steps
from svc.world import World

log = structlog.get_logger()


@contextmanager
def locked_directory(
    directory: Path,
    config: Config,
    world: World,
    command: str,
    *,
    create: bool = False,
    copy: bool = True,
    wait_s: float = 0,
) -> Generator[None]:
    """Hold the lock of a data directory (`serve_lock`) until the end of the block, its store at this program's version.

    Nothing is changed before the lock is held. `wait_s` is how long to wait for a predecessor. `copy=False` upgrades
    without keeping a copy. Raises what `upgrade` and `sole_process` raise.
    """
    if create:
        files.make_folder(directory)
    else:
        refuse_without_data(directory)
    reason = "two services on one directory would send every webhook twice"
    with sole_process(directory, command, world.now_ms, reason=reason, wait_s=wait_s, on_wait=_log_wait):
        upgrade_where_needed(directory, config, world, copy=copy)
        yield


@contextmanager
def opened_to_serve(directory: Path, config: Config, world: World, *, create: bool = False) -> Generator[Opened]:
    """Open the data directory that this process is alone in, and warn of modes that give more than is needed. Raises
    what `open_directory` raises.
    """
    with opened_directory(directory, config, world, create=create) as found:
        for risk in risky_modes(directory, config.pepper_path()):
            log.warning("insecure file mode", problem=risk)
        yield found


def keep_settings(found: Opened, config: Config) -> None:
    """Record in the store, before it is served, the region and the limits from the settings. Raises
    `WrongRegionError`.
    """
    apply(found, partial(claim_region, region=config.region))
    apply(found, partial(record_limits, limits=ServedLimits(found.store.capacity_bytes(), config.store_share)))


def _log_wait(holder: str) -> None:
    log.info("waiting for another process to leave the data directory", holder=holder)


class LoggedSteps(Steps):
    """Tells the log how far an upgrade is, each `ROWS_LOGGED` rows."""

    _label, _rows, _length = "", 0, 0

    def stage(self, label: str, length: int) -> None:
        """Log that a migration begins."""
        self._label, self._rows, self._length = label, 0, length
        log.info(label, rows=0, of=length)

    def step(self, count: int) -> None:
        """Log how many rows it has read, from time to time."""
        before, self._rows = self._rows, self._rows + count
        if before // ROWS_LOGGED < self._rows // ROWS_LOGGED:
            log.info(self._label, rows=self._rows, of=self._length)


ROWS_LOGGED = 100_000


def upgrade_where_needed(directory: Path, config: Config, world: World, *, copy: bool = True) -> Upgraded | None:
    """Upgrade an older store to this program's version, and keep a copy of it if `copy`. Returns what was done, `None`
    where it has that version. Raises as `upgrade` does.
    """
    done = upgrade(
        directory,
        world.run_sync,
        map_bytes=config.map_bytes(),
        program=svc.__version__,
        now_ms=world.now_ms,
        copy=copy,
        steps=LoggedSteps(),
    )
    if done is not None:
        kept = None if done.copy is None else str(done.copy)
        log.warning("the store was upgraded", version=done.after, version_before=done.before, kept=kept)
    return done
