"""Two devices that passed for one visitor: which token, and which address, tells them apart again."""

from __future__ import annotations

import msgspec
import pytest

from svc.domain.matching import Statistics, match_visitor
from svc.domain.matching.blocks import token_key
from svc.domain.matching.calibration import NEAR, SURROUNDINGS, WIDE
from svc.domain.matching.decision import decide
from svc.domain.matching.parameters import PROBATION_DAYS
from svc.domain.matching.recognition import likeliest_visitor
from svc.domain.matching.visitor import CAME_BACK, IN_DOUBT, STRANGERS, VARIES, Visitor
from svc.domain.model import Attribute
from tests.domain.matching_world import DAY_MS, DESKTOP_VALUES, START_MS, Organization, features_of, other_device

OWN, OTHER = "token-of-the-owner-01234", "token-of-the-other-device"
HOME, NEIGHBOUR, WIDE_HOME, ELSEWHERE = "81.2.69.142", "81.2.69.9", "81.2.99.3", "203.0.113.9"
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


def joined(organization: Organization, number: int, ip: str, probation: int, *, changed: bool = False) -> None:
    """The other device passed for this visitor and left its token there."""
    report = features_of(CHANGED if changed else None, token=OTHER, token_is_new=True, ip=ip)
    before = record(organization, number)
    after = before.counted(report) if probation == IN_DOUBT else before.updated(report, START_MS + 3 * DAY_MS)
    if probation == 0:
        after = msgspec.structs.replace(after, probation=(0, *after.probation[1:]))
    assert after.token_probation(report.token) == probation
    organization.visitors[number] = after.pack()
    key = token_key(report.token)
    organization.blocks[key] = organization.block(key).with_posting(number, 1.0).pack()


@pytest.mark.parametrize("ip", [HOME, WIDE_HOME, ELSEWHERE])
@pytest.mark.parametrize("probation", [PROBATION_DAYS, IN_DOUBT])
def test_a_token_that_joined_by_likeness_is_another_devices_once_the_older_one_returns(ip: str, probation: int) -> None:
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, ip, probation, changed=True)
    back = organization.visit(features_of(token=OWN), START_MS + 4 * DAY_MS)
    assert (back.number, back.outcome) == (owner, "token")
    assert record(organization, owner).token_probation(features_of(token=OTHER).token) == STRANGERS
    other = organization.visit(features_of(CHANGED, token=OTHER, ip=ip), START_MS + 5 * DAY_MS)
    assert other.is_new
    again = organization.visit(features_of(CHANGED, token=OTHER, ip=ip), START_MS + 6 * DAY_MS)
    assert (again.number, again.outcome) == (other.number, "token")
    assert organization.visit(features_of(token=OWN), START_MS + 7 * DAY_MS).number == owner


@pytest.mark.parametrize(("probation", "shared"), [(PROBATION_DAYS, False), (IN_DOUBT, True)])
def test_one_browser_on_two_sites_keeps_both_tokens_unless_one_joined_in_doubt(probation: int, *, shared: bool) -> None:
    """The same report from the same network with each of them."""
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, HOME, probation)
    organization.visit(features_of(token=OWN), START_MS + 4 * DAY_MS)
    other = organization.visit(features_of(token=OTHER), START_MS + 5 * DAY_MS)
    assert (other.number != owner) is shared


def test_the_older_token_is_never_given_up_for_one_on_probation() -> None:
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, WIDE_HOME, PROBATION_DAYS)
    before = record(organization, owner)
    # The owner's token was the last one, and the other device comes from its own network.
    own = features_of(token=OWN)
    turned = msgspec.structs.replace(before, tokens=before.tokens[::-1], probation=before.probation[::-1])
    organization.visitors[owner] = turned.pack()
    organization.visit(features_of(CHANGED, token=OTHER, ip=WIDE_HOME), START_MS + 4 * DAY_MS)
    assert organization.block(token_key(own.token)).numbers == (owner,)


def test_of_two_proven_tokens_the_newest_is_dropped_and_may_join_again() -> None:
    organization = Organization()
    owner = owned(organization)
    joined(organization, owner, HOME, 0)
    organization.visit(features_of(token=OTHER), START_MS + 3 * DAY_MS)
    organization.visit(features_of(CHANGED, token=OWN), START_MS + 4 * DAY_MS)
    other = features_of(token=OTHER)
    assert other.token | CAME_BACK not in record(organization, owner).tokens
    assert organization.visit(other, START_MS + 5 * DAY_MS).number == owner


def test_a_token_that_joined_in_doubt_finds_its_visitor_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The record stays as it is, but for token and report."""
    organization = Organization()
    owner = owned(organization)
    before = record(organization, owner)

    def calibrated(*_: object) -> float:
        return 0.85

    monkeypatch.setattr(Statistics, "calibrated", calibrated)
    report = features_of(CHANGED, token=OTHER, token_is_new=True, ip=ELSEWHERE)
    seen = organization.visit(report, START_MS + 3 * DAY_MS)
    assert (seen.number, seen.outcome) == (owner, "match")
    after = record(organization, owner)
    assert (after.values, after.networks) == (before.values, before.networks)
    assert after.token_probation(report.token) == IN_DOUBT
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
    report = features_of(CHANGED, ip=NEIGHBOUR)
    kinds: list[int] = []
    for known in (visitor, visitor.updated(features_of(token=OWN, ip=NEIGHBOUR), START_MS + 3 * DAY_MS, proven=True)):
        decision = decide(report, START_MS + 4 * DAY_MS, {}, [(1, known)], (), organization.statistics)
        kinds.append(decision.kind % SURROUNDINGS)
    assert kinds == [WIDE, NEAR]


def test_an_address_varies_once_proven_visits_came_from_several() -> None:
    home, neighbour = features_of(token=OWN), features_of(token=OWN, ip=NEIGHBOUR)
    organization = Organization()
    visitor = record(organization, owned(organization))
    assert visitor.addresses == (home.address,)
    assert visitor.updated(neighbour, START_MS).addresses == (home.address,)
    varied = visitor.updated(neighbour, START_MS, proven=True)
    assert varied.addresses == (VARIES,)
    assert varied.updated(home, START_MS, proven=True).addresses == (VARIES,)
    assert not varied.is_proven_address(home)
