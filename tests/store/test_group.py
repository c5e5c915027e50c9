"""Groups of jobs in two phases, whose phases interleave in every order, against a dict on which they run in turn.

What a group comes to must be what its jobs do one after the other at the moment of its commit: so the order of commits
is the serial order, and no update is lost, no range misses a row, no outcome is out of date.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

from svc.kernel.store.engine import Engine, KeyRange
from svc.kernel.store.group import Group, Job, Settled, write_changes
from svc.kernel.store.schema.codec import Key, Signed
from svc.kernel.store.schema.key_parts import U32
from svc.kernel.store.schema.table import FOR_EVER, NOT_PERSONAL, Table
from svc.kernel.store.snapshot import Late, Snapshot, Transaction
from tests.support.effort import effort
from tests.support.every_engine import OpenAt, every_engine, examples_of

TABLES = tuple(
    Table(name, Key(shelf=U32, place=U32), Signed("number"), FOR_EVER, NOT_PERSONAL) for name in ("books", "sums")
)
Place = tuple[int, int]
Rows = dict[Place, int]
Model = tuple[Rows, Rows]
MODULUS = 1_000_003


class Failed(Exception):  # noqa: N818  an outcome
    """A job that changed its mind."""


class Step(NamedTuple):
    """One thing that a job does. `seen` is what it has read so far: everything that it writes follows from that."""

    on_store: Callable[[Transaction, int], int]
    on_model: Callable[[Model, int], int]
    name: str

    def __repr__(self) -> str:
        return self.name


def get(table: int, key: Place) -> Step:
    return Step(
        lambda transaction, seen: mixed(seen, transaction.get(TABLES[table], *key)),
        lambda model, seen: mixed(seen, model[table].get(key)),
        f"get({table}, {key})",
    )


def put(table: int, key: Place) -> Step:
    def on_store(transaction: Transaction, seen: int) -> int:
        transaction.put(TABLES[table], key, seen)
        return seen

    def on_model(model: Model, seen: int) -> int:
        model[table][key] = seen
        return seen

    return Step(on_store, on_model, f"put({table}, {key})")


def delete(table: int, key: Place) -> Step:
    return Step(
        lambda transaction, seen: mixed(seen, int(transaction.delete(TABLES[table], *key))),
        lambda model, seen: mixed(seen, int(model[table].pop(key, None) is not None)),
        f"delete({table}, {key})",
    )


def add(table: int, key: Place) -> Step:
    """Neither of the two commutes with itself: the order matters."""

    def step(number: int | None, seen: int) -> int:
        return (2 * (number or 0) + seen) % MODULUS

    def on_store(transaction: Transaction, seen: int) -> int:
        transaction.update(TABLES[table], key, lambda number: step(number, seen))
        return seen

    def on_model(model: Model, seen: int) -> int:
        model[table][key] = step(model[table].get(key), seen)
        return seen

    return Step(on_store, on_model, f"add({table}, {key})")


def ask(table: int, key: Place, limit: int) -> Step:
    def question(number: int | None) -> bool:
        return (number or 0) > limit

    return Step(
        lambda transaction, seen: mixed(seen, int(transaction.ask(TABLES[table], key, question))),
        lambda model, seen: mixed(seen, int(question(model[table].get(key)))),
        f"ask({table}, {key}, {limit})",
    )


def scan(table: int, shelf: int, rows: int) -> Step:
    def on_store(transaction: Transaction, seen: int) -> int:
        found = islice(transaction.scan(TABLES[table], shelf), rows)
        return folded(seen, [(tuple(key), number) for key, number in found])

    def on_model(model: Model, seen: int) -> int:
        return folded(seen, sorted(row for row in model[table].items() if row[0][0] == shelf)[:rows])

    return Step(on_store, on_model, f"scan({table}, {shelf}, {rows})")


def last_keys(table: int, start: Place, rows: int) -> Step:
    def on_store(transaction: Transaction, seen: int) -> int:
        found = islice(transaction.scan_keys_reverse(TABLES[table], start, (2, 0)), rows)
        return folded(seen, [(tuple(key), 1) for key in found])

    def on_model(model: Model, seen: int) -> int:
        keys = sorted((key for key in model[table] if start <= key < (2, 0)), reverse=True)
        return folded(seen, [(key, 1) for key in keys[:rows]])

    return Step(on_store, on_model, f"last_keys({table}, {start}, {rows})")


def count(table: int) -> Step:
    return Step(
        lambda transaction, seen: mixed(seen, transaction.count(TABLES[table])),
        lambda model, seen: mixed(seen, len(model[table])),
        f"count({table})",
    )


def clear(table: int) -> Step:
    def on_store(transaction: Transaction, seen: int) -> int:
        transaction.clear(TABLES[table])
        return seen

    def on_model(model: Model, seen: int) -> int:
        model[table].clear()
        return seen

    return Step(on_store, on_model, f"clear({table})")


def fail_if(divisor: int) -> Step:
    def step(_: Any, seen: int) -> int:
        if not seen % divisor:
            raise Failed(seen)
        return seen

    return Step(step, step, f"fail_if({divisor})")


def mixed(seen: int, read: int | None) -> int:
    return (31 * seen + (7 if read is None else read) + 1) % MODULUS


def folded(seen: int, rows: list[tuple[Any, int]]) -> int:
    for (shelf, place), number in rows:
        seen = mixed(mixed(mixed(seen, shelf), place), number)
    return mixed(seen, None)


class Program(NamedTuple):
    """A job: its steps, and the row that its outcome shows although it did not read it."""

    begin: int
    steps: list[Step]
    shows: Place | None

    def job(self, transaction: Transaction) -> Any:
        seen = self.begin
        for step in self.steps:
            seen = step.on_store(transaction, seen)
        if self.shows is None:
            return seen
        place = self.shows
        return Late(lambda snapshot: (seen, snapshot.get(TABLES[1], *place)))

    def on(self, model: Model) -> Any:
        """The outcome, by running it on the model itself."""
        copy = (dict(model[0]), dict(model[1]))
        seen = self.begin
        try:
            for step in self.steps:
                seen = step.on_model(copy, seen)
        except Failed as error:
            return error
        for rows, changed in zip(model, copy, strict=True):
            rows.clear()
            rows.update(changed)
        return seen if self.shows is None else (seen, model[1].get(self.shows))


tables, shelves = st.sampled_from((0, 1)), st.sampled_from((0, 1))
places = st.tuples(shelves, st.integers(0, 2))
few = st.sampled_from((1, 2, 99))
steps = (
    st.builds(get, tables, places)
    | st.builds(put, tables, places)
    | st.builds(delete, tables, places)
    | st.builds(add, tables, places)
    | st.builds(add, st.just(1), st.just((0, 0)))
    | st.builds(ask, st.just(1), st.just((0, 0)), st.sampled_from((0, 1_000, 500_000)))
    | st.builds(scan, tables, shelves, few)
    | st.builds(last_keys, tables, places, few)
    | st.builds(count, tables)
    | st.builds(clear, tables)
    | st.builds(fail_if, st.sampled_from((2, 5)))
)
programs = st.builds(
    Program, st.integers(0, 9), st.lists(steps, min_size=1, max_size=6), st.none() | places | st.just((0, 0))
)
groups = st.lists(programs, min_size=1, max_size=4)


def same(outcomes: list[Any], expected: list[Any]) -> bool:
    """Exceptions are equal by what they say."""
    return list(map(repr, outcomes)) == list(map(repr, expected))


class WritersMachine(RuleBasedStateMachine):
    """Any number of writers, each between its two phases or not; and a copy that is made from the changes alone."""

    waiting: Bundle[tuple[Group[Any], list[Program]]] = Bundle("waiting")

    def __init__(self, open_at: OpenAt) -> None:
        super().__init__()
        self._directory = TemporaryDirectory()
        self.engine = open_at(Path(self._directory.name))
        self.engine.open_tables([table.name for table in TABLES], create=True)
        self.model: Model = ({}, {})
        self.copy: dict[str, dict[bytes, bytes]] = {table.name: {} for table in TABLES}
        self.all_in_the_lock(
            [Program(place, [put(table, (place % 2, place))], None) for table in (0, 1) for place in (0, 1)]
        )

    @rule(target=waiting, programs=groups)
    def first_phase(self, programs: list[Program]) -> tuple[Group[Any], list[Program]]:
        group = Group[Any]([program.job for program in programs])
        with closing(self.engine.read()) as reader:
            group.run(reader)
        return group, programs

    @rule(waiting=consumes(waiting))
    def second_phase(self, waiting: tuple[Group[Any], list[Program]]) -> None:
        self._settle(*waiting)

    @rule(first=groups, second=groups)
    def meet(self, first: list[Program], second: list[Program]) -> None:
        """What breaks most: a group that commits between the phases of another."""
        waiting = self.first_phase(first)
        self.both_phases_at_once(second)
        self._settle(*waiting)

    @rule(programs=groups)
    def all_in_the_lock(self, programs: list[Program]) -> None:
        self._settle(Group[Any]([program.job for program in programs]), programs)

    @rule(programs=groups)
    def both_phases_at_once(self, programs: list[Program]) -> None:
        group, _ = self.first_phase(programs)
        assert not self._settle(group, programs).repeated

    def _settle(self, group: Group[Any], programs: list[Program]) -> Settled[Any]:
        def commit(writer: Any) -> Settled[Any]:
            settled = group.settle(writer)
            write_changes(writer, settled.changes)
            return settled

        settled = self.engine.write(commit)
        assert same(settled.outcomes, [program.on(self.model) for program in programs])
        for table, rows in settled.changes.items():
            for key, raw in rows.items():
                if raw is None:
                    self.copy[table].pop(key, None)
                else:
                    self.copy[table][key] = raw
        return settled

    @invariant()
    def the_store_the_model_and_the_copy_are_the_same(self) -> None:
        with closing(self.engine.read()) as reader:
            snapshot = Snapshot(reader)
            for table, rows in zip(TABLES, self.model, strict=True):
                assert {tuple(key): number for key, number in snapshot.scan(table)} == rows
                assert dict(reader.range(KeyRange(table.name))) == self.copy[table.name]

    def teardown(self) -> None:
        self.engine.close()
        self._directory.cleanup()


@pytest.mark.slow(10)
@every_engine
def test_interleaved_groups_have_the_result_of_their_commit_order(open_at: OpenAt, request: pytest.FixtureRequest):
    run_state_machine_as_test(
        lambda: WritersMachine(open_at),
        settings=settings(
            max_examples=examples_of(request, effort(20, 100)),
            stateful_step_count=15,
            deadline=None,
            derandomize=True,
            database=None,
        ),
    )


# What must not run again, and what must


BOOKS, SUMS = TABLES


@pytest.fixture
def engine(open_at: OpenAt, tmp_path: Path):
    with closing(open_at(tmp_path)) as engine:
        engine.open_tables([table.name for table in TABLES], create=True)
        yield engine


def between(engine: Engine, job: Job[Any], other: Callable[[Transaction], Any]) -> tuple[Any, int]:
    """(outcome, repeats) of a job between whose phases another one commits."""
    group = Group[Any]([job])
    with closing(engine.read()) as reader:
        group.run(reader)
    engine.write(lambda writer: other(Transaction(writer)))

    def commit(writer: Any) -> tuple[Any, int]:
        settled = group.settle(writer)
        write_changes(writer, settled.changes)
        return settled.outcomes[0], len(settled.repeated)

    return engine.write(commit)


def stored(engine: Engine, table: Table[int]) -> dict[Place, int]:
    with closing(engine.read()) as reader:
        return {tuple(key): number for key, number in Snapshot(reader).scan(table)}


@every_engine
def test_rows_that_were_not_read_may_change(engine: Engine):
    def job(transaction: Transaction) -> int | None:
        transaction.put(BOOKS, (0, 1), 5)
        return transaction.get(BOOKS, 0, 2)

    assert between(engine, job, lambda other: other.put(BOOKS, (0, 1), 9)) == (None, 0)
    assert between(engine, job, lambda other: other.put(BOOKS, (0, 2), 9)) == (9, 1)
    assert stored(engine, BOOKS) == {(0, 1): 5, (0, 2): 9}


@every_engine
def test_a_sum_is_added_to_and_its_outcome_shows_the_total(engine: Engine):
    def job(transaction: Transaction) -> Late[int | None]:
        transaction.update(SUMS, (0, 0), lambda number: (number or 0) + 5)
        return Late(lambda snapshot: snapshot.get(SUMS, 0, 0))

    assert between(engine, job, lambda other: other.put(SUMS, (0, 0), 100)) == (105, 0)


class Counted(Signed):
    """Counts what it decodes."""

    decoded = 0

    def decode(self, raw: bytes) -> int:
        self.decoded += 1
        return super().decode(raw)


@every_engine
def test_the_jobs_of_a_group_decode_a_sum_once(engine: Engine):
    codec = Counted("number")
    sums = Table(SUMS.name, SUMS.key, codec, FOR_EVER, NOT_PERSONAL)

    def job(transaction: Transaction) -> bool:
        transaction.update(sums, (0, 0), lambda number: (number or 0) + 1)
        return transaction.ask(sums, (0, 0), lambda number: (number or 0) > 7)

    engine.write(lambda writer: Transaction(writer).put(SUMS, (0, 0), 5))
    group = Group[bool]([job] * 4)
    with closing(engine.read()) as reader:
        assert group.run(reader).outcomes == [False, False, True, True]
    assert codec.decoded == 1
    engine.write(lambda writer: write_changes(writer, group.settle(writer).changes))
    assert stored(engine, SUMS) == {(0, 0): 9}


@every_engine
@pytest.mark.parametrize(("meanwhile", "repeats"), [(30, 0), (31, 1)])
def test_a_sum_that_crosses_the_limit_makes_the_job_run_again(engine: Engine, meanwhile: int, repeats: int):
    """As the balance does at the gate of `402`."""

    def job(transaction: Transaction) -> str:
        if transaction.ask(SUMS, (0, 0), lambda number: (number or 0) > 30):
            return "refused"
        transaction.update(SUMS, (0, 0), lambda number: (number or 0) + 1)
        return "accepted"

    outcome = between(engine, job, lambda other: other.put(SUMS, (0, 0), meanwhile))
    assert outcome == (("refused", 1) if repeats else ("accepted", 0))
    assert stored(engine, SUMS) == {(0, 0): 31}


@every_engine
def test_a_new_row_in_a_range_that_was_read_makes_the_job_run_again(engine: Engine):
    def job(transaction: Transaction) -> int:
        found = sum(number for _, number in transaction.scan(BOOKS, 1))
        transaction.put(SUMS, (0, 0), found)
        return found

    assert between(engine, job, lambda other: other.put(BOOKS, (1, 4), 8)) == (8, 1)
    assert between(engine, job, lambda other: other.put(BOOKS, (0, 4), 8)) == (8, 0)
    assert between(engine, job, lambda other: other.delete(BOOKS, 1, 4)) == (0, 1)


@every_engine
def test_only_the_part_of_a_range_that_was_read_counts(engine: Engine):
    def first(transaction: Transaction) -> Any:
        return next((number for _, number in transaction.scan(BOOKS, 0)), None)

    engine.write(lambda writer: Transaction(writer).put(BOOKS, (0, 5), 1))
    assert between(engine, first, lambda other: other.put(BOOKS, (0, 6), 2)) == (1, 0)
    assert between(engine, first, lambda other: other.put(BOOKS, (0, 4), 3)) == (3, 1)


@every_engine
def test_only_conflicting_jobs_and_those_that_read_their_rows_run_again(engine: Engine):
    def copied(to: int, of: int) -> Job[int]:
        def job(transaction: Transaction) -> int:
            number = transaction.get(BOOKS, 0, of) or 0
            transaction.put(BOOKS, (0, to), number)
            return number

        return job

    group = Group[int]([copied(1, 0), copied(2, 1), copied(4, 3)])
    with closing(engine.read()) as reader:
        group.run(reader)
    engine.write(lambda writer: Transaction(writer).put(BOOKS, (0, 0), 6))
    settled = engine.write(group.settle)
    assert settled.outcomes == [6, 6, 0]
    assert settled.repeated == [0, 1]


@every_engine
def test_a_job_that_failed_on_data_changed_since_runs_again(engine: Engine):
    def job(transaction: Transaction) -> int:
        found = transaction.get(BOOKS, 0, 0)
        if found is None:
            raise LookupError
        return found

    assert between(engine, job, lambda other: other.put(BOOKS, (0, 0), 3)) == (3, 1)


@every_engine
def test_a_late_failing_outcome_rolls_back_its_job(engine: Engine):
    def job(transaction: Transaction) -> Late[int]:
        transaction.put(BOOKS, (0, 0), 3)
        return Late(lambda snapshot: 1 // (snapshot.get(BOOKS, 0, 0) or 0) // 0)

    outcome, _ = between(engine, job, lambda other: other.put(BOOKS, (0, 1), 3))
    assert isinstance(outcome, ZeroDivisionError)
    assert stored(engine, BOOKS) == {(0, 1): 3}
