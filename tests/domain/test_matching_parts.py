"""The parts of matching: features, blocks, visitor records and statistics."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.identify.matching import Block, Features, Statistics, StatisticsUpdate, Visitor, extract
from svc.identify.matching.blocks import (
    BLOCK_LENGTH,
    COVERED,
    EVERYTHING,
    FONTS,
    HARDWARE,
    KEY_LENGTH,
    RENDERING,
    SETTINGS,
    attribute_keys,
    block_keys,
    exact_key,
    same_attribute_keys,
)
from svc.identify.matching.changes import releases_between
from svc.identify.matching.features import networks, sketch
from svc.identify.matching.parameters import ATTRIBUTE_COUNT
from svc.identify.matching.statistics import CLASSES, COMMON_VALUES
from svc.identify.matching.tokens import TOKENS, KeyProbation, Token
from svc.identify.matching.visitor import EXACT_HASHES, FORMER_VALUES, NETWORKS, first_record
from svc.identify.model import Agent, Attribute, Claims, Report, RequestFacts
from svc.identify.tables import BLOCKS
from svc.kernel.store.schema.codec import CorruptionError
from tests.domain.matching_world import (
    CHROME,
    DESKTOP_VALUES,
    PHONE,
    START_MS,
    Organization,
    features_of,
    other_device,
)

u8, u16, u32, u64 = (st.integers(0, 2**bits - 1) for bits in (8, 16, 32, 64))

even64 = u64.map(lambda value: value & ~1)
token_parts: dict[str, Any] = {
    "hash": even64,
    "origin": u32,
    "first_s": u32,
    "last_s": u32,
    "probation": u8,
    "came_back": st.booleans(),
    "private": st.booleans(),
}
unsigned_tokens = st.builds(Token, **token_parts)
signed_tokens = st.builds(
    Token,
    **token_parts,
    key=st.integers(1, 2**64 - 1),
    key_s=u32,
    key_probation=st.none() | st.builds(KeyProbation, address=u32, day=u16, at_home=u8, anywhere=u8),
    is_disputed=st.booleans(),
)
TOKEN_ROWS = st.lists(unsigned_tokens | signed_tokens, max_size=TOKENS).map(tuple)
visitors = st.integers(0, NETWORKS).flatmap(
    lambda networks: st.builds(
        Visitor,
        visitor_id=st.text("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", min_size=20, max_size=20),
        family=u32,
        collector=u32,
        values=st.tuples(*[u32] * ATTRIBUTE_COUNT),
        browser_version=u16,
        os_release=u16,
        font_sketch=u64,
        rest_sketch=u64,
        first_seen_s=u32,
        last_seen_s=u32,
        visits=u16,
        visits_without_token=u16,
        parent=u32,
        parent_probability=u8,
        former=st.lists(st.tuples(st.integers(0, ATTRIBUTE_COUNT - 1), u32), max_size=FORMER_VALUES).map(tuple),
        networks=st.tuples(*[st.tuples(u32, u32)] * networks),
        addresses=st.tuples(*[u32] * networks),
        tokens=TOKEN_ROWS,
        exact_hashes=st.lists(u64, max_size=EXACT_HASHES).map(tuple),
        listed=st.booleans(),
    )
)


# ---- features


def test_a_report_needs_four_attributes_and_fourteen_bits_to_identify() -> None:
    poor_in_attributes = {Attribute.MODEL: "m", Attribute.CANVAS: "c", Attribute.GPU: "g"}
    poor_in_bits = {Attribute.PLUGINS: "p", Attribute.TOUCH: "t", Attribute.AUDIO: "a", Attribute.COLOUR: "c"}
    assert not features_of(poor_in_attributes).identifiable
    assert not features_of(poor_in_bits).identifiable
    assert features_of(poor_in_attributes | {Attribute.SCREEN: "s"}).identifiable


def test_the_first_language_does_not_count_in_addition_to_the_languages_it_comes_from() -> None:
    values = {Attribute.MODEL: "m", Attribute.CANVAS: "c", Attribute.LANGUAGES: "de", Attribute.FIRST_LANGUAGE: "de"}
    assert not features_of(values).identifiable


def test_a_token_does_not_make_a_poor_report_identifiable() -> None:
    assert not features_of({Attribute.SCREEN: "s"}, token="a-token-of-some-length").identifiable


def test_absent_attributes_are_zero_and_reported_ones_are_not() -> None:
    report = Report(attributes={Attribute.GPU: "g", Attribute.SCREEN: ""})
    features = extract(report, CHROME, RequestFacts(ip=""))
    assert [attribute for attribute, value in enumerate(features.values) if value] == [Attribute.GPU]


def test_the_exact_hash_covers_every_attribute_and_version_but_neither_token_nor_address() -> None:
    base = features_of()
    for attribute in DESKTOP_VALUES:
        assert features_of(DESKTOP_VALUES | {attribute: "changed"}).exact != base.exact
    upgraded = msgspec.structs.replace(CHROME, browser_version=1410)
    assert features_of(agent=upgraded).exact != base.exact
    assert features_of(token="t" * 20, ip="1.2.3.4").exact == base.exact


@pytest.mark.parametrize(("system", "family"), [("linux", "safari"), ("linux", "qt_web_engine")])
def test_browsers_that_name_only_their_engine_are_distinguished_by_what_they_add(system: str, family: str) -> None:
    nameless = Agent(browser_family=family, browser_version=605, os_family=system)
    flavors: tuple[tuple[str, ...] | None, ...] = (None, (), ("webkit",))
    reports = [Report(claims=Claims(vendor_flavors=flavor, plugin_count=5)) for flavor in flavors]
    reports.append(Report(claims=Claims(plugin_count=0)))
    classes = [extract(report, nameless, RequestFacts(ip="")).family for report in reports]
    assert classes[0] == classes[1]
    assert len(set(classes)) == 3
    for named in (CHROME, msgspec.structs.replace(nameless, os_family="mac")):
        assert len({extract(report, named, RequestFacts(ip="")).family for report in reports}) == 1


@pytest.mark.parametrize(
    ("one", "other", "same_near", "same_wide"),
    [
        ("81.2.69.1", "81.2.69.200", True, True),
        ("81.2.69.1", "81.2.70.1", False, True),
        ("81.2.69.1", "81.3.69.1", False, False),
        ("2a02:8071:1:2::1", "2a02:8071:1:9::7", True, True),
        ("2a02:8071:1:2::1", "2a02:8071:2::1", False, True),
        ("::ffff:81.2.69.1", "81.2.69.9", True, True),
    ],
)
def test_addresses_are_compared_by_their_near_and_wide_networks(
    one: str, other: str, same_near: bool, same_wide: bool
) -> None:
    (near, wide, _), (other_near, other_wide, _) = networks(one), networks(other)
    assert (near == other_near, wide == other_wide) == (same_near, same_wide)


@given(st.text())
def test_text_that_is_not_an_address_has_no_network(text: str) -> None:
    near, wide, address = networks(text)
    assert (near == 0) == (wide == 0) == (address == 0)


@given(st.lists(st.text(max_size=80)))
def test_a_sketch_depends_on_the_set_and_not_on_its_order(members: list[str]) -> None:
    assert sketch(members) == sketch(sorted(set(members)))
    assert 0 <= sketch(members) < 2**64


@given(
    st.dictionaries(st.sampled_from(list(Attribute)), st.text()), st.text(), st.one_of(st.none(), st.text(min_size=1))
)
def test_any_report_has_features(values: dict[Attribute, str], ip: str, token: str | None) -> None:
    features = features_of(values or {Attribute.GPU: ""}, ip=ip, token=token)
    assert all(0 <= value < 2**32 for value in features.values)
    assert 0 <= features.exact < 2**64
    assert features.token & 1 == 0


# ---- blocks


def test_block_keys_are_nine_bytes_of_at_most_eight_kinds() -> None:
    keys = block_keys(features_of(token="t" * 20))
    assert bytes(key[0] for key in keys) == b"XEABCDNT"
    assert all(len(key) == KEY_LENGTH for key in keys)
    assert exact_key(0x0102030405060708) == b"X\x01\x02\x03\x04\x05\x06\x07\x08"


@pytest.mark.parametrize(
    ("kinds", "changed"),
    [
        (b"EACD", (Attribute.CANVAS, Attribute.WEBGL, Attribute.AUDIO)),
        (b"AB", (Attribute.FONTS,)),
        (b"BC", (Attribute.TIMEZONE, Attribute.SCREEN)),
        (b"D", (Attribute.GPU, Attribute.HARDWARE)),
    ],
)
def test_each_block_key_survives_the_changes_it_is_meant_for(kinds: bytes, changed: tuple[Attribute, ...]) -> None:
    before = set(block_keys(features_of()))
    after = block_keys(features_of(DESKTOP_VALUES | dict.fromkeys(changed, "changed")))
    surviving = bytes(key[0] for key in after if key in before and key[0] != ord("N"))
    assert surviving == kinds


def test_classes_share_no_block() -> None:
    assert not set(block_keys(features_of())) & set(block_keys(features_of(agent=PHONE)))


ENOUGH = {EVERYTHING: 3, HARDWARE: 3, RENDERING: 3, FONTS: 3, SETTINGS: 4}


@pytest.mark.parametrize("kind", COVERED)
def test_a_block_key_needs_a_minimum_number_of_attributes(kind: int) -> None:
    """The canvas among them, where it is covered: without it the key of rendering is none."""
    covered = sorted(COVERED[kind], key=lambda attribute: attribute != Attribute.CANVAS)
    for count, is_there in ((ENOUGH[kind] - 1, False), (ENOUGH[kind], True)):
        features = features_of(dict.fromkeys(covered[:count], "x"), fonts=())
        assert (kind in {key[0] for key in block_keys(features)}) is is_there


blocks = st.builds(
    Block,
    st.integers(0, 2**32 - 1).map(lambda sixteenths: sixteenths / 16),
    st.lists(u32, max_size=BLOCK_LENGTH).map(tuple),
)


@given(blocks)
def test_a_block_survives_serialization(block: Block) -> None:
    assert Block.unpack(block.pack()) == block


@pytest.mark.parametrize("raw", [b"", bytes(7), bytes(4 * (BLOCK_LENGTH + 2))], ids=["none", "odd", "too many"])
def test_bytes_that_are_no_block_are_corrupt(raw: bytes) -> None:
    with pytest.raises(CorruptionError, match=f"a packed value of {len(raw)} bytes"):
        BLOCKS.value.decode(raw)


four = st.integers(0, 3)


@given(st.lists(four, min_size=ATTRIBUTE_COUNT, max_size=ATTRIBUTE_COUNT), st.data())
def test_keys_are_the_same_where_no_covered_value_differs(values: list[int], data: st.DataObject) -> None:
    ours = tuple(values)
    changed = data.draw(st.dictionaries(st.sampled_from(range(ATTRIBUTE_COUNT)), four, max_size=3))
    theirs = tuple(changed.get(attribute, value) for attribute, value in enumerate(ours))
    keys = attribute_keys(1, 2, ours)
    in_common = set(keys) & set(attribute_keys(1, 2, theirs))
    assert {key[0] for key in in_common} == {key[0] for key in keys} & same_attribute_keys(ours, theirs)


@given(st.lists(st.tuples(st.integers(1, 60), st.floats(0, 1)), max_size=120))
def test_a_block_lists_the_newest_visitors_once_and_counts_the_rest(postings: list[tuple[int, float]]) -> None:
    block = Block()
    for number, weight in postings:
        block = block.with_posting(number, weight)
        assert number in block.numbers
        assert len(block.numbers) == len(set(block.numbers)) <= BLOCK_LENGTH
    assert block.count <= len(postings)
    assert Block.unpack(block.pack()) == block


def test_posting_twice_and_removing_twice_change_nothing() -> None:
    block = Block().with_posting(7, 1.0)
    assert block.with_posting(7, 1.0) is block
    assert block.without(7) == Block()
    assert Block().without(7) == Block()


# ---- records


@given(visitors)
@pytest.mark.slow(0.2)
def test_a_visitor_survives_serialization(visitor: Visitor) -> None:
    assert Visitor.unpack(visitor.pack()) == visitor


@pytest.mark.parametrize("raw", [b"", b"\x00", b"\x08" + bytes(300)])
def test_bytes_of_another_format_are_rejected(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a visitor record"):
        Visitor.unpack(raw)


def test_a_record_remembers_replaced_values_and_forgets_those_that_return() -> None:
    visitor = first_record(features_of(), START_MS)
    docked = features_of(DESKTOP_VALUES | {Attribute.SCREEN: "docked"})
    moved = visitor.updated(docked, START_MS + 1000)
    assert moved.values[Attribute.SCREEN] == docked.values[Attribute.SCREEN]
    assert moved.former == ((Attribute.SCREEN, visitor.values[Attribute.SCREEN]),)
    back = moved.updated(features_of(), START_MS + 2000)
    assert back.values == visitor.values
    assert back.former == ((Attribute.SCREEN, docked.values[Attribute.SCREEN]),)
    assert (back.visits, back.first_seen_s, back.last_seen_s) == (3, START_MS // 1000, START_MS // 1000 + 2)


def test_attributes_missing_from_a_report_stay_in_the_template() -> None:
    visitor = first_record(features_of(), START_MS)
    partial = features_of({Attribute.GPU: DESKTOP_VALUES[Attribute.GPU]})
    assert visitor.updated(partial, START_MS).values == visitor.values


def test_every_list_of_a_record_is_bounded() -> None:
    visitor = first_record(features_of(), START_MS)
    for visit in range(100):
        visitor = visitor.updated(
            features_of(other_device(str(visit)), ip=f"20.{visit}.7.7", token=f"token-{visit:012d}"), START_MS + visit
        )
    sizes = (len(visitor.former), len(visitor.networks), len(visitor.tokens), len(visitor.exact_hashes))
    assert sizes == (FORMER_VALUES, NETWORKS, TOKENS, EXACT_HASHES)
    assert len(visitor.pack()) <= 560
    keyed = [features_of(token=f"signed-{visit:011d}", key=b"key") for visit in range(TOKENS)]
    for visit, seen in enumerate(keyed):
        visitor = visitor.updated(seen, START_MS + 1000 + visit)
    assert sum(token.key != 0 for token in visitor.tokens) == TOKENS - 1  # and that which it began with
    assert len(visitor.pack()) <= 700


def test_a_first_record_is_small() -> None:
    assert len(first_record(features_of(token="t" * 20), START_MS).pack()) <= 220
    assert len(first_record(features_of(token="t" * 20, key=b"key"), START_MS).pack()) <= 230


# ---- statistics


def test_statistics_survive_serialization_and_give_the_same_results() -> None:
    organization = Organization()
    for visit in range(120):
        organization.visit(
            features_of(other_device(str(visit % 30)), token=f"token-{visit % 30:012d}"), START_MS + visit
        )
    statistics = organization.statistics
    copy = Statistics.of_rows(statistics.rows())
    features = features_of(other_device("3"))
    assert copy.rows() == statistics.rows()
    assert copy.log_frequencies(features) == statistics.log_frequencies(features)
    assert copy.return_rate(features) == statistics.return_rate(features)
    assert copy.change_tables == statistics.change_tables


def test_bytes_that_are_not_statistics_are_rejected() -> None:
    with pytest.raises(msgspec.DecodeError):
        Statistics(b"\xff\x00")


@pytest.mark.slow
def test_statistics_are_bounded_whatever_is_reported() -> None:
    statistics = Statistics()
    for report in range(3000):
        features = msgspec.structs.replace(
            features_of(other_device(str(report))), family=1 + report % (2 * CLASSES), browser_version=report
        )
        statistics.learn(StatisticsUpdate(features=features, new_devices=1.0))
    for report in range(3000):
        statistics.learn(StatisticsUpdate(features=features_of(other_device(str(report))), new_devices=1.0))
    assert statistics.rows().size < CLASSES * 22 * 2 * COMMON_VALUES * 20


def test_learning_nothing_changes_nothing() -> None:
    statistics = Statistics()
    before = statistics.rows()
    statistics.learn(StatisticsUpdate())
    assert statistics.rows() == before


def test_removing_the_token_changes_no_other_feature() -> None:
    features = features_of(token="t" * 20, token_is_new=True)
    bare: Features = features.without_token()
    assert (bare.token, bare.token_is_new) == (0, False)
    assert msgspec.structs.replace(bare, token=features.token, token_is_new=True) == features


def test_a_browser_with_a_hidden_name_has_the_class_of_its_user_agent() -> None:
    brave = msgspec.structs.replace(CHROME, browser_family="brave")
    assert features_of(agent=brave).family == features_of(agent=CHROME).family


def test_a_frozen_system_release_is_unknown() -> None:
    frozen = msgspec.structs.replace(CHROME, os_release=1000)
    told = msgspec.structs.replace(CHROME, os_release=1100)
    assert (features_of(agent=frozen).os_release, features_of(agent=told).os_release) == (0, 1100)
    visitor = first_record(features_of(agent=told), START_MS)
    assert releases_between(features_of(agent=frozen), visitor) == 0
    assert visitor.updated(features_of(agent=frozen), START_MS).os_release == 1100


@pytest.mark.parametrize(("version", "releases"), [(1400, 0), (1403, 1), (1410, 1), (1440, 4), (1390, 1), (9990, 8)])
def test_versions_are_counted_in_releases(version: int, releases: int) -> None:
    visitor = first_record(features_of(), START_MS)
    upgraded = msgspec.structs.replace(CHROME, browser_version=version)
    assert releases_between(features_of(agent=upgraded), visitor) == releases


def test_an_app_keeps_its_storage_and_reports_its_real_system_release() -> None:
    agent = msgspec.structs.replace(CHROME, os_family="android", os_release=1000, browser_family="app")
    report = Report(collectors=("native",), attributes=DESKTOP_VALUES)
    app = extract(report, agent, RequestFacts(ip="81.2.69.160"))
    assert (app.native, app.forgetful, app.os_release) == (True, False, 1000)
    on_ios = extract(report, msgspec.structs.replace(agent, os_family="ios"), RequestFacts(ip="81.2.69.160"))
    assert not on_ios.forgetful
