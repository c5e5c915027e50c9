"""Who is new at the address of an identification, and what that shows (`identify.history.newcomers`, decisions 18.6).

Bounds: nothing is read or written but the row of the address's velocity, which is anyway. Where a third new token of
one report came, two blocks and up to 8 visitors are read.
"""

from __future__ import annotations

from svc.identify.history.newcomers import THIRD, Arrival, has_several_devices, new_visitor_burst, renewals
from svc.identify.identification import Assessment
from svc.identify.matching import Index, Statistics
from svc.identify.matching.blocks import token_key
from svc.identify.model import Observation
from svc.identify.velocity.counts import VelocityRow


def has_unknown_token(index: Index, assessment: Assessment) -> bool:
    """Return whether a report brings a token that the organization never saw. Ask before the recognition is applied."""
    token = assessment.features.token if assessment.features.identifiable else 0
    return token != 0 and not index.block(token_key(token)).numbers


def arrival_of(assessment: Assessment, visitor: int | None, *, is_new: bool, has_new_token: bool) -> Arrival | None:
    """Return what an identification is for its address; `None` where it says nothing: of nobody who is known again, or
    at an address that may stand for many. `visitor`: its number.
    """
    seen, features = assessment.history, assessment.features
    if visitor is None or not seen.is_public or not seen.counts_address:
        return None
    # Phones of one model send one report, but for what the system calls each.
    report = features.exact ^ features.device
    return Arrival(features.family, report, features.token, visitor, is_new, has_new_token)


def arrival_signals(
    index: Index, statistics: Statistics, assessment: Assessment, arrival: Arrival | None, address: VelocityRow
) -> tuple[Observation, ...]:
    """Return the signals of an arrival; `address`: the velocity row of its address, this one included."""
    if arrival is None or not arrival.is_new:
        return ()
    found: list[Observation] = []
    is_third = arrival.has_new_token and renewals(address, arrival) >= THIRD
    if is_third and not has_several_devices(index, assessment.features):
        found.append(Observation("storage_renewed", "medium", ("new_tokens_of_one_report",)))
    if arrival.is_new_visitor:
        ratio = statistics.new_for_each_known()
        burst = new_visitor_burst(address, arrival, assessment.history.at_s, ratio)
        found += () if burst is None else (burst,)
    return tuple(found)
