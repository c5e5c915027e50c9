"""Decisions 7.6, 10 and 11.6, over all tables: of whoever was erased nothing is left, and of others all of it.

An organization has two visitors and two accounts, and of each of them rows in every table that may have any of a
person: one that is declared and gets none here fails by name. Keys and values are looked through as they are stored,
as they are decoded, and what is deflated is inflated.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager, closing
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from svc.features.erasure.organizations import continue_removal, remove_organization
from svc.features.inspection.subject_rows import SubjectRows
from svc.features.retention.sweeper import sweep
from svc.features.tables import TABLES
from svc.identify.events.archive import inflate
from svc.identify.tables import DEFERRED_REPORTS, DOCUMENTS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.table import NotPersonal
from tests.domain import apple_world
from tests.features.house import House
from tests.features.rows import rows
from tests.spec.subscriber import Names as Hosts
from tests.store.release import _attest
from tests.support.live import PUBLIC_ADDRESS, Live, live_service
from tests.support.mmdb_writer import Tree
from tests.support.receivers import DOWN, Receivers, always
from tests.support.worlds import EPOCH_MS

PERSONAL = {table.name for table in TABLES if not isinstance(table.personal, NotPersonal)}
OF_SOMEBODY = PERSONAL | {table.name for table in TABLES if {"subject", "visitor_id"} & table.key.parts.keys()}
"""With those whose keys name a visitor or an account, whatever is said of their rows."""
MAY_STAY = {"address": {"list_entries", "list_expiries", "listed"}}
"""What is said of somebody -> tables in which it may stay: an address in a list is not the visitor's."""
ON_RECORD = (b"eraseVisitor", b"eraseAccount")
"""In records of the audit log that may name who was erased (docs/audit.md)."""
OF_NOBODY = {"list_entries": 2, "list_expiries": 1, "listed": 2, "filled_lists": 1, "addresses": 2}
"""Rows that stay when everybody was erased: addresses in a list, that there are lists, and of an address that it had an
account or a country, by a digest, until that leaves the windows (`forget_visitor`).
"""
SEGMENT = 64
"""Events of a segment of the index."""

OF_OTHERS = {"visitors", "lists", "rule_proposals", "saved_views", "list_entries", "subject_notes", "reviews"}
"""What an erased account is taken out of, and what its export leaves out: counts of its visitors and of lists, and what
was written about others.
"""
WRITTEN = {"subject_notes", "reviews", "list_entries", "webhook_events"}
"""Texts of people, which may name others."""

Texts: TypeAlias = dict[tuple[str, bytes], bytes]


def texts(live: Live) -> Texts:
    """Whatever can be read of each row of the store: key, value, what it means, and what is deflated in it."""
    found: Texts = {}
    with closing(live.found.store.engine.read()) as reader:
        for table in TABLES:
            for key, raw in reader.range(KeyRange(table.name)):
                value = table.decode(key, raw)
                inside = inflate(value.signals) if table in (DOCUMENTS, DEFERRED_REPORTS) else b""
                found[table.name, key] = b"\n".join((key, raw, repr(value).encode(), inside))
    return found


def naming(found: Texts, marks: Iterable[str]) -> Texts:
    """The rows in which any of these stands."""
    return {row: text for row, text in found.items() if any(mark.encode() in text for mark in marks)}


def said_of(house: House, subject: str, device: int) -> dict[str, str]:
    """What is said of a visitor or an account and of nobody else."""
    if subject == "account":
        return {"account": house.names[f"account_{device}"]}
    sent = {what: f"{house.mark}-{what}-{device}" for what in ("tag", "note", "token", "nonce")}
    return sent | {what: house.names[f"{what}_{device}"] for what in ("visitor_id", "address")}


async def erase(house: House, subject: str, subject_id: str) -> None:
    response = await house.admin("DELETE", f"/{subject}s/{subject_id}")
    assert response.status_code == 204, response.text


async def fill(house: House, receivers: Receivers) -> None:
    """Have rows in what an ordinary organization has for moments, or only with many events."""
    await house.fill()
    for _ in range(SEGMENT):
        await house.visit(3)
    await house.index()
    house.live.clock.now_ms += 3_000  # a clock that is ahead reads the feed, and is set back
    await house.do("listEvents", order="oldest", limit="200")
    house.live.clock.now_ms -= 3_000 + 4_000
    for device in (1, 2):
        await house.visit(device)  # late in the feed
    house.live.clock.now_ms += 4_000
    both = " and ".join(house.names[f"{what}_{device}"] for what in ("visitor_id", "account") for device in (1, 2))
    for row in (await house.do("listReviews", state="open"))["reviews"]:
        house.names["review_id"] = row["id"]
        for note in (f"{both}, it seems", "it is the same one"):
            await house.do("closeReview", {"label": "fraud", "note": note})
            house.live.clock.advance(seconds=1)
            await house.do("reopenReview")
    receivers.hold(f"https://{PUBLIC_ADDRESS}/{house.mark}")
    await house.do("redeliverWebhook")


@asynccontextmanager
async def service(tmp_path: Path, receivers: Receivers) -> AsyncGenerator[Live]:
    """One that knows countries, and the authorities of attested devices."""
    countries, network = Tree(), tmp_path / "network"
    network.mkdir()
    countries.add(81 << 24, (82 << 24) - 1, {"country_code": "GB"})
    (network / "country.mmdb").write_bytes(countries.content("countries", EPOCH_MS // 1000))
    settings: dict[str, Any] = {
        "attestation_apple_roots_file": apple_world.write_roots(tmp_path / "roots.pem"),
        "attestation_apple_apps": (apple_world.APP,),
        "network_directory": str(network),
    }
    async with live_service(tmp_path / "data", transport=receivers, resolver=Hosts(), **settings) as live:
        yield live


@pytest.mark.slow
async def test_of_whoever_is_erased_nothing_is_left_in_any_table(directory: Path):
    receivers = Receivers(always(DOWN, 0))
    async with service(directory, receivers) as live:
        house = House(live, live.organization, "annaxq")
        await fill(house, receivers)
        attested = (await _attest(live))["visitor_id"]
        number, engine = house.organization.number, live.found.store.engine
        filled = rows(engine, number)
        assert {name for name in PERSONAL if not filled[name]} == set(), "have rows of nobody: tests/features/house.py"
        for subject, erased, others in (("account", 2, ("visitor",)), ("visitor", 1, ("account", "visitor"))):
            before, gone = texts(live), said_of(house, subject, erased)
            kept = {mark for other in others for mark in said_of(house, other, 3 - erased).values()}
            assert len(naming(before, gone.values())) > 10
            await erase(house, subject, next(mark for what, mark in gone.items() if what in ("account", "visitor_id")))
            after = texts(live)
            for what, mark in gone.items():
                left = {
                    row: text
                    for row, text in naming(after, [mark]).items()
                    if row[0] not in MAY_STAY.get(what, ())
                    and not (row[0] == "audit" and any(action in text for action in ON_RECORD))
                }
                assert left == {}, (subject, what)
            was = {row: text for row, text in naming(before, kept).items() if row not in naming(before, gone.values())}
            assert {row: after.get(row) for row in was} == was
            assert len(was) > 10
        everybody = [("visitor", house.names[f"visitor_id_{device}"]) for device in (2, 3)] + [("visitor", attested)]
        for subject, subject_id in (*everybody, *(("account", house.names[f"account_{device}"]) for device in (1, 3))):
            await erase(house, subject, subject_id)
        await sweep(live.found.store, live.clock.now_ms, 365, with_passes=True)
        left = {name: len(found) for name, found in rows(engine, number).items() if found and name in OF_SOMEBODY}
        assert {name: count for name, count in left.items() if count > OF_NOBODY.get(name, 0)} == {}


@pytest.mark.slow(2)
async def test_the_export_of_an_account_has_every_row_that_its_erasure_deletes_or_changes(directory: Path):
    receivers = Receivers(always(DOWN, 0))
    async with service(directory, receivers) as live:
        house = House(live, live.organization, "annaxq")
        await fill(house, receivers)
        mine, other = house.names["account_2"], house.names["account_1"]
        before, number = texts(live), house.organization.number
        exported = SubjectRows(cast("ReadOnlyStore", live.found.store), number, "account", mine)
        of_account = exported.of_subject()
        of_events = [row for _, found in exported.of_events() for row in found]
        found = {(row.table.name, row.key): row for row in (*of_account, *of_events)}
        assert exported.corrupt == 0
        await erase(house, "account", mine)
        after = texts(live)
        gone = {row for row in before if before[row] != after.get(row, b"")} - {
            row for row in before if row[0] == "audit"
        }
        own = f'"account_id":"{mine}"'.encode()
        left = {name for name, key in gone - found.keys() if name != "webhook_events" or own in before[name, key]}
        assert left <= OF_OTHERS
        assert {"accounts", "subject_notes", "reviews", "list_entries", "subject_labels", "events", "documents"} <= {
            name for name, _ in found
        }
        assert not any(other in repr(row.value) for row in of_account if row.table.name not in WRITTEN)


@pytest.mark.slow(2)
async def test_of_an_organization_that_is_removed_nothing_is_left_but_its_accounts(directory: Path):
    receivers = Receivers(always(DOWN, 0))
    async with service(directory, receivers) as live:
        removed, other = (
            House(live, live.organization, "annaxq"),
            House(live, live.new_organization(), "bertzj", "81.2.69.17"),
        )
        for house in (removed, other):
            await house.fill()
        store, number = live.found.store, removed.organization.number
        before = rows(store.engine, other.organization.number)
        store.write_now([partial(remove_organization, number=number, now_ms=live.clock.now_ms)])
        while store.write_now([partial(continue_removal, number=number)]) != [0]:
            pass
        await sweep(store, live.clock.now_ms, 365, with_passes=False)
        left = {row[0] for row in naming(texts(live), [removed.mark, *said_of(removed, "visitor", 1).values()])}
        stay = {table.name for table in TABLES if table.stays}
        assert {name for name, found in rows(store.engine, number).items() if found} <= stay
        assert left <= stay
        assert rows(store.engine, other.organization.number) == before
