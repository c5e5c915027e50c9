"""The upgrade of a data directory before it is opened to be served, and what the log says of it."""

from __future__ import annotations

from pathlib import Path

import structlog

import svc
from svc.config import Config
from svc.store.store import DEFAULT_MAP_BYTES
from svc.store.upgrade import upgrade
from svc.world import World

log = structlog.get_logger()


def upgrade_where_needed(directory: Path, config: Config, world: World, *, copy: bool = True) -> None:
    """Bring an older store to this program's version, with a copy of it kept before, unless `copy` is false."""
    done = upgrade(
        directory,
        world.run_sync,
        map_bytes=int(config.map_gib * (DEFAULT_MAP_BYTES // 64)),
        program=svc.__version__,
        now_ms=world.now_ms,
        copy=copy,
    )
    if done is not None:
        kept = None if done.copy is None else str(done.copy)
        log.warning("the store was upgraded", version=done.after, version_before=done.before, kept=kept)
