"""Bit rot: bits of a store's file flipped, or a page not written, and every row in it read again by the real code.

Each state is a copy of one store with some bits flipped, opened in a process of its own beside the intact one, as
`svc serve` opens it. Every row is asked for by its key, every table is walked, pages of events are listed, and the
pages and rules of `svc check` are held against it. A row that reads as something else, or as nothing, without an error
is a wrong result. Where only another read or `svc check` tells of it, who asked for it alone has not heard: such
results are counted by table and printed, and only those of which nothing tells at all fail the run.

    python -m bench.rot [--states 2000] [--seed 1] [--days 2] [--where anywhere|structure|lost] [--unchecked]

`structure`: one bit of what leads to the rows (numbers of pages, lists of them, roots). `lost`: a page of the last
identification that the disk has not written. `--unchecked`: as if `svc serve` did not check the pages first.
"""

from __future__ import annotations

import logging
import random
import shutil
import struct
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import msgspec
import structlog
import trio

from bench.apart import Apart
from bench.retention import EPOCH_MS, Months
from bench.usage import read_options
from svc.features.checks.invariants import violations
from svc.features.keys.command import issue_key
from svc.features.tables import TABLES
from svc.features.webhooks.jobs.endpoints import NewEndpoint, create_endpoint
from svc.identify.events.archive import deflate
from svc.identify.events.listing import LEVELS, Filters, Listing
from svc.identify.queries import events
from svc.identify.recording.visitors import counted
from svc.identify.tables import DOCUMENTS, EVENTS
from svc.kernel.store.directory import Opened, open_directory
from svc.kernel.store.engine import CheckDepth
from svc.kernel.store.schema.codec import CorruptionError
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.jobs import keep
from svc.kernel.values.errors import DirectoryError
from svc.kernel.values.ids import DAY_MS
from svc.world import World

PAGE = 4096
META_BYTES = 152
"""Of each of the first two pages: header, sizes, roots, the number of the commit."""
MAP_BYTES = 1 << 28
BEFORE = "before.mdb"
REFUSALS = (DirectoryError.__name__, CorruptionError.__name__)
Turn = Callable[[bytes, random.Random], bytes]
"""Damages a file."""


class Found(NamedTuple):
    """What one damaged store came to."""

    wrong: list[str]
    """Rows that read as something else or as nothing, and lists that are not what they were."""
    errors: list[str]
    """What reading them raised."""
    told: list[str]
    """What the rules of `svc check` say."""


class Outcome(NamedTuple):
    """What many came to."""

    ways: Counter[str]
    untold: list[str]
    """Wrong answers of which nothing says a word."""
    wrong: list[str]
    """Wrong results of which another read or `svc check` tells, and they do not themselves."""
    of: Counter[str]
    """Those by what was asked: each once in a state."""


def make(directory: Path, days: int, visits_an_hour: int = 4) -> Path:
    """A store with something in every large table; its file. `BEFORE` beside it is the file before the last
    identification.
    """
    months = Months(directory, visits_an_hour=visits_an_hour, devices=60)
    world = World.real()
    for kind in ("management", "public", "secret"):
        environment = None if kind == "management" else "production"
        issue_key(
            months.found, world, organization=1, kind=kind, name=kind, environment=environment, region="us",
            role="admin" if kind == "management" else None,
            platforms=("web",) if kind == "public" else (),
            allowed_origins=("https://shop.example",) if kind == "public" else (),
        )  # fmt: skip
    new = NewEndpoint(
        id="whk_" + "A" * 20,
        url="https://127.0.0.1/hook",
        description="",
        environment="live",
        events=("identification.completed",),
    )
    months.found.store.write_now([partial(create_endpoint, number=1, new=new, secrets_key=b"k" * 32, now_ms=EPOCH_MS)])
    trio.run(partial(months.run, days))
    for _ in range(2):  # the second time leaves the pages of the first behind, whole and out of date
        months.found.store.write_now([partial(_enlarge, noise=World.real().entropy)])
    file = directory / "store" / "data.mdb"
    shutil.copy(file, directory / BEFORE)
    months.visit()
    months.found.store.close()
    return file


def _enlarge(transaction: Transaction, noise: Callable[[int], bytes]) -> None:
    """Documents of such a size that LMDB gives each pages of its own."""
    for key, document in list(islice(transaction.scan(DOCUMENTS), 12)):
        transaction.put(DOCUMENTS, key, msgspec.structs.replace(document, signals=deflate(noise(6_000))))
    keep(transaction, 1, counted(transaction, 1))


def turned(intact: bytes, chance: random.Random) -> bytes:
    """The file with one bit flipped, or eight; one time in ten in what says where everything else is."""
    image = bytearray(intact)
    in_meta = chance.random() < 0.1
    for _ in range(chance.choice((1, 1, 1, 8))):
        place = chance.choice((0, PAGE)) + chance.randrange(META_BYTES) if in_meta else chance.randrange(len(image))
        image[place] ^= 1 << chance.randrange(8)
    return bytes(image)


def turned_in_structure(intact: bytes, chance: random.Random) -> bytes:
    """The file with one bit flipped in what LMDB follows to a row: the kinds of such places by turns."""
    image, places = bytearray(intact), structure(intact)
    at, size = chance.choice(places[chance.choice(sorted(places))])
    image[at + chance.randrange(size)] ^= 1 << chance.randrange(8)
    return bytes(image)


def lost(intact: bytes, chance: random.Random, before: bytes) -> bytes:
    """The file with one page as it was before the last commit, but for those that say which commit is in force."""
    starts = range(2 * PAGE, len(intact), PAGE)
    start = chance.choice([at for at in starts if intact[at : at + PAGE] != before[at : at + PAGE]])
    return intact[:start] + before[start : start + PAGE].ljust(PAGE, b"\0") + intact[start + PAGE :]


@lru_cache(maxsize=1)
def structure(file: bytes) -> dict[str, list[tuple[int, int]]]:
    """Kind -> (place, bytes) of what leads to the rows of the last commit. The layout is that of LMDB 0.9."""
    places: dict[str, list[tuple[int, int]]] = {}
    meta = max((0, PAGE), key=lambda page: struct.unpack_from("=Q", file, page + 144)[0])
    trees = [("the free pages", meta + 40), ("the tables", meta + 88)]
    pages: list[tuple[str, int]] = []
    while trees or pages:
        if trees:
            name, at = trees.pop()
            (root,) = struct.unpack_from("=Q", file, at + 40)
            places.setdefault(f"root of {name}", []).append((at + 40, 2))
            places.setdefault(f"size of {name}", []).append((at, 40))
            pages += [(name, root)] if root < 1 << 63 else []
            continue
        name, number = pages.pop()
        begins = number * PAGE
        flags, lower = struct.unpack_from("=2xHH", file, begins + 8)
        places.setdefault(f"header in {name}", []).append((begins, 16))
        places.setdefault(f"places in a page of {name}", []).append((begins + 16, lower - 16))
        for (place,) in struct.iter_unpack("=H", file[begins + 16 : begins + lower]):
            at = begins + place
            low, high, more, key_bytes = struct.unpack_from("=HHHH", file, at)
            kind = "branch" if flags & 1 else "row"
            places.setdefault(f"{kind} in {name}", []).append((at, 2 if flags & 1 else 8))
            if flags & 1:
                pages.append((name, low | high << 16))
            elif more & 2:
                trees.append(("a table", at + 8 + key_bytes))
            elif more & 1:
                places.setdefault(f"large value in {name}", []).append((at + 8 + key_bytes, 2))
            elif name == "the free pages":
                places.setdefault("free page", []).append((at + 8 + key_bytes, low))
    return places


def judge(intact: Path, count: int, seed: int, scratch: Path, turn: Turn = turned, *, checked: bool = True) -> Outcome:
    """Read so many damaged copies of the file of a data directory. `checked`: the pages are checked first, as at the
    start of `svc serve`.
    """
    chance = random.Random(seed)
    file = (intact / "store" / "data.mdb").read_bytes()
    outcome = Outcome(Counter(), [], [], Counter())
    with Apart("bench.rot") as apart:
        for number in range(count):
            with TemporaryDirectory(dir=scratch) as name:
                (Path(name) / "store").mkdir()
                shutil.copy(intact / "pepper", name)
                (Path(name) / "store" / "data.mdb").write_bytes(turn(file, chance))
                end = apart.call("examine", str(intact), name, checked)
            if end.how == "returned":
                _count(outcome, number, Found(*end.value))
            else:
                outcome.ways["refused at the start" if end.how in REFUSALS else end.how] += 1
    return outcome


def _count(outcome: Outcome, number: int, found: Found) -> None:
    if found.wrong and not found.errors and not found.told:
        outcome.ways["wrong, untold"] += 1
        outcome.untold.append(f"state {number}: {found.wrong}")
    elif found.wrong:
        outcome.ways["wrong, told by the check" if found.told else "wrong, told by another read"] += 1
        outcome.wrong.append(f"state {number}: {found.wrong} | {found.errors} | {found.told}")
        outcome.of.update({_asked_of(sentence) for sentence in found.wrong})
    elif found.errors:
        outcome.ways["error instead of an answer"] += 1
    elif found.told:
        outcome.ways["told by the check"] += 1
    else:
        outcome.ways["harmless"] += 1


def _asked_of(sentence: str) -> str:
    """The kind of question: a row, a walk or a count of a table, or a page of events."""
    words = sentence.partition(":")[0].split()
    if words[0] in ("all", "how"):
        return " ".join(words[:3])
    return "a page of events" if sentence.startswith("Listing") else f"a row of {words[0]}"


def examine(intact: str, damaged: str, checked: bool = True) -> tuple[list[str], list[str], list[str]]:
    """A `Found` of one damaged data directory, whose intact one is beside it."""
    found = _open(intact)
    rotten = _open(damaged)
    if checked:
        rotten.store.engine.check(CheckDepth.BRANCHES)
    wrong: list[str] = []
    errors: list[str] = []
    with found.store.read() as before, rotten.store.read() as after:
        for name, ask in questions(before):
            answer = ask(before)
            try:
                read = ask(after)
            except Exception as error:  # noqa: BLE001  whatever it says, it is no answer
                errors.append(f"{name}: {type(error).__name__}: {error}")
            else:
                if read != answer:
                    wrong.append(f"{name}: {str(read)[:60]} instead of {str(answer)[:60]}")
        try:
            rotten.store.engine.check(CheckDepth.EVERYTHING)
            told = list(islice(violations(after), 3))
        except Exception as error:  # noqa: BLE001  a traceback is a bad way to tell, but it tells
            told = [f"{type(error).__name__}: {error}"]
    return wrong[:3], errors[:3], told


def questions(snapshot: Snapshot) -> Iterator[tuple[str, Callable[[Snapshot], Any]]]:
    """Everything that can be asked: each row by its key, each table from end to end, pages of events."""
    for table in TABLES:
        for key, _ in snapshot.scan(table):
            yield f"{table.name} {key}", lambda state, table=table, key=key: state.get(table, *key)
        yield f"all of {table.name}", lambda state, table=table: list(state.scan(table))
        yield f"how many {table.name}", lambda state, table=table: state.count(table)
    visitors = {event.verdict.visitor_id for _, event in snapshot.scan(EVENTS)}
    for visitor_id in (None, *sorted(visitors)[:10]):
        for level in (None, *LEVELS):
            filters = Filters(visitor_id=visitor_id, level=level)
            listing = Listing(EPOCH_MS, EPOCH_MS + 90 * DAY_MS, filters, offset=20, limit=100)
            yield f"{listing}", lambda state, listing=listing: events.event_page(state, 1, "production", listing)


def _open(directory: str) -> Opened:
    world = World.real()
    return open_directory(
        Path(directory), world.run_sync, world.entropy, create=False, durable=False, map_bytes=MAP_BYTES
    )


TURNS: dict[str, Turn] = {"anywhere": turned, "structure": turned_in_structure}


def main() -> None:
    options = read_options(__doc__)
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    with TemporaryDirectory(prefix="svc-bench-") as directory:
        intact = Path(directory) / "intact"
        size = make(intact, options.days).stat().st_size
        began = time.perf_counter()
        turn = TURNS.get(options.where) or partial(lost, before=(intact / BEFORE).read_bytes())
        checked = not options.unchecked
        outcome = judge(intact, options.states, options.seed, Path(directory), turn, checked=checked)
    print(f"{options.states} copies of {size / 1e6:.1f} MB, {time.perf_counter() - began:.0f} s")
    for way, count in outcome.ways.most_common():
        print(f"{count:7}  {way}")
    for asked, count in outcome.of.most_common():
        print(f"{count:7}  states with a wrong result for {asked}")
    for sentence in [*outcome.untold[:20], *outcome.wrong[:10]]:
        print(sentence[:600])
    if outcome.untold:
        sys.exit(1)


if __name__ == "__main__":
    main()
