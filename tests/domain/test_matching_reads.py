"""What matching reads, and what it does not: common blocks, unknown networks, records beyond what was read."""

from __future__ import annotations

import msgspec
import pytest

from svc.identify.matching import Block, Features, Statistics, match_visitor, parameters
from svc.identify.matching.blocks import HARDWARE, NETWORK, block_keys
from svc.identify.matching.decision import decide
from svc.identify.matching.likelihood import ALL_AGREE, BIT, compare
from svc.identify.matching.parameters import ATTRIBUTE_COUNT
from svc.identify.matching.visitor import first_record
from svc.identify.model import Attribute
from tests.domain.matching_world import (
    CHROME,
    DAY_MS,
    DESKTOP_VALUES,
    START_MS,
    Organization,
    features_of,
)


def key_of(kind: int, features: Features) -> bytes:
    return next(key for key in block_keys(features) if key[0] == kind)


def known(organization: Organization, number: int, features: Features) -> None:
    """A visitor that stands in no block yet."""
    visitor = msgspec.structs.replace(first_record(features, START_MS), visitor_id=f"{number:020d}")
    organization.visitors[number] = visitor.pack()
    organization.last_number = max(organization.last_number, number)


@pytest.mark.parametrize(("count", "read"), [(32.0, True), (32.0625, False)])
@pytest.mark.parametrize("kind", [HARDWARE, NETWORK])
def test_a_block_of_more_devices_than_it_lists_is_counted_and_not_searched(kind: int, count: float, read: bool) -> None:
    """That of the network is: its newest visitors are worth reading however many there are."""
    organization = Organization()
    known(organization, 5, features_of())
    organization.blocks[key_of(kind, features_of())] = Block(count, (5,)).pack()
    match_visitor(organization, organization.statistics, features_of(), START_MS + DAY_MS)
    assert organization.visitors_read == ({5} if read or kind == NETWORK else set())


@pytest.mark.parametrize("days", [399, 400, 401, 4000])
def test_changes_over_years_use_the_row_of_the_longest_absence(days: int) -> None:
    seen = features_of(DESKTOP_VALUES | {Attribute.CANVAS: "another"})
    candidates = [(1, first_record(features_of(), START_MS))]
    judged = decide(seen, START_MS + days * DAY_MS, {}, candidates, (), Statistics())
    longest = decide(seen, START_MS + 400 * DAY_MS, {}, candidates, (), Statistics())
    assert judged.raw == pytest.approx(longest.raw), "recency, too, has a least value"
    assert judged.number == 1


@pytest.mark.parametrize(("system", "frozen"), [("windows", 1000), ("mac", 1015), ("android", 1000)])
def test_a_frozen_release_in_the_user_agent_is_unknown(system: str, frozen: int) -> None:
    def release(said: int) -> int:
        return features_of(agent=msgspec.structs.replace(CHROME, os_family=system, os_release=said)).os_release

    assert [release(said) for said in (frozen - 1, frozen, frozen + 1)] == [frozen - 1, 0, frozen + 1]


@pytest.mark.parametrize("attribute", [Attribute.FONTS, Attribute.REST])
@pytest.mark.parametrize(
    ("ours", "theirs", "near"),
    [(0b111, 0b1111, True), (0b11, 0b111, False), (0b1111, 0b1111, True), (0, 0b1, None), (0b1, 0, None)],
)
def test_a_changed_set_weighs_by_whether_three_quarters_of_it_stayed(
    attribute: Attribute, ours: int, theirs: int, near: bool | None
) -> None:
    sketch = "font_sketch" if attribute is Attribute.FONTS else "rest_sketch"
    told = (parameters.LOG_NEAR_FONTS, parameters.LOG_FAR_FONTS)
    if attribute is Attribute.REST:
        told = (parameters.LOG_NEAR_REST, parameters.LOG_FAR_REST)
    seen = msgspec.structs.replace(features_of(DESKTOP_VALUES | {attribute: "another"}), **{sketch: ours})
    visitor = msgspec.structs.replace(first_record(features_of(), START_MS), **{sketch: theirs})
    logs = Statistics().change_tables[False][0][3]
    nobody_leads = (0,) * len(seen.values)
    likelihood, agreement = compare(seen, visitor, logs, nobody_leads)
    kept, changed = logs
    same = sum(log for place, log in enumerate(kept) if seen.values[place] and place != attribute)
    correction = 0.0 if near is None else told[0] if near else told[1]
    assert likelihood == pytest.approx(same + changed[attribute] + correction)
    assert agreement == ALL_AGREE & ~BIT[attribute]


def test_other_languages_weigh_less_where_the_first_is_the_same() -> None:
    logs = Statistics().change_tables[False][0][3]
    visitor = first_record(features_of(), START_MS)
    likelihoods: list[float] = []
    for first in ("de-de", "fr-fr"):
        values = DESKTOP_VALUES | {Attribute.LANGUAGES: "other", Attribute.FIRST_LANGUAGE: first}
        likelihoods.append(compare(features_of(values), visitor, logs, (0,) * ATTRIBUTE_COUNT)[0])
    kept, changed = (log[Attribute.FIRST_LANGUAGE] for log in logs)
    assert likelihoods[0] - likelihoods[1] == pytest.approx(kept - changed)


@pytest.mark.parametrize("is_former", [False, True])
@pytest.mark.parametrize("follows", [False, True])
def test_a_dependent_change_counts_once_and_a_habitual_change_hardly_at_all(is_former: bool, follows: bool) -> None:
    """The colors follow the screen: here both are others, or the colors alone."""
    values = DESKTOP_VALUES | {Attribute.COLOUR: "another"} | ({Attribute.SCREEN: "another"} if follows else {})
    seen = features_of(values)
    former = ((int(Attribute.COLOUR), seen.values[Attribute.COLOUR]),) if is_former else ()
    visitor = msgspec.structs.replace(first_record(features_of(), START_MS), former=former)
    logs = Statistics().change_tables[False][0][3]
    leaders = tuple(BIT[Attribute.SCREEN] if attribute is Attribute.COLOUR else 0 for attribute in Attribute)
    likelihood, agreement = compare(seen, visitor, logs, leaders)
    untold = tuple(0 if attribute is Attribute.COLOUR else seen.values[attribute] for attribute in Attribute)
    alone, without = compare(msgspec.structs.replace(seen, values=untold), visitor, logs, leaders)
    expected = {
        (False, False): logs[1][Attribute.COLOUR],
        (False, True): parameters.LOG_FOLLOWED,
        (True, False): parameters.LOG_HABIT,
        (True, True): parameters.LOG_HABIT_FOLLOWED,
    }
    assert likelihood - alone == pytest.approx(expected[is_former, follows])
    assert bool(agreement & BIT[Attribute.COLOUR]) is is_former
    assert not without & BIT[Attribute.COLOUR]
