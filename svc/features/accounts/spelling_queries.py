"""Accounts whose ids look alike: each counts as an account of its own, and is most likely one (decisions 11.1)."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice

from svc.features.accounts.queries import environments_of
from svc.identify.index.queries import HAS_ACCOUNT, Scope, Search
from svc.identify.queries.events import event_if_readable
from svc.identify.velocity.counts import EnvironmentKind, folded
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.fields import ENVIRONMENTS

MAX_EVENTS = 2_000
"""The newest events with an account, of each environment, that are looked at: about a tenth of a second."""


def alike_accounts(snapshot: Snapshot, number: int, kind: EnvironmentKind) -> list[tuple[str, ...]]:
    """Return groups of accounts of an organization whose ids differ only in case, blanks or invisible characters, of
    those that its newest events name; each group in the order of its ids.
    """
    groups: defaultdict[str, set[str]] = defaultdict(set)
    for environment in environments_of(kind):
        scope = Scope(number, ENVIRONMENTS.index(environment))
        for _, request_id in islice(Search(snapshot, scope, (HAS_ACCOUNT,)), MAX_EVENTS):
            event = event_if_readable(snapshot, number, request_id)
            if event is not None and event.account_id is not None:
                groups[folded(event.account_id)].add(event.account_id)
    return sorted(tuple(sorted(ids)) for ids in groups.values() if len(ids) > 1)
