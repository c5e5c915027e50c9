"""Corruption of what leads to the rows, which the rows themselves cannot show: names, roots, numbers of pages, commits.

Bits are flipped in the files of small stores. Whether such a file is refused is asked of the real check; what the
rest of the program makes of it is in `tests/crash/test_rot.py`.
"""

from __future__ import annotations

import errno
import os
import random
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import lmdb
import pytest

from bench.rot import PAGE, structure
from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.identify.tables import STATISTICS, VISITOR_IDS
from svc.kernel.store.engine import CheckDepth, EngineError
from svc.kernel.store.group import Write
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.lmdb.meta_pages import check_meta_pages
from svc.kernel.store.lmdb.pages import check_pages
from svc.kernel.store.opening import open_store
from svc.kernel.store.reading import read_only
from svc.kernel.store.schema.codec import CorruptionError, CorruptPageError
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.store.tables import META
from svc.kernel.tenants.tables import BALANCES
from svc.kernel.values.errors import DirectoryError
from tests.support.process import run
from tests.support.worlds import inline

MAP_BYTES = 64 << 20
COMMIT_AT = 144
"""Where a meta page has the number of its commit."""
ROOT_OF_FREE_PAGES_AT = 80
SIZES = (5, 300, 1_500, 9_000)
"""Of values; LMDB gives the largest pages of their own."""


def at_once(_: float) -> None:
    """Nobody writes to these files: waiting changes nothing."""


def opened(directory: Path) -> Store:
    return open_store(directory, inline, map_bytes=MAP_BYTES, durable=False)


def put(number: int, size: int, chance: random.Random) -> Callable[[Transaction], None]:
    return lambda transaction: transaction.put(STATISTICS, (number, 0, 0), chance.randbytes(size))


def change(store: Store, chance: random.Random, commits: int, sizes: Sequence[int] = SIZES) -> None:
    """Rows of all sizes, written, written again and deleted: free pages, branches, values with pages of their own."""
    for _ in range(commits):
        number = chance.randrange(400)
        store.write_now(
            [
                put(number, chance.choice(sizes), chance),
                lambda transaction: transaction.delete(STATISTICS, chance.randrange(400), 0, 0),
                lambda transaction, number=number: transaction.put(BALANCES, (number,), number),
            ]
        )


def made(directory: Path, sizes: Sequence[int] = SIZES) -> Path:
    store = opened(directory)
    change(store, random.Random(1), 400, sizes)
    store.close()
    return directory / "data.mdb"


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("intact"))


def refusal(file: Path, depth: CheckDepth = CheckDepth.EVERYTHING) -> str | None:
    """What is said of a file as `check_meta_pages` and `check_pages` see it; `None` = it is whole."""
    try:
        check_meta_pages(file, pause=at_once)
        environment = lmdb.open(str(file), subdir=False, readonly=True, lock=False, max_dbs=64, map_size=0)
        with closing(environment):
            check_pages(environment, depth)
    except CorruptionError as error:
        return str(error)
    return None


class CorruptedFile:
    """A copy of a file, for one bit after the other."""

    def __init__(self, intact: Path, directory: Path) -> None:
        self.path = directory / "data.mdb"
        self.image = intact.read_bytes()
        self.path.write_bytes(self.image)

    def each(self, places: Iterable[tuple[str, int]], bits: int) -> Iterator[str]:
        """The file has one flipped bit while the loop's body runs: each of so many from each place on."""
        with self.path.open("r+b", buffering=0) as file:
            for kind, place in places:
                for bit in range(bits):
                    at = place + bit // 8
                    os.pwrite(file.fileno(), bytes([self.image[at] ^ 1 << bit % 8]), at)
                    yield f"bit {bit} of {kind} at {place}"
                    os.pwrite(file.fileno(), self.image[at : at + 1], at)

    @property
    def number_bits(self) -> int:
        """Of the number of a page in this file; any bit beyond them leads to no page."""
        return (len(self.image) // PAGE).bit_length()


def leads(image: bytes, *kinds: str) -> Iterator[tuple[str, int]]:
    """(kind, place) of each number of a page that leads to another."""
    for kind, places in structure(image).items():
        if kind.startswith(kinds):
            yield from ((kind, at) for at, _ in places)


@pytest.mark.slow
def test_a_bit_flip_in_any_page_number_is_detected(intact: Path, tmp_path: Path):
    corrupted = CorruptedFile(intact, tmp_path)
    for kind in ("root of", "branch in", "large value in"):
        places = list(leads(corrupted.image, kind))
        assert len(places) >= 5, "too few to show anything"
        for place in corrupted.each(places, corrupted.number_bits):
            assert refusal(corrupted.path), place
    assert refusal(corrupted.path) is None


@pytest.mark.slow
def test_the_startup_check_verifies_every_page_number_if_no_value_is_large(tmp_path: Path):
    corrupted = CorruptedFile(made(tmp_path / "store", SIZES[:-1]), tmp_path)
    for place in corrupted.each(leads(corrupted.image, "root of", "branch in"), corrupted.number_bits):
        assert refusal(corrupted.path, CheckDepth.BRANCHES), place


@pytest.mark.slow(0.2)
def test_a_page_in_use_that_is_listed_as_free_is_detected_before_it_is_overwritten(intact: Path, tmp_path: Path):
    corrupted = CorruptedFile(intact, tmp_path)
    listed = [
        ("free page", at + 8 * number)
        for at, _ in structure(corrupted.image)["free page"]
        for number in range(1, 1 + struct.unpack_from("=Q", corrupted.image, at)[0])
    ]
    assert len(listed) > 10
    for place in corrupted.each(listed, corrupted.number_bits):
        assert refusal(corrupted.path), place


@pytest.mark.slow(0.2)
def test_a_bit_flip_in_a_commit_number_never_restores_the_previous_commit(tmp_path: Path):
    store = opened(tmp_path / "store")
    for number in range(9):
        store.write_now([put(number, 10, random.Random(number))])
        corrupted = CorruptedFile(tmp_path / "store" / "data.mdb", tmp_path)
        for place in corrupted.each((("commit", page + COMMIT_AT) for page in (0, PAGE)), 64):
            assert refusal(corrupted.path, CheckDepth.COMMIT), f"commit {number}: {place}"
    store.close()


def test_a_store_whose_last_commit_is_an_older_one_is_not_opened(tmp_path: Path):
    """Even where both numbers could be those of two commits in turn."""
    store = opened(tmp_path)
    chance = random.Random(1)
    commit = 0
    while commit % 4 != 2:  # the number before it has a bit less than the number after it
        store.write_now([put(1, 10, chance)])
        commit = max(_commits(tmp_path / "data.mdb"))
    store.close()
    image = bytearray((tmp_path / "data.mdb").read_bytes())
    older = PAGE + COMMIT_AT
    assert struct.unpack_from("=Q", image, older) == (commit - 1,)
    struct.pack_into("=Q", image, older, commit - 1 ^ 2)
    (tmp_path / "data.mdb").write_bytes(image)
    assert max(_commits(tmp_path / "data.mdb")) == commit + 1
    with pytest.raises(CorruptionError, match=f"is said to be number {commit + 1}, and is number {commit - 1}"):
        opened(tmp_path)


def _commits(file: Path) -> list[int]:
    image = file.read_bytes()[: 2 * PAGE]
    return [struct.unpack_from("=Q", image, page + COMMIT_AT)[0] for page in (0, PAGE)]


@pytest.mark.slow
def test_a_store_is_valid_after_every_commit_and_while_others_write(tmp_path: Path):
    store = opened(tmp_path)
    store.engine.check(CheckDepth.EVERYTHING)
    for seed in range(60):
        change(store, random.Random(seed), 3)
        store.engine.check(CheckDepth.EVERYTHING)
    writer = threading.Thread(target=change, args=(store, random.Random(61), 400))
    writer.start()
    checks = 0
    while writer.is_alive() or not checks:
        store.engine.check(CheckDepth.EVERYTHING)
        checks += 1
    writer.join()
    store.write_now([lambda transaction: transaction.clear(STATISTICS)])
    store.engine.check(CheckDepth.EVERYTHING)
    store.close()


class Interrupted:
    """An environment in whose snapshots commits come between, before anything else is read."""

    def __init__(self, environment: lmdb.Environment, commit: Callable[[], None], times: int) -> None:
        self._environment, self._commit, self.left = environment, commit, times

    def begin(self) -> lmdb.Transaction:
        handle = self._environment.begin()
        if self.left:
            self.left -= 1
            self._commit()
        return handle

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


@pytest.mark.parametrize("commits", [1, 2, 3])
@pytest.mark.parametrize("depth", list(CheckDepth))
def test_commits_between_the_snapshot_and_its_meta_page_are_not_corruption(
    tmp_path: Path, depth: CheckDepth, commits: int
):
    store = opened(tmp_path)
    chance = random.Random(1)
    busy = Interrupted(store.engine.environment, lambda: change(store, chance, commits), times=20)
    check_pages(busy, depth, pause=at_once)  # pyright: ignore[reportArgumentType]  behaves like one
    assert busy.left == 0
    store.close()


def write_at(file: Path, place: int, content: bytes) -> None:
    with file.open("r+b", buffering=0) as opened_file:
        os.pwrite(opened_file.fileno(), content, place)


@pytest.mark.parametrize("depth", list(CheckDepth))
def test_a_half_written_meta_page_is_not_corruption_once_complete(tmp_path: Path, depth: CheckDepth):
    store, file = opened(tmp_path), tmp_path / "data.mdb"
    change(store, random.Random(1), 40)
    metas = {place: file.read_bytes()[place : place + PAGE] for place in (0, PAGE)}
    older, last = sorted(metas, key=lambda place: struct.unpack_from("=Q", metas[place], COMMIT_AT))
    # A commit writes over the older page: its roots are there already, and its number, which is last, is not.
    write_at(file, older, metas[last][:COMMIT_AT] + metas[older][COMMIT_AT:])
    with pytest.raises(CorruptionError):
        check_pages(store.engine.environment, depth, pause=at_once)  # it stays as it is
    check_pages(store.engine.environment, depth, pause=lambda _: write_at(file, older, metas[older]))
    store.close()


def test_a_copy_that_finds_no_space_says_what_to_do(intact: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    full: Any = lmdb.Error("mdb_env_copy3: No space left on device")
    full.code = errno.ENOSPC

    def refuse(*_: object) -> None:
        raise EngineError(str(full)) from full

    monkeypatch.setattr(LmdbEngine, "copy", refuse)
    with read_only(intact.parent, live=True) as store, pytest.raises(DirectoryError) as refused:
        store.copy(tmp_path, lambda: 0)
    assert str(refused.value) == f"cannot copy the store to {tmp_path}: {full}; free some space"


def test_a_copy_without_free_pages_is_valid_and_stays_so(intact: Path, tmp_path: Path):
    with read_only(intact.parent, live=True) as store:
        store.copy(tmp_path, lambda: 0)
    assert refusal(tmp_path / "data.mdb") is None
    store = opened(tmp_path)
    change(store, random.Random(2), 5)
    store.engine.check(CheckDepth.EVERYTHING)
    store.close()


# Names


@pytest.fixture
def renamed(intact: Path, tmp_path: Path) -> Callable[[str, str], Path]:
    def rename(name: str, other: str) -> Path:
        directory = tmp_path / "store"
        directory.mkdir()
        image = bytearray(intact.read_bytes())
        for at, _ in structure(bytes(image))["size of a table"]:
            if image[at - len(name) : at] == name.encode():
                image[at - len(name) : at] = other.encode()
        assert bytes(image) != intact.read_bytes()
        (directory / "data.mdb").write_bytes(image)
        return directory

    return rename


@pytest.mark.parametrize(
    ("name", "other", "sentence"),
    [
        (STATISTICS.name, "statistict", "lost the table statistics"),
        (VISITOR_IDS.name, "visitor_idr", "lost the table visitor_ids"),
        (META.name, "metb", "nothing says of which version"),
    ],
)
def test_a_table_with_a_corrupt_name_is_not_replaced_by_an_empty_one(renamed, name: str, other: str, sentence: str):
    directory = renamed(name, other)
    before = (directory / "data.mdb").read_bytes()
    with pytest.raises(CorruptionError, match=sentence):
        opened(directory)
    assert (directory / "data.mdb").read_bytes() == before
    with pytest.raises(DirectoryError), read_only(directory, live=True):
        pass


def test_a_store_with_a_hidden_table_name_is_not_opened(intact: Path, tmp_path: Path):
    image = bytearray(intact.read_bytes())
    at, _ = structure(bytes(image))["places in a page of the tables"][-1]  # a leaf
    names = len(TABLES)
    image[at : at + 2] = image[at + 2 : at + 4]
    (tmp_path / "data.mdb").write_bytes(image)
    with pytest.raises(CorruptionError, match=f"has {names} and shows {names - 1}"):
        opened(tmp_path)


def test_an_interrupted_table_creation_is_completed(tmp_path: Path):
    environment = lmdb.open(str(tmp_path), map_size=MAP_BYTES, max_dbs=64)
    for name in (STATISTICS.name, BALANCES.name):
        environment.open_db(name.encode())
    environment.close()
    store = opened(tmp_path)
    with store.read() as snapshot:
        assert snapshot.get(META, "version") == SCHEMA.version
    store.close()


# The commands


@pytest.mark.slow
def test_a_corrupt_store_is_neither_served_nor_copied_and_the_check_gives_the_reason(tmp_path: Path):
    data = tmp_path / "data"
    run("org", "create", "shop", "--credit-usd", "5", "--data", str(data))
    file = data / "store" / "data.mdb"
    image = bytearray(file.read_bytes())
    roots = [at for at, _ in structure(bytes(image))["root of a table"]]
    used = [at for at in roots if struct.unpack_from("=Q", image, at)[0] < len(image)]
    image[used[0] : used[0] + 8] = image[used[1] : used[1] + 8]
    file.write_bytes(image)
    for command in (("serve", "--bind", "127.0.0.1:0"), ("check",), ("backup", str(tmp_path / "backup"))):
        done = run(*command, "--data", str(data), status=1)
        assert "is used twice, or is free" in done.stdout + done.stderr, command
        assert "Traceback" not in done.stderr


def zero_pages_with(file: Path, content: bytes) -> None:
    """Every page that has these bytes becomes zeros, under the eyes of who has the file open."""
    image = file.read_bytes()
    places = {at // PAGE for at in range(len(image)) if image.startswith(content, at)}
    assert places
    with file.open("r+b", buffering=0) as opened_file:
        for page in places:
            os.pwrite(opened_file.fileno(), bytes(PAGE), page * PAGE)


def value(number: int) -> bytes:
    return b"value of %06d " % number * 10


@pytest.mark.parametrize("job", ["reads", "writes"])
async def test_a_corrupt_page_fails_the_jobs_that_need_it_and_no_other(tmp_path: Path, job: str):
    """One organization's page that leads nowhere ended the process at each of its requests."""
    store = opened(tmp_path)
    store.write_now(
        [lambda transaction: [transaction.put(STATISTICS, (n, 0, 0), value(n)) for n in range(400)] and None]
    )
    zero_pages_with(tmp_path / "data.mdb", value(7))
    jobs: dict[str, Callable[[Transaction], Any]] = {
        "reads": lambda transaction: transaction.get(STATISTICS, 7, 0, 0),
        "writes": lambda transaction: transaction.put(STATISTICS, (7, 0, 0), b"new"),
    }
    for _ in range(2):
        before, corrupt, after = await store.write(
            [
                Write(lambda transaction: transaction.put(STATISTICS, (390, 0, 0), b"before") and None),
                Write(jobs[job]),
                Write(lambda transaction: transaction.get(STATISTICS, 390, 0, 0)),
            ]
        )
        assert (before, after) == (None, b"before")
        assert isinstance(corrupt, CorruptPageError)
    with store.read() as snapshot:
        assert snapshot.get(STATISTICS, 390, 0, 0) == b"before"
        with pytest.raises(CorruptPageError):
            snapshot.get(STATISTICS, 7, 0, 0)
    store.close()


async def test_a_corrupt_list_of_free_pages_is_of_the_whole_store(tmp_path: Path):
    """Every commit needs it, so the process ends, and its next start refuses the store."""
    file = made(tmp_path)
    store = opened(tmp_path)
    image = file.read_bytes()
    newest = max((0, PAGE), key=lambda page: struct.unpack_from("<Q", image, page + COMMIT_AT))
    (root,) = struct.unpack_from("<Q", image, newest + ROOT_OF_FREE_PAGES_AT)
    with file.open("r+b", buffering=0) as opened_file:
        os.pwrite(opened_file.fileno(), bytes(PAGE), root * PAGE)
    with pytest.raises(EngineError):
        await store.write([Write(put(1, 9_000, random.Random(1))), Write(put(2, 9_000, random.Random(1)))])
    store.close()
