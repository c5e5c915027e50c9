"""What an organization may hold, and take of a day (decisions 4)."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.limits.quotas import (
    PAGE_BYTES,
    Holding,
    Quotas,
    has_capacity,
    may_archive,
    may_identify,
    row_bytes,
    seconds_to_midnight,
)
from svc.kernel.tenants.billing import IDENTIFIABLE_MICROS, UNIDENTIFIABLE_MICROS, LedgerEntry, Usage, counters
from svc.kernel.values.ids import DAY_MS

CAPACITY = 1 << 20


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 5_000), st.booleans(), st.integers(0, DAY_MS // 3)), max_size=60)
)
def test_no_day_exceeds_its_budgets_and_nothing_exceeds_its_share(
    sent: list[tuple[bool, int, bool, int]],
):
    quotas = Quotas(5, 8_000, 4_000, 0.1)
    held, at_ms = Holding(), 0
    billed_on, bill = 0, Usage()
    days: dict[tuple[int, bool], list[int]] = {}
    for production, length, is_new, step in sent:
        at_ms += step
        held = held.on(at_ms)
        if may_identify(held, quotas, CAPACITY, production=production) is not None:
            assert not production or held.held_bytes >= CAPACITY * 0.1
            continue
        fits = may_archive(held, quotas, length, production=production)
        kept = row_bytes(length) if fits else 0
        price = (0, UNIDENTIFIABLE_MICROS, IDENTIFIABLE_MICROS)[length % 3] if production else 0
        held = held.with_identification(visitors=int(is_new), report_bytes=kept, production=production, price=price)
        if (day := at_ms // DAY_MS) != billed_on:
            billed_on, bill = day, Usage()
        if production:
            bill += counters([LedgerEntry("identification", -price, at_ms)])
        assert held.usage == bill
        days.setdefault((at_ms // DAY_MS, production), []).append(kept)
    for (_, production), kept in days.items():
        budget = 8_000 if production else 4_000
        assert sum(kept) <= budget + PAGE_BYTES, "over the budget by more than one row's last page"
        assert production or len(kept) <= 5
    assert held.events == sum(map(len, days.values()))
    assert held.report_bytes == sum(map(sum, days.values()))


def test_a_large_row_occupies_whole_pages():
    assert [row_bytes(length) for length in (0, 2_000, 2_001, 4_096, 4_097)] == [0, 2_000, 4_096, 4_096, 8_192]


def test_a_share_is_used_up_at_its_last_byte():
    quotas = Quotas(store_share=0.5)
    held = Holding(report_bytes=500)
    assert has_capacity(held, quotas, 1_001)
    assert not has_capacity(held, quotas, 1_000)


def test_midnight_is_at_least_a_second_away():
    assert [seconds_to_midnight(at_ms) for at_ms in (0, DAY_MS - 1, DAY_MS - 1_000)] == [86_400, 1, 1]
