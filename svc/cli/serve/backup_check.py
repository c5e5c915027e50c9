"""What `svc doctor` says of a continuous backup: up to which moment its follower has copied."""

from __future__ import annotations

from pathlib import Path

from svc.cli.serve.health_checks import Examined, Finding
from svc.command.data_directory import reading_directory
from svc.features.backup import copied_up_to
from svc.kernel.store import operations
from svc.kernel.store.directory import has_store
from svc.kernel.store.engine import EngineError
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.schema.operation_log import Following
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.timestamps import timestamp

LATE_S = 60
"""A follower that runs records every ten seconds how far it has copied."""
RESTORE = "stop the service, keep the directory, and restore the backup (docs/backup.md)"
NEXT_STEP = "start `svc backup --follow`, and read its log"


def backup(examined: Examined) -> Finding:
    """Return up to which moment the store was copied by `svc backup --follow`: a problem if its log was dropped, a
    warning if that was more than `LATE_S` ago or cannot be read.
    """
    if examined.config.store is not None:
        return Finding("ok", "made with the database's own tools (docs/postgresql.md)")
    if not has_store(examined.directory):
        return Finding("ok", "there is nothing to back up yet")
    try:
        with reading_directory(examined.directory, examined.config) as opened:
            with opened.read() as snapshot:
                following = operations.follower(snapshot)
            return _of_follower(following, opened, examined.world.now_ms())
    except (OperatorError, EngineError, CorruptionError, OSError) as error:
        return Finding("warning", str(error), "run this command where the store and its backup can be read")


def _of_follower(following: Following | None, store: ReadOnlyStore, now_ms: int) -> Finding:
    if following is None:
        return Finding("ok", "not continuous: `svc backup --follow` was not started on this store")
    if following.lost_at_ms is not None:
        says = f"nothing is copied since {timestamp(following.lost_at_ms)}: {following.lost_because}"
        return Finding("problem", says, NEXT_STEP)
    if (problem := copied_up_to.beyond(following, store.read)) is not None:
        return Finding("problem", problem, RESTORE)
    copied = copied_up_to.of_timeline(Path(following.destination), following.timeline.hex())
    if copied is None:
        return Finding("warning", f"{following.destination} does not say how far it was copied", NEXT_STEP)
    late_s = (now_ms - copied.at_ms) / 1000
    says = f"copied up to {timestamp(copied.at_ms)}, {late_s:.0f} s ago, to {following.destination}"
    return Finding("warning", says, NEXT_STEP) if late_s > LATE_S else Finding("ok", says)
