"""The measurement of accuracy measures what it says: known streams, known answers."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from bench.linkage.accuracy import BEGIN, END, Results, _write_docs, judge_baselines, judge_service
from bench.linkage.baselines import ExactHash, ExactHashAndToken, FPStalkerRules, Seen, allowed_changes, answers
from bench.linkage.curves import Sample, fit, fitted_part, samples
from bench.linkage.devices import device
from bench.linkage.identity.rows import Measured
from bench.linkage.identity.world import Count as Share
from bench.linkage.identity.world import Counts
from bench.linkage.judge import DAY_S, Answer, Verdict, judge
from bench.linkage.ladder import Step, climb, ladder_lines, read_ladder
from bench.linkage.service import replay
from bench.linkage.speed import measure
from bench.linkage.streams import Request, Visit, client_token, is_held_out, read_stream, replay_lines
from bench.linkage.tables import (
    accuracy_table,
    bin_of,
    calibration_table,
    cause_tables,
    held_out_table,
    uncertainty,
)
from bench.linkage.theft import Count, features_of, theft_tables, through_fingerprintjs, without_hard_attributes
from bench.linkage.theft import measure as measure_thefts
from svc.identify.model import Attribute

# ---- the judge


def verdict_of(*visits: tuple[str, str, object], every_days: float | None = 7.0) -> Verdict:
    """Visits as (browser, report, answered id), a week apart."""
    truth = [Visit(browser, report, place * 7 * DAY_S) for place, (browser, report, _) in enumerate(visits)]
    return judge(truth, [Answer(visitor) for _, _, visitor in visits], every_days)


def test_a_return_with_the_id_of_the_previous_visit_of_the_browser_counts_as_relinked():
    verdict = verdict_of(("anna", "r1", 1), ("anna", "r1", 1), ("anna", "r2", 1), ("anna", "r3", 2))
    assert (verdict.all_returns.returns, verdict.all_returns.relinked) == (3, 2)
    assert (verdict.changed.returns, verdict.changed.relinked) == (2, 1)
    assert verdict.relinked_changed == 0.5


def test_a_return_with_an_unused_id_counts_as_false_new():
    verdict = verdict_of(("anna", "r", 1), ("anna", "r", 2))
    assert (verdict.all_returns.false_new, verdict.false_new, verdict.false_merge) == (1, 1.0, 0.0)


def test_a_return_with_an_older_id_of_the_browser_counts_as_neither_relinked_nor_merged():
    verdict = verdict_of(("anna", "r", 1), ("anna", "r", 2), ("anna", "r", 1))
    assert (verdict.all_returns.older_id, verdict.all_returns.relinked, verdict.false_merge) == (1, 0, 0.0)


def test_a_visit_with_the_id_of_another_browser_is_a_false_merge_whether_first_or_not():
    verdict = verdict_of(("anna", "r", 1), ("ben", "r", 1), ("cleo", "r", 2), ("anna", "r", 2))
    assert verdict.false_merge == 0.5
    assert (verdict.first_visits, verdict.first_right, verdict.all_returns.false_merge) == (3, 2, 1)


def test_uncounted_browsers_can_cause_merges_but_are_not_scored():
    """Anna counts, Ben does not: his visits are in the way of hers, and in no figure of their own."""
    browsers = ("anna", "ben", "ben", "anna")
    truth = [Visit(name, "r", place * DAY_S, held_out=name == "ben") for place, name in enumerate(browsers)]
    given = [Answer(1), Answer(1), Answer(2), Answer(2)]
    verdict = judge(truth, given, counted=lambda visit: not visit.held_out)
    assert (verdict.visits, verdict.browsers, verdict.ids, verdict.first_visits) == (2, 1, 2, 1)
    assert verdict.all_returns.false_merge == 1, "id 2 was Ben's"
    assert (verdict.pairs_true, verdict.pairs_right, verdict.pairs_answered) == (1, 0, 2)
    assert verdict.ownership == 0.5
    parts = [judge(truth, given, counted=lambda visit, out=out: visit.held_out == out) for out in (False, True)]
    assert sum(part.visits for part in parts) == judge(truth, given).visits


def test_a_quarter_of_the_devices_is_held_out_and_always_the_same():
    held_out = [is_held_out("small", str(device)) for device in range(4000)]
    assert 900 < sum(held_out) < 1100
    assert held_out == [is_held_out("small", str(device)) for device in range(4000)]
    assert held_out != [is_held_out("dev", str(device)) for device in range(4000)]


def test_curves_are_fitted_on_devices_that_are_not_held_out(folder: Path):
    stream = read_stream(folder)
    part = fitted_part(stream)
    assert {visit.held_out for visit in stream.visits} == {False, True}
    assert {visit.held_out for visit in part.visits} == {False}
    assert len(part.requests) == len(part.visits) == sum(not visit.held_out for visit in stream.visits)
    returns = len(part.visits) - len({visit.browser for visit in part.visits})
    assert [sample.right for _, sample in samples(part, with_tokens=False)] == [True] * returns


@pytest.mark.slow(0.2)
def test_a_fitted_curve_follows_the_observed_share_of_right_matches():
    """Evidence that is worth half of what it says, one in four wrong beside it."""
    fair = [Sample(evidence, 0.0, place % 4 != 0) for evidence in (-1.0, 1.0) for place in range(4000)]
    intercept, slope = fit(fair, (0.0, 1.0))
    assert intercept == pytest.approx(1.1, abs=0.1)  # log odds of 3 in 4
    assert slope == pytest.approx(0.1), "whatever it says, as many are right; never against the evidence"
    assert fit(fair[:0], (0.3, 0.7)) == (0.3, 0.7), "nothing to learn from"


def test_every_return_has_exactly_one_outcome():
    ids = [1, 1, 2, 1, 3, 3, 2, 4, 1]
    browsers = ["anna", "ben", "anna", "anna", "ben", "cleo", "cleo", "anna", "ben"]
    verdict = verdict_of(*((browser, "r", visitor) for browser, visitor in zip(browsers, ids, strict=True)))
    ends = verdict.all_returns
    assert ends.relinked + ends.older_id + ends.false_new + ends.false_merge == ends.returns == len(ids) - 3


def test_pairs_are_counted_over_visits_that_share_an_id_and_visits_that_share_a_browser():
    # Id 1: anna, anna, ben = 3 pairs of which 1 is right. Browsers: anna has 3 pairs, ben 1.
    verdict = verdict_of(("anna", "r", 1), ("anna", "r", 1), ("ben", "r", 1), ("anna", "r", 2), ("ben", "r", 3))
    assert (verdict.pairs_right, verdict.pairs_answered, verdict.pairs_true) == (1, 3, 4)
    assert (verdict.pair_precision, verdict.pair_recall) == (pytest.approx(1 / 3), 0.25)


def test_tracking_weights_each_chain_by_its_visits_and_the_days_between_them():
    # Anna: three visits in chain 1 (14 days), one in chain 2 (0 days). Ben: two in chain 3 (7 days).
    verdict = verdict_of(
        ("anna", "r", 1), ("anna", "r", 1), ("ben", "r", 3), ("anna", "r", 2), ("anna", "r", 1), ("ben", "r", 3)
    )
    assert verdict.average_days == pytest.approx(((14 + 0) / 2 + 7) / 2)
    assert verdict.maximum_days == pytest.approx((14 + 7) / 2)
    assert verdict.possible_days == pytest.approx((21 + 7) / 2)


def test_tracking_without_a_rhythm_counts_the_days_from_first_to_last_visit_in_a_chain():
    verdict = verdict_of(("anna", "r", 1), ("ben", "r", 2), ("anna", "r", 1), ("ben", "r", 3), every_days=None)
    assert (verdict.average_days, verdict.maximum_days) == (7.0, 7.0)
    assert verdict.possible_days == 14.0


def test_a_browser_with_a_single_visit_is_not_counted_in_tracking():
    assert verdict_of(("anna", "r", 1), ("ben", "r", 2), ("anna", "r", 1)).average_days == 7.0
    assert verdict_of(("anna", "r", 1)).average_days is None


def test_a_chain_is_owned_by_the_browser_with_most_visits_in_it():
    verdict = verdict_of(("anna", "r", 1), ("anna", "r", 1), ("ben", "r", 1), ("cleo", "r", 2))
    assert verdict.ownership == pytest.approx((2 / 3 + 1) / 2)


def test_returns_are_broken_down_by_each_of_their_causes():
    truth = [Visit("anna", "r1", 0), Visit("anna", "r2", 1, ("upgrade", "screen")), Visit("anna", "r2", 2)]
    verdict = judge(truth, [Answer(1), Answer(2), Answer(2)])
    assert {cause: (ends.returns, ends.relinked) for cause, ends in verdict.causes.items()} == {
        "upgrade": (1, 0),
        "screen": (1, 0),
        "nothing": (1, 1),
    }


def test_a_confidence_is_right_when_the_browser_had_the_id_before():
    truth = [Visit("anna", "r", 0), Visit("anna", "r", 1), Visit("ben", "r", 2), Visit("ben", "r", 3)]
    verdict = judge(truth, [Answer(1), Answer(1, 99), Answer(1, 99), Answer(1, 100)])
    assert verdict.confidences == {99: (2, 1), 100: (1, 1)}
    assert bin_of(verdict, 98, 100) == (3, 2, 298)


def test_an_empty_evaluation_does_not_divide_by_zero():
    verdict = judge([], [])
    assert (verdict.relinked, verdict.false_merge, verdict.pair_precision, verdict.ownership) == (None,) * 4
    assert json.loads(json.dumps(verdict.facts()))["visits"] == 0


def test_results_and_truth_must_have_the_same_length():
    with pytest.raises(ValueError, match="zip"):
        judge([Visit("anna", "r", 0)], [])


def test_the_uncertainty_of_a_share_shrinks_with_visits_and_never_vanishes():
    assert uncertainty(50, 100) == pytest.approx(0.098, abs=0.002)
    assert uncertainty(10, 10) > uncertainty(1000, 1000) > 0


# ---- the baselines

SEEN = Seen(
    at_s=0.0,
    storage_id="",
    whole=b"1",
    constant=("windows", "chrome", "Win32", "canvas", ""),
    version=1400,
    fonts=frozenset({"Arial", "Calibri"}),
    similar=("Mozilla/5.0 Chrome/140.0.0.0", "Google Inc. (Intel)", "ANGLE (Intel, UHD 620)", "PDF Viewer", "de,en"),
    free=("1920x1080", "Europe/Berlin"),
)


def seen(whole: bytes, at_days: float = 0.0, **changes: object) -> Seen:
    return replace(SEEN, whole=whole, at_s=at_days * DAY_S, **changes)


def with_user_agent(text: str) -> tuple[str, ...]:
    return (text, *SEEN.similar[1:])


def ids(answered: Sequence[Answer]) -> list[int]:
    """Ids as the numbers of the visits that first got them."""
    first: dict[object, int] = {}
    return [first.setdefault(answer.visitor, place) for place, answer in enumerate(answered)]


def test_an_exact_hash_matches_equal_reports_only():
    assert ids(list(answers(ExactHash(), [seen(b"1"), seen(b"2"), seen(b"1")]))) == [0, 1, 0]


def test_a_token_matches_a_changed_report_and_without_one_only_an_equal_report_matches():
    visits = [
        seen(b"1", storage_id="token"),
        seen(b"2", storage_id="token"),
        seen(b"2"),
        seen(b"3"),
        seen(b"3", storage_id="other"),
        seen(b"4", storage_id="other"),
    ]
    assert ids(list(answers(ExactHashAndToken(), visits))) == [0, 0, 0, 3, 3, 3]


@pytest.mark.parametrize(
    "changes",
    [
        {"constant": ("windows", "edge", "Win32", "canvas", "")},
        {"constant": ("windows", "chrome", "Win32", "other canvas", "")},
        {"constant": ("windows", "chrome", "Win32", "canvas", "doNotTrack=1")},
        {"version": 1390},
        {"fonts": frozenset({"Arial", "Futura"})},
        {"similar": with_user_agent("something else entirely")},
        {"similar": (*(f"{text} 2" for text in SEEN.similar[:3]), *SEEN.similar[3:])},
        {"free": ("1366x768", "Asia/Tokyo")},
    ],
    ids=["browser", "canvas", "do not track", "older version", "fonts", "unlike", "three changes", "screen and zone"],
)
def test_the_rules_take_a_report_with_such_changes_for_a_new_visitor(changes: dict):
    assert allowed_changes(SEEN, seen(b"2", **changes)) is None
    assert ids(list(answers(FPStalkerRules(), [seen(b"1"), seen(b"2", **changes)]))) == [0, 1]


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({}, 0),
        ({"version": 1410, "similar": with_user_agent("Mozilla/5.0 Chrome/141.0.0.0")}, 1),
        ({"fonts": frozenset({"Arial", "Calibri", "Futura"})}, 0),
        ({"fonts": frozenset({"Arial"})}, 0),
        ({"fonts": frozenset()}, 0),
        ({"free": ("1366x768", "Europe/Berlin")}, 1),
        ({"free": ("1920x1080", "Asia/Tokyo"), "similar": (*SEEN.similar[:4], "de,en,fr")}, 2),
    ],
    ids=["nothing", "upgrade", "a font more", "a font less", "no fonts known", "screen", "zone and language"],
)
def test_the_rules_recognize_a_visitor_after_such_changes(changes: dict, count: int):
    assert allowed_changes(SEEN, seen(b"2", **changes)) == count
    assert ids(list(answers(FPStalkerRules(), [seen(b"1"), seen(b"2", **changes)]))) == [0, 0]


def test_the_rules_give_a_new_id_when_two_visitors_fit_equally():
    one, other = seen(b"1", free=("1366x768", "Europe/Berlin")), seen(b"2", free=("1440x900", "Asia/Tokyo"))
    between = seen(b"3", free=("1366x768", "Asia/Tokyo"))
    assert ids(list(answers(FPStalkerRules(), [one, other, between]))) == [0, 1, 2]


def test_the_rules_prefer_an_equal_report_to_a_similar_one():
    one, other = seen(b"1"), seen(b"2", free=("1366x768", "Asia/Tokyo"))
    assert ids(list(answers(FPStalkerRules(), [one, other, seen(b"1"), seen(b"2", free=other.free)]))) == [0, 1, 0, 1]


def test_the_rules_remember_the_two_newest_reports_of_a_visitor():
    steps = [seen(bytes([step]), free=(f"{1000 + step}x768", "Europe/Berlin")) for step in range(4)]
    rules = FPStalkerRules()
    assert ids(list(answers(rules, steps))) == [0, 0, 0, 0]
    far = seen(b"far", free=("1000x768", "Asia/Tokyo"))  # one change from the first report, which is forgotten
    assert rules(far).visitor != rules(steps[3]).visitor


def test_the_rules_forget_visitors_absent_for_a_month(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("bench.linkage.baselines.SWEPT_EVERY", 2)
    other = seen(b"2", at_days=31, constant=("mac", "safari", "MacIntel", "canvas", ""))
    assert ids(list(answers(FPStalkerRules(), [seen(b"1"), other, seen(b"1", at_days=32)]))) == [0, 1, 2]


# ---- what the service is shown


def request(number: int, storage_id: str, **signals: object) -> Request:
    return Request(
        number, f"2026-01-0{number + 1}T10:00:00Z", "81.2.69.142", {"userAgent": "UA", **signals}, storage_id
    )


def test_a_token_is_new_on_its_first_appearance_only():
    requests = [request(0, "a" * 20), request(1, ""), request(2, "a" * 20)]
    lines = [json.loads(line) for line in replay_lines(requests, with_tokens=True)]
    assert [line["signals"].get("client_token_is_new") for line in lines] == [True, None, False]
    assert [line["tag"] for line in lines] == ["0", "1", "2"]
    assert set(lines[0]) == {"at", "ip", "user_agent", "origin", "platform", "signals", "tag"}


def test_without_tokens_the_replay_omits_storage_ids():
    assert b"aaaa" not in b"".join(replay_lines([request(0, "a" * 20)], with_tokens=False))


def test_short_storage_ids_become_distinct_tokens_of_at_least_sixteen_characters():
    tokens = [client_token(storage_id) for storage_id in ("1", "10", "100", "f" * 16)]
    assert all(16 <= len(token) <= 64 for token in tokens)
    assert len(set(tokens)) == 4


def signals_of(number: int, browser_version: int = 137) -> dict:
    """Of a browser that shares nothing telling with another number's."""
    return {
        "userAgent": f"Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
        f"Chrome/{browser_version}.0.0.0 Safari/537.36",
        "platform": "Win32",
        "languages": [f"x{number}", "en"],
        "timezone": f"Etc/Zone{number}",
        "screen": {"width": 1000 + number, "height": 700, "colorDepth": 24, "devicePixelRatio": 1},
        "hardwareConcurrency": number + 2,
        "webgl": {"vendor": "Maker", "renderer": f"Card {number}"},
        "fonts": [f"Font {number}", "Arial"],
        "canvas": f"{number:032x}",
    }


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stream of three browsers, the middle one upgraded on its second visit."""
    folder = tmp_path / "tiny"
    folder.mkdir()
    reports = [signals_of(0), signals_of(1), signals_of(2), signals_of(1, 138)]
    with gzip.open(folder / "fps.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"fp": place, "signals": report}) + "\n" for place, report in enumerate(reports))
    with gzip.open(folder / "events.csv.gz", "wt", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["event", "t", "instance", "device", "fp", "ip", "storage_id", "private", "causes"])
        for event, (browser, report, causes) in enumerate(
            ((0, 0, ""), (1, 1, ""), (2, 2, ""), (1, 3, "upgrade+vpn"), (0, 0, ""), (2, 2, "private"))
        ):
            token = "" if causes == "private" else f"{browser:020x}"
            at = f"2026-01-0{event + 1}T10:00:00Z"
            writer.writerow([event, at, browser, browser, report, f"81.{browser}.69.142", token, 0, causes])
    return folder


def test_a_stream_separates_what_the_service_sees_from_the_truth(folder: Path):
    stream = read_stream(folder)
    at_s = stream.visits[0].at_s + 3 * DAY_S
    assert stream.visits[3] == Visit("1", "3", at_s, ("upgrade", "vpn"), held_out=is_held_out("tiny", "1"))
    assert stream.requests[3].signals == signals_of(1, 138)
    assert not {"browser", "device", "causes"} & set(Request.__dataclass_fields__)


@pytest.mark.slow
def test_the_service_and_its_matching_alone_give_the_same_results_for_a_stream(folder: Path):
    first, again = (judge_service(folder, with_tokens=True, through_replay=through)[0] for through in (False, True))
    assert first.digest == again.digest
    assert first.verdict.facts() == again.verdict.facts()
    assert (first.verdict.ids, first.verdict.relinked, first.verdict.false_merge) == (3, 1.0, 0.0)
    assert first.verdict.causes["upgrade"].relinked == 1


@pytest.mark.slow
def test_tables_and_page_show_every_method_and_keep_the_prose(folder: Path, tmp_path: Path):
    judged = [*judge_baselines(folder), *judge_service(folder, with_tokens=False)]
    assert [one.verdict.visits for one in judged] == [6, 6, 6, 6]
    table = accuracy_table(judged)
    assert len({len(line) for line in table.text().splitlines()[1:3]}) == 1
    assert "| tiny | exact hash |" in table.markdown()
    assert "upgrade" in cause_tables(judged)[0].text()
    assert calibration_table(judged).rows
    assert [row[:2] for row in held_out_table(judged).rows] == [("tiny", "no token")]

    (tmp_path / "accuracy.md").write_text(f"Before.\n{BEGIN}\nold\n{END}\nAfter.\n")
    counts = Counts({("storage cleared at home: recognized", "held out"): Share(19, 20)})
    identity = [Measured("twins", "small", [counts])]
    _write_docs(tmp_path, Results(judged, {}, {}, [], "tiny, token", identical=True, identity=identity))
    page = (tmp_path / "accuracy.md").read_text()
    assert page.startswith("Before.")
    assert page.endswith("After.\n")
    assert "| tiny | FP-Stalker's rules |" in page
    assert "| small | storage cleared at home: recognized | ≥ .95 | 0.950 | 0.950 | 20 | yes | - |" in page
    assert "\nold\n" not in page


@pytest.mark.slow
def test_a_refused_line_ends_the_measurement():
    with pytest.raises(SystemExit, match="refused"):
        replay([b'{"signals": 5, "unknown": 1}\n'])


# ---- copied tokens


def test_a_copied_token_and_its_owner_are_counted_in_a_young_and_a_grown_organization(folder: Path):
    measured = measure_thefts(folder, seeds=1, victims=3)
    owners, thieves = measured["owner"], measured["thief"]
    assert {organization for _, organization, _ in owners} == {"young", "grown"}
    unchanged = [owners.get(("unchanged", "young", held_out), Count()) for held_out in (False, True)]
    assert sum(count.attempts for count in unchanged) == sum(count.hits for count in unchanged) == 3
    assert unchanged[True].attempts == sum(is_held_out("tiny", str(device)) for device in range(3))
    assert not any(count.hits for (visit, *_), count in thieves.items() if visit == "other collector, other network")
    assert [len(table.rows) for table in theft_tables([("tiny", measured)])] == [
        len({visit for visit, _, _ in thieves}),
        len({visit for visit, _, _ in owners}),
    ]


def test_a_token_thief_keeps_its_own_device_values_through_another_collector():
    signals = {**signals_of(1, 138), "webgl": {"vendor": "v", "renderer": "Some GPU"}, "hardwareConcurrency": 8}
    there = features_of(through_fingerprintjs(signals), "9.9.9.9")
    here = features_of(signals, "9.9.9.9")
    assert (there.family, there.collector == here.collector) == (here.family, False)
    assert there.values[Attribute.HARDWARE]
    assert features_of(without_hard_attributes(signals), "9.9.9.9").values[Attribute.HARDWARE] == 0


# ---- the ladder


def step(profile: str, place: int, *, is_upgrade: bool = True) -> Step:
    return Step(profile, f"step{place}", is_upgrade, place, "UA", {})


def test_the_upgrade_ladder_counts_upgrades_other_builds_and_devices_that_share_an_id():
    steps = [step("a", 0), step("b", 0), step("a", 1), step("b", 1), step("a", 2, is_upgrade=False)]
    climbed = climb(steps, [Answer(1), Answer(2), Answer(1), Answer(1), Answer(1)])
    assert climbed.upgrades == {"a": (1, 1), "b": (0, 1)}
    assert climbed.other_builds == {"a": (1, 1)}
    assert climbed.missed == ["b/step1"]
    assert climbed.merged == [("a", "b")]
    assert climbed.recognized == (1, 2)


def test_devices_of_the_ladder_run_on_their_own_networks_or_on_a_shared_one():
    steps = [step("a", 0), step("b", 0), step("a", 1)]
    own = [json.loads(line) for line in ladder_lines(steps, one_network=False)]
    shared = [json.loads(line) for line in ladder_lines(steps, one_network=True)]
    assert own[0]["ip"] == own[2]["ip"] != own[1]["ip"]
    assert len({line["ip"] for line in shared}) == 1
    assert [line["at"][:10] for line in own] == ["2026-01-05", "2026-01-05", "2026-01-12"]


def test_the_ladder_has_upgrades_of_every_device(shared_data: Path):
    steps = read_ladder(shared_data / "browsers" / "ladder.jsonl.gz")
    assert [step.place for step in steps] == sorted(step.place for step in steps)
    profiles = {step.profile for step in steps}
    assert {step.profile for step in steps if step.is_upgrade} == profiles
    assert not any(step.is_upgrade for step in steps if step.place == 0)


# ---- time and space


def test_the_same_number_gives_the_same_device():
    assert device(7) == device(7)
    assert device(7) != device(8)
    assert device(7, releases=1).agent.browser_version == device(7).agent.browser_version + 10


@pytest.mark.slow(2)
@pytest.mark.long
def test_a_growing_store_is_measured_in_time_and_size():
    said: list[str] = []
    costs = measure((50, 100), said.append, matches=20)
    assert [cost.visitors for cost in costs] == [50, 100]
    assert all(0 < cost.with_token.p50 <= cost.with_token.p99 for cost in costs)
    assert all(cost.bytes_per_visitor > 100 for cost in costs)
    assert any("100" in line for line in said)
