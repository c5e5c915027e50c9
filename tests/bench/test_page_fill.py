"""Stores that are filled in bulk are whole, and have the rows that the service would have written."""

from __future__ import annotations

from argparse import Namespace
from contextlib import ExitStack, closing
from pathlib import Path
from typing import NamedTuple

import pytest

from bench import page_fill
from bench.page_fill import DAYS, EPOCH_MS
from bench.page_visits import Visits
from bench.pages import measure
from svc.features.checks.invariants import violations
from svc.features.tables import TABLES
from svc.identify.indexing.jobs import EVENTS_A_LARGE
from svc.identify.matching import Statistics
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import DAY_MS

VISITORS, EVENTS = 200, EVENTS_A_LARGE + 500
DEVICES = 20


class Held(NamedTuple):
    """What a table has; bytes of keys and values."""

    rows: int
    row_bytes: int


def lived(directory: Path, visitors: int, events: int) -> Visits:
    """A store into which each visit was written by the service: each visitor comes once, and then any of them."""
    visits = Visits(directory, 0, 0, 0, seed=1, in_time=True)
    for first in range(0, events, 64):
        places = range(first, min(first + 64, events))
        devices = [place if place < visitors else visits.chance.randrange(visitors) for place in places]
        times_ms = [EPOCH_MS - DAYS * DAY_MS * (events - place) // events for place in places]
        made = [visits.submission(device, at_ms) for device, at_ms in zip(devices, times_ms, strict=True)]
        visits.commit(made, Statistics())
        visits.index()
    return visits


def rows_of(snapshot: Snapshot) -> dict[str, Held]:
    """By table; empty ones are left out."""
    lengths = {table.name: [len(key) + len(value) for key, value in snapshot.unchecked(table, b"")] for table in TABLES}
    return {name: Held(len(found), sum(found)) for name, found in lengths.items() if found}


def _bulk(directory: Path, visitors: int, events: int, devices: int) -> Visits:
    return Visits(directory, visitors, events, devices, seed=1, in_time=True)


@pytest.mark.slow(2)
def test_a_store_filled_in_bulk_passes_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_fill, "CYCLE", EVENTS_A_LARGE)  # so that events are written again
    visits = _bulk(tmp_path, VISITORS, EVENTS, DEVICES)
    with closing(visits.found.store), visits.found.store.read() as snapshot:
        assert list(violations(snapshot)) == []
        held = rows_of(snapshot)
    assert held["events"].rows == EVENTS + DEVICES
    assert held["visitors"].rows == VISITORS


@pytest.mark.slow
def test_rows_made_in_bulk_are_as_many_and_as_long_as_those_of_the_service(tmp_path: Path):
    visitors, events = 150, 600
    stores = (lived(tmp_path / "real", visitors, events), _bulk(tmp_path / "bulk", visitors, events, 0))
    held: list[dict[str, Held]] = []
    for visits in stores:
        with closing(visits.found.store), visits.found.store.read() as snapshot:
            held.append(rows_of(snapshot))
    real, bulk = held
    for name in ("visitors", "visitor_ids", "events", "ledger", "sendings", "event_tail"):
        assert bulk[name].rows == real[name].rows, name
    for name in ("visitors", "visitor_ids", "events", "ledger", "sendings", "idempotency", "addresses"):
        one, other = (rows[name].row_bytes / rows[name].rows for rows in (real, bulk))
        assert other == pytest.approx(one, rel=0.1), name
    assert bulk["blocks"].rows == pytest.approx(real["blocks"].rows, rel=0.1)


@pytest.mark.slow(3)
@pytest.mark.long
def test_stores_of_different_size_get_the_same_visits(tmp_path: Path):
    options = Namespace(group=10, groups=4, returning=0.7)
    with ExitStack() as stack:
        stores = [_bulk(tmp_path / str(visitors), visitors, 10 * visitors, 80) for visitors in (0, 400)]
        for visits in stores:
            stack.enter_context(closing(visits.found.store))
        empty, full = measure(stores, options)
    assert empty.time_ratio == 1
    assert full.kb > empty.kb
    assert full.pages["blocks"] > empty.pages["blocks"]
