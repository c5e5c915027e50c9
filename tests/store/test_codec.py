from contextlib import suppress
from typing import Any

import cbor2
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.events.segments import Digests
from svc.identify.history.activity import AddressActivity, AddressHistory, VisitorActivity, VisitorHistory
from svc.identify.history.evidence import ReportFingerprint
from svc.identify.matching import Block
from svc.identify.records import EVENT_FIELDS, Event, Idempotency
from svc.identify.scoring.score import StoredWeights
from svc.identify.tables import ACCOUNTS, ADDRESSES, BLOCKS, EVENT_TAIL, IDEMPOTENCY
from svc.identify.velocity.counts import EMPTY, KINDS
from svc.identify.velocity.record import AccountRecord, KnownVisitor
from svc.kernel.store.schema.codec import CorruptionError, Flattened, Key, KeyPart, Record, Signed, UnknownValueError
from svc.kernel.store.schema.key_parts import MOMENT, TEXT, U32, U64, UUID_V7, index_of
from svc.kernel.store.schema.table import Table
from svc.kernel.store.tables import META
from svc.kernel.tenants.billing import LedgerEntry
from svc.kernel.tenants.organization import Organization
from svc.kernel.tenants.tables import BALANCES, PAST_DUE
from svc.kernel.values.fields import ENVIRONMENTS
from tests.domain.test_webhooks import EVENT
from tests.store.schema import layout

WHOLE = Key(organization=U32, environment=index_of(ENVIRONMENTS), arrival=MOMENT, id=UUID_V7, name=TEXT)
parts = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(0, 255),
    st.integers(0, 2**64 - 1),
    st.binary(min_size=16, max_size=16),
    st.text(max_size=40),
)


@given(parts, parts)
def test_byte_order_equals_value_order(one: tuple[int, int, int, bytes, str], other: tuple[int, int, int, bytes, str]):
    assert (WHOLE.pack(*one) < WHOLE.pack(*other)) == (one < other)


@given(parts)
def test_a_key_unpacks_to_the_packed_values(values: tuple[int, int, int, bytes, str]):
    assert WHOLE.unpack(WHOLE.pack(*values)) == values


@given(st.binary(min_size=30, max_size=60))
def test_a_key_packs_to_the_bytes_that_it_was_read_from_whatever_was_flipped_in_them(raw: bytes):
    assert WHOLE.pack(*WHOLE.unpack(raw)) == raw


@given(parts, st.integers(0, 5))
def test_a_prefix_starts_the_keys_it_stands_for(values: tuple[int, int, int, bytes, str], count: int):
    assert WHOLE.pack(*values).startswith(WHOLE.prefix(*values[:count]))


def test_the_bytes_of_a_key_are_pinned():
    assert Key(number=U32, at=U64, name=TEXT).pack(1, 2, "ab").hex() == "00000001" + "0000000000000002" + "6162"
    three = Key(organization=U32, environment=index_of(ENVIRONMENTS), arrival=MOMENT)
    assert three.pack(7, 3, 2**63).hex() == "00000007" + "03" + "8000000000000000"
    assert layout(three) == "IBQ"


def test_the_parts_of_a_key_are_read_by_their_names():
    key = WHOLE.unpack(WHOLE.pack(7, 1, 5, b"0123456789abcdef", "x"))
    assert (key.organization, key.environment, key.arrival, key.id, key.name) == key == (7, 1, 5, key.id, "x")


def test_a_key_over_the_size_limit_raises_an_error():
    with pytest.raises(ValueError, match="511"):
        Key(name=TEXT).pack("x" * 512)
    with pytest.raises(ValueError, match="1 to 511"):
        Key(name=TEXT).pack("")
    with pytest.raises(ValueError, match="layout"):
        Key(number=KeyPart("h", int, int))
    with pytest.raises(ValueError, match="text comes last"):
        Key(name=TEXT, number=U32)


def test_the_bytes_of_a_record_are_pinned():
    record = Record(LedgerEntry)
    entry = LedgerEntry("credit", 25_000_000, 1_767_225_600_000, "first credit")
    raw = record.encode(entry)
    assert raw.hex() == "85666372656469741a017d78401b0000019b76daa8006c666972737420637265646974f6"
    assert record.decode(raw) == entry


HISTORY = [
    (ReportFingerprint(1_767_268_800, 2**64 - 1), "821a695661c01bffffffffffffffff"),
    (
        StoredWeights(
            revision=1,
            threshold=30,
            weights={"tor": 25},
            vpn_mode="method",
            residential_proxy_mode="confidence",
            updated_at_ms=5,
        ),
        "8701181ea163746f721819666d6574686f646a636f6e666964656e636505f6",
    ),
]


@pytest.mark.parametrize(("value", "body"), HISTORY, ids=[type(value).__name__ for value, _ in HISTORY])
def test_the_bytes_of_history_and_weights_are_pinned(value: Any, body: str):
    record = Record(type(value))
    assert record.encode(value).hex() == body
    assert record.decode(record.encode(value)) == value


def test_the_bytes_of_an_activity_are_pinned():
    history = VisitorHistory(((2_945_448, 3),), ((5, 1_767_268_800),), (("GB", 1_767_268_800),), 2, 20_454)
    live, test = EMPTY.with_event(1_767_268_800, (None, 5, 6)), EMPTY.with_event(1_767_268_801, (None, None, None))
    of_visitor = VisitorActivity(live, test, history)
    assert of_visitor.pack().hex() == (
        "28001000c0615669c061566901000101c0615669c06156690500000000000000c06156690600000000000000"
        "c1615669c161566901000000c1615669"
        "e64f000002010101a8f12c00030500000000000000c06156694742c0615669"
    )
    assert VisitorActivity.unpack(of_visitor.pack()) == of_visitor
    assert [VisitorActivity.row_in(of_visitor.pack(), kind) for kind in KINDS] == [live, test]
    assert VisitorActivity.row_in(b"", "live") == EMPTY
    assert VisitorActivity().pack() == b""
    assert VisitorActivity.unpack(b"") == VisitorActivity()
    of_address = AddressActivity(history=AddressHistory((7, 2**64 - 1), ("GB", "JP"), 1, 2, 20_454))
    assert of_address.pack().hex() == "00000000e64f00000102020700000000000000ffffffffffffffff47424a50"
    assert AddressActivity.unpack(of_address.pack()) == of_address


@given(raw=st.binary(max_size=120))
def test_other_bytes_are_no_activity_and_no_record_of_an_account(raw: bytes):
    """Whatever is read, `CorruptionError` is all that is raised."""
    for value in (ADDRESSES.value, ACCOUNTS.value):
        with suppress(CorruptionError):
            value.decode(raw)


def test_the_bytes_of_an_account_are_pinned():
    record = AccountRecord(1, 5, (KnownVisitor(9, 1, 5, 2, 3, is_first=True),), EMPTY.with_event(5, (9, None, None)))
    assert record.pack().hex() == (
        "01010000000500000001090000000100000005000000020003000000"
        "01050000000500000001010000050000000500000009"
        "00000000000000"
    )
    assert AccountRecord.unpack(record.pack()) == record


ROWS: list[tuple[Table[Any], tuple[Any, ...], Any]] = [
    (IDEMPOTENCY, (1, b"0123456789abcdef"), Idempotency(b"0123456789abcdef", 5)),
    (BALANCES, (7,), -(2**63)),
    (BLOCKS, (1, b"A12345678"), Block(2.5, (3, 4))),
    (EVENT_TAIL, (1, 0, 5, b"0123456789abcdef"), Digests((1, 2))),
    (META, ("version",), 1),
]


@pytest.mark.parametrize(("table", "key", "value"), ROWS, ids=[table.name for table, _, _ in ROWS])
def test_a_row_is_read_as_written_and_a_bit_flip_in_key_or_value_is_detected(
    table: Table[Any], key: tuple[Any, ...], value: Any
):
    packed = table.key.pack(*key)
    raw = table.encode(packed, value)
    assert table.decode(packed, raw) == value
    for bit in range(8 * (len(packed) + len(raw))):
        flipped = (int.from_bytes(packed + raw) ^ 1 << bit).to_bytes(len(packed + raw))
        with pytest.raises(CorruptionError, match=table.name):
            table.decode(flipped[: len(packed)], flipped[len(packed) :])


def test_a_row_of_another_table_is_rejected():
    packed = BALANCES.key.pack(1)
    with pytest.raises(CorruptionError, match="past_due"):
        PAST_DUE.decode(packed, BALANCES.encode(packed, 5))


def test_the_bytes_of_a_row_are_pinned():
    packed = BALANCES.key.pack(1)
    assert BALANCES.encode(packed, 5).hex() == "7bd16f1b" + "0000000000000005"


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive_encoding(value: int):
    assert Signed("n").decode(Signed("n").encode(value)) == value


def test_a_record_without_its_newest_fields_gets_their_defaults():
    class Older(msgspec.Struct, array_like=True):
        id: str
        number: int
        name: str
        created_at_ms: int

    raw = Record(Older).encode(Older("org_x", 1, "old", 5))
    assert Record(Organization).decode(raw) == Organization("org_x", 1, "old", 5)


def test_a_value_of_a_later_version_is_distinguished_from_corruption():
    known = Organization("org_x", 1, "new", 5)
    raw = Record(Organization).encode(known).replace(b"dfree", b"dgone")
    with pytest.raises(UnknownValueError, match=r"Organization .*'gone'.* run the version that wrote it"):
        Record(Organization).decode(raw)


@given(st.binary(max_size=60))
def test_no_bytes_decode_to_a_wrong_record(raw: bytes):
    with pytest.raises(CorruptionError):
        Record(Organization).decode(raw)
    with pytest.raises(CorruptionError):
        BALANCES.decode(BALANCES.key.pack(1), raw)


def test_an_old_event_gets_defaults_for_its_newest_fields_also_in_the_verdict():
    """As 0.1.0 wrote it, which ends before `signals`, and as a later version may, which goes on."""
    table = Flattened(Event, EVENT_FIELDS)
    raw = table.encode(EVENT)
    fields = cbor2.loads(raw)
    assert dict(zip(EVENT_FIELDS, fields, strict=True))["visitor_id"] == EVENT.verdict.visitor_id
    assert EVENT_FIELDS[30] == "signals"
    assert table.decode(cbor2.dumps(fields[:30])) == EVENT == table.decode(cbor2.dumps([*fields, "later"]))
    with pytest.raises(CorruptionError):
        table.decode(cbor2.dumps(fields[:29]))
    with pytest.raises(CorruptionError):
        table.decode(cbor2.dumps("text"))


@pytest.mark.parametrize("stored", [EVENT_FIELDS[:-1], EVENT_FIELDS[::-1], (*EVENT_FIELDS, "mark")])
def test_an_event_field_without_a_place_on_disk_is_rejected(stored: tuple[str, ...]):
    with pytest.raises(ValueError, match="the fields of Event are to be stored each once, and in their order"):
        Flattened(Event, stored)
