"""What the network context of a report says: hidden addresses, private windows, what a doubtful visit leaves."""

from __future__ import annotations

import msgspec
import pytest

from svc.identify.matching import Statistics, StatisticsUpdate, extract, match_visitor, parameters
from svc.identify.matching.blocks import NETWORK
from svc.identify.matching.decision import decide
from svc.identify.matching.recognition import likeliest_visitor
from svc.identify.matching.visitor import first_record
from svc.identify.model import Agent, Attribute, Network, Report, RequestFacts
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    MINUTE_MS,
    START_MS,
    Organization,
    Seen,
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
def test_an_address_that_hides_its_user_is_not_evidence(kind: str) -> None:
    report = Report(collectors=("plain",), attributes={Attribute.GPU: "plain:intel"})
    hidden = extract(report, CHROME, RequestFacts(ip=HOME), Network(state="enriched", **{kind: True}))
    shown = extract(report, CHROME, RequestFacts(ip=HOME), Network(state="enriched", hosting=True))
    assert (hidden.near_network, hidden.wide_network) == (0, 0)
    assert shown == extract(report, CHROME, RequestFacts(ip=HOME))
    assert shown.near_network


def test_a_known_device_behind_a_vpn_is_more_likely_a_return_than_one_from_far_away() -> None:
    moved = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "c", Attribute.REST: "a=2"}, ip=ELSEWHERE)
    hidden = msgspec.structs.replace(moved, near_network=0, wide_network=0)
    organization = populated()
    organization.visit(features_of(ip=HOME))
    organization.visit(features_of(ip=HOME), START_MS + DAY_MS)
    behind_a_vpn, far_away = (
        match_visitor(organization, organization.statistics, features, START_MS + 3 * DAY_MS).statistics_update.returned
        for features in (hidden, moved)
    )
    assert behind_a_vpn is not None
    assert far_away is not None
    assert behind_a_vpn > 2 * far_away


def test_a_visitor_that_hid_before_is_more_likely_to_hide_again() -> None:
    returned = []
    for before in ("", HOME):
        organization = populated()
        organization.visit(features_of(ip=HOME))
        organization.visit(features_of(ip=before), START_MS + DAY_MS)
        changed = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "c", Attribute.REST: "a=2"}, ip="")
        judged = match_visitor(organization, organization.statistics, changed, START_MS + 3 * DAY_MS)
        assert judged.statistics_update.returned is not None
        returned.append(judged.statistics_update.returned)
    assert returned[0] > 3 * returned[1]


def test_hidden_addresses_are_no_evidence_where_all_visitors_hide() -> None:
    statistics = Statistics()
    for number in range(60):
        lookalike = features_of(DESKTOP_VALUES | {Attribute.SCREEN: f"screen {number % 3}"})
        statistics.learn(StatisticsUpdate(features=lookalike, new_devices=1.0))
    hidden = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "c"}, ip="")
    candidates = [(1, first_record(features_of(ip=""), START_MS))]
    few, all_of_them = (
        decide(hidden, START_MS + 3 * DAY_MS, {NETWORK: devices}, candidates, (), statistics).raw
        for devices in (2.0, 60.0)
    )
    assert few > 1.5 * all_of_them


@pytest.mark.parametrize("token", [None, TOKEN])
def test_a_private_visit_needs_more_evidence_to_update_a_visitor_with_tokens(
    token: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "TEMPLATE_PROBABILITIES", (0.5, 1.1))
    organization = populated()
    first = organization.visit(features_of(ip=HOME, token=token, token_is_new=True))
    organization.visit(features_of(ip=HOME, token=token), START_MS + DAY_MS)
    before = organization.visitor(first.number)
    nearby = features_of(ip="81.2.70.9")
    again = organization.visit(nearby, START_MS + 2 * DAY_MS)
    after = organization.visitor(first.number)
    assert before is not None
    assert after is not None
    assert again.number == first.number
    assert after.visits == before.visits + 1
    assert after.has_near_network(nearby.near_network) == (token is None)


def test_a_visitor_with_frequent_canvas_changes_is_recognized_with_another_canvas() -> None:
    returned = []
    for changes in (0, 4):
        organization = populated()
        for visit in range(5):
            canvas = f"noise {visit}" if visit < changes else "canvas-1"
            report = DESKTOP_VALUES | {Attribute.CANVAS: canvas}
            organization.visit(features_of(report, ip=HOME), START_MS + visit * DAY_MS)
        seen = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "one more"}, ip=ELSEWHERE)
        judged = match_visitor(organization, organization.statistics, seen, START_MS + 6 * DAY_MS)
        assert judged.statistics_update.returned is not None
        returned.append(judged.statistics_update.returned)
    assert returned[1] > 1.5 * returned[0]


def test_canvas_noise_of_a_private_window_does_not_prevent_recognition() -> None:
    seen = []
    for agent in (SAFARI, CHROME):
        organization = populated()
        first = organization.visit(features_of(agent=agent, token=TOKEN, token_is_new=True))
        organization.visit(features_of(agent=agent, token=TOKEN), START_MS + DAY_MS)
        private = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "noise"}, agent=agent, ip=ELSEWHERE)
        private = msgspec.structs.replace(private, wide_network=features_of().wide_network)
        now_ms = START_MS + 2 * DAY_MS
        probability = match_visitor(organization, organization.statistics, private, now_ms).probability
        again = organization.visit(private, now_ms)
        seen.append((again.number == first.number, probability))
    assert seen[0][0]
    assert seen[0][1] > seen[1][1]


def test_a_doubtful_visit_does_not_update_the_template_or_its_time() -> None:
    organization = Organization()
    first = organization.visit(features_of())
    visitor = organization.visitor(first.number)
    assert visitor is not None
    counted = visitor.counted(features_of(DESKTOP_VALUES | {Attribute.CANVAS: "another"}), START_MS + DAY_MS)
    assert (counted.values, counted.last_seen_s) == (visitor.values, visitor.last_seen_s)
    assert counted.visits == visitor.visits + 1
    assert counted.exact_hashes != visitor.exact_hashes


def test_without_tokens_doubtful_splits_do_not_lower_the_return_rate() -> None:
    organization = Organization()
    for number in range(200):
        organization.visit(features_of(other_device(str(number)), ip=f"91.{number}.7.1"), START_MS + number * MINUTE_MS)
    assert organization.statistics.return_rate(features_of()) >= 0.5
    assert organization.statistics.return_rate(features_of(token=TOKEN, token_is_new=True)) < 0.5


# ---- a crowded network (ADR 78)


def odds_of_link(
    report: dict[Attribute, str], *, version: int, days: float, others: float, others_away_days: float = 0.0
) -> float:
    """The raw odds that a device with this report is the visitor of `features_of`, beside whom `others` devices of the
    class are on its network, of which one came so long ago.
    """
    agent = msgspec.structs.replace(CHROME, browser_version=version)
    visitor = first_record(features_of(ip=HOME), START_MS)
    now_ms = START_MS + int(days * DAY_MS)
    neighbor = first_record(features_of(other_device("the neighbor"), ip=HOME), now_ms - int(others_away_days * DAY_MS))
    candidates = [(1, visitor), (2, neighbor)]
    decision = decide(
        features_of(report, agent=agent, ip=HOME), now_ms, {NETWORK: 1.0 + others}, candidates, (), Statistics()
    )
    assert decision.number == 1
    return decision.raw / (1.0 - decision.raw)


OTHER_CANVAS = DESKTOP_VALUES | {Attribute.CANVAS: "another", Attribute.FONTS: "other fonts"}
SAME, NEWER, OLDER = CHROME.browser_version, CHROME.browser_version + 10, CHROME.browser_version - 10


@pytest.mark.parametrize("version", [SAME, OLDER])
@pytest.mark.parametrize("days", [0.1, 2.0])
def test_another_report_on_no_newer_version_is_rather_a_neighbors(
    version: int, days: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    weighed = [odds_of_link(OTHER_CANVAS, version=version, days=days, others=others) for others in (1.0, 3.0)]
    monkeypatch.setattr(parameters, "LOG_NEIGHBOR", (0.0, 0.0))
    unweighed = [odds_of_link(OTHER_CANVAS, version=version, days=days, others=others) for others in (1.0, 3.0)]
    assert weighed[0] == unweighed[0], "with one other device a network is not crowded"
    assert weighed[1] < unweighed[1]


def test_an_upgrade_on_a_crowded_network_is_weighed_as_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    weighed = odds_of_link(OTHER_CANVAS, version=NEWER, days=0.1, others=3.0)
    monkeypatch.setattr(parameters, "LOG_NEIGHBOR", (-9.0, -9.0))
    assert odds_of_link(OTHER_CANVAS, version=NEWER, days=0.1, others=3.0) == weighed


def test_nobody_of_a_crowded_network_is_late_where_all_were_away() -> None:
    alone_away, all_away = (
        odds_of_link(OTHER_CANVAS, version=NEWER, days=60.0, others=3.0, others_away_days=away) for away in (0.0, 60.0)
    )
    assert all_away > 3 * alone_away
    at_home = [
        odds_of_link(OTHER_CANVAS, version=NEWER, days=60.0, others=1.0, others_away_days=away) for away in (0.0, 60.0)
    ]
    assert at_home[0] == pytest.approx(at_home[1])


def test_a_doubtful_link_on_a_crowded_network_updates_the_template(monkeypatch: pytest.MonkeyPatch) -> None:
    def calibrated(*_: object) -> float:
        return 0.75

    for neighbors, number in ((0, 2), (4, 1)):
        organization = Organization()
        organization.visit(features_of(ip=HOME))
        for neighbor in range(neighbors):
            organization.visit(features_of(other_device(str(neighbor)), ip=HOME), START_MS + neighbor * MINUTE_MS)
        upgraded = msgspec.structs.replace(CHROME, browser_version=NEWER)
        report = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "another"}, agent=upgraded, ip=HOME)
        with monkeypatch.context() as patched:
            patched.setattr("svc.identify.matching.decision.calibrated", calibrated)
            seen = organization.visit(report, START_MS + 2 * DAY_MS)
        assert seen.is_new == (number == 2)
        if number == 1:
            record = organization.visitor(1)
            assert record is not None
            assert (seen.number, record.values, record.browser_version) == (1, report.values, NEWER)


UPDATED = DESKTOP_VALUES | {Attribute.CANVAS: "canvas of the update", Attribute.AUDIO: "125.1"}


@pytest.mark.parametrize("cleared", [False, True], ids=["without tokens", "storage cleared"])
def test_of_two_equal_devices_the_one_updated_later_is_not_taken_for_the_other(cleared: bool) -> None:
    """It comes from its own network, and what it reports by now is what the other one, elsewhere, reported first."""
    organization = populated()
    homes = {HOME: "token-of-the-device-at-home", ELSEWHERE: "token-of-the-one-elsewhere"}

    def visit(day: int, ip: str, values: dict[Attribute, str]) -> Seen:
        token = homes[ip] if cleared else None
        features = features_of(values, ip=ip, token=token, token_is_new=day == (ip == ELSEWHERE))
        return organization.visit(features, START_MS + day * DAY_MS)

    numbers = [visit(day, (HOME, ELSEWHERE)[day % 2], DESKTOP_VALUES).number for day in range(8)]
    home, elsewhere = numbers[:2]
    assert numbers == [home, elsewhere] * 4
    assert home != elsewhere
    for day in (9, 11):
        assert visit(day, ELSEWHERE, UPDATED).number == elsewhere
    token = "token-after-it-was-cleared" if cleared else None
    late = features_of(UPDATED, ip=HOME, token=token, token_is_new=cleared)
    assert organization.visit(late, START_MS + 12 * DAY_MS).number == home


@pytest.mark.parametrize("newer", [{"browser_version": NEWER}, {"os_release": 1200}], ids=str)
def test_a_device_with_a_newer_version_is_not_its_former_twin_with_an_older_one(newer: dict[str, int]) -> None:
    """The report of the twin, which is away from home: the device that lives there would have gone back."""
    organization = populated()
    agent = msgspec.structs.replace(CHROME, os_release=1100)

    def visit(day: int, ip: str, values: dict[Attribute, str] = DESKTOP_VALUES, agent: Agent = agent) -> int:
        return organization.visit(features_of(values, ip=ip, agent=agent), START_MS + day * DAY_MS).number

    home, elsewhere = [visit(day, (HOME, ELSEWHERE)[day % 2]) for day in range(8)][:2]
    for day in (8, 10):
        assert visit(day, HOME, agent=msgspec.structs.replace(agent, **newer)) == home
        assert visit(day + 1, ELSEWHERE, UPDATED) == elsewhere
    guest = features_of(UPDATED, ip=HOME, agent=agent)
    found = likeliest_visitor(organization, organization.statistics, guest, START_MS + 12 * DAY_MS).decision
    assert (found.number, found.linked) == (elsewhere, False)


def test_a_device_that_was_never_equal_may_be_away_from_home() -> None:
    """Another one lives there, which is no twin of it: it never reported what that one reports."""
    organization = populated()
    resident = DESKTOP_VALUES | {Attribute.CANVAS: "the resident's", Attribute.AUDIO: "123.9"}
    for day in range(6):
        organization.visit(features_of(UPDATED, ip=ELSEWHERE), START_MS + day * DAY_MS)
        organization.visit(features_of(resident, ip=HOME), START_MS + day * DAY_MS + MINUTE_MS)
    guest = features_of(UPDATED, ip=HOME)
    found = likeliest_visitor(organization, organization.statistics, guest, START_MS + 6 * DAY_MS).decision
    guest_number = organization.visit(features_of(UPDATED, ip=ELSEWHERE), START_MS + 6 * DAY_MS).number
    assert found.number == guest_number
