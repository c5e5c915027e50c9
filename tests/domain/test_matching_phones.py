"""Token and device id of apps in matching: what joins a record, and records of 0.2.0, which kept the id as a token."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from svc.identify.matching import Features, Visitor, extract
from svc.identify.matching.decision import decide
from svc.identify.matching.visitor import first_record
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import DAY_MS, START_MS, Organization
from tests.domain.test_report_native import android, iphone

HOME, ELSEWHERE = "81.2.69.142", "185.5.6.7"
IDS = ("a1b2c3d4e5f60718", "b7c6d5e4f3029181", "c0ffee12d4a59b36")


def phone(number: int, ip: str = HOME, *, ios: bool = False, **changes: Any) -> Features:
    """The report of an app that sends no token unless told so."""
    signals = iphone(device={"model": "iPhone16,1"}, identifier_for_vendor=IDS[number]) if ios else android()
    signals |= {} if ios else {"android_id": IDS[number]}
    facts = RequestFacts(ip=ip)
    report = read_report(signals | changes, facts)
    return extract(report, read_agent(facts, report), facts)


def of_0_2_0(features: Features) -> Features:
    """What 0.2.0 made of a report without a token."""
    return msgspec.structs.replace(features, token=features.device, device=0, fixed_device=False)


@pytest.mark.parametrize("ios", [False, True])
def test_a_phone_that_an_earlier_version_knew_by_its_device_id_keeps_its_visitor(ios: bool):
    world = Organization()
    known = world.visit(of_0_2_0(phone(0, ios=ios)))
    again = world.visit(phone(0, ELSEWHERE, ios=ios), START_MS + 20 * DAY_MS)
    assert (again.number, again.outcome) == (known.number, "token")
    assert world.visitor(known.number).device == phone(0, ios=ios).device  # type: ignore[union-attr]
    later = world.visit(phone(0, "90.1.2.3", ios=ios, client_token="t" * 16), START_MS + 21 * DAY_MS)
    assert later.number == known.number


def test_another_device_id_is_another_device_once_the_record_has_one():
    world = Organization()
    first = world.visit(phone(0))
    assert world.visit(phone(1), START_MS + 60_000).number != first.number
    assert world.visit(phone(0), START_MS + 120_000).number == first.number


def test_another_device_id_that_may_change_speaks_against_a_visitor_and_none_speaks_for_or_against():
    """Apple's id changes when the last app of its maker is removed."""
    world = Organization()
    nameless = phone(0, ios=True, identifier_for_vendor=None)

    def odds(features: Features, visitor: Visitor) -> float:
        raw = decide(features, START_MS + DAY_MS, {}, [(1, visitor)], (1,), world.statistics).raw
        return raw / (1.0 - raw)

    with_id, without_id = (first_record(features, START_MS) for features in (phone(0, ios=True), nameless))
    usual = odds(nameless, without_id)
    assert odds(phone(1, ios=True), with_id) < usual / 1000
    for features, visitor in ((phone(0, ios=True), with_id), (nameless, with_id), (phone(0, ios=True), without_id)):
        assert odds(features, visitor) == usual


@pytest.mark.parametrize(
    ("ip", "attested", "token", "confidence"),
    [
        (HOME, False, None, 100),
        (ELSEWHERE, False, None, 89),
        (ELSEWHERE, True, None, 100),
        (ELSEWHERE, False, "t" * 16, 100),
        (ELSEWHERE, False, "x" * 16, 89),
    ],
    ids=["at home", "elsewhere", "attested", "with the token", "with another token"],
)
def test_18_5_a_device_id_alone_from_another_network_is_at_most_89(
    ip: str, attested: bool, token: str | None, confidence: int
):
    world = Organization()
    for day in range(4):
        world.visit(phone(0, client_token="t" * 16), START_MS + day * DAY_MS)
    features = phone(0, ip, client_token=token)
    seen = world.visit(msgspec.structs.replace(features, attested=attested), START_MS + 4 * DAY_MS)
    assert (seen.number, seen.confidence) == (1, confidence)


def test_the_device_id_is_kept_however_many_tokens_come():
    world = Organization()
    first = world.visit(phone(0, client_token="t" * 16))
    for installation in range(8):
        seen = world.visit(phone(0, ELSEWHERE, client_token=f"{installation:016d}"), START_MS + installation * DAY_MS)
        assert seen.number == first.number
    visitor = world.visitor(first.number)
    assert visitor is not None
    assert visitor.device == phone(0).device
    assert len(visitor.tokens) == 10


def test_every_key_of_a_record_stands_in_its_block():
    world = Organization()
    world.visit(phone(0, ios=True, client_token="t" * 16))
    for number, address in ((1, ELSEWHERE), (2, "90.1.2.3")):
        assert world.visit(phone(number, address, ios=True, client_token="t" * 16), START_MS + DAY_MS).number == 1
    # The device id of the last installation finds it without the token.
    assert world.visit(phone(2, "91.2.3.4", ios=True), START_MS + 2 * DAY_MS).number == 1


def test_a_device_id_beside_a_token_that_did_not_come_is_not_learned():
    """A copied report, sent from its owner's address with an id of the thief's."""
    world = Organization()
    owner = world.visit(phone(0, android_id=None, client_token="t" * 16))
    world.visit(phone(1), START_MS + DAY_MS)
    assert world.visitor(owner.number).device == 0  # type: ignore[union-attr]
    assert world.visit(phone(1, ELSEWHERE, timezone="Asia/Tokyo"), START_MS + 2 * DAY_MS).number != owner.number


@pytest.mark.parametrize("ios", [False, True])
def test_two_apps_of_one_maker_on_one_phone_are_one_visitor_with_two_tokens(ios: bool):
    """Each has a storage of its own: what would be two browsers of a site is two apps where the device id is one."""
    world = Organization()
    for day in range(10):
        app = "ab"[day % 2] * 16
        seen = world.visit(phone(0, ios=ios, client_token=app, client_token_is_new=day < 2), START_MS + day * DAY_MS)
        assert seen.number == 1
    visitor = world.visitor(1)
    assert visitor is not None
    assert [token.is_live for token in visitor.tokens] == [True] * 3
    assert visitor.hidden(START_MS // 1000 + 10 * DAY_MS // 1000, 1.0) == 0.0
