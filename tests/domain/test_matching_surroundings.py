"""What the surroundings of a report say: hidden addresses, private windows, and trials that a network proves."""

from __future__ import annotations

import msgspec
import pytest

from svc.domain.matching import extract, match_visitor
from svc.domain.matching.parameters import TRIAL_SHARES
from svc.domain.model import Agent, Attribute, Network, Report, RequestFacts
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    MINUTE_MS,
    START_MS,
    Organization,
    features_of,
    other_device,
)

HOME, ELSEWHERE = "81.2.69.142", "203.0.114.9"
SAFARI = Agent(browser_family="safari", browser_version=1850, os_family="mac", os_release=1500)
TOKEN = "t0ken-of-the-first-browser"


def populated() -> Organization:
    """Sixty devices that have nothing telling in common, each seen twice at its own network."""
    organization = Organization()
    for number in range(60):
        features = features_of(other_device(str(number)), ip=f"91.{number}.7.1")
        organization.visit(features, START_MS - 20 * DAY_MS + number * MINUTE_MS)
        organization.visit(features, START_MS - 10 * DAY_MS + number * MINUTE_MS)
    return organization


@pytest.mark.parametrize("kind", ["tor", "vpn", "relay", "proxy"])
def test_an_address_that_hides_its_user_is_no_evidence(kind: str) -> None:
    report = Report(collectors=("plain",), attributes={Attribute.GPU: "plain:intel"})
    hidden = extract(report, CHROME, RequestFacts(ip=HOME), Network(state="enriched", **{kind: True}))
    shown = extract(report, CHROME, RequestFacts(ip=HOME), Network(state="enriched", hosting=True))
    assert (hidden.near_network, hidden.wide_network) == (0, 0)
    assert shown == extract(report, CHROME, RequestFacts(ip=HOME))
    assert shown.near_network


def test_a_known_device_behind_a_vpn_is_likelier_a_return_than_one_from_far_away() -> None:
    moved = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "c", Attribute.REST: "a=2"}, ip=ELSEWHERE)
    hidden = msgspec.structs.replace(moved, near_network=0, wide_network=0)
    organization = populated()
    organization.visit(features_of(ip=HOME))
    organization.visit(features_of(ip=HOME), START_MS + DAY_MS)
    behind_a_vpn, far_away = (
        match_visitor(organization, organization.statistics, features, START_MS + 3 * DAY_MS).lesson.returned
        for features in (hidden, moved)
    )
    assert behind_a_vpn is not None
    assert far_away is not None
    assert behind_a_vpn > 2 * far_away


def test_a_private_windows_noise_in_the_canvas_does_not_hide_its_visitor() -> None:
    seen = []
    for agent in (SAFARI, CHROME):
        organization = populated()
        first = organization.visit(features_of(agent=agent, token=TOKEN, token_is_new=True))
        organization.visit(features_of(agent=agent, token=TOKEN), START_MS + DAY_MS)
        private = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "noise"}, agent=agent, ip=ELSEWHERE)
        private = msgspec.structs.replace(private, wide_network=features_of().wide_network)
        again = organization.visit(private, START_MS + 2 * DAY_MS)
        seen.append((again.number == first.number, again.confidence))
    assert seen[0][0]
    assert seen[0][1] > seen[1][1]


def test_a_visit_that_its_own_network_proves_is_tried_as_if_it_came_from_elsewhere() -> None:
    organization = populated()
    organization.visit(features_of())
    organization.visit(features_of(), START_MS + DAY_MS)
    tried = []
    for second in range(TRIAL_SHARES[0]):
        recognition = match_visitor(
            organization, organization.statistics, features_of(), START_MS + 2 * DAY_MS + second * 1000
        )
        assert recognition.number is not None
        tried.append(recognition.lesson.trials)
    assert sum(bool(trials) for trials in tried) == 1
    (trials,) = filter(None, tried)
    assert trials[0].right
    assert sum(trial.weight for trial in trials) <= 1.0


def test_a_doubtful_visit_leaves_the_template_and_its_time_alone() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    visitor = organization.visitor(first.number)
    assert visitor is not None
    counted = visitor.counted(features_of(DESKTOP_VALUES | {Attribute.CANVAS: "another"}))
    assert (counted.values, counted.last_seen_s) == (visitor.values, visitor.last_seen_s)
    assert counted.visits == visitor.visits + 1
    assert counted.exact_hashes != visitor.exact_hashes


def test_without_tokens_doubtful_splits_do_not_talk_an_organization_out_of_returns() -> None:
    organization = Organization()
    for number in range(200):
        organization.visit(features_of(other_device(str(number)), ip=f"91.{number}.7.1"), START_MS + number * MINUTE_MS)
    assert organization.statistics.return_rate(features_of()) >= 0.5
    assert organization.statistics.return_rate(features_of(token=TOKEN, token_is_new=True)) < 0.5
