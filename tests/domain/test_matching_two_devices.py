"""Two devices that passed for one visitor: which token, and which address, tells them apart again."""

from __future__ import annotations

import msgspec
import pytest

from svc.identify.matching import match_visitor
from svc.identify.matching.blocks import token_key
from svc.identify.matching.decision import decide
from svc.identify.matching.likelihood import NEAR, SURROUNDINGS, WIDE
from svc.identify.matching.parameters import PROBATION_DAYS
from svc.identify.matching.recognition import likeliest_visitor
from svc.identify.matching.tokens import IN_DOUBT, STRANGERS
from svc.identify.matching.visitor import VARIES, Visitor
from svc.identify.model import Attribute
from tests.domain.matching_world import DAY_MS, DESKTOP_VALUES, START_MS, Organization, features_of, other_device

OWN, OTHER = "token-of-the-owner-01234", "token-of-the-other-device"
HOME, NEIGHBOR, WIDE_HOME, ELSEWHERE = "81.2.69.142", "81.2.69.9", "81.2.99.3", "203.0.113.9"
CHANGED = DESKTOP_VALUES | {Attribute.CANVAS: "another"}


def owned(organization: Organization) -> int:
    """The number of a visitor whose token came back twice, from home."""
    first, *_ = [
        organization.visit(features_of(token=OWN, token_is_new=day == 0), START_MS + day * DAY_MS) for day in range(3)
    ]
    return first.number


def record(organization: Organization, number: int) -> Visitor:
    found = organization.visitor(number)
    assert found is not None
    return found


def probation_of(organization: Organization, number: int, token: str) -> int | None:
    """`None` where the record has it no longer."""
    found = record(organization, number).token(features_of(token=token).token)
    return None if found is None else found.probation


def joined(
    organization: Organization,
    number: int,
    ip: str,
    probation: int,
    *,
    changed: bool = False,
    origin: str | None = None,
) -> None:
    """The other device passed for this visitor and left its token there."""
    report = features_of(CHANGED if changed else None, token=OTHER, token_is_new=True, ip=ip, origin=origin)
    before = record(organization, number)
    now_ms = START_MS + 3 * DAY_MS
    after = before.counted(report, now_ms) if probation == IN_DOUBT else before.updated(report, now_ms)
    if probation == 0:
        tokens = tuple(msgspec.structs.replace(token, probation=0) for token in after.tokens)
        after = msgspec.structs.replace(after, tokens=tokens)
    organization.visitors[number] = after.pack()
    assert probation_of(organization, number, OTHER) == probation
    key = token_key(report.token)
    organization.blocks[key] = organization.block(key).with_posting(number, 1.0).pack()


@pytest.mark.parametrize("ip", [HOME, WIDE_HOME, ELSEWHERE])
@pytest.mark.parametrize("probation", [0, PROBATION_DAYS, IN_DOUBT])
def test_a_token_that_joined_by_likeness_is_another_devices_once_the_older_one_returns(ip: str, probation: int) -> None:
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, ip, probation, changed=True)
    back = organization.visit(features_of(token=OWN), START_MS + 4 * DAY_MS)
    assert (back.number, back.outcome) == (owner, "token")
    assert probation_of(organization, owner, OTHER) == STRANGERS
    other = organization.visit(features_of(CHANGED, token=OTHER, ip=ip), START_MS + 5 * DAY_MS)
    assert (other.is_new, other.split_from) == (True, owner)
    assert probation_of(organization, owner, OTHER) is None
    again = organization.visit(features_of(CHANGED, token=OTHER, ip=ip), START_MS + 6 * DAY_MS)
    assert (again.number, again.outcome, again.split_from) == (other.number, "token", None)
    back = organization.visit(features_of(token=OWN), START_MS + 7 * DAY_MS)
    assert (back.number, back.outcome) == (owner, "token")


@pytest.mark.parametrize(("origin", "shared"), [(None, True), ("https://the-other-site.example", False)])
@pytest.mark.parametrize("probation", [0, PROBATION_DAYS, IN_DOUBT])
def test_one_browser_on_two_sites_keeps_both_tokens(probation: int, *, origin: str | None, shared: bool) -> None:
    """The same report from the same network with each of them; those of one site are two browsers'."""
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, HOME, probation, origin=origin)
    organization.visit(features_of(token=OWN), START_MS + 4 * DAY_MS)
    other = organization.visit(features_of(token=OTHER, origin=origin), START_MS + 5 * DAY_MS)
    assert (other.number != owner) is shared
    assert other.split_from == (owner if shared else None)


@pytest.mark.parametrize("probation", [0, PROBATION_DAYS])
def test_the_older_token_is_never_given_up_for_one_that_joined_beside_it(probation: int) -> None:
    """Whichever came last: that it came back says nothing of the older."""
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, WIDE_HOME, probation)
    assert organization.visit(features_of(CHANGED, token=OTHER, ip=WIDE_HOME), START_MS + 4 * DAY_MS).number == owner
    assert probation_of(organization, owner, OWN) == 0
    assert organization.visit(features_of(token=OWN), START_MS + 5 * DAY_MS).number == owner
    assert probation_of(organization, owner, OTHER) == STRANGERS


def test_a_token_that_joined_in_doubt_finds_its_visitor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record stays as it is, but for token and report."""
    organization = Organization()
    owner = owned(organization)
    before = record(organization, owner)

    def calibrated(*_: object) -> float:
        return 0.85

    monkeypatch.setattr("svc.identify.matching.decision.calibrated", calibrated)
    report = features_of(CHANGED, token=OTHER, token_is_new=True, ip=ELSEWHERE)
    seen = organization.visit(report, START_MS + 3 * DAY_MS)
    assert (seen.number, seen.outcome) == (owner, "match")
    after = record(organization, owner)
    assert (after.values, after.networks) == (before.values, before.networks)
    assert probation_of(organization, owner, OTHER) == IN_DOUBT
    again = features_of(CHANGED, token=OTHER, ip=ELSEWHERE)
    recognition = match_visitor(organization, organization.statistics, again, START_MS + 4 * DAY_MS)
    assert (recognition.number, recognition.outcome) == (owner, "exact")


def test_the_visitor_of_a_token_on_probation_is_a_candidate_whatever_the_blocks_list() -> None:
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, HOME, PROBATION_DAYS)
    seen = features_of(other_device("no block"), token=OTHER, ip=ELSEWHERE, fonts=("Ubuntu",))
    found = likeliest_visitor(organization, organization.statistics, seen, START_MS + 4 * DAY_MS)
    assert [number for number, _ in found.candidates] == [owner]
    stranger = msgspec.structs.replace(seen, token=seen.token ^ 2)
    assert not likeliest_visitor(organization, organization.statistics, stranger, START_MS + 4 * DAY_MS).candidates


def test_another_address_of_a_network_says_as_much_as_the_wide_network() -> None:
    """Until proven visits came from several: behind a carrier, or an office with a pool of addresses."""
    organization = Organization()
    visitor = record(organization, owned(organization))
    report = features_of(CHANGED, ip=NEIGHBOR)
    kinds: list[int] = []
    for known in (visitor, visitor.updated(features_of(token=OWN, ip=NEIGHBOR), START_MS + 3 * DAY_MS, proven=True)):
        decision = decide(report, START_MS + 4 * DAY_MS, {}, [(1, known)], (), organization.statistics)
        kinds.append(decision.kind % SURROUNDINGS)
    assert kinds == [WIDE, NEAR]


def test_an_address_varies_once_proven_visits_came_from_several() -> None:
    home, neighbor = features_of(token=OWN), features_of(token=OWN, ip=NEIGHBOR)
    organization = Organization()
    visitor = record(organization, owned(organization))
    assert visitor.addresses == (home.address,)
    assert visitor.updated(neighbor, START_MS).addresses == (home.address,)
    varied = visitor.updated(neighbor, START_MS, proven=True)
    assert varied.addresses == (VARIES,)
    assert varied.updated(home, START_MS, proven=True).addresses == (VARIES,)
    assert not varied.is_proven_address(home)
