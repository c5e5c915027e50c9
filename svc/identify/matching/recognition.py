"""Recognition: the bounded procedure that reads what might match, decides, and says what to write.

What may live here: the procedure, and the writes of one identification as data. The caller runs it inside its
transaction, over an `Index` that is bound to one organization, and applies what comes back.

Bounds of one identification: at most 8 block reads, 20 record reads (12 scored in full), 8 block writes and 2 record
writes, of the visitor and of the one that it was taken for until now, or whose token it brought; an app's report, which
has two keys, that of a browser which renewed its token, and one of a visitor that was parted (ADR 269) read one block
and one record more, and the app's writes one block more. Most returns cost two blocks and one record: a known token
that nothing contradicts, and a report that one visitor alone has sent before, from that visitor's own network. A report
that cannot identify anybody reads and writes nothing, with or without a token: an id that hangs on the token alone
would be the token, and a report poor enough for that is easily made by anybody who copied one. A report that was sent
before is matched and writes nothing.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from svc.identify.matching import blocks, claims, parameters
from svc.identify.matching.decision import (
    Linkage,
    LinkDecision,
    by_doubted_token,
    by_token,
    decide,
    proven_by_network,
)
from svc.identify.matching.features import Features
from svc.identify.matching.lessons import NOTHING, StatisticsUpdate
from svc.identify.matching.likelihood import CROWDED, NEAR, SURROUNDINGS
from svc.identify.matching.statistics import Statistics
from svc.identify.matching.tokens import DAY_S, DEVICE, STRANGERS, Token, older_beside, rivals_of
from svc.identify.matching.visitor import Visitor, first_record

Outcome: TypeAlias = Linkage | Literal["replayed"]
"""Beside those of a link decision: a new id that is not kept, since the report was sent before."""


class Recognition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The visitor that a report belongs to, and the writes that follow."""

    number: int | None = None
    """The visitor's number; `None` = a new visitor."""
    confidence: int = 0
    """0 for a new id; 85 to 89 by all that is known, not proven; 90 to 100 where nothing that decided could have been
    copied (decisions 3.5, 18.1)."""
    probability: float = 0.0
    """That it is the known visitor which it resembles most, linked or not."""
    token_conflict: bool = False
    """The report brought the token of a visitor whose device it contradicts."""
    outcome: Outcome = "unidentifiable"
    visitor: Visitor | None = None
    """The record to put, when it changed. For a new visitor the caller gives number and `visitor_id`."""
    postings: tuple[tuple[blocks.BlockKey, float], ...] = ()
    """Blocks that gain this visitor's number, and how many devices it counts for (`Block.with_posting`)."""
    proven: bool = False
    """The report was signed by the key that its token had before this visit."""
    split_from: int | None = None
    """Number of the visitor that this device was taken for until now: its token lives beside that visitor's own."""
    left: Visitor | None = None
    """The record to put of that visitor, which has this token no longer."""
    lookalike: bool = False
    """A new visitor whose very report another one sent before."""
    to_renew: bool = False
    """The browser is to renew its token and key: another key signed with this token, or its key was revoked."""
    disputed: tuple[int, Visitor] | None = None
    """Number and record to put of another visitor, with whose token this report's key signed."""
    statistics_update: StatisticsUpdate = NOTHING
    """For `Statistics.learn`, once the transaction is committed and never before."""

    def without_writes(self) -> Recognition:
        """Return the same decision for a report that was sent before: nothing is written or learned."""
        return Recognition(
            number=self.number,
            confidence=self.confidence,
            probability=self.probability,
            token_conflict=self.token_conflict,
            outcome="replayed" if self.number is None else self.outcome,
        )

    def without_proof(self) -> Recognition:
        """Return the same recognition where several have the key that signed the report (decisions 18.6)."""
        confidence = min(self.confidence, parameters.UNPROVEN_CONFIDENCE)
        return msgspec.structs.replace(self, proven=False, confidence=confidence)


UNIDENTIFIABLE: Final = Recognition()


class Found(NamedTuple):
    """A link decision, and the records among which it was made."""

    decision: LinkDecision
    candidates: list[tuple[int, Visitor]]


def match_visitor(
    index: blocks.Index,
    statistics: Statistics,
    features: Features,
    now_ms: int,
    *,
    flooding: bool = False,
    replayed: bool = False,
) -> Recognition:
    """Find the visitor that a report belongs to. Reads the index within the bounds of the module's docstring and writes
    nothing; the caller applies the result.

    `flooding`: most new visitors from this address today may be copies (`is_flooding`). Then a new
    visitor is not `listed`, and a known one stays unchanged unless more than a likeness proves it (ADR 77). `replayed`:
    the report was sent before: nothing is learned from it, no token joins, and a visitor that it would create is not
    kept.
    """
    if not features.identifiable:
        return UNIDENTIFIABLE
    if replayed:
        unsigned = msgspec.structs.replace(features, key=0, key_before=0)
        return _matched(index, statistics, unsigned, now_ms, flooding=flooding).without_writes()
    return _matched(index, statistics, features, now_ms, flooding=flooding)


def _matched(
    index: blocks.Index, statistics: Statistics, features: Features, now_ms: int, *, flooding: bool
) -> Recognition:
    before = claims.claim_before(index, features) if features.key_before else None
    if before is not None:
        as_before = features.before_renewal()
        standing, changed = claims.standing_of(statistics, as_before, before, now_ms // 1000)
        if standing == "proven":
            return claims.renewed(_proven(index, as_before, now_ms, before, changed), before, features, now_ms // 1000)
    refuted, disputed = _Refuted(), None
    for identifier in features.keys:
        claim = claims.claim_of(index, features, identifier)
        if claim is None:
            features = features.with_unknown(identifier)
            continue
        standing, changed = claims.standing_of(statistics, features, claim, now_ms // 1000)
        if standing == "proven":
            return claims.asked(_proven(index, features, now_ms, claim, changed), features, claim, now_ms // 1000)
        if standing in ("doubted", "doubted in conflict"):
            decision = by_doubted_token(claim.number)
            return _linked(features, now_ms, decision, claim.visitor, token_conflict=standing != "doubted")
        if standing in ("conflict", "unsigned"):
            refuted = refuted._replace(conflict=True, unsigned=standing == "unsigned")
            disputed = claim
            features = features.without_device() if claim.is_device else features.without_token()
        if standing == "another's" and claim.token is not None:
            refuted = refuted._replace(split=claims.Split(claim.number, claim.visitor, claim.token))
    recognition = _decided(index, statistics, features, now_ms, refuted, flooding=flooding)
    if disputed is None:
        return recognition
    return claims.asked(claims.disputed(recognition, features, disputed), features, disputed, now_ms // 1000)


class _Refuted(NamedTuple):
    """Evidence against the visitor that the report claims."""

    conflict: bool = False
    """The device contradicts it."""
    unsigned: bool = False
    """Its browser would have signed the report."""
    split: claims.Split | None = None
    """The token is that of another device, which passed for that visitor."""


def _proven(index: blocks.Index, features: Features, now_ms: int, claim: claims.Claim, changed: int) -> Recognition:
    """Recognize the visitor whose token, or device id, proves who this is."""
    decision = by_token(claim.number, changed, exact=_sent_before(index, features, claim.number, claim.visitor))
    copied = claims.is_device_alone(features, claim, now_ms // 1000)
    recognition = _linked(features, now_ms, decision, claim.visitor, token=claim.token, may_be_copied=copied)
    rightly = claims.parted_rightly(index, features, claim.visitor, now_ms // 1000)
    if rightly is not None:
        update = msgspec.structs.replace(recognition.statistics_update, twins_waited=True, twins_found=int(rightly))
        recognition = msgspec.structs.replace(recognition, statistics_update=update)
    signed = claim.signed and not claim.is_device
    return msgspec.structs.replace(recognition, proven=True) if signed else recognition


def _sent_before(index: blocks.Index, features: Features, number: int, visitor: Visitor) -> bool:
    """Return whether this visitor sent the very same report before, lately or ever."""
    if features.exact in visitor.exact_hashes:
        return True
    return number in index.block(blocks.exact_key(features.exact)).numbers


def _decided(
    index: blocks.Index, statistics: Statistics, features: Features, now_ms: int, refuted: _Refuted, *, flooding: bool
) -> Recognition:
    """Recognize a visitor by the device alone, or make a new one."""
    split = refuted.split
    found = likeliest_visitor(index, statistics, features, now_ms, split)
    decision = found.decision
    if (
        decision.linked
        and _is_enough(decision, refuted)
        and not (split is not None and claims.is_device_of_its_own(features, split))
    ):
        visitor = next(visitor for number, visitor in found.candidates if number == decision.number)
        return _linked(
            features,
            now_ms,
            decision,
            visitor,
            new_devices=_new_devices(statistics, features, decision),
            token_conflict=refuted.conflict,
            flooding=flooding,
        )
    lookalike = bool(index.block(blocks.exact_key(features.exact)).numbers)
    listed = not (flooding and lookalike)
    if split is not None:
        # It may be a private window that is still open.
        listed = listed and now_ms // 1000 // DAY_S > split.token.first_s // DAY_S
    elif decision.hidden and lookalike:
        # A private window, or another equal device: it counts as a device when it comes back.
        listed = False
    parent, parent_probability = 0, 0.0
    if split is not None and split.token.probation != STRANGERS:
        parent = split.number  # whether that was right shows later (`claims.parted_rightly`)
    elif decision.number is not None and decision.probability > parameters.SPLIT_PROBABILITY:
        parent, parent_probability = decision.number, decision.probability
    return Recognition(
        probability=decision.probability,
        token_conflict=refuted.conflict,
        outcome="doubtful" if decision.linked else decision.outcome,
        visitor=first_record(
            features,
            now_ms,
            parent=parent,
            parent_probability=parent_probability,
            listed=listed,
            token_since_s=None if split is None else split.token.first_s,
        ),
        postings=blocks.postings_of(blocks.block_keys(features), decision.probability_new, listed=listed),
        lookalike=lookalike,
        split_from=None if split is None else split.number,
        left=None if split is None else split.visitor.without_token(split.token),
        statistics_update=StatisticsUpdate(
            features=features,
            new_devices=_new_devices(statistics, features, decision),
            returned=1.0 - decision.probability_new if decision.distinct else None,
            parted=0.0 if split is None else claims.share_parted(statistics, split.token),
        ),
    )


def _has_older(features: Features, visitor: Visitor) -> bool:
    """Return whether a token, unless a private window's, joins an older one of its site."""
    if features.private or not features.token or visitor.token(features.token) is not None:
        return False
    return any(token.origin == features.origin and token.probation != STRANGERS for token in visitor.tokens)


def _is_enough(decision: LinkDecision, refuted: _Refuted) -> bool:
    """Return whether a link by likeness holds although the token was not believed. The visit is no private window's
    then, and an attacker who copied a token copied the report with it.
    """
    if not refuted.conflict:
        return True
    at_home = decision.kind % SURROUNDINGS in (NEAR, CROWDED)
    return decision.probability >= parameters.LINK_ELSEWHERE and (at_home or not refuted.unsigned)


def likeliest_visitor(
    index: blocks.Index, statistics: Statistics, features: Features, now_ms: int, split: claims.Split | None = None
) -> Found:
    """Return the link decision by device and network context alone, linked or not. Reads as `match_visitor` does."""
    sole = None if split else _sole_sender(index, statistics, features, now_ms)
    return sole or _likeliest(index, statistics, features, now_ms, split)


def _sole_sender(index: blocks.Index, statistics: Statistics, features: Features, now_ms: int) -> Found | None:
    """Decide on the only visitor who ever sent this very report, if its own network proves that it is that visitor. No
    other could come close then, so that two blocks and one record are enough for most returns.
    """
    if not features.near_network:
        return None
    exact = index.block(blocks.exact_key(features.exact))
    here = index.block(blocks.network_key(features.family, features.near_network))
    if len(exact.numbers) != 1 or exact.numbers[0] not in here.numbers:
        return None
    number = exact.numbers[0]
    visitor = index.visitor(number)
    if visitor is None:
        return None
    candidates = [(number, visitor)]
    counts = {blocks.EXACT: exact.count, blocks.NETWORK: here.count}
    decision = decide(features, now_ms, counts, candidates, exact.numbers, statistics)
    return Found(decision, candidates) if proven_by_network(decision) else None


def _likeliest(
    index: blocks.Index, statistics: Statistics, features: Features, now_ms: int, split: claims.Split | None
) -> Found:
    """Decide on all visitors that are near this report in any block, and on the visitor of a token on probation."""
    read = blocks.read_blocks(index, features)
    numbers = blocks.likely_numbers(read, parameters.RECORDS_READ - 1)
    for number in index.block(blocks.token_key(features.token)).numbers[:1] if features.token else ():
        if number not in numbers:
            numbers.append(number)
    candidates = blocks.read_records(index, numbers)
    if split is not None:
        former = split.visitor.disowning((split.token,))
        candidates = [(number, former if number == split.number else visitor) for number, visitor in candidates]
    exact_numbers = read.get(blocks.EXACT, blocks.EMPTY_BLOCK).numbers
    return Found(
        decide(features, now_ms, blocks.device_counts(read), candidates, exact_numbers, statistics), candidates
    )


def _new_devices(statistics: Statistics, features: Features, decision: LinkDecision) -> float:
    """Return how many devices this visit adds to the frequency tables, by expectation.

    Blurred reports, and reports close to a known one, count by the return rate and not by their own link decision.
    Otherwise doubtful decisions would feed the very counts that they rest on, and splits or merges would run away.
    """
    usual = 1.0 - statistics.return_rate(features)
    if not decision.distinct:
        return usual
    return min(decision.probability_new, usual) if decision.near else decision.probability_new


def _linked(  # noqa: PLR0913  what decided, and what is known of it
    features: Features,
    now_ms: int,
    decision: LinkDecision,
    visitor: Visitor,
    *,
    token: Token | None = None,
    may_be_copied: bool = False,
    new_devices: float = 0.0,
    token_conflict: bool = False,
    flooding: bool = False,
) -> Recognition:
    """Recognize a known visitor. `token`: the one that decided, `None` if likeness did; `may_be_copied`: it is a device
    id, and nothing else tells who this is.
    """
    record = visitor
    proven = decision.outcome == "token"
    gap_s = max(now_ms // 1000 - visitor.last_seen_s, 0)
    update = StatisticsUpdate(
        features=features,
        new_devices=new_devices,
        returned=None if proven or not decision.distinct else 1.0 - decision.probability_new,
        joined=not proven and features.token_is_new and _has_older(features, visitor),
        before=visitor if decision.probability > parameters.EVIDENCE_PROBABILITY else None,
        days=gap_s // DAY_S,
        proven=proven,
        returned_at_s=now_ms // 1000 if proven or proven_by_network(decision) else 0,
    )
    postings: tuple[tuple[blocks.BlockKey, float], ...] = ()
    changed: Visitor | None = None
    private = not features.token and not features.native and bool(visitor.tokens)
    unchanged = flooding and not proven_by_network(decision)
    if unchanged:
        after = visitor
    elif (proven and not may_be_copied) or (
        not proven and decision.probability >= _template_probability(features, decision, private=private)
    ):
        before = visitor
        own = visitor.token(features.token) if proven and features.token else None
        if own is not None:
            visitor, update = _without_strangers(features, now_ms // 1000, visitor, own, update)
        after = visitor.updated(features, now_ms, proven=_is_proven(features, visitor, decision))
        if blocks.differs(after, before):
            postings = blocks.postings_of(blocks.keys_to_add(features, before, after), 1.0, listed=after.listed)
            changed = after
    else:
        # The report is remembered, so that the same report gets the same answer; its second visit then counts in full.
        # Not that of a private window: seen again with a stranger's token, it would make that token this visitor's.
        after = visitor.counted(features, now_ms, remembered=not private)
        added = [] if private or features.exact in visitor.exact_hashes else [blocks.exact_key(features.exact)]
        if features.token and visitor.token(features.token) is None:
            added.append(blocks.token_key(features.token))
        if added:
            postings = blocks.postings_of(added, 1.0, listed=visitor.listed)
            changed = after
    if changed is None and gap_s > parameters.COUNTED_AFTER_S and not unchanged:
        changed = after
    return Recognition(
        number=decision.number,
        confidence=claims.bounded(decision.confidence, features, record, now_ms // 1000, token, copied=may_be_copied),
        probability=decision.probability,
        token_conflict=token_conflict,
        outcome=decision.outcome,
        visitor=changed,
        postings=postings,
        statistics_update=update,
    )


def _without_strangers(
    features: Features, now_s: int, visitor: Visitor, own: Token, update: StatisticsUpdate
) -> tuple[Visitor, StatisticsUpdate]:
    """Return the record after its token came back, without the tokens that this shows to be other browsers', and the
    update with what that teaches.
    """
    one_device = features.device != 0 and visitor.token(features.device) is not None
    strangers = () if one_device else rivals_of(own, visitor.tokens, now_s)
    visitor = visitor.disowning(strangers) if strangers else visitor
    waited = own.probation and not own.came_back and older_beside(own, visitor.tokens) is not None
    if strangers or waited:
        found = sum(stranger.came_back for stranger in strangers)
        update = msgspec.structs.replace(update, twins_waited=bool(waited), twins_found=found)
    return visitor, update


def _template_probability(features: Features, decision: LinkDecision, *, private: bool) -> float:
    """Return the probability from which on a link without proof updates the template."""
    if decision.kind % SURROUNDINGS == CROWDED and not features.token and not private:
        return parameters.LINK_CROWDED
    return parameters.TEMPLATE_PROBABILITIES[private]


def _is_proven(features: Features, visitor: Visitor, decision: LinkDecision) -> bool:
    """Return whether more than a likeness shows this visitor: a token that is not on probation, or the visitor's own
    network down to the address of a proven visit. A copied report from the neighborhood shows neither.
    """
    if decision.outcome == "token":
        for key in features.keys:
            token = visitor.token(key)
            if token is not None and (token.origin == DEVICE or not token.probation):
                return True
        return False
    return proven_by_network(decision) and visitor.is_proven_address(features)
