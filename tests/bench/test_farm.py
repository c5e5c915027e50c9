"""The simulated farm in small: the same seed makes the same visits, and recipes find what they are made against."""

from __future__ import annotations

import pytest

from bench.farm import (
    CASES,
    HONEST,
    KNOWN_S,
    PAGE,
    Made,
    account_of,
    made_up_reports,
    measured,
    read_recipes,
    retries,
    table,
)

REPORTS = 90


@pytest.mark.slow(2)
def test_recipes_find_the_attacks_that_they_are_made_against():
    made = Made(1, 25, REPORTS, attackers=0.06)
    assert made.visits == Made(1, 25, REPORTS, attackers=0.06).visits != Made(2, 25, REPORTS, attackers=0.06).visits
    assert {visit.who for visit in made.visits} == {HONEST, *(case.attack for case in CASES)}
    recipes = read_recipes(PAGE.read_text())
    results = measured(made, made_up_reports(REPORTS), recipes)
    found = {(one.case.recipe, one.case.attack): one for one in results}
    assert {recipe.name for recipe in recipes} == {recipe for recipe, _ in found}
    script = found["Scripted sign-up", "script"]
    assert (script.visits, script.found, script.accounts_found) == (6, 6, 6)
    stuffing = found["Credential stuffing", "stuffing, one browser"]
    assert (stuffing.visits, stuffing.found) == (12, 8), "from the fifth account on"
    honest = [visit for visit in made.visits if (visit.who, visit.action) == (HONEST, "log_in")]
    assert stuffing.honest == sum(visit.at_s >= KNOWN_S for visit in honest) > 20
    assert "| Scripted sign-up | script: `sign_up` | 6 | 100.0% | 6 of 6 |" in table(results, made.households)


@pytest.mark.slow(3)
@pytest.mark.long
def test_a_form_that_fails_costs_people_something_unless_the_backend_renames_it():
    """Decisions 11.2: each sign-up without an account counts as one, while the account takes its place."""
    made, reports, recipes = (
        Made(11, 25, REPORTS, attackers=0.06),
        made_up_reports(REPORTS),
        read_recipes(PAGE.read_text()),
    )
    attempts = [visit for visit in made.visits if (visit.who, visit.action) == (HONEST, "sign_up")]
    failed = [visit for visit in attempts if visit.failed]
    assert 0 < len(failed) < len(attempts) / 2
    assert account_of(failed[0], "set later") == {}
    assert account_of(failed[0], "failed ones renamed") == {"afterwards": {"action": "sign_up_failed"}}
    known, later, renamed = (
        measured(made, reports, recipes, form) for form in ("known", "set later", "failed ones renamed")
    )
    assert [(one.found, one.false_positives) for one in renamed] == [(one.found, one.false_positives) for one in known]
    assert [one.found for one in later] == [one.found for one in known]
    abuse, same = (next(one for one in some if one.case.recipe == "Sign-up abuse") for some in (later, known))
    assert abuse.people == same.people
    assert (same.people_bothered[2], abuse.people_bothered[2], abuse.people[2]) == (0, 2, 2)
    assert "| Sign-up abuse | " in retries(later)
