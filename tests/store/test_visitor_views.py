"""Who there is."""

from __future__ import annotations

from pathlib import Path

from svc.identify.matching import Visitor
from svc.identify.queries.visitors import find_visitor, visitors
from svc.identify.tables import VISITOR_IDS, VISITORS
from svc.kernel.store.snapshot import Transaction
from tests.store.test_events import VISITORS as IDS
from tests.store.test_events import filled_store


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
