"""Certainty: which answers may be given at 90 or more, because nothing that decided them could have been copied.

What may live here: the bound that the tokens of a visitor set to the confidence in an answer (decisions 18.1). It never
decides which visitor it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from svc.identify.matching.parameters import LIVING_DAYS, SILENT_DAYS, UNPROVEN_CONFIDENCE
from svc.identify.matching.tokens import DAY_S, DEVICE, RENEWED, Token, older_beside

if TYPE_CHECKING:
    from svc.identify.matching.features import Features
    from svc.identify.matching.visitor import Visitor


def bounded(
    confidence: int,
    features: Features,
    visitor: Visitor,
    now_s: int,
    token: Token | None,
    *,
    copied: bool = False,
) -> int:
    """Return the confidence, at most `UNPROVEN_CONFIDENCE` unless the link is certain. `visitor`: the record before
    this visit; `token`: the token or device id by which it was recognized, `None` if by likeness; `copied`: it
    may be, since it is a device id from elsewhere that nothing attests (decisions 18.5).
    """
    is_certain = not copied and _is_certain(features, visitor, now_s, token)
    return confidence if is_certain else min(confidence, UNPROVEN_CONFIDENCE)


def _is_certain(features: Features, visitor: Visitor, now_s: int, token: Token | None) -> bool:
    living = [known for known in visitor.tokens if _is_living(known, now_s)]
    if token is None:
        return not living
    if any(known.key for known in living):
        presented = visitor.token(features.token) if features.token else None
        if presented is None or not presented.has_joined_key or presented.key != features.key:
            return False
    if token.origin == DEVICE or not token.probation:
        return True
    # It joined lately. Beside an older token of its site it may be an equal device's, a copy's, or a private window's.
    older = older_beside(token, visitor.tokens)
    if older is None or not _is_living(older, now_s):
        return True
    came_back = now_s // DAY_S > token.first_s // DAY_S
    return came_back and now_s - older.last_s >= SILENT_DAYS * DAY_S


def _is_living(token: Token, now_s: int) -> bool:
    """Return whether a browser of this visitor may still bring the token."""
    return token.probation < RENEWED and now_s - token.last_s < LIVING_DAYS * DAY_S
