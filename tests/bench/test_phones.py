"""The fleet of phones: what it is made of, and that it measures every row of its table."""

from __future__ import annotations

import pytest

from bench.linkage.phones import (
    AIMS,
    FAULTY_ID,
    JOINED_OF_ONE,
    MODELS,
    OFFICE_PHONES,
    OFFICES,
    PAIRS,
    PHONES,
    Figures,
    Fleet,
    figures,
)
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from tests.domain.matching_world import START_MS, Organization


def fleet(seed: int) -> Fleet:
    return Fleet(seed, Organization().visit)


def test_a_fleet_has_a_thousand_phones_of_forty_models_the_same_for_each_seed():
    one, again, other = (fleet(seed).phones for seed in (1, 1, 2))
    assert one == again != other
    assert (len(one), len(MODELS), len({model.name for model in MODELS})) == (PHONES, 40, 40)
    assert {phone.model.platform for phone in one} == {"android", "ios"}
    assert len({phone.device_id for phone in one if phone.tells_device_id}) == sum(
        phone.device_id != FAULTY_ID and phone.sends != "token" for phone in one
    )


def test_phones_share_models_addresses_and_whole_reports():
    made = fleet(1)
    assert max(sum(phone.model == model for phone in made.phones) for model in MODELS) > 60
    for office in made.offices:
        assert len(office) == OFFICE_PHONES
        assert len({phone.home for phone in office}) == 1
        assert len({str(phone.settings) + phone.model.name for phone in office}) == 1
    assert len(made.offices) == OFFICES
    equal = 0
    for one, other in made.pairs:
        assert (one.home, one.model) == (other.home, other.model)
        mine, theirs = (read_report(phone.signals(START_MS), RequestFacts(ip="192.0.2.1")) for phone in (one, other))
        equal += mine.attributes == theirs.attributes
    assert len(made.pairs) == PAIRS
    assert equal >= PAIRS // 2


@pytest.mark.slow(0.1)
def test_a_report_is_read_as_an_apps_whatever_sends_it():
    for phone in fleet(1).phones:
        report = read_report(phone.signals(START_MS), RequestFacts(ip="192.0.2.1"))
        assert report.collectors == ("native",)
        assert report.claims.native_platform == phone.model.platform
        assert (report.device_id is not None) is phone.tells_device_id
        assert (report.client_token is not None) is (phone.sends != "device id")
        assert report.device_flags == ()


def test_a_row_that_misses_its_aim_is_named_with_its_share():
    measured = Figures()
    for row, (least, _) in AIMS.items():
        measured.add(row, counts=100 if least else 0, of=100)
    assert measured.missed() == {}
    row = next(iter(AIMS))
    measured.add(row, counts=0, of=100)
    assert measured.missed() == {row: 0.5}
    assert set(Figures().missed()) == set(AIMS), "nothing was measured"


@pytest.mark.slow(8)
@pytest.mark.long
def test_every_row_of_the_table_is_measured_and_reaches_its_aim():
    """Those of phones whose report tells them from others that are equal (design of the mobile SDKs, 1)."""
    measured = figures(1)
    assert set(measured.of) == set(AIMS)
    assert min(measured.of.values()) >= 30
    assert set(measured.missed()) <= {JOINED_OF_ONE}
