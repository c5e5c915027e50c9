"""What the browsers of one origin's visitors send: a site's own policy may keep headers from its pages' requests.

What may live here: what is remembered of an origin, how it follows a visit, and what it makes of the findings of one
report. Pure: the identification's transaction reads and writes it.

`Permissions-Policy: ch-ua=()` takes the client hints from every request of a page, and its scripts still see them. That
is no forgery, so a request without hints is judged by what visitors send that came back to the same origin. Programs
that make up browsers make new visitors, and teach nothing.
"""

from __future__ import annotations

from typing import Final

import msgspec

from svc.identify.model import Observation, Report, RequestFacts

REMEMBERED: Final = 20
"""Visits of one origin that are remembered."""
EXPECTED_FROM: Final = 18
"""How many of them must have client hints before a request without them counts as forged."""
MISSING: Final = "hints_missing"
NO_SCRIPT_LEAVES_OUT: Final = "fetch_metadata_missing"
"""No policy of a site takes these headers away: where they are missing too, the missing hints need no comparison."""


class OriginHistory(msgspec.Struct, frozen=True, array_like=True):
    """The latest visits to an origin by visitors that came back with a token. Append fields, never move them."""

    visits: int = 0
    """Of browsers whose pages know client hints, up to `REMEMBERED`."""
    with_hints: int = 0
    """A bit for each of these, the latest lowest: whether its request carried client hints."""


def carries_hints(report: Report, facts: RequestFacts) -> bool | None:
    """Return whether the request carried the hints that its page knows; `None` if there are none, or it could not."""
    if facts.context in (None, "plain") or not report.claims.hints.brands:
        return None
    return bool(facts.hints.brands)


def visited(before: OriginHistory, *, carried: bool) -> OriginHistory:
    """Return the history with one more visit; equal to `before` once all remembered visits are alike."""
    bits = (before.with_hints << 1 | carried) & ((1 << REMEMBERED) - 1)
    return OriginHistory(min(before.visits + 1, REMEMBERED), bits)


def expects_hints(history: OriginHistory) -> bool:
    """Return whether nearly all visitors of the origin send client hints: one without them is an exception."""
    return history.visits >= REMEMBERED and history.with_hints.bit_count() >= EXPECTED_FROM


def needs_origin(observations: tuple[Observation, ...]) -> bool:
    """Return whether it depends on the origin's visitors what these observations are worth."""
    return any(MISSING in seen.evidence and NO_SCRIPT_LEAVES_OUT not in seen.evidence for seen in observations)


def without_missing_hints(observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """Return the observations without the finding that client hints are missing, and without `forged_report` if nothing
    else showed it.
    """
    left: list[Observation] = []
    for seen in observations:
        evidence = tuple(name for name in seen.evidence if name != MISSING)
        if evidence == seen.evidence:
            left.append(seen)
        elif evidence:
            left.append(Observation(seen.signal, "medium" if len(evidence) == 1 else seen.confidence, evidence))
    return tuple(left)
