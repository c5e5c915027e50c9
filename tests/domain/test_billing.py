from svc.domain.billing import (
    MICROS_PER_USD,
    OVERDUE_MS,
    SETTLED_AFTER_MS,
    TRANSITIONS,
    LedgerEntry,
    Usage,
    counters,
    price_micros,
    refused_for_money,
)


def test_an_identification_costs_3000_micros_and_500_if_unidentifiable():
    assert price_micros(environment="production", state="enriched", identifiable=True) == 3000
    assert price_micros(environment="production", state="enriched", identifiable=False) == 500


def test_other_environments_and_unavailable_lookups_are_free():
    for environment in ("staging", "development"):
        assert price_micros(environment=environment, state="enriched", identifiable=True) == 0
    assert price_micros(environment="production", state="unavailable", identifiable=True) == 0


def _refused(**changes: object):
    case = {"environment": "production", "status": "free", "balance_micros": 3000, "credit_limit_micros": 0}
    return refused_for_money(**{**case, "price": 3000, **changes})


def test_credit_is_checked_against_the_price_of_this_very_identification():
    assert _refused() is None
    assert _refused(balance_micros=2999) == "no_credit"
    assert _refused(balance_micros=2999, price=500) is None
    assert _refused(balance_micros=0, credit_limit_micros=3000) is None
    assert _refused(balance_micros=0, price=0) is None


def test_blocked_is_checked_first_and_only_in_production():
    assert _refused(status="blocked", balance_micros=0) == "billing_blocked"
    assert _refused(status="blocked", environment="staging", balance_micros=0) is None
    assert _refused(status="past_due") is None


def test_any_status_can_become_blocked_and_none_leads_to_itself():
    for status, following in TRANSITIONS.items():
        assert status not in following
        assert status == "blocked" or "blocked" in following


def test_ledger_lines_are_grouped_by_kind_and_price():
    prices = (3_000, 3_000, 3_000, 500, 500, 0, 0)
    lines = [LedgerEntry("identification", -price, 0) for price in prices]
    lines += [LedgerEntry("credit", 70, 0), LedgerEntry("credit", -20, 0)]
    usage = counters(lines)
    assert usage == Usage(identifiable=3, unidentifiable=2, free=2, charged_micros=10_000, credited_micros=50)
    assert (usage.identifications, usage.change_micros) == (7, 50 - 10_000)
    assert usage.change_micros == sum(line.amount_micros for line in lines)
    assert counters(lines[:3]) + counters(lines[3:]) == usage
    assert counters(()) == Usage()


def test_times_and_units_are_as_decided():
    """Decisions 5.1, 5.3, 5.4."""
    assert MICROS_PER_USD == 1_000_000
    assert OVERDUE_MS == 7 * 86_400_000
    assert SETTLED_AFTER_MS == 300_000
