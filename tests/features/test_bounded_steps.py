"""ADR 188: no commit of retention, of an erasure or of a removal has more than 500 rows, on a large organization.

Every feature's part of it runs by the registry: `sweep` makes the passes of all, and a step of an erasure asks all that
have something to forget. What a table declares must have been swept or erased here, so that a new one is seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from svc.features.checks.invariants import violations
from svc.features.erasure.accounts import continue_account_erasure, erase_account
from svc.features.erasure.organizations import continue_removal, remove_organization
from svc.features.erasure.visitors import continue_erasure, erase_visitor
from svc.features.lists.jobs import continue_deletion, delete_list
from svc.features.retention.sweeper import Progress, sweep
from svc.features.tables import TABLES
from svc.identify.velocity.counts import account_digest
from svc.kernel.store.directory import open_directory
from svc.kernel.store.schema.table import NotPersonal
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants.queries import find_organization
from svc.kernel.values.ids import DAY_MS
from svc.world import World
from tests.features.counting import Counting
from tests.features.large import made_once
from tests.features.rows import rows
from tests.features.test_size import MAX_READ, MAX_ROWS
from tests.support.effort import LONG, effort
from tests.support.engines import opening
from tests.support.worlds import inline, seeded_entropy

pytestmark = [
    pytest.mark.usefixtures("engine"),
    pytest.mark.only_on("lmdb", "rows are counted by the engine's wrapper; jobs are the same on a database"),
]

EXPIRED_DAYS = effort(12, 60)
"""After the last event: 2 of 20 days of events have expired then, or all."""
STEPS = effort(150, 1_000_000)
"""Of the removal of the whole organization that are tried."""

STAY = {table.name for table in TABLES if table.by_organization and table.stays}


class Steps:
    """A store whose commits are counted, and what is done on it."""

    def __init__(self, directory: Path, now_ms: int) -> None:
        world = World(lambda: now_ms, seeded_entropy(1), inline)
        made: list[Counting] = []

        def count(engine: Any) -> Counting:
            made.append(Counting(engine))
            return made[-1]

        found = open_directory(
            directory, world.run_sync, world.entropy, durable=False, map_bytes=1 << 30, open_engine=opening(count)
        )
        self.store, self.engine, self.touched = found.store, made[-1], set[str]()

    def do(self, job: Callable[[Transaction], Any]) -> Any:
        return self.store.write_one_now(job)

    def assert_bounded(self, what: str, at_least: int) -> None:
        """Every commit since the last time was."""
        assert len(self.engine.commits) >= at_least, what
        for counts, most in ((self.engine.commits, MAX_ROWS), (self.engine.read_in_commits, MAX_READ)):
            largest = max(counts, key=Counter.total)
            assert largest.total() <= most, (what, largest)
        self.touched |= {name for commit in self.engine.commits for name in commit}
        self.engine.forget()


@pytest.fixture
def known(tmp_path: Path, engine: str) -> dict[str, Any]:
    """Of the large organization in `tmp_path / "data"`, which was made by the machine's own clock."""
    return trio.run(made_once, tmp_path / "data")


@pytest.mark.slow(8)
async def test_no_commit_has_many_rows_whatever_is_erased_or_expires(
    tmp_path: Path, known: dict[str, Any], autojump_clock: MockClock
):
    now_ms, names = known["now_ms"], known["names"]
    steps = Steps(tmp_path / "data", now_ms)
    with closing(steps.store):
        with steps.store.read() as snapshot:
            organization = find_organization(snapshot, known["organization"])
        assert organization is not None
        number = organization.number
        before = rows(steps.store.engine, number)
        steps.engine.forget()

        visitor_id, account_id = names["visitor_id"], names["account_id"]
        ended = steps.do(partial(erase_visitor, number=number, visitor_id=visitor_id, now_ms=now_ms))
        while not ended:
            ended = steps.do(partial(continue_erasure, number=number, raw_id=visitor_id.encode(), now_ms=now_ms))
        steps.assert_bounded("a visitor", 10)

        ended = steps.do(partial(erase_account, number=number, account_id=account_id, now_ms=now_ms))
        while not ended:
            digest = account_digest(number, account_id)
            ended = steps.do(partial(continue_account_erasure, number=number, digest=digest, now_ms=now_ms))
        steps.assert_bounded("an account", 2)

        ended = steps.do(partial(delete_list, number=number, list_id=names["list_id"]))
        while not ended:
            ended = steps.do(partial(continue_deletion, number=number, list_id=names["list_id"]))
        steps.assert_bounded("a list", 10)

        progress = Progress(0)
        await sweep(steps.store, now_ms + EXPIRED_DAYS * DAY_MS, 30, progress, with_passes=True)
        assert progress.statistics().failed == {}
        assert {"events", "visitors", "accounts"} <= progress.statistics().deleted.keys()
        steps.assert_bounded("retention", 30)
        with steps.store.read() as snapshot:
            assert list(violations(snapshot)) == []

        of_somebody = {table.name for table in TABLES if not isinstance(table.personal, NotPersonal)}
        assert {name for name in of_somebody if len(before.get(name, ())) > MAX_ROWS} <= steps.touched

        steps.do(partial(remove_organization, number=number, now_ms=now_ms))
        for _ in range(STEPS):
            if not steps.do(partial(continue_removal, number=number)):
                break
        steps.assert_bounded("an organization", 100)
        if LONG:
            assert {name for name, left in rows(steps.store.engine, number).items() if left} <= STAY
