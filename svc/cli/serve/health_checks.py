"""What `svc doctor` looks at, one function for each line that it prints.

What may live here: checks that change nothing in the data directory. A check returns a `Finding`; what it cannot find
out is a warning.
"""

from __future__ import annotations

import ctypes
import http.client
import os
import shutil
import ssl
import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args
from urllib.parse import urlsplit

import msgspec
import trio

from svc.cli.serve.config_check import mistakes
from svc.cli.store.data import network_in_use
from svc.command.data_directory import database_of, reading_directory
from svc.command.local_service import identify_sample, local_url
from svc.command.output import CommandError
from svc.features.keys.command import issue_key
from svc.features.organizations.command import create_organization
from svc.http.server.listening import open_sockets
from svc.http.server.server import open_listeners
from svc.kernel.config import Config, ConfigError
from svc.kernel.net.addresses import read_bind
from svc.kernel.store.directory import (
    AFTER_LOSS,
    STORE_LOST,
    Opened,
    find_pepper,
    has_lost_store,
    has_store,
    last_write_ms,
    open_directory,
    pepper_mark,
    refused_modes,
    risky_modes,
)
from svc.kernel.store.engine import EngineError
from svc.kernel.store.files import durable_files
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.files.serve_lock import holder_of
from svc.kernel.store.lmdb import witness
from svc.kernel.store.reading import OlderFileError
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.tables import META
from svc.kernel.values.errors import OperatorError
from svc.kernel.values.timestamps import utc
from svc.serve.service import Service
from svc.serve.service_parts import openid_provider
from svc.serve.serving import listen, read_tls
from svc.world import World, elapsed_s

Status = Literal["ok", "warning", "problem"]

LOW_BYTES = 1 << 30
CRITICAL_BYTES = 128 << 20
"""Free space at which a disk is short, and at which nothing can be relied on."""
EXPIRES_SOON = timedelta(days=14)
FULL_SHARE = 0.8
BEGIN = "run `svc dev`, or create an organization with `svc org create NAME`"
"""What to do where there is nothing yet."""
UNREADABLE = (OperatorError, EngineError, CorruptionError, OSError)  # what reading a store may raise
UNSYNCHRONIZED = 5
"""TIME_ERROR of adjtimex(2)."""


class Finding(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a check found: one line of the result."""

    status: Status
    says: str
    do: str = ""
    """What to do next; empty where nothing is to be done."""


_ok, _warning, _problem = (partial(Finding, status) for status in get_args(Status))


class Examined(NamedTuple):
    """The settings, data directory and service that the checks examine."""

    directory: Path
    file: Path | None
    """Of settings."""
    config: Config
    url: str | None
    """Where the running service is; at its `bind` when `None`."""
    world: World
    is_named: bool = False
    """Whether somebody named the directory, so that it should be there."""


def settings_file(file: Path | None) -> Finding:
    """Check whether a service would start with the settings of the file and the variables; a problem names the first
    mistake.
    """
    found = list(mistakes(file, os.environ))
    if found:
        says = f"{len(found)} mistakes, the first: {found[0].where}: {found[0].problem}"
        return _problem(says, "run `svc config check`, which lists all of them")
    return _ok(f"valid ({file or 'no file'}, and SVC_* variables)")


def permissions(examined: Examined) -> Finding:
    """Check that this user, and nobody else, can use the data directory. Return a problem if files are not readable and
    writable or a named directory is missing, and a warning if there is no directory yet or others can read the pepper.
    """
    directory = examined.directory
    if not directory.exists():
        parent = next(folder for folder in directory.absolute().parents if folder.exists())
        if not os.access(parent, os.W_OK | os.X_OK):
            return _problem(f"{directory} cannot be made", f"make {parent} writable")
        return (_problem if examined.is_named else _warning)(f"{directory} is not there", BEGIN)
    if (unusable := _unusable_file(directory, examined.config.pepper_path() or directory / "pepper")) is not None:
        return unusable
    if refused := refused_modes(directory, examined.config.pepper_path()):
        says, _, do = refused[0].partition(": ")
        return _problem(says, do)
    risks = risky_modes(directory, examined.config.pepper_path())
    if risks:
        says, _, do = risks[0].partition(": ")
        return _warning(says, do)
    return _ok(f"{directory} is readable and writable, and the pepper is private")


def _unusable_file(directory: Path, pepper: Path) -> Finding | None:
    folder = directory / "store"
    written = (directory, folder, folder / "data.mdb", folder / "lock.mdb", directory / "serve.lock")
    for path in filter(Path.exists, (*written, pepper)):
        if path != pepper and os.statvfs(path).f_flag & os.ST_RDONLY:
            do = "look into dmesg for the reason, then remount it: mount -o remount,rw"
            return _problem(f"{path} is on a file system that is mounted read-only", do)
        needed = os.R_OK | (os.W_OK if path != pepper else 0) | (os.X_OK if path.is_dir() else 0)
        if not os.access(path, needed):
            owner = f"it belongs to user {path.stat().st_uid}, and this is user {os.getuid()}"
            do = "run this command and the service as its owner, or change the owner with chown -R"
            return _problem(f"{path} cannot be read{' and written' * (path != pepper)}: {owner}", do)
        if path.is_dir() and (refused := durable_files.refused(path)) is not None:
            return _problem(f"no file can be written in {path}: {refused.strerror}", "look into dmesg for the reason")
    return None


FREE_SPACE = "raise map_gib, or delete archives with `svc org drop-documents`"


def store(examined: Examined) -> Finding:
    """Check that the store is readable, belongs to this pepper and, if it is a local file, has free space. Return a
    problem if the pepper exists and the store does not.
    """
    directory, config, began_at = examined.directory, examined.config, elapsed_s()
    in_database = config.store is not None
    if not in_database and not has_store(directory):
        return _without_store(directory)
    try:
        pepper = find_pepper(directory, config.pepper_path(), with_store=not in_database)
        with reading_directory(directory, config) as opened, opened.read() as snapshot:
            mark, used = snapshot.get(META, "pepper_mark"), opened.used_bytes
        own_mark = pepper_mark(pepper.read_bytes())
    except UNREADABLE as error:
        return _unread(error, in_database=in_database)
    if mark not in (None, own_mark):
        return _problem(f"{pepper} is the pepper of another store", "put the right pepper there")
    if in_database:
        took_ms = 1000 * (elapsed_s() - began_at)
        return _ok(f"{database_of(config)} responded in {took_ms:.0f} ms, {size_of(used)} in use")
    share = used / config.map_bytes()
    says = f"readable, {size_of(used)} of map_gib {config.map_gib:g} GiB in use"
    if (went_back := witness.went_back(directory / "store")) is not None:
        return _problem(went_back, "restore a backup (docs/backup.md), or go on with what is there")
    return _warning(says, FREE_SPACE) if share > FULL_SHARE else _ok(says)


def _without_store(directory: Path) -> Finding:
    if has_lost_store(directory):
        return _problem(STORE_LOST.format(directory), AFTER_LOSS)
    return _warning(f"{directory} has no store yet", BEGIN)


def _unread(error: Exception, *, in_database: bool) -> Finding:
    if isinstance(error, OlderFileError):
        return _warning(str(error), "take a backup with the older program first (docs/upgrading.md)")
    in_file = "`svc check` examines it; docs/runbook.md describes recovery"
    return _problem(str(error), "docs/postgresql.md says what a database needs" if in_database else in_file)


def lock_and_service(examined: Examined) -> Finding:
    """Check which process holds the data directory and whether it responds, or whether a service could listen. A node
    of a database holds no directory, so it is asked.
    """
    holder = holder_of(examined.directory) if examined.directory.exists() else None
    config = examined.config
    runs = holder or "a service"
    if holder is None and examined.url is None and config.store is None:
        return _could_listen(config)
    url = examined.url or local_url(config, examined.directory)
    try:
        status, response = _get(url, "/readyz")
    except (OSError, http.client.HTTPException, ValueError) as error:
        if holder is None and examined.url is None:
            return _could_listen(config)
        says = f"{url} does not respond: {error}"
        says = says if holder is None else f"{holder} holds the directory, and {says}"
        return _warning(says, "name where it listens with --url")
    if status != http.HTTPStatus.OK:
        return _problem(f"{runs} runs and is not ready: {response}", "read its log")
    return _ok(f"{runs} is ready at {url}")


def _could_listen(config: Config) -> Finding:
    binds = {"--bind": config.bind, "--metrics-bind": config.metrics_bind}
    for option, bind in binds.items():
        try:
            for opened in open_sockets(bind, backlog=1) if bind else ():
                opened.close()
        except OSError as error:
            says = f"no service runs on the directory, and none could listen on {bind}: {error.strerror or error}"
            return _problem(says, f"end the program that listens there, or choose another with {option}")
    return _ok(f"no service runs on the directory; one could listen on {' and '.join(filter(None, binds.values()))}")


def _get(url: str, path: str) -> tuple[int, str]:
    parts = urlsplit(url)
    if parts.scheme == "https":
        unverified = ssl.create_default_context()  # it is this machine's own service, by any name
        unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
        connection = http.client.HTTPSConnection(parts.netloc, timeout=5, context=unverified)
    elif parts.scheme == "http":
        connection = http.client.HTTPConnection(parts.netloc, timeout=5)
    else:
        raise ValueError("not an http or https URL")
    with closing(connection):
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read(4096).decode(errors="replace")


def network_data(examined: Examined) -> Finding:
    """Check whether addresses can be looked up: a problem without data or with a broken file, a warning
    for old data.
    """
    config = examined.config
    try:
        built_in, folder, reading, found = network_in_use(config, examined.directory)
    except CommandError as error:
        return _problem(str(error), "make the folder readable")
    broken = [name for name, entry in reading.items() if entry.problem is not None]
    if broken:
        says = f"{', '.join(sorted(broken))} in {folder} cannot be used"
        return _problem(says, "`svc data status` says why; replace or remove it")
    today = utc(examined.world.now_ms()).date()
    sources = f"{len(reading)} files, built-in ranges {'off' if built_in is None else 'on'}"
    match found.state(today, config.network_stale_days):
        case "missing":
            says = "there is none: every identification is unavailable, and free"
            return _problem(says, "run `svc data update`, or set network_builtin")
        case "stale":
            says = f"older than {config.network_stale_days} days ({sources})"
            return _warning(says, "run `svc data update`; `svc data status` shows which")
        case "ok":
            if not reading:
                says = "built-in ranges only: countries and networks are unknown"
                return _warning(says, "run `svc data update`")
            return _ok(sources)


def clock(examined: Examined, synchronized: Callable[[], bool]) -> Finding:
    """Check whether the clock agrees with the last write to the store, or the database's, and is kept by something."""
    now_ms = examined.world.now_ms()
    says = f"{utc(now_ms):%Y-%m-%d %H:%M:%S} UTC"
    if (written_ms := last_write_ms(examined.directory)) is not None:
        behind_s = (written_ms - now_ms) / 1000
        if behind_s > 5:
            says += f", which is {behind_s:.0f} s before the last write to the store"
            return _problem(says, "set the clock; ids, retention and webhooks depend on it")
    if (far := _far_from_database(examined)) is not None:
        offset_s, do = far
        says += f", {abs(offset_s):.0f} s {'ahead of' if offset_s > 0 else 'behind'} the database's clock"
        return _problem(says, do)
    if not synchronized():
        do = "start an NTP client (chrony, systemd-timesyncd) here, or on the host of this container"
        return _warning(f"{says}; the kernel says that nothing synchronizes it", do)
    return _ok(f"{says}, synchronized")


def _far_from_database(examined: Examined) -> tuple[float, str] | None:
    """Return the seconds by which the clock is far from the database's, and what to do. Return `None` if it is not, if
    there is no database, or if it does not respond, which the check of the store says.
    """
    try:
        url = database_of(examined.config)
        if url is None:
            return None
        from svc.kernel.store.postgresql.cluster.leases import FAR_S, NEXT_STEP, offset_now_s  # noqa: PLC0415  it loads the driver

        offset_s = offset_now_s(url, examined.world.now_ms)
    except (OperatorError, EngineError, OSError):
        return None
    return (offset_s, NEXT_STEP) if abs(offset_s) >= FAR_S else None


def kernel_clock_is_synchronized() -> bool:
    """Return whether the kernel says that an NTP client synchronizes the clock (adjtimex(2)); true if it cannot be
    asked.
    """
    try:
        return ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(512)) != UNSYNCHRONIZED
    except (OSError, AttributeError):
        return True


def disk(examined: Examined) -> Finding:
    """Check the free space of the disk: a warning below `LOW_BYTES`, a problem below `CRITICAL_BYTES`."""
    directory = examined.directory.absolute()
    usage = shutil.disk_usage(next(path for path in (directory, *directory.parents) if path.exists()))
    says = f"{size_of(usage.free)} of {size_of(usage.total)} free"
    do = "free some space, or move the data directory to a larger disk"
    if usage.free < CRITICAL_BYTES:
        return _problem(says, do)
    return _warning(says, do) if usage.free < LOW_BYTES else _ok(says)


def tls(examined: Examined) -> Finding:
    """Check whether the certificate of the settings can be used now: a warning where it expires within `EXPIRES_SOON`,
    and for plain HTTP that other machines reach.
    """
    config = examined.config
    try:
        certificate = read_tls(config)
    except ConfigError as error:
        return _problem(error.line, "correct the files, then start the service or send it SIGHUP")
    if certificate is None:
        host, _ = read_bind(config.bind)
        if host in ("127.0.0.1", "::1", "localhost"):
            return _ok(f"plain HTTP on {config.bind}, which only this machine reaches")
        do = "end TLS in a reverse proxy before it, or set tls_certfile and tls_keyfile (docs/tls.md)"
        return _warning(f"plain HTTP on {config.bind}, which other machines may reach", do)
    now = utc(examined.world.now_ms())
    says = f"{config.tls_certfile} is valid until {certificate.not_after:%Y-%m-%d}"
    if not certificate.is_valid(now):
        valid = f"from {certificate.not_before:%Y-%m-%d} to {certificate.not_after:%Y-%m-%d}"
        says = f"{config.tls_certfile} is not valid now, but {valid}"
        return _problem(says, "renew it, then send the service SIGHUP")
    soon = certificate.not_after - now < EXPIRES_SOON
    return _warning(says, "renew it, then send the service SIGHUP") if soon else _ok(says)


def sign_in(examined: Examined) -> Finding:
    """Check that the organization of the OpenID provider is in the store, and that its secret can be read."""
    config = examined.config
    if config.console_oidc_issuer is None:
        return _ok("members sign in with a password; the settings name no OpenID provider")
    if config.store is None and not has_store(examined.directory):
        return _without_store(examined.directory)
    try:
        with reading_directory(examined.directory, config) as opened:
            provider = openid_provider(config, opened)
    except ConfigError as error:
        return _problem(error.line, "correct the setting, or `svc org list` for the ids of organizations")
    except UNREADABLE as error:
        return _unread(error, in_database=config.store is not None)
    if provider is None:
        says = f"nobody signs in by {config.console_oidc_issuer}: {config.console_oidc_organization} was removed"
        return _warning(says, "remove the settings console_oidc_*, or name another organization")
    return _ok(f"members of {config.console_oidc_organization} sign in by {config.console_oidc_issuer}, too")


def identification(examined: Examined) -> Finding:
    """Send a sample report through the whole service, with these settings and network data, on a store that is thrown
    away.
    """
    own = {"log_requests": "none", "try_key": None, "console_oidc_issuer": None}  # these name what that store lacks
    config = msgspec.structs.replace(examined.config, **own)
    world = examined.world
    folder = durable_files.temporary_folder()
    with ended_by_signals(), tempfile.TemporaryDirectory(prefix="svc-doctor-", dir=folder) as temporary:
        found = open_directory(Path(temporary), world.run_sync, world.entropy, durable=False)
        try:
            response, took_ms = _identified(found, examined._replace(config=config))
        except (CommandError, OperatorError, OSError) as error:
            return _problem(str(error), "read the log lines above")
        finally:
            found.store.close()
    visitor, score = response["visitor_id"], response["suspect_score"]
    return _ok(f"a sample report gave visitor {visitor}, score {score}, in {took_ms} ms")


def _identified(found: Opened, examined: Examined) -> tuple[dict[str, Any], int]:
    config, world = examined.config, examined.world
    organization = create_organization(found, world, "svc doctor", credit=10**6)
    _, secret = issue_key(
        found,
        world,
        organization=organization.number,
        region=config.region,
        kind="secret",
        name="svc doctor",
        environment="development",
    )
    service = Service(config, world, found, examined.directory)  # whose network files it reads

    async def identify() -> tuple[dict[str, Any], int]:
        shutdown = trio.Event()
        async with trio.open_nursery() as nursery:
            edge = await nursery.start(partial(service.run, open_listeners(listen("127.0.0.1:0")), shutdown))
            host, port = edge.addresses[0]
            send = partial(identify_sample, f"{host}:{port}", secret, "first_visit")
            await trio.to_thread.run_sync(send)  # the first one loads the patterns of user agents
            began = trio.current_time()
            response = await trio.to_thread.run_sync(send)
            took_ms = round(1000 * (trio.current_time() - began))
            shutdown.set()
        return response, took_ms

    return trio.run(identify)


def size_of(count: float) -> str:
    """Return a number of bytes as people read it: "22 KiB"."""
    for unit in ("bytes", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


CHECKS: dict[str, Callable[[Examined], Finding]] = {
    "permissions": permissions,
    "service": lock_and_service,
    "store": store,
    "network data": network_data,
    "clock": partial(clock, synchronized=kernel_clock_is_synchronized),
    "disk": disk,
    "tls": tls,
    "sign-in": sign_in,
    "identification": identification,
}
"""Every check in the order in which it makes sense to read them; they need valid settings."""
