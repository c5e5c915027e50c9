"""The count of an organization's active keys, beside a look at every key."""

from __future__ import annotations

import random
from functools import partial
from pathlib import Path

import pytest

from svc.features.checks.invariants import violations
from svc.features.organizations.jobs import create_organization
from svc.features.schema import SCHEMA
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.jobs import counted_keys, issue_key, purge_key, revoke_all_keys, revoke_key
from svc.kernel.limits.quotas import ActiveKeys, Holding
from svc.kernel.store.opening import open_store
from svc.kernel.store.snapshot import Transaction
from svc.kernel.store.store import Store
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.queries import keys_of
from svc.kernel.tenants.tables import HOLDINGS
from svc.kernel.values.ids import DAY_MS
from svc.kernel.values.refusals import Refusal
from svc.world import World
from tests.support.effort import effort
from tests.support.worlds import EPOCH_MS

ORGANIZATIONS = (1, 2)


def key_of(number: int, place: int, now_ms: int, expires_at_ms: int | None = None) -> ApiKey:
    return ApiKey(
        id=f"key_{place:020}",
        organization=number,
        kind="secret",
        name="",
        environment="staging",
        region="us",
        role=None,
        platforms=(),
        allowed_origins=(),
        prefix="svc_sk_us_staging",
        last4="abcd",
        created_at_ms=now_ms,
        expires_at_ms=expires_at_ms,
    )


def digest_of(place: int) -> bytes:
    return place.to_bytes(32)


def create(transaction: Transaction) -> None:
    for number in ORGANIZATIONS:
        create_organization(
            transaction, organization_id=f"org_{number}", name="shop", now_ms=EPOCH_MS, rate_limit_per_s=0
        )


def opened(path: Path, versions: int = SCHEMA.version) -> Store:
    return open_store(
        path, World.real().run_sync, durable=False, map_bytes=16 << 20, migrations=SCHEMA.migrations[:versions]
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(effort(1, 4)))
def test_the_key_count_always_equals_a_full_count(tmp_path: Path, seed: int):
    """Issued, revoked, expired, deleted; with a clock that also goes back."""
    chance, store, now_ms = random.Random(seed), opened(tmp_path), EPOCH_MS
    places = iter(range(10_000))

    def step(transaction: Transaction) -> None:
        number = chance.choice(ORGANIZATIONS)
        known = keys_of(transaction, number)
        act = chance.random()
        if act < 0.55 or not known:
            place = next(places)
            expires_at_ms = chance.choice((None, now_ms + chance.choice((1, 5_000, 5_000, 90_000))))
            issue_key(transaction, key_of(number, place, now_ms, expires_at_ms), digest_of(place))
        elif act < 0.85:
            revoke_key(transaction, chance.choice(known).id, now_ms)
        elif act < 0.99:
            key = chance.choice(known)
            purge_key(transaction, key, digest_of(int(key.id[4:])), now_ms)
        else:
            revoke_all_keys(transaction, number, now_ms)

    assert store.write_now([create]) == [None]
    for _ in range(400):
        now_ms += chance.choice((0, 1, 3_000, 3_000, -20_000))
        assert store.write_now([step]) == [None]
        with store.read() as snapshot:
            assert list(violations(snapshot)) == []
            for number in ORGANIZATIONS:
                kept = holding(snapshot, number).active_keys
                usable = sum(key.usable(now_ms) for key in keys_of(snapshot, number))
                if kept is not None and kept.as_of_ms <= now_ms:
                    assert kept.at(now_ms).count == usable
    store.close()


def test_keys_of_version_1_are_counted(tmp_path: Path):
    """Those that had expired before are left out at the next change."""
    keys = [
        key_of(1, place, EPOCH_MS, expires_at_ms)
        for place, expires_at_ms in enumerate((None, None, EPOCH_MS + 1, EPOCH_MS + 9, EPOCH_MS + 5))
    ]

    def as_before(transaction: Transaction) -> None:
        create(transaction)
        for place, key in enumerate(keys):
            issue_key(transaction, key, digest_of(place))
        revoke_key(transaction, keys[0].id, EPOCH_MS)
        for number in ORGANIZATIONS:
            transaction.delete(HOLDINGS, number)

    store = opened(tmp_path, versions=1)
    assert store.write_now([as_before]) == [None]
    store.close()
    store = opened(tmp_path)
    with store.read() as snapshot:
        counts = [holding(snapshot, number).active_keys for number in ORGANIZATIONS]
        assert list(violations(snapshot)) == []
    assert counts == [ActiveKeys(1, (EPOCH_MS + 1, EPOCH_MS + 5, EPOCH_MS + 9)), ActiveKeys()]
    issue = partial(issue_key, key=key_of(1, 9, EPOCH_MS + 5), digest=digest_of(9))
    (issued,) = store.write_now([issue])
    assert isinstance(issued, ApiKey)
    with store.read() as snapshot:
        active = ActiveKeys(2, (EPOCH_MS + 9,), EPOCH_MS + 5)
        assert holding(snapshot, 1) == Holding(day=EPOCH_MS // DAY_MS, keys_issued=1, active_keys=active)
        assert counted_keys(snapshot, 1, EPOCH_MS + 5).count == 3
    store.close()


def test_a_refused_key_changes_nothing_and_the_daily_count_ends_with_its_day(tmp_path: Path):
    """Decisions 2.5."""
    store = opened(tmp_path)
    assert store.write_now([create]) == [None]

    def issued(place: int, now_ms: int) -> str:
        issue = partial(issue_key, key=key_of(1, place, now_ms), digest=digest_of(place), keys_per_day=2)
        (outcome,) = store.write_now([issue])
        assert isinstance(outcome, ApiKey | Refusal)
        return outcome.code if isinstance(outcome, Refusal) else "issued"

    last_ms = (EPOCH_MS // DAY_MS + 1) * DAY_MS - 1
    assert [issued(place, last_ms) for place in range(3)] == ["issued", "issued", "rate_limited"]
    with store.read() as snapshot:
        assert len(keys_of(snapshot, 1)) == 2
    assert [issued(place, last_ms + 1) for place in range(3, 6)] == ["issued", "issued", "rate_limited"]
    store.close()
