"""What a table declares is what retention, erasure, removal and the integrity check do; one that says too little is
refused.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import msgspec
import pytest

import svc
from svc.features.checks import invariants
from svc.features.contracts.cleanup import Sweep
from svc.features.erasure import policies, texts
from svc.features.erasure.policies import erased, refuse_unerased
from svc.features.inspection.inspection import of_request
from svc.features.inspection.subject_rows import of_visitor
from svc.features.labels.tables import OUTCOMES
from svc.features.retention import jobs as retention
from svc.features.reviews.queries import subject_stem
from svc.features.reviews.reviews import Note as WrittenNote
from svc.features.reviews.tables import NOTES
from svc.features.tables import TABLES
from svc.identify.records import Idempotency, RetentionPass
from svc.identify.tables import (
    ADDRESSES,
    CHALLENGES,
    EVENTS,
    ORIGIN_PROOFS,
    REPORT_FINGERPRINTS,
)
from svc.kernel.access.tables import AUDIT
from svc.kernel.limits.quotas import Holding
from svc.kernel.store.reading import ReadOnlyStore
from svc.kernel.store.schema.codec import Key, Opaque, Record
from svc.kernel.store.schema.key_parts import DAY, TEXT, U32, UUID_V7, VISITOR_ID
from svc.kernel.store.schema.table import (
    FOR_EVER,
    NOT_PERSONAL,
    Aged,
    ErasedBy,
    ErasedByKey,
    KeptFor,
    LastTwoPeriods,
    NotPersonal,
    PolicyError,
    Swept,
    Table,
    With,
    declared,
)
from svc.kernel.store.snapshot import Transaction
from svc.kernel.values.ids import DAY_MS, first_id
from tests.spec.automation import Automation
from tests.support.live import live_service, report
from tests.support.schemas import program_with
from tests.support.serving_postgresql import faults

NOW_MS = 1_767_225_600_000


class Note(msgspec.Struct, array_like=True):
    ip_address: str


def test_a_table_without_retention_and_erasure_policy_is_rejected():
    with pytest.raises(TypeError, match="'keep' and 'personal'"):
        Table("notes", Key(organization=U32), Opaque())  # pyright: ignore[reportCallIssue]  what is tested
    with pytest.raises(TypeError, match="'personal'"):
        Table("notes", Key(organization=U32), Opaque(), FOR_EVER)  # pyright: ignore[reportCallIssue]  as above


BY_REQUEST = Key(organization=U32, request_id=UUID_V7)


@pytest.mark.parametrize(
    ("key", "value", "keep", "personal", "message"),
    [
        (BY_REQUEST, Opaque(), FOR_EVER, NOT_PERSONAL, "request_id is of a visitor"),
        (Key(organization=U32, visitor_id=VISITOR_ID), Opaque(), FOR_EVER, NOT_PERSONAL, "visitor_id is of a visitor"),
        (Key(organization=U32), Record(Note), FOR_EVER, NOT_PERSONAL, "ip_address is of a visitor"),
        (Key(organization=U32), Record(Idempotency), FOR_EVER, NOT_PERSONAL, "request_id is of a visitor"),
        (Key(request_id=UUID_V7), Opaque(), FOR_EVER, ErasedByKey("request_id"), "a key that erasure follows"),
        (Key(organization=U32, name=TEXT), Opaque(), FOR_EVER, ErasedByKey("name"), "a key that erasure follows"),
        (
            Key(organization=U32, n=U32, visitor=U32),
            Opaque(),
            FOR_EVER,
            ErasedByKey("visitor"),
            "a key that erasure follows",
        ),
        (
            Key(organization=U32, day=DAY, visitor=U32),
            Opaque(),
            FOR_EVER,
            ErasedByKey("visitor"),
            "a key that erasure follows",
        ),
        (
            Key(organization=U32, subject=U32, other=U32),
            Opaque(),
            FOR_EVER,
            ErasedByKey("subject"),
            "a key that erasure follows",
        ),
        (Key(organization=U32, n=U32), Record(Note), Aged(DAY_MS, since="at_ms"), NOT_PERSONAL, "Aged needs"),
        (Key(n=U32, organization=U32), Record(Holding), Aged(DAY_MS, since="day"), NOT_PERSONAL, "Aged needs"),
        (Key(organization=U32, visitor=U32), Opaque(), KeptFor(DAY_MS), ErasedByKey("visitor"), "KeptFor needs"),
        (Key(id=UUID_V7), Opaque(), KeptFor(DAY_MS), NOT_PERSONAL, "KeptFor needs"),
        (Key(organization=U32, number=U32), Opaque(), LastTwoPeriods(), NOT_PERSONAL, "LastTwoPeriods needs"),
    ],
)
def test_a_policy_that_retention_or_erasure_cannot_apply_is_rejected(
    key: Key, value: Any, keep: Any, personal: Any, message: str
):
    with pytest.raises(PolicyError, match=f"table notes: {message}"):
        Table("notes", key, value, keep, personal)
    assert Table("notes", key, value, FOR_EVER, NotPersonal("a reason")).keep == FOR_EVER


def test_tables_are_collected_in_order_and_invalid_references_are_rejected():
    notes = Table("notes", Key(organization=U32), Opaque(), With("events"), NOT_PERSONAL)
    events = SimpleNamespace(A=EVENTS, other=5)
    assert declared(events, SimpleNamespace(B=notes)) == (EVENTS, notes)
    with pytest.raises(PolicyError, match="table notes: there is no table events"):
        declared(SimpleNamespace(B=notes))
    with pytest.raises(PolicyError, match="two tables are named notes"):
        declared(events, SimpleNamespace(B=notes), SimpleNamespace(C=replace(notes)))


@pytest.mark.parametrize("function", ["nobody", "purge_report"])
def test_a_table_whose_rows_no_erasure_function_finds_is_rejected(function: str):
    notes = Table("notes", BY_REQUEST, Opaque(), FOR_EVER, ErasedBy(function))
    with pytest.raises(PolicyError, match=f"table notes: {function} does not erase it"):
        refuse_unerased((*TABLES, notes), erased())


def test_tables_that_are_searched_for_an_erased_id_keep_their_places():
    """A later version goes on with an erasure that is under way."""
    places = [table.name for table in texts.TABLES]
    assert places[:5] == ["list_entries", "subject_notes", "saved_views", "rule_proposals", "reviews"]
    later = replace(NOTES, name="a_note", since=99), replace(NOTES, name="b_note", since=98)
    assert [table.name for table in texts.searched((*later, *TABLES))] == [*places, "b_note", "a_note"]


def test_what_is_erased_by_a_function_is_found_for_an_export():
    """Decisions 7.6: by the visitor, by its id alone or by its event, and by one of these."""
    for name, of in erased().items():
        assert sum(find is not None for find in (of.of_visitor, of.of_subject, of.of_event)) == 1, name


async def test_rows_of_a_visitor_in_a_new_table_are_erased_as_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decisions 7.6: a declaration is all that a table with a key of its own needs, in inspection and check as well."""
    added = [
        Table("notes", BY_REQUEST, Opaque("bytes"), With("events"), ErasedByKey("request_id")),
        Table(
            "notes_of_a_day", Key(organization=U32, visitor=U32, day=DAY), Opaque(), FOR_EVER, ErasedByKey("visitor")
        ),
        Table("names", Key(organization=U32, visitor_id=VISITOR_ID), Opaque(), FOR_EVER, ErasedByKey("visitor_id")),
        Table("remarks", NOTES.key, Record(WrittenNote), FOR_EVER, ErasedByKey("subject")),
    ]
    monkeypatch.setattr(texts, "TABLES", texts.searched((*TABLES, *added)))
    monkeypatch.setattr(policies, "ERASED_BY_KEY", policies.by_key((*TABLES, *added)))
    with program_with(tables=(*TABLES, *added)):
        await _erased_as_declared(tmp_path, added)


async def _erased_as_declared(tmp_path: Path, added: list[Table[Any]]) -> None:
    async with live_service(tmp_path) as live:
        _, public = live.issue()
        answers = [(await live.identify(public, report(device))).json() for device in (1, 2)]
        number, store = live.organization.number, live.found.store

        def add(transaction: Transaction) -> None:
            for visitor, answer in enumerate(answers, start=1):
                transaction.put(added[0], (number, UUID(answer["request_id"]).bytes), b"")
                transaction.put(added[1], (number, visitor, 5), b"")
                transaction.put(added[1], (number, visitor, 9), b"")
                transaction.put(added[2], (number, answer["visitor_id"].encode()), b"")
                stem = (number, *subject_stem(number, "visitor", answer["visitor_id"]))
                for remark in (b"a", b"b"):
                    note = WrittenNote(id="", text=f"as {answers[0]['visitor_id']}", created_at_ms=0)
                    transaction.put(added[3], (*stem, remark * 20), note)

        store.write_now([add])
        shown = [row.table for row in of_visitor(ReadOnlyStore(store.engine), number, answers[0]["visitor_id"])]
        assert [shown.count(table) for table in added] == [0, 2, 1, 2]
        named = of_request(ReadOnlyStore(store.engine), UUID(answers[0]["request_id"]))
        assert [row.table for row in named].count(added[0]) == 1
        store.write_now([lambda txn: txn.put(added[1], (number, 99, 5), b"")])
        assert any("notes_of_a_day has a row of visitor 99" in fault for fault in await faults(store))
        store.write_now([lambda txn: txn.delete(added[1], number, 99, 5)])
        erased = await Automation(live)("DELETE", f"/visitors/{answers[0]['visitor_id']}")
        assert erased.status_code == 204
        with store.read() as snapshot:
            left = [[key for key, _ in snapshot.scan(table)] for table in added]
            assert [note.text for _, note in snapshot.scan(added[3])] == 2 * ["as [erased]"]
    assert left == [
        [(number, UUID(answers[1]["request_id"]).bytes)],
        [(number, 2, 5), (number, 2, 9)],
        [(number, answers[1]["visitor_id"].encode())],
        [(number, *subject_stem(number, "visitor", answers[1]["visitor_id"]), remark * 20) for remark in (b"a", b"b")],
    ]


def test_rows_kept_by_age_are_kept_for_the_promised_time():
    """Events for 30 days (interface 8), the audit log and outcomes for 400 (decisions 14.1), history for its period and
    the last (3.2).
    """
    bounds = {table.name: retention.bound_of_age(table, NOW_MS) for table in retention.BY_AGE}
    month, day = first_id(NOW_MS - 30 * DAY_MS), NOW_MS // DAY_MS
    assert bounds == {
        AUDIT.name: first_id(NOW_MS - 400 * DAY_MS),
        EVENTS.name: month,
        "webhook_events": month,
        "webhook_attempts": month,
        ADDRESSES.name: day // 30 - 1,
        REPORT_FINGERPRINTS.name: day // 30 - 1,
        ORIGIN_PROOFS.name: day // 30 - 1,
        CHALLENGES.name: NOW_MS // 300_000 - 1,
        OUTCOMES.name: first_id(NOW_MS - 400 * DAY_MS),
    }


def test_every_swept_table_has_a_cleanup_pass():
    tasks = {task.name for task in retention.passes(Sweep(1, NOW_MS, 365, RetentionPass()))} | {"accounts", "blocks"}
    assert {table.name for table in TABLES if isinstance(table.keep, Swept | Aged)} == tasks


def test_the_rules_named_by_tables_exist():
    rules = {*invariants.STORE_RULES, *invariants.RULES}
    assert {name for table in TABLES for name in table.invariants} == {*rules, "organizations"}


def test_every_declaration_is_a_table_of_the_store():
    """A module `tables` that the list forgets would have tables that are never opened."""
    package = Path(svc.__file__).parent
    files = [*package.rglob("tables.py"), *package.rglob("tables/*.py")]
    declarations = sum(len(re.findall(r"^[A-Z_]+ = Table\(", path.read_text(), re.MULTILINE)) for path in files)
    assert declarations == len(TABLES)
    assert not any(isinstance(table.personal, ErasedBy) for table in TABLES if not table.by_organization)
