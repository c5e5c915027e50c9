"""Renewal: a browser whose token another key claimed, or whose key was revoked, makes new ones (decisions 18.2).

What may live here: which tokens are disputed, who is asked to renew one, and whether the visitor goes along with the
new one. It never decides whose a report is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from svc.identify.matching.blocks import token_key
from svc.identify.matching.claims import Claim, claim_of, is_of_another_key
from svc.identify.matching.tokens import RENEWED, kept

if TYPE_CHECKING:
    from svc.identify.matching.blocks import Index
    from svc.identify.matching.features import Features
    from svc.identify.matching.recognition import Recognition
    from svc.identify.matching.tokens import Token
    from svc.identify.matching.visitor import Visitor


def disputed(recognition: Recognition, features: Features, claim: Claim) -> Recognition:
    """Return the same decision, with the token of the claim marked where another key than its own signed with it."""
    token = claim.token
    if token is None or token.is_disputed or not token.is_own or not is_of_another_key(features, claim):
        return recognition
    if recognition.number == claim.number:
        return msgspec.structs.replace(recognition, visitor=_disputing(recognition.visitor or claim.visitor, token))
    if recognition.split_from is not None:
        return recognition  # two records change already; the claim will come again
    return msgspec.structs.replace(recognition, disputed=(claim.number, _disputing(claim.visitor, token)))


def _disputing(visitor: Visitor, token: Token) -> Visitor:
    tokens = tuple(
        msgspec.structs.replace(each, is_disputed=True) if each.hash == token.hash else each for each in visitor.tokens
    )
    return msgspec.structs.replace(visitor, tokens=tokens)


def asked(recognition: Recognition, features: Features, claim: Claim) -> Recognition:
    """Return the same decision, with `to_renew` where the claimed token was disputed before and came, signed, from the
    one whose it is: by its proof, or by report and network. Who copied both may be asked, too: the visitor does not go
    along with him.
    """
    token = claim.token
    if token is None or not token.is_disputed or not features.key or recognition.number != claim.number:
        return recognition
    at_home = claim.visitor.has_near_network(features.near_network)
    return msgspec.structs.replace(recognition, to_renew=token.is_own and (recognition.proven or at_home))


def claim_before(index: Index, features: Features) -> Claim | None:
    """Return the claim that a report makes by the token before its own, whose key signed it, too; `None` where that key
    is no proof, where nobody asked for new ones, or where the report's token is known and speaks for itself.
    """
    if index.block(token_key(features.token)).numbers:
        return None
    claim = claim_of(index, features.before_renewal(), features.token_before)
    token = None if claim is None else claim.token
    if claim is None or token is None or not (claim.signed and token.is_own and token.is_disputed):
        return None
    return claim if token.origin == features.origin else None


def renewed(recognition: Recognition, before: Claim, features: Features, now_s: int) -> Recognition:
    """Return the recognition of a visit that came with a new token in the place of `before`. `recognition`: of the same
    visit, as if it had come with the token before.
    """
    visitor = recognition.visitor or before.visitor
    assert before.token is not None
    old = visitor.token(before.token.hash) or before.token  # as this visit left it
    new = msgspec.structs.replace(
        old, hash=features.token, last_s=now_s, key=features.key, key_s=now_s, is_disputed=False
    )
    left = msgspec.structs.replace(old, last_s=now_s, probation=RENEWED, is_disputed=False)
    tokens = [each for known in visitor.tokens for each in ((new, left) if known.hash == old.hash else (known,))]
    return msgspec.structs.replace(
        recognition,
        visitor=msgspec.structs.replace(visitor, tokens=kept(tuple(tokens))),
        postings=(*recognition.postings, (token_key(features.token), 1.0)),
    )
