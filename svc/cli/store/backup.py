"""`svc backup` and `svc restore`: snapshots, following the operation log, and a data directory made of both again."""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

import click
import structlog
import trio

import svc
from svc.command.data_directory import opened
from svc.command.help import examples
from svc.command.logs import set_up_logging, with_log_format
from svc.command.output import CommandError, TimestampType, file_option, json_option, progress, settings, show
from svc.features.backup import snapshots
from svc.features.backup.follower import DEFAULT_LIMIT_BYTES, INTERVAL_S, Follower, NotResumed, begin, resume
from svc.features.backup.restore import Restored, Restoring
from svc.features.backup.restore import restore as restore_store
from svc.features.backup.snapshots import BackupSnapshot
from svc.features.checks.verification import Verification
from svc.kernel.config import Config
from svc.kernel.store import operations
from svc.kernel.store.directory import refuse_without_data
from svc.kernel.store.engine import UnavailableError
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.operation_log import TIMELINE_BYTES
from svc.kernel.store.steps import QUIET, Steps
from svc.kernel.values.errors import DirectoryError, cause
from svc.kernel.values.timestamps import timestamp
from svc.world import World

log = structlog.get_logger()


verify_option = click.option(
    "--verify",
    "verification",
    type=click.Choice([how.value for how in Verification]),
    default=Verification.CHECKSUMS.value,
    show_default=True,
    help="checksums: every page and row of the copy; full: the rules between rows as well, as `svc check`, which takes "
    "twenty times as long.",
)


@click.command(
    epilog=examples(
        "svc backup /var/backups/svc --data /var/lib/svc", "svc backup /var/backups/svc --data /var/lib/svc --follow"
    )
)
@click.argument("folder", metavar="DEST", required=False, type=click.Path(file_okay=False, path_type=Path))
@click.option("--keep", type=click.IntRange(1), metavar="N", help="Remove all but the newest N snapshots afterwards.")
@click.option("--with-pepper", is_flag=True, help="Include the pepper. Anyone with it and the snapshot can forge keys.")
@verify_option
@click.option("--follow", is_flag=True, help="Copy every commit within a second, until SIGTERM.")
@click.option("--unfollow", is_flag=True, help="Stop following permanently: releases the retained operation log.")
@click.option(
    "--limit-mib",
    type=click.IntRange(1),
    default=DEFAULT_LIMIT_BYTES >> 20,
    show_default=True,
    metavar="N",
    help="With --follow: size of the log that the store retains while the follower is stopped.",
)
@file_option("back a database up with its own tools, pg_dump or an archive of its log (docs/postgresql.md)")
@json_option
def backup(  # noqa: PLR0913, PLR0917  one for each option
    folder: Path | None,
    keep: int | None,
    with_pepper: bool,
    verification: str,
    follow: bool,
    unfollow: bool,
    limit_mib: int,
    directory: Path,
    as_json: bool,
) -> None:
    """Make a verified snapshot in the folder DEST, also while the service runs.

    With --follow, every commit is copied to DEST within a second, for `svc restore --to`.
    """
    if unfollow:
        if folder is not None or follow or keep or with_pepper:
            raise click.UsageError("--unfollow stands alone")
        _unfollow(directory, as_json=as_json)
        return
    if folder is None:
        raise click.UsageError("name the folder DEST")
    if follow and (keep or as_json):
        raise click.UsageError("--follow goes without --keep and --json; run `svc backup DEST --keep N` beside it")
    if folder.resolve().is_relative_to(directory.resolve()):
        raise CommandError(
            f"{folder} is inside the data directory, whose loss would take both; name a folder elsewhere"
        )
    config = settings()
    refuse_without_data(directory)
    take = partial(_take, directory, folder, config, Verification(verification), with_pepper=with_pepper)
    if follow:
        _follow(directory, folder, config, limit_mib << 20, take)
        return
    with progress() as steps:
        taken = take(steps)
    removed = [] if keep is None else _prune(directory, folder, keep)
    _show_snapshot(taken, removed, as_json=as_json)
    _warn_of_owner(folder, taken.path)


def _warn_of_owner(folder: Path, path: Path) -> None:
    """Say on standard error if root made the snapshot in the folder of a user who could not read it, and so make no
    backup after it.
    """
    if os.geteuid() == 0 and folder.stat().st_uid not in (0, path.stat().st_uid):
        click.echo(
            f"svc: {folder} belongs to another user, who cannot read this snapshot, and so cannot make the next one: "
            f"chown -R --reference={folder} {path}",
            err=True,
        )


def _take(
    directory: Path, folder: Path, config: Config, verification: Verification, steps: Steps, *, with_pepper: bool
) -> BackupSnapshot:
    pepper = config.pepper_path() or directory / "pepper"
    if with_pepper and not pepper.is_file():
        raise CommandError(f"the pepper {pepper} is not there")
    taking = snapshots.Taking(svc.__version__, World.real().now_ms, pepper if with_pepper else None, verification)
    return snapshots.take(directory, folder, taking, steps)


def _prune(directory: Path, folder: Path, keep: int) -> list[Path]:
    with read_only(directory / "store", live=True) as store, store.read() as snapshot:
        position = operations.position(snapshot)
    return snapshots.prune(folder, keep, None if position is None else position.timeline)


def _show_snapshot(taken: BackupSnapshot, removed: list[Path], *, as_json: bool) -> None:
    manifest = taken.manifest
    shown: dict[str, Any] = {
        "snapshot": str(taken.path),
        "taken_at": timestamp(manifest.taken_at_ms),
        "bytes": manifest.bytes,
        "rows": sum(manifest.rows.values()),
        "pepper": "included" if manifest.pepper else "left out",
        "followed": manifest.timeline is not None,
        "verified": str(manifest.verified),
        "removed": [path.name for path in removed],
    }
    show(shown, as_json=as_json)
    if not manifest.pepper and not as_json:
        click.echo("\nkeep a copy of the pepper elsewhere: without it no key verifies after a restore")


def _follow(
    directory: Path, folder: Path, config: Config, limit_bytes: int, take: Callable[[Steps], BackupSnapshot]
) -> None:
    set_up_logging(with_log_format(config).log_format)
    files.make_folder(folder)
    if not (directory / "store" / "data.mdb").is_file():
        raise DirectoryError(f"{directory} holds no data of this service")
    with files.exclusive(directory / "follower.lock", f"{directory} is being followed by another process"):
        while True:
            because = _new_timeline_where_needed(directory, folder, limit_bytes)
            if because is not None:
                log.warning("new timeline: full snapshot required", because=because, folder=str(folder))
                taken = take(QUIET)
                log.info("snapshot taken", snapshot=str(taken.path), bytes=taken.manifest.bytes)
            if not _copy(directory, folder, is_new=because is not None):
                return
            log.error("the log cannot be continued: what is committed now is in no backup until the next snapshot")


def _new_timeline_where_needed(directory: Path, folder: Path, limit_bytes: int) -> str | None:
    """Begin a new timeline if following cannot go on where it was. Return why, or `None`."""
    with opened(directory) as found:
        resumed = resume(found.store, folder)
        if not isinstance(resumed, NotResumed):
            resumed.close()
            found.store.change_log(partial(operations.allow, limit_bytes=limit_bytes))
            return None
        world = World.real()
        begin(found.store, folder, world.entropy(TIMELINE_BYTES), world.now_ms(), limit_bytes)
    return resumed.because


def _copy(directory: Path, folder: Path, *, is_new: bool) -> bool:
    """Copy until a signal arrives (`False`) or this timeline has ended (`True`)."""
    with opened(directory) as found:
        resumed = resume(found.store, folder)
        if isinstance(resumed, NotResumed):
            if is_new:
                raise CommandError(f"{resumed.because}; if the snapshot took too long for it, raise --limit-mib")
            return True
        log.info("following", folder=str(folder), copied=resumed.copied)
        follower = Follower(found.store, resumed, World.real().now_ms)
        try:
            ended = trio.run(_copy_until_signaled, follower)
            follower.close()
        except UnavailableError as error:
            raise CommandError(f"the store is lost, and following ends: {error}") from error
        except OSError as error:
            raise CommandError(
                f"cannot write to {folder}: {cause(error)}; the store keeps what is not copied"
            ) from error
        log.info("followed", batches=follower.batches, bytes=follower.bytes)
    return ended


async def _copy_until_signaled(follower: Follower) -> bool:
    with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        while follower.step():
            if await _is_signaled(signals):
                return not follower.step(is_last=True)
        return True


async def _is_signaled(signals: AsyncIterator[int]) -> bool:
    """Wait for a signal until it is time to look again. Return whether one came."""
    with trio.move_on_after(INTERVAL_S):
        await anext(signals)
        return True
    return False


def _unfollow(directory: Path, *, as_json: bool) -> None:
    with opened(directory) as found:
        with found.store.read() as snapshot:
            following = operations.follower(snapshot)
        if following is None:
            raise CommandError("nobody follows this store")
        found.store.change_log(operations.end)
    show({"unfollowed": following.destination, "since": timestamp(following.since_ms)}, as_json=as_json)


@click.command(
    epilog=examples(
        "svc restore /var/backups/svc --data /var/lib/svc-restored",
        "svc restore /var/backups/svc --to 2h --data /var/lib/svc-restored",
    )
)
@click.argument("source", metavar="SRC", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "to_ms",
    type=TimestampType(),
    metavar="T",
    help="Restore the store as of this time: RFC 3339, or how long ago: 2h.",
)
@click.option(
    "--accept-loss", is_flag=True, help="Create it even if the backup ends before T, or before the last copied moment."
)
@verify_option
@file_option("restore a database with its own tools (docs/postgresql.md)")
@json_option
def restore(
    source: Path, to_ms: int | None, accept_loss: bool, verification: str, directory: Path, as_json: bool
) -> None:
    """Create a data directory from the backups in SRC, a folder that `svc backup` wrote to.

    \b
    SRC may also be a single snapshot, restored as taken or up to --to.
    The directory must be missing or empty. It appears once everything is verified.
    A backup that ends before T, or before the last copied moment, is refused.
    """  # noqa: D301  click reads \b as "leave these lines as they are"
    config, world = settings(), World.real()
    if not source.is_dir():
        raise CommandError(f"{source} is not a folder of backups; name one that `svc backup` wrote to")
    with ended_by_signals(), progress() as steps:
        restored = restore_store(
            source,
            directory,
            Restoring(to_ms, accept_loss, Verification(verification), config.pepper_path()),
            run_sync=world.run_sync,
            map_bytes=config.map_bytes(),
            steps=steps,
        )
    _show_restored(restored, directory, config, as_json=as_json)


def _show_restored(restored: Restored, directory: Path, config: Config, *, as_json: bool) -> None:
    torn = restored.torn
    shown: dict[str, Any] = {
        "data": str(directory),
        "snapshot": str(restored.snapshot.path),
        "restored_to": timestamp(restored.at_ms),
        "commits_after_snapshot": restored.batches,
        "copied_up_to": None if restored.copied is None else timestamp(restored.copied.at_ms),
        "lost_s": None if restored.is_unknown else 0 if restored.loss is None else restored.loss.short_s,
        "torn": None if torn is None else f"{torn.path} at byte {torn.end}",
        "pepper": restored.pepper,
    }
    show(shown, as_json=as_json)
    if restored.loss is not None:
        click.echo(f"\n{restored.loss.text}", err=True)
    if restored.is_unknown:
        click.echo(
            f"\nnothing in {restored.snapshot.path.parent} records how far the log was copied (older versions did "
            "not), so it is unknown whether its end is missing",
            err=True,
        )
    if torn is not None:
        click.echo(
            f"\n{torn.path} ends in {torn.bytes} bytes of a record that was never finished; they were left out",
            err=True,
        )
    if restored.pepper == "missing":
        expected = config.pepper_path() or directory / "pepper"
        click.echo(
            f"\nthe pepper is not there: until the one of the old machine is at {expected} (mode 0600) the service "
            "does not start, since no key would verify",
            err=True,
        )
