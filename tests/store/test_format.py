"""docs/internals/format.md is what lies on disk: rows, segments and files are read by its words alone."""

from __future__ import annotations

import hashlib
import json
import random
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import cbor2
import msgspec
import pytest
from blake3 import blake3

from svc.features.labels.outcomes import Outcome
from svc.features.tables import TABLES
from svc.features.upgrade.upgrade import upgrade
from svc.features.webhooks.records import DELIVERY_KINDS
from svc.identify.events.listing import LEVELS
from svc.identify.history.activity import AddressActivity, VisitorActivity
from svc.identify.matching import Visitor
from svc.identify.matching.tokens import Token
from svc.identify.matching.visitor import first_record
from svc.identify.tables import ACCOUNTS, ADDRESSES, BLOCKS, VISITORS
from svc.identify.velocity.counts import EMPTY, VelocityRow
from svc.identify.velocity.record import AccountRecord
from svc.kernel.access.tables import KEYS
from svc.kernel.store.engine import KeyRange
from svc.kernel.store.files import durable_files as files
from svc.kernel.store.files.serve_lock import sole_process
from svc.kernel.store.lmdb.engine import LmdbEngine
from svc.kernel.store.reading import read_only
from svc.kernel.store.tables import META
from svc.world import World
from tests.domain.matching_world import START_MS, features_of
from tests.store.format_page import PAGE, written
from tests.store.release import RELEASED, Released, populate, unpack
from tests.store.test_events import event, filled_store, uuid
from tests.store.test_filters import index
from tests.support.backup import BackedUp
from tests.support.worlds import EPOCH_MS

TEXT = PAGE.read_text()
SIZES = {"u8": 1, "u16": 2, "u32": 4, "u64": 8}
FILES = dict(re.findall(r"^\| `([^`]+)` \| (\d{4}) \|", TEXT, re.MULTILINE))
"""path -> mode"""
NAMES = {"TIMELINE": r"[0-9a-f]{32}", "SEQUENCE": r"\d{16}", "TIME": r"\d{8}T\d{6}\.\d{3}Z", "-N": r"-\d+"}


def documented_tables() -> dict[str, tuple[list[str], str]]:
    """Table -> (types of the parts of its key, body)"""
    part = TEXT[TEXT.index("<!-- tables -->") :].partition("<!-- end -->")[0]
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \| `(\w+)` \|$", part, re.MULTILINE)
    return {name: (re.findall(r"`(\w+)`", key), body) for name, key, body in rows}


def documented_records() -> dict[str, list[str]]:
    """Record -> names of its fields"""
    part = TEXT[TEXT.index("<!-- records -->") :].partition("<!-- end -->")[0]
    lines = re.findall(r"^- `(\w+)`: (.+)$", part, re.MULTILINE)
    return {name: re.findall(r"(?:^|, )`(\w+):", fields) for name, fields in lines}


def key_of(types: list[str], raw: bytes) -> tuple[Any, ...]:
    parts: list[Any] = []
    for kind in types:
        size = SIZES[kind] if kind in SIZES else len(raw) if kind == "text" else int(kind.removeprefix("b"))
        part, raw = raw[:size], raw[size:]
        parts.append(int.from_bytes(part, "big") if kind in SIZES else part.decode() if kind == "text" else part)
    assert raw == b""
    return tuple(parts)


def body_of(table: str, key: bytes, value: bytes) -> bytes:
    checksum, body = value[:4], value[4:]
    assert int.from_bytes(checksum, "big") == zlib.crc32(table.encode("ascii") + key + body)
    return body


def plain(value: Any) -> Any:
    """As the page says that a record is written."""
    if isinstance(value, msgspec.Struct):
        return [plain(getattr(value, name)) for name in value.__struct_fields__]
    if isinstance(value, tuple | list):
        return [plain(one) for one in value]
    return {name: plain(one) for name, one in value.items()} if isinstance(value, dict) else value


def visitor_of(raw: bytes) -> dict[str, Any]:
    """By the table of its bytes."""
    at = 0

    def numbers(count: int, code: str) -> list[int]:
        nonlocal at
        found = list(struct.unpack_from(f"<{count}{code}", raw, at))
        at += struct.calcsize(f"<{count}{code}")
        return found

    listed = {6: True, 7: False}[raw[0]]
    visitor_id = raw[1:21].rstrip(b"\0").decode("ascii")
    at = 21
    family, collector, first_seen_s, last_seen_s = numbers(4, "I")
    visits, visits_without_token, browser_version, os_release = numbers(4, "H")
    (parent,), (parent_probability,) = numbers(1, "I"), numbers(1, "B")
    font_sketch, rest_sketch = numbers(2, "Q")
    values = numbers(20, "I")
    f, n, t, e = numbers(4, "B")
    exact_hashes = numbers(e, "Q")
    networks = [tuple(numbers(2, "I")) for _ in range(n)]
    addresses = numbers(n, "I")
    rows = [(*numbers(1, "Q"), *numbers(3, "I"), *numbers(2, "B")) for _ in range(t)]
    keys = [(*numbers(1, "Q"), *numbers(1, "I")) if flags & 2 else (0, 0) for *_, flags in rows]
    tokens = [
        Token(value & ~1, origin, first_s, last_s, probation, bool(value & 1), bool(flags & 1), key, key_s)
        for (value, origin, first_s, last_s, probation, flags), (key, key_s) in zip(rows, keys, strict=True)
    ]
    former = [(numbers(1, "B")[0], numbers(1, "I")[0]) for _ in range(f)]
    activity = raw[at:]
    found = dict(locals())
    return {
        name: tuple(found[name]) if isinstance(found[name], list) else found[name] for name in Visitor.__struct_fields__
    }


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Released:
    return unpack(RELEASED / "0.1.0.tar.xz", tmp_path_factory.mktemp("released"))


def rows_of(directory: Path) -> Iterator[tuple[str, bytes, bytes]]:
    """(table, key, value) of every row, as LMDB has them."""
    with closing(LmdbEngine.open_read_only(directory / "store", live=True)) as engine:
        engine.open_tables(sorted(engine.tables()))
        with closing(engine.read()) as reader:
            for table in sorted(engine.tables()):
                yield from ((table, key, value) for key, value in reader.range(KeyRange(table)))


def test_the_generated_parts_of_the_page_are_up_to_date():
    assert written(TEXT) == TEXT, "write it again: python -m tests.store.format_page"


def test_a_visitor_that_is_not_listed_can_be_read_by_the_documented_format():
    visitor = first_record(features_of(), START_MS, listed=False)
    assert visitor_of(visitor.pack()) == msgspec.structs.asdict(visitor)


def test_tokens_can_be_read_by_the_documented_format():
    """With a key and without, of a private window and of another device."""
    visitor = first_record(features_of(token="t" * 20, key=b"key"), START_MS)
    for day, private in enumerate((True, False), start=1):
        seen = features_of(token=f"{day}" * 20, token_is_new=True, private=private, origin="https://shop.example")
        visitor = visitor.updated(seen, START_MS + day * 86_400_000)
    visitor = visitor.disowning(visitor.tokens[:1])
    assert [(token.key != 0, token.private, token.probation) for token in visitor.tokens] == [
        (False, False, 255),
        (False, True, 3),
        (True, False, 0),
    ]
    assert visitor_of(visitor.pack()) == msgspec.structs.asdict(visitor)


def velocity_of(body: bytes) -> dict[str, Any]:
    """As the page says."""
    first_s, last_s, count, *sizes = struct.unpack("<IIBBBB", body[:12])
    at, others = 12 + 4 * count, []
    for size in sizes:
        times = struct.unpack(f"<{size}I", body[at : at + 4 * size])
        others.append((times, struct.unpack(f"<{size}Q", body[at + 4 * size : at + 12 * size])))
        at += 12 * size
    assert at == len(body)
    events = struct.unpack(f"<{count}I", body[12 : 12 + 4 * count])
    return {"first_s": first_s, "last_s": last_s, "events": events, "others": tuple(others)}


def plain_velocity(row: VelocityRow) -> dict[str, Any]:
    return {**msgspec.structs.asdict(row), "others": tuple(tuple(seen) for seen in row.others)}


def account_of(body: bytes) -> dict[str, Any]:
    """As the page says."""
    assert body[0] == 1
    first_s, last_s, size = struct.unpack("<IIB", body[1:10])
    visitors = [struct.unpack("<IIIHIB", body[10 + 19 * at : 29 + 19 * at]) for at in range(size)]
    rest = body[10 + 19 * size :]
    activity = velocity_of(rest) if rest else plain_velocity(EMPTY)
    return {"first_s": first_s, "last_s": last_s, "visitors": visitors, "activity": activity}


def plain_account(record: AccountRecord) -> dict[str, Any]:
    visitors = [msgspec.structs.astuple(known) for known in record.visitors]
    return {**msgspec.structs.asdict(record), "visitors": visitors, "activity": plain_velocity(record.activity)}


def activity_of(body: bytes, day_of: Callable[[bytes], list[Any]]) -> list[Any]:
    """As the page says."""
    live, test = struct.unpack("<HH", body[:4])
    parts = body[4 : 4 + live], body[4 + live : 4 + live + test]
    rest = body[4 + live + test :]
    return [velocity_of(part) if part else plain_velocity(EMPTY) for part in parts] + (day_of(rest) if rest else [])


def day_of_visitor(body: bytes) -> list[Any]:
    day, lessons, slots, addresses, countries = struct.unpack("<IBBBB", body[:8])
    form = f"<{slots}I{slots}B{addresses}Q{addresses}I{2 * countries}s{countries}I"
    found = list(struct.unpack(form, body[8:]))
    codes = found.pop(2 * slots + 2 * addresses).decode()
    lists = found[: 2 * slots], found[2 * slots : 2 * (slots + addresses)], found[2 * (slots + addresses) :]
    activity, seen = (tuple(zip(of[: len(of) // 2], of[len(of) // 2 :], strict=True)) for of in lists[:2])
    in_country = tuple(zip((codes[at : at + 2] for at in range(0, len(codes), 2)), lists[2], strict=True))
    return [(activity, seen, in_country, lessons, day)]


def day_of_address(body: bytes) -> list[Any]:
    day, lessons, lookalikes, size = struct.unpack("<IBBB", body[:7])
    visitors = struct.unpack(f"<{size}Q", body[7 : 7 + 8 * size])
    codes = body[7 + 8 * size :].decode()
    homelands = tuple(codes[at : at + 2] for at in range(0, len(codes), 2))
    return [(visitors, homelands, lessons, lookalikes, day)]


def plain_activity(activity: VisitorActivity | AddressActivity) -> list[Any]:
    day = msgspec.structs.astuple(activity.history)
    rows = [plain_velocity(activity.live), plain_velocity(activity.test)]
    return rows + ([day] if activity.history.pack() else [])


def outcomes_of(body: bytes) -> list[Any]:
    """As the page says."""
    facts, places, times, lags, visitors, accounts, tails = msgspec.msgpack.decode(zlib.decompress(body))
    found: list[Any] = []
    made_ms = 0
    for at, place in enumerate(places):
        made_ms += times[at]
        request_id = made_ms.to_bytes(6, "big") + tails[10 * at : 10 * at + 10]
        found.append([request_id, made_ms + lags[at], visitors[at], accounts[at], facts[place]])
    return found


def plain_outcome(outcome: Outcome) -> list[Any]:
    return [outcome.request_id, outcome.at_ms, outcome.visitor, outcome.account, plain(outcome.facts)]


@pytest.mark.slow(0.3)
async def test_every_row_can_be_read_by_the_documented_format(tmp_path: Path):  # noqa: C901, PLR0912  one case for each form
    await populate(tmp_path)
    tables, records = documented_tables(), documented_records()
    by_name = {table.name: table for table in TABLES}
    assert list(tables) == list(by_name)
    seen: set[str] = set()
    for name, raw_key, value in rows_of(tmp_path):
        table, (types, kind) = by_name[name], tables[name]
        seen.add(name)
        assert key_of(types, raw_key) == table.key.unpack(raw_key)
        body, known = body_of(name, raw_key, value), table.decode(raw_key, value)
        match kind:
            case "i64":
                assert int.from_bytes(body, "big", signed=True) == known
            case "bytes":
                assert body == known
            case "Visitor":
                assert visitor_of(body) == msgspec.structs.asdict(known)
                if known.activity:
                    lately = VisitorActivity.unpack(known.activity)
                    assert activity_of(known.activity, day_of_visitor) == plain_activity(lately)
            case "Block":
                first, *numbers = struct.unpack(f"<{len(body) // 4}I", body)
                assert (first / 16, tuple(numbers)) == (known.count, known.numbers)
            case "DeliveryKey":
                assert (body[:16], DELIVERY_KINDS[body[16]]) == known
            case "AccountRecord":
                assert account_of(body) == plain_account(known)
            case "AddressActivity":
                assert activity_of(body, day_of_address) == plain_activity(known)
            case "Digests":
                assert struct.unpack(f"<{len(body) // 8}Q", body) == known.values
            case "HourCounts":
                assert tuple(msgspec.msgpack.decode(body)) == msgspec.structs.astuple(known)
            case "OutcomeSegment":
                assert outcomes_of(body) == [plain_outcome(outcome) for outcome in known.outcomes]
            case "DayOutcomes":
                assert msgspec.msgpack.decode(body) == plain(known)
            case "Event":
                read = dict(zip(records[kind], cbor2.loads(body), strict=True))
                outer = {name: plain(getattr(known, name)) for name in known.__struct_fields__ if name != "verdict"}
                inner = {name: plain(getattr(known.verdict, name)) for name in known.verdict.__struct_fields__}
                assert read == outer | inner
            case _:
                assert list(known.__struct_fields__) == records[kind]
                assert cbor2.loads(body) == plain(known)
    of_tables = {META.name, KEYS.name, VISITORS.name, BLOCKS.name, ACCOUNTS.name, ADDRESSES.name}
    assert of_tables | {"events", "hours", "ledger", "webhook_deliveries"} <= seen


@pytest.mark.slow(0.3)
async def test_every_name_in_meta_is_documented(tmp_path: Path):
    await populate(tmp_path)
    names = {key.decode().partition("/")[0] for table, key, _ in rows_of(tmp_path) if table == META.name}
    assert "version" in names
    assert [name for name in sorted(names) if f"`{name}" not in TEXT] == []


@pytest.mark.slow
def test_segments_can_be_read_by_the_documented_bytes(tmp_path: Path):
    """By them, every event is found under its level again."""
    chance = random.Random(4)
    made = [(1, uuid(number), event(chance, EPOCH_MS + number, environment="staging")) for number in range(1, 4200)]
    with filled_store(tmp_path, *made) as store:
        index(store)
    parts: dict[tuple[int, bytes], dict[int, bytes]] = {}
    for name, key, value in rows_of(tmp_path):
        if name == "event_segments":
            _, environment, part, arrival, request_id = key_of(documented_tables()[name][0], key)
            assert environment == 1
            parts.setdefault((arrival, request_id), {})[part] = body_of(name, key, value)
    levels: dict[bytes, str] = {}
    for bodies in parts.values():
        slots, found = slots_and_places(bodies[0] if 0 in bodies else bodies[1])
        for level in ("", *LEVELS):
            digest = int.from_bytes(hashlib.blake2b(f"level {level}".encode(), digest_size=8).digest(), "big")
            postings = found if 0 in bodies else slots_and_places(bodies[2 + (digest >> 59)])[1]
            levels |= {slots[place]: level for place in postings[digest]}
    assert sorted({0 in bodies for bodies in parts.values()}) == [False, True], "a small one and a large one"
    assert levels == {
        struct.pack(">Q16s", given.occurred_at_ms, request_id.bytes): given.verdict.suspect_level or ""
        for _, request_id, given in made[: 4096 + 64]
    }


def slots_and_places(body: bytes) -> tuple[list[bytes], dict[int, tuple[int, ...]]]:
    (slots,) = struct.unpack_from("<I", body)
    at = 4 + 24 * slots
    (count,) = struct.unpack_from("<I", body, at)
    digests = struct.unpack_from(f"<{count}Q", body, at + 4)
    ends = struct.unpack_from(f"<{count}I", body, at + 4 + 8 * count)
    places = struct.unpack_from(f"<{(len(body) - at - 4 - 12 * count) // 2}H", body, at + 4 + 12 * count)
    starts = (0, *ends)
    return (
        [body[4 + 24 * place : 28 + 24 * place] for place in range(slots)],
        {digest: places[start:end] for digest, start, end in zip(digests, starts, ends, strict=False)},
    )


def test_the_example_of_a_row_is_valid():
    ((key, value),) = re.findall(r"key `version` \(`(\w+)`\) the value `([\w ]+)`", TEXT)
    assert META.key.unpack(bytes.fromhex(key)) == ("version",)
    assert META.decode(bytes.fromhex(key), bytes.fromhex(value)) == 1


def test_every_file_is_documented_with_its_mode(released: Released, tmp_path: Path):
    """Of a data directory that was upgraded, served and followed, and of its backups."""
    directory, world = released.directory, World.real()
    upgrade(directory, world.run_sync, map_bytes=64 << 20, program="test", now_ms=world.now_ms)
    with (
        sole_process(directory, "svc serve", world.now_ms, reason="for a test"),
        files.exclusive(directory / "follower.lock", ""),
        files.exclusive(directory / "keeper.lock", ""),
    ):
        pass
    with read_only(directory / "store", live=True):
        pass
    backed_up = BackedUp(tmp_path)
    backed_up.follow()
    backed_up.snapshot(pepper=backed_up.data / "pepper")
    with backed_up.opened() as store, backed_up.following(store) as follower:
        backed_up.commit(store)
        assert follower.step()
        assert store.lost() is None
        store.engine.note_commit()
    patterns = {path: re.compile(_pattern(path)) for path in FILES}
    met: set[str] = set()
    for root in (directory, backed_up.data, backed_up.folder):
        for file in (path for path in root.rglob("*") if path.is_file()):
            name = file.relative_to(root).as_posix()
            (documented,) = [path for path, pattern in patterns.items() if pattern.fullmatch(name)]
            met.add(documented)
            if root != directory or "before" in name or name.endswith(".lock"):  # the others come out of an archive
                assert f"{file.stat().st_mode & 0o7777:04o}" == FILES[documented], name
        assert all(path.stat().st_mode & 0o077 == 0 for path in root.rglob("*") if path.is_dir() and root != directory)
    assert met == set(FILES) - {"dev-keys.json"}


def _pattern(path: str) -> str:
    pattern = re.escape(path).replace(r"\-N", "-N")
    for name, digits in NAMES.items():
        pattern = pattern.replace(name, digits)
    return pattern


def test_a_segment_and_its_batches_can_be_read_by_the_documented_format(tmp_path: Path):
    backed_up = BackedUp(tmp_path)
    backed_up.follow()
    with backed_up.opened() as store, backed_up.following(store) as follower:
        backed_up.commit(store, 3)
        assert follower.step()
    (segment,) = backed_up.folder.glob("operations-*.log")
    (manifest,) = [json.loads(path.read_bytes()) for path in backed_up.folder.glob("snapshot-*/manifest.json")]
    snapshot_file = next(backed_up.folder.glob("snapshot-*/data.mdb"))
    assert manifest["blake3"] == blake3(snapshot_file.read_bytes()).hexdigest()
    assert manifest["bytes"] == snapshot_file.stat().st_size
    raw = segment.read_bytes()
    timeline = raw[9:25]
    assert (raw[:9], timeline.hex()) == (b"svc log 1", manifest["timeline"])
    expected, at = int.from_bytes(raw[25:33], "big"), 33
    rows: dict[str, dict[bytes, bytes | None]] = {}
    while at < len(raw):
        head, batch_bytes = raw[at : at + 12], int.from_bytes(raw[at + 8 : at + 12], "big")
        assert int.from_bytes(head[:8], "big") == expected
        assert int.from_bytes(raw[at + 12 : at + 16], "big") == zlib.crc32(timeline + head)
        batch = raw[at + 16 : at + 16 + batch_bytes]
        assert batch[:16] == blake3(batch[16:]).digest(16)
        assert int.from_bytes(batch[16:24], "big") <= backed_up.clock.now_ms
        for table, changed in msgspec.msgpack.decode(batch[24:], type=dict[str, dict[bytes, bytes | None]]).items():
            rows.setdefault(table, {}).update(changed)
        at, expected = at + 16 + batch_bytes, expected + 1
    assert expected == manifest["sequence"] + 1 + 3
    now = {(table, key): value for table, key, value in rows_of(backed_up.data)}
    assert {
        (table, key): value for table, changed in rows.items() for key, value in changed.items()
    }.items() <= now.items()
    for key, value in rows["ledger"].items():
        assert value is not None
        assert body_of("ledger", key, value)
