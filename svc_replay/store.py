"""The store that a replay runs in: opened for it at virtual time, with weights, rules and lists of files in force."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import blake3
import click
import msgspec

from svc.command.changes import apply
from svc.command.data_directory import opened_directory
from svc.command.output import CommandError, readable
from svc.features.lists.jobs import NewEntry, add_entries, create_list
from svc.features.lists.lists import FIRST_LISTS, LONGEST_NOTE, MAX_AT_ONCE, ListKind, canonical, is_list_name
from svc.features.lists.queries import lists_of, named_list
from svc.features.rules.command import read_ruleset, refused
from svc.features.rules.jobs import checked_rules, save_rules
from svc.features.rules.ruleset import FIRST, Rule
from svc.identify.queries import weights as weights_queries
from svc.identify.scoring.score import StoredWeights
from svc.identify.tables import WEIGHTS
from svc.identify.velocity.counts import KINDS
from svc.kernel.config import Config
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.files.ending import ended_by_signals
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import Platform
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.text_files import NotTextError, decode_text
from svc.kernel.values.timestamps import read_timestamp
from svc.world import World

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

FIRST_TIME_MS = 1_767_225_600_000
"""2026-01-01T00:00:00Z: when a file without times begins."""
STEP_MS = 1000
"""A report without a time arrives this long after the one before it."""
ALONE = "a replay and a service would overwrite what the other has learned about devices"
"""Why a replay into a data directory runs alone."""


class _Entry(msgspec.Struct, frozen=True):
    value: str
    note: str = ""
    expires_at: str | None = None


class _List(msgspec.Struct, frozen=True):
    """A list as `svc list export --json` writes it."""

    name: str
    kind: ListKind
    entries: tuple[_Entry, ...]


class TriedList(NamedTuple):
    """A list of a file, checked."""

    name: str
    kind: ListKind
    entries: tuple[NewEntry, ...]


class Tried(NamedTuple):
    """What is tried: rules in their order, with the lists that they look up."""

    path: Path
    rules: tuple[Rule, ...]
    lists: tuple[TriedList, ...]


def read_tried(path: Path, list_paths: tuple[Path, ...]) -> Tried:
    """Read rules and lists from files. Raises `CommandError` with what is wrong, and where."""
    file = read_ruleset(str(path), path.read_bytes())
    rules = tuple(file.rule(at, f"rul_{at:020}") for at in range(len(file.rules)))
    return Tried(path, rules, tuple(_read_list(one) for one in list_paths))


def _read_list(path: Path) -> TriedList:
    try:
        found = msgspec.json.decode(decode_text(path.read_bytes()), type=_List)
    except NotTextError as error:
        raise CommandError(f"{path} {error}") from None
    except msgspec.DecodeError as error:
        raise CommandError(f"{path}: {error}; write a file as `svc list export ORG NAME --json` does") from None
    if not is_list_name(found.name) or FIRST_LISTS.get(found.name, found.kind) != found.kind:
        raise CommandError(f"{path}: {found.name!r} is not a name for a list of kind {found.kind}")
    return TriedList(found.name, found.kind, tuple(_read_entry(path, found, at) for at in range(len(found.entries))))


def _read_entry(path: Path, of: _List, at: int) -> NewEntry:
    entry = of.entries[at]
    value = canonical(of.kind, entry.value)
    expires_at_ms = None if entry.expires_at is None else read_timestamp(entry.expires_at)
    if value is None or (entry.expires_at is not None and expires_at_ms is None) or len(entry.note) > LONGEST_NOTE:
        raise CommandError(f"{path}: entries[{at}] is not an entry of kind {of.kind}: {readable(entry.value)}")
    return NewEntry(value, entry.note, expires_at_ms)


def rules_options(command: F) -> F:
    """Add `--rules` and `--list`; the command gets what they read as `tried`, `None` without rules."""

    @wraps(command)
    def given(*arguments: Any, rules_file: Path | None, list_files: tuple[Path, ...], **rest: Any) -> Any:
        if list_files and rules_file is None:
            raise click.UsageError("--list goes with --rules")
        return command(*arguments, tried=None if rules_file is None else read_tried(rules_file, list_files), **rest)

    file = click.Path(exists=True, dir_okay=False, path_type=Path)
    rules = click.option(
        "--rules",
        "rules_file",
        type=file,
        metavar="FILE",
        help="Decide by these, as `svc rule export` writes them, and compare with what was decided.",
    )
    lists = click.option(
        "--list",
        "list_files",
        type=file,
        metavar="FILE",
        multiple=True,
        help="With --rules: a list that they look up, as `svc list export --json` writes it. The others are empty.",
    )
    wrapped: Any = rules(lists(given))
    return wrapped


def put_weights(transaction: Transaction, number: int, weights: dict[Platform, StoredWeights]) -> None:
    """Make these configurations those of an organization."""
    for platform, stored in weights.items():
        transaction.put(WEIGHTS, weights_queries.weights_key(number, None, platform), stored)


def put_in_force(found: Opened, number: int, tried: Tried) -> None:
    """Make lists and rules those of an organization without any. Raises `CommandError` for rules that may not be saved,
    with the place of each fault.
    """
    for one in tried.lists:
        entries = one.entries
        for start in range(0, max(len(entries), 1), MAX_AT_ONCE):
            some = entries[start : start + MAX_AT_ONCE]
            apply(found, partial(_put_list, number=number, of=one, entries=some))
    apply(found, partial(_put_rules, number=number, tried=tried))


def _put_list(transaction: Transaction, number: int, of: TriedList, entries: tuple[NewEntry, ...]) -> None:
    """Add a list as of the beginning of time: entries that have expired since were there when the events arrived."""
    known = named_list(transaction, number, of.name)
    if known is None:
        list_id = f"lst_{len(lists_of(transaction, number)):020}"
        known = _done(of, create_list(transaction, number, list_id, of.name, of.kind, now_ms=0))
    _done(of, add_entries(transaction, number, known.id, entries, now_ms=0))


def _done(of: TriedList, outcome: T | Refusal) -> T:
    if isinstance(outcome, Refusal):
        raise CommandError(f"list {of.name}: {outcome.message}")
    return outcome


def _put_rules(transaction: Transaction, number: int, tried: Tried) -> None:
    for kind in KINDS:
        refusal = checked_rules(transaction, number, kind, [(None, rule) for rule in tried.rules])
        if refusal is not None:
            raise refused(str(tried.path), refusal)
        save_rules(transaction, number, kind, FIRST.revision, tried.rules, "svc replay", 0)


class VirtualClock:
    """The clock of a replay: it shows the time of the present line."""

    def __init__(self) -> None:
        self.now_ms = FIRST_TIME_MS - STEP_MS

    def elapsed_s(self) -> float:
        """Return the seconds that have passed: as many as the lines say."""
        return self.now_ms / 1000


class TimesInAnyOrder(list[float]):
    """The memory of a replay's clock (`ClockMemory`): no last write is ever in it. A line that is older than the one
    before, or than the store, is of its own time, and no clock that was set back (decisions 17.3).
    """

    def __init__(self) -> None:
        super().__init__((0.0, 0.0))

    def __setitem__(self, index: Any, value: Any) -> None:
        super().__setitem__(index, 0.0 if index == 1 else value)


@contextmanager
def opened_for_replay(directory: Path | None, config: Config) -> Generator[tuple[Opened, World, VirtualClock]]:
    """Open, in a `with` block, a temporary store with reproducible ids, or the named directory with real ones, but
    never the service's database.
    """
    clock = VirtualClock()
    config = msgspec.structs.replace(config, store=None)
    if directory is not None:
        real = World.real()
        world = World(lambda: clock.now_ms, real.entropy, _inline, elapsed_s=clock.elapsed_s)
        files.make_folder(directory)
        with (
            sole_process(directory, "svc replay", real.now_ms, reason=ALONE),
            opened_directory(directory, config, world) as found,
        ):
            yield found, world, clock
        return
    world = World(lambda: clock.now_ms, _reproducible(), _inline, elapsed_s=clock.elapsed_s)
    folder = files.temporary_folder()
    with ended_by_signals(), tempfile.TemporaryDirectory(prefix="svc-replay-", dir=folder) as temporary:
        found = open_directory(Path(temporary), world.run_sync, world.entropy, durable=False)
        try:
            yield found, world, clock
        finally:
            found.store.close()


def _reproducible() -> Callable[[int], bytes]:
    """Return a source of bytes that are the same in every run: the store they go to is thrown away."""
    stream = blake3.blake3(b"svc replay")
    position = 0

    def entropy(count: int) -> bytes:
        nonlocal position
        position += count
        return stream.digest(count, seek=position - count)

    return entropy


async def _inline(function: Callable[[], T], /, **_: object) -> T:
    """Call the function without a thread: nothing else runs meanwhile, and the order is the file's."""
    return function()
