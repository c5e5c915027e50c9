"""The counters of each hour: written with the event, subtracted with it, and checked against all events (ADR 37)."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from svc.features.checks.invariants import violations
from svc.identify.events.hour_counts import NOTHING, HourCounts
from svc.identify.queries.hours import hours
from svc.identify.tables import HOURS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import ENVIRONMENTS
from svc.kernel.values.ids import HOUR_MS
from tests.store.test_events import count_again, event, filled_store, uuid
from tests.support.worlds import EPOCH_MS
from tests.support.writes import purge_event

HOUR = EPOCH_MS // HOUR_MS
WRONG = "the counters of organization 1, staging, 2026-01-01T00:00:00.000Z are not what its events add up to"


def test_the_counters_of_a_window_are_those_of_the_hours_that_it_touches(tmp_path: Path):
    chance = random.Random(31)
    made = [
        (chance.choice((1, 2)), uuid(number), event(chance, EPOCH_MS + chance.randrange(6 * HOUR_MS)))
        for number in range(400)
    ]
    made = [row for row in made if not 2 * HOUR_MS <= row[2].occurred_at_ms - EPOCH_MS < 3 * HOUR_MS]
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        for number in (1, 2):
            for environment in ENVIRONMENTS:
                expected: dict[int, HourCounts] = {}
                for _, _, given in sorted(row for row in made if row[0] == number):
                    if given.environment == environment:
                        start = given.occurred_at_ms // HOUR_MS * HOUR_MS
                        expected[start] = expected.get(start, NOTHING).plus(given)
                every = sorted(expected.items())
                assert len(every) in (0, 5), "an hour without events has no row"
                ask = partial(hours, snapshot, number, environment)
                assert ask(0, EPOCH_MS + 10 * HOUR_MS) == every
                for first, beyond in ((0, 6 * HOUR_MS), (1, 1), (HOUR_MS - 1, HOUR_MS + 1), (HOUR_MS, 2 * HOUR_MS)):
                    wanted = [row for row in every if first // HOUR_MS * HOUR_MS <= row[0] - EPOCH_MS < beyond]
                    assert ask(EPOCH_MS + first, EPOCH_MS + beyond) == wanted


@pytest.mark.slow(0.2)
def test_deletions_are_subtracted_and_the_last_one_removes_the_row(tmp_path: Path):
    chance = random.Random(32)
    made = [(1, uuid(number), event(chance, EPOCH_MS + number, environment="staging")) for number in range(40)]
    chance.shuffle(made)
    with filled_store(tmp_path, *made) as store:
        for number, request_id, _ in made:
            store.write_now([partial(purge_event, number=number, request_id=request_id.bytes)] * 2)
            with store.read() as snapshot:
                assert list(violations(snapshot)) == []
        with store.read() as snapshot:
            assert snapshot.count(HOURS) == 0


GIVEN = event(random.Random(1), EPOCH_MS, environment="staging", country_code="GB")


@pytest.mark.parametrize(
    ("job", "sentence"),
    [
        (lambda txn: txn.delete(HOURS, 1, 1, HOUR), WRONG),
        (lambda txn: txn.put(HOURS, (1, 1, HOUR), NOTHING.plus(GIVEN).plus(GIVEN)), WRONG),
        (
            lambda txn: txn.put(
                HOURS, (1, 1, HOUR), HourCounts.unpack(NOTHING.plus(GIVEN).pack().replace(b"GB", b"DE"))
            ),
            WRONG,
        ),
        (lambda txn: txn.put(HOURS, (1, 1, HOUR + 2), NOTHING.plus(GIVEN)), WRONG.replace("T00", "T02")),
        (lambda txn: txn.put(HOURS, (1, 0, HOUR), NOTHING.plus(GIVEN)), WRONG.replace("staging", "production")),
    ],
)
def test_counters_that_differ_from_the_sum_of_the_events_are_found(
    tmp_path: Path, job: Callable[[Transaction], object], sentence: str
):
    with filled_store(tmp_path, (1, uuid(7), GIVEN)) as store:
        store.write_now([partial(job), count_again])
        with store.read() as snapshot:
            assert list(violations(snapshot)) == [sentence]


def test_an_event_is_erased_from_a_store_that_has_lost_its_counters(tmp_path: Path):
    with filled_store(tmp_path, (1, uuid(7), GIVEN)) as store:
        store.write_now([partial(Transaction.clear, table=HOURS)])
        assert store.write_now([partial(purge_event, number=1, request_id=uuid(7).bytes)]) == [None]
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
