"""The contract of an engine (`svc/kernel/store/engine.py`): every engine of the store passes this file.

A new engine is one more line in `tests/support/every_engine.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from svc.kernel.store.engine import CheckDepth, Engine, KeyRange, MissingTableError, Reader, Writer, after_prefix
from svc.kernel.store.schema.codec import MAX_KEY_BYTES
from tests.support.effort import effort
from tests.support.every_engine import OpenAt, every_engine, examples_of, lmdb

TABLES = ("accounts", "visits")
FIRST = (b"\x00", b"\x00\xff", b"a", b"aa", b"\xff", b"\xff\xff")
"""Keys of the rows that both tables begin with."""

Rows = dict[bytes, bytes]
State = dict[str, Rows]
Change = Callable[[Writer, State], None]


class Undone(Exception):  # noqa: N818  an outcome
    """Raised to undo a transaction."""


# What a transaction does, to the engine and to the model


def put(table: str, key: bytes, value: bytes) -> Change:
    def change(writer: Writer, model: State) -> None:
        writer.put(table, key, value)
        model[table][key] = value

    return change


def put_many(table: str, rows: Rows) -> Change:
    def change(writer: Writer, model: State) -> None:
        writer.put_many(table, list(rows.items()))
        model[table].update(rows)

    return change


def delete(table: str, key: bytes) -> Change:
    def change(writer: Writer, model: State) -> None:
        assert writer.delete(table, key) == (model[table].pop(key, None) is not None)

    return change


def clear(table: str) -> Change:
    def change(writer: Writer, model: State) -> None:
        writer.clear(table)
        model[table].clear()

    return change


def copied(model: State) -> State:
    return {table: dict(rows) for table, rows in model.items()}


def state_of(reader: Reader) -> State:
    return {table: dict(reader.range(KeyRange(table))) for table in TABLES}


def rows_between(
    rows: Rows, first: bytes, beyond: bytes | None, *, reverse: bool, keys_only: bool
) -> list[tuple[bytes, bytes]]:
    found = sorted(key for key in rows if key >= first and (beyond is None or key < beyond))
    return [(key, b"" if keys_only else rows[key]) for key in (reversed(found) if reverse else found)]


# Few bytes and few keys, so that keys meet; the largest ones that are allowed; values with pages of their own.
tables = st.sampled_from(TABLES)
places = st.sampled_from([bytes(key) for size in range(3) for key in product((0, 97, 255), repeat=size)])
keys = places.filter(bool) | st.sampled_from((0, 255)).map(lambda byte: bytes([byte]) * MAX_KEY_BYTES)
values = st.binary(max_size=8) | st.builds(bytes, st.sampled_from((3_000, 9_000)))
puts, deletes = st.builds(put, tables, keys, values), st.builds(delete, tables, keys)
simple = puts | puts | puts | deletes | deletes | st.builds(clear, tables)
many = st.builds(put_many, tables, st.dictionaries(keys, values, max_size=5))
changes = st.lists(simple | simple | many, max_size=8)


class EngineMachine(RuleBasedStateMachine):
    """An engine beside a dict: whatever is done, both say the same."""

    snapshots: Bundle[tuple[Reader, State]] = Bundle("snapshots")

    def __init__(self, open_at: OpenAt) -> None:
        super().__init__()
        self._open_at = open_at
        self._directory = TemporaryDirectory()
        self._open: list[Reader] = []
        self.model: State = {table: {} for table in TABLES}
        self.engine = self._opened(create=True)
        self.commit([put(table, key, key) for table in TABLES for key in FIRST])

    def _opened(self, *, create: bool) -> Engine:
        engine = self._open_at(Path(self._directory.name) / "store")
        engine.open_tables(TABLES, create=create)
        return engine

    @rule(changes=changes)
    def commit(self, changes: list[Change]) -> None:
        def group(writer: Writer) -> int:
            after = copied(self.model)
            for change in changes:
                change(writer, after)
            assert state_of(writer) == after
            self.model = after
            return len(changes)

        assert self.engine.write(group) == len(changes)

    @rule(changes=changes)
    def fail_to_commit(self, changes: list[Change]) -> None:
        def group(writer: Writer) -> None:
            after = copied(self.model)
            for change in changes:
                change(writer, after)
            raise Undone

        with pytest.raises(Undone):
            self.engine.write(group)

    @initialize(target=snapshots)
    def begin(self) -> tuple[Reader, State]:
        return self.begin_to_read()

    @rule(target=snapshots)
    def begin_to_read(self) -> tuple[Reader, State]:
        reader = self.engine.read()
        self._open.append(reader)
        return reader, copied(self.model)

    @rule(
        snapshot=snapshots,
        table=tables,
        first=places,
        beyond=st.none() | places,
        how=st.tuples(st.booleans(), st.booleans()),
    )
    def read_a_range(
        self, snapshot: tuple[Reader, State], table: str, first: bytes, beyond: bytes | None, how: tuple[bool, bool]
    ) -> None:
        """Of the state at which reading began, whatever was committed since."""
        reader, model = self._still_open(snapshot)
        options = {"reverse": how[0], "keys_only": how[1]}
        expected = rows_between(model[table], first, beyond, **options)
        assert list(reader.range(KeyRange(table, first, beyond, **options))) == expected
        assert list(reader.range(KeyRange(table, first, beyond, **options, checked=False))) == expected
        assert next(reader.range(KeyRange(table, first, beyond, **options)), None) == next(iter(expected), None)

    @rule(snapshot=snapshots, table=tables, prefix=places, some=st.lists(keys, max_size=4))
    def read_rows(self, snapshot: tuple[Reader, State], table: str, prefix: bytes, some: list[bytes]) -> None:
        reader, model = self._still_open(snapshot)
        rows = model[table]
        assert reader.count(table) == len(rows)
        assert [reader.get(table, key) for key in some] == [rows.get(key) for key in some]
        assert reader.get_many(table, some) == [rows.get(key) for key in some]
        within = [key for key, _ in reader.range(KeyRange(table, prefix, after_prefix(prefix), keys_only=True))]
        assert within == sorted(key for key in rows if key.startswith(prefix))

    @rule(snapshot=consumes(snapshots))
    def end_to_read(self, snapshot: tuple[Reader, State]) -> None:
        reader, model = self._still_open(snapshot)
        assert state_of(reader) == model
        self._close(reader)

    @rule()
    def reopen(self) -> None:
        self._close(*self._open)
        self.engine.close()
        self.engine = self._opened(create=False)
        assert self.engine.tables() == set(TABLES)

    @invariant()
    def a_new_reader_sees_the_last_commit(self) -> None:
        with closing(self.engine.read()) as reader:
            assert state_of(reader) == self.model

    def _still_open(self, snapshot: tuple[Reader, State]) -> tuple[Reader, State]:
        """Or a new one, where the engine was reopened since."""
        return snapshot if snapshot[0] in self._open else self.begin_to_read()

    def _close(self, *readers: Reader) -> None:
        for reader in readers:
            reader.close()
        self._open = [reader for reader in self._open if reader not in readers]

    def teardown(self) -> None:
        self._close(*self._open)
        self.engine.close()
        self._directory.cleanup()


@pytest.mark.slow
@every_engine
def test_an_engine_and_a_dict_behave_the_same(open_at: OpenAt, request: pytest.FixtureRequest):
    run_state_machine_as_test(
        lambda: EngineMachine(open_at),
        settings=settings(
            max_examples=examples_of(request, effort(15, 40)),
            stateful_step_count=20,
            deadline=None,
            derandomize=True,
            database=None,
        ),
    )


# What a sequence of calls would meet too seldom


@contextmanager
def opened(open_at: OpenAt, directory: Path, *names: str) -> Iterator[Engine]:
    with closing(open_at(directory)) as engine:
        engine.open_tables(names, create=True)
        yield engine


@every_engine
def test_a_table_exists_after_it_was_created(open_at: OpenAt, tmp_path: Path):
    with opened(open_at, tmp_path) as engine:
        assert engine.tables() == set()
        with pytest.raises(MissingTableError):
            engine.open_tables(["visits"])
        engine.open_tables(["visits"], create=True)
        engine.open_tables(["visits", "accounts"], create=True)
    with closing(open_at(tmp_path)) as engine:
        assert engine.tables() == {"visits", "accounts"}
        with closing(engine.read()) as reader, pytest.raises(KeyError):
            reader.get("visits", b"a")
        engine.open_tables(["visits"])
        with closing(engine.read()) as reader:
            assert reader.get("visits", b"a") is None


@every_engine
def test_many_rows_are_read_in_both_directions_from_any_position(open_at: OpenAt, tmp_path: Path):
    """More than fit on a page, so that ranges begin and end in the middle of a tree."""
    rows = {number.to_bytes(4): number.to_bytes(8) * 20 for number in range(0, 4_000, 2)}
    with opened(open_at, tmp_path, "visits") as engine:

        def fill(writer: Writer) -> None:
            for key, value in rows.items():
                writer.put("visits", key, value)

        engine.write(fill)
        with closing(engine.read()) as reader:
            assert reader.size("visits") > sum(map(len, rows.values()))
            for first, beyond in ((0, 4_000), (1, 3), (1_001, 2_999), (3_997, 9_000), (2_000, 2_000), (9, 3)):
                for reverse in (False, True):
                    asked = KeyRange("visits", first.to_bytes(4), beyond.to_bytes(4), reverse=reverse)
                    found = list(reader.range(asked))
                    expected = rows_between(
                        rows, first.to_bytes(4), beyond.to_bytes(4), reverse=reverse, keys_only=False
                    )
                    assert found == expected, (first, beyond, reverse)


@every_engine
def test_an_engine_reports_its_size_and_checks_itself(open_at: OpenAt, tmp_path: Path):
    with opened(open_at, tmp_path, "visits") as engine:
        before = engine.space()
        engine.write(lambda writer: [writer.put("visits", bytes([number]), bytes(9_000)) for number in range(100)])
        after = engine.space()
        assert after.used_bytes >= before.used_bytes + 900_000
        assert 0 < after.used_bytes <= engine.capacity_bytes() <= after.limit_bytes
        assert not engine.is_low()
        assert engine.clear_stale_readers() == 0
        for reach in CheckDepth:
            engine.check(reach)


@every_engine
def test_a_commit_number_identifies_one_state(open_at: OpenAt, tmp_path: Path):
    """Whichever process committed: a group trusts its snapshot where the number is still the same."""
    with opened(open_at, tmp_path, "visits") as engine:

        def numbers(*, change: bool) -> tuple[int, int]:
            def group(writer: Writer) -> int:
                before = writer.commit
                if change:
                    writer.put("visits", b"a", before.to_bytes(8))
                assert writer.commit == before
                return before

            with closing(engine.read()) as reader:
                return reader.commit, engine.write(group)

        first, second, third = numbers(change=True), numbers(change=True), numbers(change=False)
        assert all(reader == writer for reader, writer in (first, second, third))
        assert first < second < third
        with closing(engine.read()) as reader:
            engine.write(lambda writer: writer.put("visits", b"a", b"b"))
            assert reader.commit == third[0], "it still shows that state"
        with pytest.raises(Undone):
            engine.write(lambda writer: [writer.put("visits", b"a", b"c"), undo()])
        with closing(engine.read()) as reader:
            assert reader.commit > third[0]
            assert reader.get("visits", b"a") == b"b"


def undo() -> None:
    raise Undone


@every_engine
def test_a_context_is_entered_for_the_group_and_left_before_the_commit(open_at: OpenAt, tmp_path: Path):
    """For a loop that stands still meanwhile, and that no failure may leave so."""
    happened: list[str] = []

    @contextmanager
    def inside() -> Iterator[None]:
        happened.append("entered")
        try:
            yield
        finally:
            with closing(engine.read()) as reader:
                happened.append(f"left, {reader.get('visits', b'a')}")

    def group(writer: Writer) -> None:
        happened.append("written")
        writer.put("visits", b"a", b"b")

    with opened(open_at, tmp_path, "visits") as engine:
        with pytest.raises(Undone):
            engine.write(lambda _: undo(), inside=inside())
        engine.write(group, inside=inside())
    assert happened == ["entered", "left, None", "entered", "written", "left, None"]


@pytest.mark.parametrize("open_at", [lmdb], indirect=True)
def test_the_lag_of_an_old_reader_is_reported(open_at: OpenAt, tmp_path: Path):
    """By LMDB, whose file grows meanwhile."""
    with opened(open_at, tmp_path, "visits") as engine, closing(engine.read()):
        assert engine.space().readers == 1
        for number in range(3):
            engine.write(lambda writer, number=number: writer.put("visits", b"a", bytes([number])))
        assert engine.space().reader_lag == 3


@every_engine
def test_a_reader_that_is_closed_holds_nothing_even_if_something_refers_to_it(open_at: OpenAt, tmp_path: Path):
    """LMDB has 126 slots for readers. The traceback of a rejected write refers to one."""
    with opened(open_at, tmp_path, "visits") as engine:
        engine.write(lambda writer: writer.put("visits", b"a", b"1"))
        closed: list[Reader] = []
        for _ in range(200):
            with closing(engine.read()) as reader:
                assert reader.get("visits", b"a") == b"1"
            closed.append(reader)
        assert len(closed) == 200


@pytest.mark.parametrize(
    ("prefix", "beyond"),
    [(b"", None), (b"\xff", None), (b"\xff\xff", None), (b"a", b"b"), (b"a\xff", b"b"), (b"\x00", b"\x01")],
)
def test_the_end_of_a_prefix_is_the_first_key_that_does_not_begin_with_it(prefix: bytes, beyond: Any):
    assert after_prefix(prefix) == beyond
