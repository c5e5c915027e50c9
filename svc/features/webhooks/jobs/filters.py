"""Which endpoints an event goes to: the filters of those that have one (decisions 16.2).

A filter is evaluated in the transaction in which the event happens, so that what it holds back has no delivery: it can
neither be redelivered nor recovered. One whose evaluation fails holds the event back, as a rule does not match then.

Bounds: endpoints without a filter cost nothing here. Ten with one read what their conditions name of the event once,
and the rows of lists that the rules have not read yet.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from svc.features.rules.ruleset import Facts, matches
from svc.features.webhooks.content.payloads import OF_IDENTIFICATION
from svc.features.webhooks.queries import Registered, endpoints_of, subscribes
from svc.features.webhooks.records import EventType, webhook_environment
from svc.identify.records import Event
from svc.kernel.store.snapshot import Snapshot


class Receivers(NamedTuple):
    """The endpoints that an event goes to."""

    endpoints: tuple[Registered, ...]
    failed: tuple[str, ...] = ()
    """Ids of the endpoints that it does not go to, since the evaluation of their filter failed."""


NOBODY = Receivers(())


def receivers(subscribed: Iterable[Registered], facts: Facts) -> Receivers:
    """Return those of the endpoints that have no filter, or whose filter is true of the facts."""
    endpoints = tuple(subscribed)
    filters = [found.endpoint.filter for found in endpoints if found.endpoint.filter is not None]
    if not filters:
        return Receivers(endpoints)
    outcome: dict[str | None, bool | None] = {None: True, **matches(dict.fromkeys(filters), facts)}
    return Receivers(
        tuple(found for found in endpoints if outcome[found.endpoint.filter]),
        tuple(found.endpoint.id for found in endpoints if outcome[found.endpoint.filter] is None),
    )


def identification_receivers(snapshot: Snapshot, number: int, facts: Facts, threshold: int) -> Receivers:
    """Return the endpoints to which an identification is sent. At most ten endpoints are read; for the cost of filters
    see the module.
    """
    known = endpoints_of(snapshot, number)
    if not known:
        return NOBODY
    environment, types = webhook_environment(facts.event.environment), identification_types(facts.event, threshold)
    subscribed = [each for each in known if any(subscribes(each.endpoint, environment, name) for name in types)]
    return receivers(subscribed, facts)


def identification_types(event: Event, threshold: int) -> tuple[EventType, ...]:
    """Return the event types that an identification causes (decisions 8.9)."""
    return tuple(name for name, arising in OF_IDENTIFICATION.items() if arising.arises(event, threshold))
