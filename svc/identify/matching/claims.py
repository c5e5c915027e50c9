"""Claims: a report brings a token, or an identifier of its device, which belongs to a known visitor. Is it that one?

What may live here: what such a claim is worth beside what the device says, where it comes from, and which other tokens
its visitor has, also when a browser came with a new token in the place of its own; and the bound that the tokens of a
visitor set to the confidence (decisions 18.1). Pure; nothing here looks for a visitor by likeness, or writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, NamedTuple

import msgspec

from svc.identify.matching import parameters
from svc.identify.matching.blocks import Index, network_key, token_key
from svc.identify.matching.changes import TABLE_OF_RELEASES, releases_between
from svc.identify.matching.features import Features, is_of_app
from svc.identify.matching.likelihood import (
    INDEPENDENT,
    LEADERS,
    Chance,
    bits_of,
    compare,
    differences,
    other_version,
    row_of,
)
from svc.identify.matching.parameters import ATTRIBUTE_COUNT, LIVING_DAYS, SILENT_DAYS, UNPROVEN_CONFIDENCE
from svc.identify.matching.statistics import Statistics
from svc.identify.matching.tokens import (
    DAY_S,
    DEVICE,
    RENEWED,
    STRANGERS,
    Token,
    dropped,
    is_replaced,
    kept,
    older_beside,
)
from svc.identify.matching.visitor import Visitor
from svc.identify.model import Attribute

if TYPE_CHECKING:
    from svc.identify.matching.recognition import Recognition


_HARD_BITS: Final = (
    bits_of(parameters.HARD_ATTRIBUTES),
    bits_of((*parameters.HARD_ATTRIBUTES, Attribute.SCREEN)),
)
"""For desktops and for mobiles."""


class Claim(NamedTuple):
    """The visitor that a report claims to be by its token or its device id."""

    number: int
    visitor: Visitor
    token: Token | None
    """What the visitor's record has of it; `None` where it is no longer kept."""
    is_device: bool
    signed: bool
    """The key of that token signed the report, or it is the id that the system gives the device."""


class Split(NamedTuple):
    """A visitor, and a token that was taken for its own until it proved to be another device's."""

    number: int
    visitor: Visitor
    token: Token


Standing = Literal["proven", "doubted", "doubted in conflict", "conflict", "unsigned", "another's", "nothing"]


def claim_of(index: Index, features: Features, identifier: int) -> Claim | None:
    """Return the claim of a report by its token or device id (`identifier`); `None` if no visitor has it."""
    for number in index.block(token_key(identifier)).numbers:
        visitor = index.visitor(number)
        if visitor is None:
            return None
        # What a page sends is compared with nothing of an app, and the reverse (decisions 18.5).
        if is_of_app(visitor.collector) == features.native:
            token = visitor.token(identifier)
            is_device = identifier == features.device
            if token is None and not is_device:
                token = dropped(identifier, features, visitor.tokens, visitor.first_seen_s)
            signed = is_device or (token is not None and token.has_joined_key and token.key == features.key)
            return Claim(number, visitor, token, is_device, signed)
    return None


def is_device_alone(features: Features, claim: Claim, now_s: int) -> bool:
    """Return whether a device id alone says who this is, which a report from elsewhere may have copied: neither the
    network of its visitor, nor a token of it that is not on probation, nor hardware that attests it (decisions 18.5).
    """
    if not claim.is_device or features.attested or claim.visitor.has_near_network(features.near_network):
        return False
    token = claim.visitor.token(features.token) if features.token else None
    return token is None or token.probation == STRANGERS or _is_on_probation(features, claim.visitor, token, now_s)


def standing_of(statistics: Statistics, features: Features, claim: Claim, now_s: int) -> tuple[Standing, int]:
    """Return how far a claim is to be believed, and how many attributes differ from the visitor's."""
    visitor, token = claim.visitor, claim.token
    if not claim.is_device and features.fixed_device and visitor.is_other_device(features):
        return "conflict", 0
    if token is not None and token.probation == STRANGERS:
        return "another's", 0
    if _lacks_proof(features, claim, now_s):
        return "unsigned", 0
    standing = token_standing(features, visitor, now_s, statistics, signed=claim.signed, device=claim.is_device)
    found: Standing = "conflict"
    if standing.believed:
        found = "doubted in conflict" if standing.conflict else "proven"
        if not claim.is_device and _is_on_probation(features, visitor, token, now_s):
            # A token that joined at home is nobody else's, and not proven elsewhere.
            joined = token is not None and token.probation <= parameters.JOINED_DAYS and not token.private
            found = "doubted" if joined else "nothing"
        elif token is not None and _is_twin(statistics, visitor, token, now_s):
            found = "another's"
    return found, standing.changed


def is_of_another_key(features: Features, claim: Claim) -> bool:
    """Return whether another key than that of the token signed, which its own browser never does: who lost the key has
    another token, too (decisions 18.2).
    """
    token = claim.token
    return token is not None and features.key != 0 and token.has_joined_key and token.key != features.key


def _lacks_proof(features: Features, claim: Claim, now_s: int) -> bool:
    """Return whether the token's browser would have signed the report by its key, or has another token by now."""
    token = claim.token
    if token is None or not token.key or claim.signed:
        return False
    replaced = not token.is_own or is_replaced(token, claim.visitor.tokens)
    return token.needs_key(now_s) or replaced or is_of_another_key(features, claim)


def _is_twin(statistics: Statistics, visitor: Visitor, token: Token, now_s: int) -> bool:
    """Return whether a token that joined this visitor on its first visit, and now came back, is rather another
    device's. Evidence is how often such tokens were, and how long the visitor's older token is silent.
    """
    older = older_beside(token, visitor.tokens) if token.probation else None
    if older is None or token.private:
        return False
    return statistics.twin_odds() * visitor.alive(older.last_s, token.first_s, now_s) > parameters.TWIN_ODDS


def _is_on_probation(features: Features, visitor: Visitor, token: Token | None, now_s: int) -> bool:
    """Return whether the token proves nothing here: it comes from elsewhere, and joined this visitor lately without
    proof, or rival keys claim it, or it is no longer kept.
    """
    if visitor.has_near_network(features.near_network):
        return False
    if token is None or token.has_no_proof:
        return True
    return token.probation > 0 and token.is_own and not visitor.has_replaced(token, now_s)


def is_device_of_its_own(features: Features, split: Split) -> bool:
    """Return whether a browser that was parted from a visitor becomes a visitor of its own, even if others look like
    it: its token is proven by its key, or its report is that visitor's, so that likeness tells nothing.
    """
    signed = split.token.has_joined_key and split.token.key == features.key
    return signed or features.exact in split.visitor.exact_hashes


def share_parted(statistics: Statistics, token: Token) -> float:
    """Return how many devices a parted token shows, by expectation: one, where an older token returned after it."""
    if token.probation == STRANGERS:
        return 1.0
    odds = statistics.twin_odds()
    return odds / (1.0 + odds)


def parted_rightly(index: Index, features: Features, visitor: Visitor, now_s: int) -> bool | None:
    """Return whether a visitor that was parted because such tokens mostly were other devices' (`_is_twin`) is another
    device: whether its former visitor was seen since. Asked once, after `OPEN_DAYS`, when a storage that was cleared
    shows by silence; `None` for other visitors, at other times, and away from where the former one is.
    """
    if not visitor.parent or visitor.parent_probability:
        return None
    due_s = visitor.first_seen_s + parameters.OPEN_DAYS * DAY_S
    if not visitor.last_seen_s < due_s <= now_s or now_s - visitor.last_seen_s <= parameters.COUNTED_AFTER_S:
        return None
    if visitor.parent not in index.block(network_key(features.family, features.near_network)).numbers:
        return None  # it may be deleted: only what a block lists may be read
    former = index.visitor(visitor.parent)
    return None if former is None else former.last_seen_s > visitor.first_seen_s


class TokenStanding(msgspec.Struct, frozen=True, gc=False):
    """What a known token proves about a visit, given what the device reports."""

    believed: bool
    """The visit is the token's visitor, all things considered."""
    conflict: bool
    """The device contradicts the token."""
    changed: int
    """Attributes that differ from the visitor's, its class included."""


def token_standing(
    features: Features,
    visitor: Visitor,
    now_s: int,
    statistics: Statistics,
    *,
    signed: bool = False,
    device: bool = False,
) -> TokenStanding:
    """Return whether a known token was presented by the device that it was given to. `signed`: by something that cannot
    be copied with it, a key or the system's own identifier; `device`: it is that identifier. What a person changes is
    then ignored: only somebody with full control of a system can give it another device's identifier, and then the
    hardware differs.

    A token can be copied: by an injected script, with a profile, from a log. So it is evidence like the rest, strong on
    a network that the visitor used before and weaker elsewhere, and the likelihood of the differences is weighed
    against the chance that another device of the class agrees as much. Elsewhere, hardware that differs or is suddenly
    not reported, another class, or another collector is a conflict whatever the odds. Values of different collectors
    cannot be compared; values that the visitor had before contradict nothing.
    """
    origin = _KNOWN if signed else _origin(features, visitor)
    if features.collector != visitor.collector:
        return TokenStanding(origin == _KNOWN, origin != _KNOWN, ATTRIBUTE_COUNT)
    differing = differences(features, visitor)
    changed = differing.bit_count() + (features.family != visitor.family)
    if not changed or features.exact in visitor.exact_hashes:
        return TokenStanding(believed=True, conflict=False, changed=changed)
    if device and not differing & _HARD_BITS[features.mobile] and features.family == visitor.family:
        return TokenStanding(believed=True, conflict=False, changed=changed)
    hard = (differing & _HARD_BITS[features.mobile]).bit_count() + (features.family != visitor.family)
    if hard >= parameters.CONTRADICTIONS:
        return TokenStanding(believed=False, conflict=True, changed=changed)
    if hard or (differing & INDEPENDENT).bit_count() > parameters.CHANGES_BELIEVED:
        log_odds = parameters.TOKEN_LOG_ODDS[origin] + _log_same_over_other(features, visitor, now_s, statistics)
        believed = log_odds >= 0.0
        return TokenStanding(believed, not believed or (hard > 0 and origin != _KNOWN), changed)
    return TokenStanding(believed=True, conflict=False, changed=changed)


_KNOWN, _WIDE_KNOWN, _ELSEWHERE = range(len(parameters.TOKEN_LOG_ODDS))


def _origin(features: Features, visitor: Visitor) -> int:
    """Return from which network the visit comes, as an index into `TOKEN_LOG_ODDS`."""
    if visitor.has_near_network(features.near_network):
        return _KNOWN
    wide = features.wide_network
    return _WIDE_KNOWN if wide and any(known == wide for _, known in visitor.networks) else _ELSEWHERE


def _log_same_over_other(features: Features, visitor: Visitor, now_s: int, statistics: Statistics) -> float:
    """Return the log of how much likelier the report is from this visitor than from any other device of its class.

    An attribute that is suddenly not reported counts as changed: a thief omits what would reveal the theft.
    """
    chance = Chance(features, {}, statistics)
    gap_days = max(now_s - visitor.last_seen_s, 0) // DAY_S
    releases = releases_between(features, visitor)
    row = statistics.change_tables[features.mobile][TABLE_OF_RELEASES[releases]][row_of(gap_days)]
    likelihood, agreement = compare(features, visitor, row, LEADERS[bool(releases)])
    _, log_changed = row
    for attribute, (new, old) in enumerate(zip(features.values, visitor.values, strict=True)):
        if old and not new:
            likelihood += log_changed[attribute]
    if releases:
        likelihood += other_version(features, visitor)
    if features.family != visitor.family:
        likelihood += parameters.LOG_OTHER_CLASS
    return likelihood - chance.log_share(agreement, same_version=not releases)


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


def asked(recognition: Recognition, features: Features, claim: Claim, now_s: int) -> Recognition:
    """Return the same decision, with `to_renew` where the claimed token was disputed before and came, signed, from the
    one whose it is: by its proof, or by report and network. Whoever copied both may be asked, too, and does not take
    the visitor along. So is the other device of a profile that was copied with its key, once it is known by itself.
    """
    token = claim.token
    if token is None or not features.key:
        return recognition
    if recognition.number != claim.number:
        known = recognition.visitor if claim.signed else None
        came_back = known is not None and now_s // DAY_S > known.first_seen_s // DAY_S
        return msgspec.structs.replace(recognition, to_renew=True) if came_back else recognition
    if not token.is_disputed:
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
