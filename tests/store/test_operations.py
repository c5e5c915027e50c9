"""The operation log: what is written down, when, and what it costs to lose its follower."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from blake3 import blake3
from hypothesis import given, settings
from hypothesis import strategies as st

from svc.features.checks.invariants import violations
from svc.features.schema import SCHEMA
from svc.identify.tables import STATISTICS
from svc.kernel.store import operations
from svc.kernel.store.opening import open_store
from svc.kernel.store.schema.operation_log import Batch, Changes, Following, batch_time_ms, pack_batch, unpack_batch
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store, StoreFullError
from svc.kernel.store.tables import META, OPERATIONS
from svc.kernel.tenants.tables import BALANCES
from tests.support.backup import put, recorded, rows_of
from tests.support.worlds import inline

PINNED = Batch(5, {"ab": {b"k": b"value"}, "c": {b"gone": None}})
FOLLOWING = Following(b"t" * 16, 5, "/backup", 1 << 20)


def opened(directory: Path, *, follow: Following | None = FOLLOWING, map_bytes: int = 16 << 20) -> Store:
    store = open_store(directory, inline, durable=False, map_bytes=map_bytes, now_ms=lambda: 1234)
    if follow is not None:
        store.change_log(partial(operations.begin, following=follow))
    return store


def batch(store: Store, sequence: int) -> Batch:
    with store.read() as snapshot:
        found = dict(operations.batches(snapshot, sequence))
    return unpack_batch(found[sequence])


def packed(store: Store) -> dict[bytes, bytes]:
    """Keys and values of one table as they lie in the store."""
    rows = [(STATISTICS.key.pack(*key), value) for key, value in rows_of(store)["statistics"]]
    return {key: STATISTICS.encode(key, value) for key, value in rows}


def test_the_bytes_of_a_batch_are_pinned():
    packed = pack_batch(PINNED)
    rows = "82" + "a26162" + "81" + "c4016b" + "c40576616c7565" + "a163" + "81" + "c404676f6e65" + "c0"
    assert packed[16:].hex() == "0000000000000005" + rows
    assert unpack_batch(packed) == PINNED
    assert batch_time_ms(packed) == 5


@settings(max_examples=40)
@given(
    st.dictionaries(
        st.sampled_from(["events", "meta", "blöcke"]),
        st.dictionaries(st.binary(min_size=1, max_size=20), st.none() | st.binary(max_size=50)),
    ),
    st.integers(0, 2**64 - 1),
    st.data(),
)
@pytest.mark.slow(0.2)
def test_a_batch_is_read_as_written_and_a_bit_flip_is_detected(changes: Changes, at_ms: int, data: st.DataObject):
    packed = bytearray(pack_batch(Batch(at_ms, changes)))
    assert unpack_batch(bytes(packed)) == Batch(at_ms, changes)
    packed[data.draw(st.integers(0, len(packed) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"fails its check"):
        unpack_batch(bytes(packed))


@pytest.mark.parametrize("body", [b"", b"\x00" * 8, b"\x00" * 8 + b"\xc1", b"\x00" * 8 + b"\x81\xa1a\x81\xc4\x01k\x05"])
def test_a_malformed_batch_with_a_valid_checksum_raises_a_value_error(body: bytes):
    with pytest.raises(ValueError, match=r".+"):
        unpack_batch(blake3(body).digest(16) + body)


def test_nothing_is_logged_without_a_follower(tmp_path: Path):
    store = opened(tmp_path, follow=None)
    store.write_now([put(BALANCES, 1, value=5)])
    assert recorded(store) == []
    with store.read() as snapshot:
        assert operations.position(snapshot) is None
    store.close()


def test_a_commit_is_one_batch_with_its_time_and_the_resulting_rows(tmp_path: Path):
    store = opened(tmp_path)
    store.write_now([put(BALANCES, 1, value=5), put(BALANCES, 2, value=6), put(BALANCES, 1, value=7)])
    store.write_now([lambda transaction: transaction.delete(BALANCES, 2)])
    assert recorded(store) == [0, 1, 2]
    one, two = (BALANCES.key.pack(number) for number in (1, 2))
    assert batch(store, 1) == Batch(1234, {"balances": {one: BALANCES.encode(one, 7), two: BALANCES.encode(two, 6)}})
    assert batch(store, 2) == Batch(1234, {"balances": {two: None}})
    store.close()


def test_a_job_that_raises_and_an_empty_commit_leave_no_trace(tmp_path: Path):
    def fail(transaction: Transaction) -> None:
        transaction.put(BALANCES, (9,), 1)
        raise LookupError

    store = opened(tmp_path)
    store.write_now([fail, put(BALANCES, 1, value=5)])
    store.write_now([fail])
    store.write_now([lambda transaction: transaction.get(BALANCES, 1)])
    store.write_now([lambda transaction: transaction.delete(BALANCES, 77)])
    assert recorded(store) == [0, 1]
    assert list(batch(store, 1).changes["balances"]) == [BALANCES.key.pack(1)]
    store.close()


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(
            st.tuples(st.sampled_from(["put", "delete", "clear", "fail"]), st.integers(0, 4), st.binary(max_size=9)),
            max_size=4,
        ),
        max_size=6,
    )
)
@pytest.mark.slow(0.2)
def test_applying_the_batches_to_an_older_state_gives_the_current_store(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[tuple[str, int, bytes]]]
):
    def job(step: tuple[str, int, bytes], transaction: Transaction) -> None:
        what, number, value = step
        if what == "delete":
            transaction.delete(STATISTICS, number, 0, 0)
        elif what == "clear":
            transaction.clear(STATISTICS)
        else:
            transaction.put(STATISTICS, (number, 0, 0), value)
        if what == "fail":
            raise LookupError

    store = opened(tmp_path_factory.mktemp("store"), follow=None)
    store.write_now([put(STATISTICS, 0, 0, 0, value=b"before"), put(STATISTICS, 9, 0, 0, value=b"untouched")])
    state = packed(store)
    store.change_log(partial(operations.begin, following=FOLLOWING))
    for commit in commits:
        store.write_now([partial(job, step) for step in commit])
    for sequence in recorded(store)[1:]:
        assert set(batch(store, sequence).changes) == {"statistics"}
        for key, value in batch(store, sequence).changes["statistics"].items():
            if value is None:
                state.pop(key, None)
            else:
                state[key] = value
    assert state == packed(store)
    store.close()


def test_a_batch_of_many_pages_is_read_completely(tmp_path: Path):
    store = opened(tmp_path)
    big = bytes(range(256)) * 400
    store.write_now([put(STATISTICS, 1, 0, 0, value=big)])
    store.write_now([put(STATISTICS, 2, 0, 0, value=b"small")])
    assert batch(store, 1).changes["statistics"][STATISTICS.key.pack(1, 0, 0)] == STATISTICS.encode(
        STATISTICS.key.pack(1, 0, 0), big
    )
    with store.read() as snapshot:
        assert snapshot.count(OPERATIONS) > 20
        assert list(violations(snapshot)) == []
    store.close()


def test_migrations_are_logged_too(tmp_path: Path):
    opened(tmp_path).close()
    later = (*SCHEMA.migrations, put(BALANCES, 1, value=5))
    store = open_store(tmp_path, inline, migrations=later, now_ms=lambda: 99)
    assert set(batch(store, 1).changes) == {"balances", META.name}
    assert batch(store, 1).at_ms == 99
    store.close()


def test_copied_batches_are_removed_and_the_numbering_continues(tmp_path: Path):
    store = opened(tmp_path)
    for number in range(5):
        store.write_now([put(BALANCES, number, value=5)])
    store.change_log(partial(operations.cut, timeline=FOLLOWING.timeline, copied=4))
    assert recorded(store) == [4, 5]
    store.change_log(partial(operations.cut, timeline=FOLLOWING.timeline, copied=5))
    store.write_now([put(BALANCES, 9, value=5)])
    assert recorded(store) == [5, 6]
    store.change_log(partial(operations.cut, timeline=b"another timeline", copied=6))
    assert recorded(store) == [5, 6]
    store.close()


def test_the_log_is_dropped_when_its_follower_is_absent_too_long(tmp_path: Path):
    store = opened(tmp_path)
    written = 0
    with store.read() as snapshot:
        assert operations.recorded(snapshot) is not None
    while written < 100 and recorded(store):
        store.write_now([put(STATISTICS, 1, 0, 0, value=bytes(64 << 10))])
        written += 1
    assert 10 < written < 30
    with store.read() as snapshot:
        following = operations.follower(snapshot)
        assert following is not None
        assert (following.lost_at_ms, "1 MiB" in following.lost_because) == (1234, True)
        assert operations.position(snapshot) is None
        assert list(violations(snapshot)) == []
    store.write_now([put(BALANCES, 1, value=5)])
    assert recorded(store) == []
    store.change_log(partial(operations.begin, following=FOLLOWING))
    store.write_now([put(BALANCES, 1, value=6)])
    assert recorded(store) == [0, 1]
    store.close()


def test_a_full_store_drops_the_log_before_it_refuses_identifications_for_long(tmp_path: Path):
    store = opened(tmp_path, map_bytes=2 << 20, follow=Following(b"t" * 16, 5, "/backup", 1 << 30))
    refused = 0
    for _ in range(60):  # the same row repeatedly: without the log it would always fit
        try:
            store.write_now([put(STATISTICS, 1, 0, 0, value=bytes(64 << 10))])
        except StoreFullError:
            refused += 1
    assert refused == 1
    with store.read() as snapshot:
        following = operations.follower(snapshot)
        assert following is not None
        assert following.lost_because == "the store was full"
    store.close()


def test_a_follower_that_stops_leaves_nothing_behind(tmp_path: Path):
    store = opened(tmp_path)
    store.write_now([put(BALANCES, 1, value=5)])
    store.change_log(operations.end)
    store.write_now([put(BALANCES, 1, value=6)])
    assert recorded(store) == []
    with store.read() as snapshot:
        assert operations.follower(snapshot) is None
    store.close()


def test_check_reports_an_incomplete_log(tmp_path: Path):
    store = opened(tmp_path)
    for number in range(4):
        store.write_now([put(BALANCES, number, value=5)])
    store.change_log(lambda transaction: transaction.delete(OPERATIONS, 2, 0))
    store.change_log(put(OPERATIONS, 3, 0, value=b"not a batch"))
    with store.read() as snapshot:
        broken = list(violations(snapshot))
    assert broken == ["the operation log goes from 1 to 3", "batch 3 of the operation log: the batch fails its check"]
    store.change_log(lambda transaction: transaction.delete(operations.FOLLOWING, "log"))
    with store.read() as snapshot:
        assert list(violations(snapshot)) == ["there is an operation log and nobody who follows it"]
    store.close()
