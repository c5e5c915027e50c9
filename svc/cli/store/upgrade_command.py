"""`svc upgrade`: the store at this program's version without serving it, and a downloaded release tried on a copy."""

from __future__ import annotations

import os
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

import svc
from svc.cli.store.upgrade import LoggedSteps, upgrade_where_needed
from svc.command.data_directory import database_of
from svc.command.help import examples
from svc.command.output import (
    CommandError,
    directory_option,
    json_option,
    no_directory,
    progress,
    settings,
    show,
    store_option,
)
from svc.features.upgrade import upgrade as upgrading
from svc.features.upgrade.release import (
    SUMS,
    Downloaded,
    Program,
    StoreVersions,
    own_versions,
    program_for,
    read_release,
    verify,
    versions_in_wheel,
)
from svc.features.upgrade.trial import Timing, Trial, TrialError, Upgrading, trial
from svc.kernel.config import Config
from svc.kernel.store.directory import NO_STORE, refuse_without_data
from svc.kernel.store.engine import EngineError
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.installation import refuse_newer
from svc.kernel.store.opening import engine_at, open_store, version_of
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.values.errors import DirectoryError
from svc.world import World, elapsed_s

LARGE_TEMPORARY_FILES = "/var/tmp"  # noqa: S108  the copy lies in a folder below it that `mkdtemp` makes
_REASON = "nobody else may write to a store that is being upgraded"


@click.command(
    epilog=examples(
        "svc upgrade --check ~/download/SHA256SUMS --data /var/lib/svc",
        "svc upgrade --check ~/download --scratch /mnt/large --data /var/lib/svc",
        "svc upgrade --data /var/lib/svc",
        "svc upgrade --versions",
    )
)
@click.option(
    "--check",
    "sums",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help=f"The {SUMS} of a downloaded release, or the folder with it: whether that release can serve this store.",
)
@click.option(
    "--scratch",
    metavar="DIR",
    type=click.Path(file_okay=False, path_type=Path),
    help="With --check: the folder for the copy of the store, instead of TMPDIR or /var/tmp.",
)
@click.option("--versions", is_flag=True, help="Print which versions of the store this program can serve.")
@click.option("--no-snapshot", is_flag=True, help="Upgrade without copying the store first.")
@directory_option("The data directory.")
@store_option
@json_option
def upgrade(
    sums: Path | None, scratch: Path | None, versions: bool, no_snapshot: bool, directory: Path | None, as_json: bool
) -> None:
    """Upgrade the store to this program's version without serving it, as `svc serve` does before it serves.

    With --check nothing is upgraded. The files of a downloaded release are compared with its SHA256SUMS. Its executable
    for this machine then upgrades and checks a copy of the store, made as `svc backup` makes one, while the service
    goes on. It gets neither the settings nor the pepper of the service. Nothing is fetched or sent. Exit status 0: the
    release can serve this store; 1: it cannot, for the reason given.

    The copy takes three times the space of the store. The time means something on a disk like that of the service,
    where programs may run (no noexec). The copy is removed at the end; what a killed trial left, the next one removes.

    A wheel is read and not run: it says whether, not how long. A store that needs no upgrade is not copied, and a
    database never is: for the time, restore a dump into another database, and run the upgrade of the new program on
    it. Ask that program about your settings, too: `svc config check`.
    """
    if (sums is not None) + versions + no_snapshot > 1:
        raise click.UsageError("name one of --check, --versions and --no-snapshot")
    if scratch is not None and sums is None:
        raise click.UsageError("--scratch is for --check")
    if versions:
        show({"program": svc.__version__, **msgspec.structs.asdict(own_versions())}, as_json=as_json)
        return
    config = settings()
    database = database_of(config)
    if database is None and directory is None:
        raise no_directory()
    location = database or directory or Path()
    if sums is not None:
        _check(sums, scratch, location, config, as_json=as_json)
        return
    done = _upgrade(location, config, copy=not no_snapshot)
    show(msgspec.structs.asdict(done), as_json=as_json)
    if not as_json and done.store_version_before == done.store_version:
        click.echo("\nthe store has this program's version: nothing was upgraded")


def _upgrade(location: Path | StoreUrl, config: Config, *, copy: bool) -> Upgrading:
    """Upgrade a store where it is older. Raises what opening it to be served raises."""
    world, began_at = World.real(), elapsed_s()
    newest = own_versions().store_version
    before = _version_at(location)
    refuse_newer(before, newest)
    kept: Path | None = None
    if before < newest and isinstance(location, Path):
        with sole_process(location, "svc upgrade", world.now_ms, reason=_REASON):
            done = upgrade_where_needed(location, config, world, copy=copy)
        kept = None if done is None else done.copy
    elif before < newest:
        try:
            open_store(location, world.run_sync, steps=LoggedSteps()).close()
        except EngineError as error:
            raise DirectoryError(f"cannot upgrade {location}: {error}") from error
    return Upgrading(before, newest, None if kept is None else str(kept), round(elapsed_s() - began_at, 2))


def _version_at(location: Path | StoreUrl) -> int:
    """Return the version of the store in a data directory or a database. Raises `DirectoryError` if there is none."""
    if isinstance(location, Path):
        refuse_without_data(location)
        opened = partial(upgrading.open_as_it_is, location / "store")
    else:
        opened = partial(engine_at, location)
    try:
        with closing(opened()) as engine:
            version = version_of(engine)
    except EngineError as error:
        raise DirectoryError(f"{location} cannot be read as a store: {error}") from error
    if not version:
        raise DirectoryError(NO_STORE.format(location))
    return version


def _check(sums: Path, scratch: Path | None, location: Path | StoreUrl, config: Config, *, as_json: bool) -> None:
    version = _version_at(location)
    release = read_release(sums)
    downloaded = verify(release)
    program = program_for(os.uname().machine, release, downloaded)
    shown = _shown_first(program, downloaded, version)
    timing = None
    if not program.is_executable:
        versions: StoreVersions = versions_in_wheel(release, program)
        refusal = versions.refusal(version, program.version)
    else:
        with ended_by_signals(), trial(_scratch(scratch, location), config.map_gib) as trying:
            shown["left_behind"] = trying.left_behind
            versions = trying.install(release, program)
            refusal = versions.refusal(version, program.version)
            if refusal is None and version < versions.store_version and isinstance(location, Path):
                timing, refusal = _tried(trying, location / "store", versions)
    shown |= {
        "release_store_version": versions.store_version,
        "release_oldest_store_version": versions.oldest_store_version,
        "upgrade": "needed" if version < versions.store_version else "not needed",
        "can_serve": refusal is None,
        "reason": refusal,
    }
    shown |= _shown_times(timing)
    show(shown if as_json else _for_people(shown), as_json=as_json)
    if refusal is not None:
        raise CommandError(f"{program.version} cannot serve this store: {refusal}")
    if not as_json:
        click.echo(f"\n{_conclusion(program, location, timing, needed=version < versions.store_version)}")


def _for_people(shown: dict[str, Any]) -> dict[str, Any]:
    """Return what there is to say; whether the release can serve the store is the last line."""
    last = ("can_serve", "reason", "executed")
    return {name: value for name, value in shown.items() if name not in last and value not in (None, [])}


def _tried(trying: Trial, store: Path, versions: StoreVersions) -> tuple[Timing | None, str | None]:
    """Return what was measured on a copy, or why the upgrade failed there."""
    with progress() as steps:
        try:
            return trying.upgrade(store, versions, steps), None
        except TrialError as error:
            return None, str(error)


def _scratch(given: Path | None, location: Path | StoreUrl) -> Path:
    """Return the folder for the copy: on a disk by default, where /tmp may be memory. Raises `CommandError`."""
    folder = given or Path(os.environ.get("TMPDIR") or LARGE_TEMPORARY_FILES)
    if not folder.is_dir():
        raise CommandError(f"{folder} is not a folder: name one for the copy with --scratch")
    if isinstance(location, Path) and folder.resolve().is_relative_to(location.resolve()):
        raise CommandError(f"{folder} is inside the data directory: name another folder with --scratch")
    return folder


def _shown_first(program: Program, downloaded: Downloaded, version: int) -> dict[str, Any]:
    return {
        "release": program.version,
        "verified": list(downloaded.verified),
        "not_downloaded": list(downloaded.missing),
        "program": program.file,
        "executed": program.is_executable,
        "left_behind": [],
        "store_version": version,
    }


def _shown_times(timing: Timing | None) -> dict[str, Any]:
    return {
        "copy_bytes": None if timing is None else timing.bytes,
        "copy_seconds": None if timing is None else round(timing.copy_s, 2),
        "upgrade_seconds": None if timing is None else round(timing.upgrade_s, 2),
        "check_seconds": None if timing is None else round(timing.check_s, 2),
    }


def _conclusion(program: Program, location: Path | StoreUrl, timing: Timing | None, *, needed: bool) -> str:
    if not needed:
        return f"{program.version} can serve this store as it is: nothing is upgraded"
    if timing is not None:
        took = f"{timing.upgrade_s:.1f} s" if timing.upgrade_s >= 0.1 else "less than 0.1 s"
        return (
            f"{program.version} can serve this store. Its upgrade took {took} on a copy of "
            f"{-(-timing.bytes >> 20)} MiB: the first start takes that much longer"
        )
    if not isinstance(location, Path):
        because = "a database is not copied; try it on a restored dump with the new `svc upgrade`"
    else:
        because = "a wheel is only read; download the executable of this release as well to try it on a copy"
    return f"{program.version} can serve this store after an upgrade. How long that takes is not known: {because}"
