"""Addresses that bring more new visitors than people: what still comes from there, and what it changes (ADR 77)."""

from __future__ import annotations

import pytest

from svc.identify.matching import blocks
from svc.identify.matching.visitor import Visitor
from tests.domain.matching_world import DAY_MS, DESKTOP_VALUES, START_MS, Organization, Seen, features_of, other_device

HOME, ELSEWHERE, FLOOD = "81.2.69.142", "151.101.3.10", "203.0.113.9"
HOUR_MS = DAY_MS // 24
TOKEN = "token-of-the-first-visit"
MINE = other_device("regular 0")
ATTRIBUTE_KINDS = set(b"XEABCD")


DAYS = 20


def regulars() -> Organization:
    """Twenty devices that came from home on twenty days, without tokens; that of `MINE` is number 1."""
    organization = Organization()
    for day in range(DAYS):
        for place in range(20):
            device = other_device(f"regular {place}")
            organization.visit(features_of(device, ip=f"151.{place}.3.10"), START_MS + day * DAY_MS + place * 60_000)
    return organization


def copies(organization: Organization, count: int, *, tokens: bool, flooding: bool) -> list[Seen]:
    """Reports of `MINE` from elsewhere on the day after, each with a token of its own or none with any."""
    return [
        organization.visit(
            features_of(MINE, ip=FLOOD, token=f"token-of-copy-{copy:04d}" if tokens else None, token_is_new=tokens),
            START_MS + DAYS * DAY_MS + copy * 1000,
            flooding=flooding,
        )
        for copy in range(count)
    ]


def kinds(organization: Organization, number: int) -> set[int]:
    """Of the blocks in which a visitor stands."""
    return {key[0] for key in organization.blocks if number in organization.block(key).numbers}


def record(organization: Organization, number: int) -> Visitor:
    found = organization.visitor(number)
    assert found is not None
    return found


@pytest.mark.parametrize("flooding", [True, False])
def test_copies_from_a_flooding_address_do_not_make_their_original_ambiguous(flooding: bool) -> None:
    organization = regulars()
    assert all(seen.number != 1 for seen in copies(organization, 60, tokens=True, flooding=flooding))
    seen = organization.visit(features_of(MINE, ip=ELSEWHERE), START_MS + (DAYS + 1) * DAY_MS)
    assert (seen.number == 1) == flooding


@pytest.mark.parametrize("flooding", [True, False])
def test_a_likeness_from_a_flooding_address_changes_no_visitor(flooding: bool) -> None:
    organization = regulars()
    before = dict(organization.visitors), dict(organization.blocks)
    assert {seen.number for seen in copies(organization, 3, tokens=False, flooding=flooding)} == {1}
    assert ((organization.visitors, organization.blocks) == before) == flooding


def test_a_new_visitor_with_a_report_of_its_own_is_listed_wherever_it_comes_from() -> None:
    organization = Organization()
    seen = organization.visit(features_of(MINE, ip=FLOOD), flooding=True)
    assert kinds(organization, seen.number) == ATTRIBUTE_KINDS | set(b"N")


def test_a_lookalike_from_a_flooding_address_is_listed_once_it_comes_back_on_another_day() -> None:
    organization = Organization()
    device = other_device("of an office")
    organization.visit(features_of(device, ip=HOME))
    seen = organization.visit(features_of(device, ip=FLOOD, token=TOKEN, token_is_new=True), flooding=True)
    assert seen.is_new
    assert kinds(organization, seen.number) == set(b"NT")
    again = organization.visit(features_of(device, ip=FLOOD, token=TOKEN), START_MS + 1000, flooding=True)
    assert (again.number, again.confidence) == (seen.number, 100)
    assert kinds(organization, seen.number) == set(b"NT"), "the same day"
    tomorrow = organization.visit(features_of(device, ip=ELSEWHERE, token=TOKEN), START_MS + DAY_MS)
    assert tomorrow.number == seen.number
    assert kinds(organization, seen.number) == ATTRIBUTE_KINDS | set(b"NT")
    exact = organization.block(blocks.exact_key(features_of(device).exact))
    assert (exact.count, exact.numbers) == (2.0, (seen.number, 1)), "counted once"
    lost = organization.visit(features_of(device, ip=ELSEWHERE), START_MS + 2 * DAY_MS)
    assert lost.number == seen.number, "without a token, too"


def test_a_lookalike_from_a_flooding_address_is_found_again_on_its_network_without_a_token() -> None:
    organization = Organization()
    device = other_device("of an office")
    organization.visit(features_of(device, ip=HOME))
    seen = organization.visit(features_of(device, ip=FLOOD), flooding=True)
    changed = {**device, next(iter(DESKTOP_VALUES)): "another"}
    for hours, report in ((7, device), (9, changed)):  # all on one UTC day
        again = organization.visit(features_of(report, ip=FLOOD), START_MS + hours * HOUR_MS, flooding=True)
        assert again.number == seen.number
    assert record(organization, seen.number).visits == 3, "its own network proves it, so that it is remembered"
    assert not record(organization, seen.number).listed
    assert organization.visit(features_of(device, ip=ELSEWHERE), START_MS + DAY_MS).is_new
