"""Digests: the 64-bit numbers under which the index knows the values of an event, and what a filter asks of them.

What may live here: an event or a filter in, digests out.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

from svc.identify.events.listing import FACETS, Filters, values_of
from svc.identify.events.segments import Digests
from svc.identify.records import Event

Wanted = int | frozenset[int]
"""A digest that an event must have; of several, at least one."""


def digest_of(name: str, value: str) -> int:
    """Return the 64-bit digest that stands for a value in the index. `name`: the facet of the value, or `level` or
    `visitor`. Two values may have the same digest, so an event that is found by one is compared with the value itself.
    """
    return int.from_bytes(blake2b(f"{name} {value}".encode(), digest_size=8).digest())


_common_digest = lru_cache(maxsize=1024)(digest_of)
HAS_ACCOUNT = digest_of("has", "account")
"""The digest that all events with an account have."""
_PERSONAL = frozenset({"tag", "ip_address", "account_id"})


def digests(event: Event) -> Digests:
    """Return the digests of all values by which an event can be found."""
    verdict = event.verdict
    found = {digest_of("visitor", verdict.visitor_id), _common_digest("level", verdict.suspect_level or "")}
    for facet in FACETS:
        digest = digest_of if facet in _PERSONAL else _common_digest
        for value in values_of(event, facet):
            found.add(digest(facet, value))
    if event.account_id is not None:
        found.add(HAS_ACCOUNT)
    return Digests(tuple(sorted(found)))


def wanted(filters: Filters) -> tuple[Wanted, ...]:
    """Return the digests of the values that the filters ask for, probably rare ones first; none = every event."""
    fired = frozenset(digest_of("signal", signal) for signal in filters.signals_of_group)
    group = (fired,) if fired else ()
    visitor = () if filters.visitor_id is None else (digest_of("visitor", filters.visitor_id),)
    level = () if filters.level is None else (digest_of("level", filters.level),)
    return (*visitor, *(digest_of(facet, value) for facet, value in filters.facets()), *level, *group)
