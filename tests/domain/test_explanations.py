"""Every name in the explanation of an event has words for people, and no words are left without a name."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, get_args

import pytest

from bench.browsers.measure import SHAPES, Shape
from svc.identify.history.evidence import (
    ENOUGH_DEVICES,
    MANY_ADDRESSES,
    MANY_COUNTRIES,
    MANY_IDENTIFICATIONS,
    MANY_TIMEZONE_COUNTRIES,
    MANY_VISITORS,
    RARE_TOGETHER,
)
from svc.identify.matching.decision import Linkage
from svc.identify.model import Observation
from svc.identify.scoring.signals import (
    CATALOG,
    EVIDENCE,
    PHRASES,
    meaning,
)
from tests.domain.test_detection_both_ways import BOTH_WAYS
from tests.domain.test_real_browsers import captures
from tests.support.evidence_names import Module, evidence_names, keyword_values, recorded_names, returned_names


@pytest.mark.slow
def test_every_evidence_name_has_a_sentence_and_every_sentence_a_name():
    names = evidence_names()
    assert names - set(EVIDENCE) == set(), "add a sentence for each to svc/identify/data/signals.toml"
    assert set(EVIDENCE) - names == set(), "no check records these"


@pytest.mark.slow
def test_every_change_outcome_and_reason_has_a_phrase_and_every_phrase_a_name():
    assert set(PHRASES.changes) == returned_names("svc.identify.matching.changes", "changes")
    assert set(PHRASES.linkage) == {*get_args(Linkage), "replayed", "split_from"}
    assert set(PHRASES.reasons) == keyword_values("Network", "reason")


def test_sentences_and_phrases_have_a_bounded_length():
    for name, sentence in EVIDENCE.items():
        assert sentence[0].isupper(), name
        assert sentence.endswith("."), name
        assert 20 <= len(sentence) <= 110, name
    for phrases in (PHRASES.changes, PHRASES.linkage, PHRASES.reasons):
        for name, phrase in phrases.items():
            assert not phrase.endswith("."), name
            assert 0 < len(phrase) <= 64, name


def test_evidence_says_more_than_the_description_of_its_signal():
    descriptions = {signal.description for signal in CATALOG.values()}
    assert descriptions & set(EVIDENCE.values()) == set()


def test_sentences_name_the_numbers_that_decide():
    assert f" {MANY_IDENTIFICATIONS} identifications or more " in EVIDENCE["identifications_in_an_hour"]
    assert f" {MANY_ADDRESSES} addresses or more " in EVIDENCE["addresses_in_an_hour"]
    assert f" {MANY_COUNTRIES} countries or more " in EVIDENCE["countries_in_a_day"]
    assert f"At least {MANY_IDENTIFICATIONS} identifications " in CATALOG["high_activity"].fires_on
    assert f"At least {MANY_ADDRESSES} addresses " in CATALOG["velocity_ip"].fires_on
    assert f"At least {MANY_COUNTRIES} countries " in CATALOG["velocity_country"].fires_on
    behavior, rare = CATALOG["residential_proxy_behavior"].fires_on, CATALOG["rare_device"].fires_on
    assert f"At least {MANY_VISITORS} visitors " in behavior
    assert f"at least {MANY_TIMEZONE_COUNTRIES} countries" in behavior
    assert f"At least {RARE_TOGETHER} of " in rare
    assert f"at least {ENOUGH_DEVICES} devices" in rare


def test_a_name_is_explained_and_an_unknown_one_stands_for_itself():
    assert meaning(EVIDENCE, "renderer_in_worker") == "The worker reports another graphics renderer than the page."
    assert meaning(EVIDENCE, "platform_in_iframe").startswith("The iframe ")
    assert meaning(PHRASES.changes, "timezone") == "time zone"
    assert meaning(PHRASES.linkage, "token") == "recognized by its client token"
    assert meaning(PHRASES.reasons, "lookup_failed") == "the network look-up failed"
    for texts in (EVIDENCE, PHRASES.changes, PHRASES.linkage, PHRASES.reasons):
        assert meaning(texts, "of_the_future") == "of_the_future"


def unexplained(seen: Iterable[Observation]) -> set[str]:
    return {name for observation in seen for name in observation.evidence} - set(EVIDENCE)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_all_evidence_from_real_browsers_is_explained(shape: Shape):
    observed = [capture.observe(shape) for capture in captures()]
    assert sum(map(bool, observed)) > 100
    assert [names for names in map(unexplained, observed) if names] == []


def test_all_evidence_from_each_kind_of_visit_is_explained():
    for signal, (fires, _) in BOTH_WAYS.items():
        fired = fires.fired()
        assert fired[signal].evidence
        assert unexplained(fired.values()) == set(), signal


# The reader of the source itself --------------------------------------------------------------------------------------


def module(source: str) -> Any:
    """A module of this source whose own names are those of the standard library."""
    return Module("builtins", ast.parse(source))


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("def f(findings):\n findings.add('automation', 'one')", {"one"}),
        ("def f(findings):\n findings.contradict('engine', None, evidence='one')", {"one"}),
        ("def f(findings, late):\n findings.add('x', 'one' if late else 'two')", {"one", "two"}),
        ("def f(findings):\n for part in ('a', 'b'):\n  findings.add('x', f'no_{part}')", {"no_a", "no_b"}),
        ("def f(findings):\n checks = {'one': 1}\n for name, _ in checks.items():\n  findings.add('x', name)", {"one"}),
        ("def f():\n found = []\n found.append('one')\n return Observation('x', 'low', tuple(found))", {"one"}),
        ("def f(findings):\n for name in g():\n  findings.add('x', name)\ndef g():\n return ['one']", {"one"}),
        ("def f(findings):\n for name in g():\n  findings.add('x', name)\ndef g():\n yield 'one'", {"one"}),
    ],
)
def test_recorded_names_are_found_in_every_form_of_source_code(source: str, names: set[str]):
    assert recorded_names([module(source)]) == names


def test_a_name_that_cannot_be_determined_from_the_source_fails_the_check():
    with pytest.raises(AssertionError, match="cannot tell which names this records"):
        recorded_names([module("def f(findings, report):\n findings.add('x', report.user_agent)")])
