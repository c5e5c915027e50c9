"""Two runs side by side: whose verdicts differ, in which direction, and by which signal."""

from __future__ import annotations

from svc_replay.verdicts import Comparison, RunVerdict


def verdict(visitor: str, *signals: tuple[str, int], new: bool = False, level: str = "low") -> RunVerdict:
    return RunVerdict(
        request_id="r",
        occurred_at="t",
        visitor_id=visitor,
        visitor_is_new=new,
        score=sum(weight for _, weight in signals),
        level=level,
        signals=signals,
    )


def test_runs_with_different_visitor_names_have_the_same_partition():
    comparison = Comparison()
    for before, after in (("a", "x"), ("b", "y"), ("a", "x"), ("b", "y"), ("a", "x")):
        comparison.note(verdict(before), verdict(after))
    found = comparison.summary()
    assert (found.compared, found.changed) == (5, 0)
    assert found.visitors.before == found.visitors.after == 2


def test_an_identification_joins_leaves_or_changes_its_visitor():
    comparison = Comparison()
    pairs = (("a", "x"), ("b", "x"), ("a", "z"), ("c", "c"), ("b", "c"))
    for before, after in pairs:
        comparison.note(verdict(before), verdict(after))
    found = comparison.summary(only_before=3, only_after=4)
    assert (found.visitors.joined, found.visitors.separated, found.visitors.moved) == (1, 1, 1)
    assert [example.link for example in found.examples] == ["joined", "separated", "moved"]
    assert (found.only_before, found.only_after) == (3, 4)


def test_levels_scores_and_signals_are_counted_by_direction():
    comparison = Comparison()
    comparison.note(verdict("a", ("tor", 40), level="medium"), verdict("a", level="low"))
    comparison.note(verdict("b", ("tor", 40)), verdict("b", ("tor", 50), ("vpn_public", 5)))
    comparison.note(verdict("c", new=True), verdict("c"))
    found = comparison.summary()
    assert [(move.before, move.after, move.count) for move in found.moves] == [("medium", "low", 1)]
    assert (found.score_raised, found.score_lowered, found.changed) == (1, 1, 2)
    assert found.visitors.new_to_known == 1
    assert [(one.signal, one.appeared, one.disappeared, one.reweighted) for one in found.by_signal] == [
        ("tor", 0, 1, 1),
        ("vpn_public", 1, 0, 0),
    ]


def test_examples_include_rare_changes():
    comparison = Comparison(most_examples=2)
    for _ in range(50):
        comparison.note(verdict("a", level="low"), verdict("a", level="medium"))
    comparison.note(verdict("a", level="high"), verdict("a", level="low"))
    assert [example.after.level for example in comparison.summary().examples] == ["medium", "low"]
