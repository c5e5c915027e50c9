"""Who there is, and who was seen with a tag or at an address."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from svc.identify.events.listing import Filters
from svc.identify.matching import Visitor
from svc.identify.queries.visitors import MAX_LOOKED_AT, Sighting, find_visitor, visitors, visitors_with
from svc.identify.tables import EVENT_TAIL, EVENTS, VISITOR_IDS, VISITORS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.fields import ENVIRONMENTS
from tests.store.test_events import ADDRESSES, TAGS, event, filled_store, uuid
from tests.store.test_events import VISITORS as IDS
from tests.store.test_filters import Counted
from tests.support.worlds import EPOCH_MS


@pytest.mark.slow
def test_visitors_by_tag_or_address_equal_a_scan_of_every_event(tmp_path: Path):
    chance = random.Random(41)
    made = [
        (chance.choice((1, 2)), uuid(number), event(chance, EPOCH_MS + chance.randrange(500))) for number in range(800)
    ]
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        for number in (1, 2):
            for environment in ENVIRONMENTS:
                here = [given for org, _, given in made if org == number and given.environment == environment]
                for filters in (
                    *(Filters(tag=tag) for tag in (*TAGS, "?")),
                    *(Filters(ip_address=ip) for ip in ADDRESSES),
                ):
                    expected: list[Sighting] = []
                    for visitor_id in sorted(IDS):
                        moments = [
                            given.occurred_at_ms
                            for given in here
                            if given.verdict.visitor_id == visitor_id and filters.matches(given)
                        ]
                        if moments:
                            expected.append(Sighting(visitor_id, min(moments), max(moments), len(moments)))
                    assert visitors_with(snapshot, number, environment, filters, None, 200) == expected
                    paged = [
                        row
                        for after in (None, *(row.visitor_id for row in expected))
                        for row in visitors_with(snapshot, number, environment, filters, after, 1)
                    ]
                    assert paged == expected
        for wrong in (Filters(), Filters(tag="cart", ip_address=ADDRESSES[0])):
            with pytest.raises(ValueError, match="either a tag or an address"):
                visitors_with(snapshot, 1, "staging", wrong, None, 10)


@pytest.mark.parametrize("filters", [Filters(tag="cart"), Filters(ip_address=ADDRESSES[0])])
def test_for_a_busy_tag_or_address_the_newest_events_are_read(tmp_path: Path, filters: Filters):
    chance = random.Random(42)
    count = MAX_LOOKED_AT + 200
    given: dict[str, Any] = {"environment": "staging", "tag": "cart", "visitor_id": IDS[0], "ip_address": ADDRESSES[0]}
    made = [(1, uuid(number), event(chance, EPOCH_MS + number, **given)) for number in range(count)]
    with filled_store(tmp_path, *made) as store, store.read() as snapshot:
        counted = Counted(snapshot)
        assert visitors_with(counted, 1, "staging", filters, None, 10) == [
            Sighting(IDS[0], EPOCH_MS + count - MAX_LOOKED_AT, EPOCH_MS + count - 1, MAX_LOOKED_AT)
        ]
        assert counted.touched == {EVENTS.name: MAX_LOOKED_AT, EVENT_TAIL.name: MAX_LOOKED_AT}
        assert snapshot.count(EVENTS) == count


def test_visitors_are_listed_newest_first(tmp_path: Path):
    def record(visitor_id: str) -> Visitor:
        return Visitor(
            visitor_id=visitor_id, family=1, collector=1, values=(0,) * 20, browser_version=0, os_release=0,
            font_sketch=0, rest_sketch=0, first_seen_s=5, last_seen_s=9,
        )  # fmt: skip

    def write(transaction: Transaction) -> None:
        for organization, number, visitor_id in ((1, 3, IDS[0]), (1, 5, IDS[1]), (1, 900, IDS[2]), (2, 4, IDS[3])):
            transaction.put(VISITORS, (organization, number), record(visitor_id))
            transaction.put(VISITOR_IDS, (organization, visitor_id.encode()), number)

    with filled_store(tmp_path) as store:
        assert store.write_now([write]) == [None]
        with store.read() as snapshot:
            every = [(900, record(IDS[2])), (5, record(IDS[1])), (3, record(IDS[0]))]
            assert visitors(snapshot, 1, None, 10) == every
            assert visitors(snapshot, 1, None, 2) == every[:2]
            assert visitors(snapshot, 1, 900, 1) == every[1:2]
            assert visitors(snapshot, 1, 3, 10) == []
            assert find_visitor(snapshot, 1, IDS[1]) == record(IDS[1])
            for organization, text in ((2, IDS[1]), (1, IDS[3]), (1, "é" * 10), (1, "")):
                assert find_visitor(snapshot, organization, text) is None
