"""Read queries about velocity: who takes part in an event, and the row that counts one of them (decisions 11.4)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Final, NamedTuple

from svc.domain.accounts.velocity import (
    EMPTY,
    KINDS,
    LONGEST_S,
    OTHERS,
    SUBJECTS,
    EnvironmentKind,
    Subject,
    VelocityRow,
    account_digest,
    country_digest,
    kind_of,
)
from svc.domain.history.evidence import address_id
from svc.domain.model import Environment
from svc.domain.records import Event
from svc.store.schema.tables import VELOCITY
from svc.store.snapshot import Snapshot


class Party(NamedTuple):
    """Who and what takes part in an event, by the ids that rows know them by."""

    organization: int
    environment: Environment
    at_s: int
    visitor: int | None
    """Its number; `None` = not identifiable."""
    account: int | None
    address: int
    country: int | None

    def id_of(self, subject: Subject) -> int | None:
        """The id of the row of a subject; `None` = it has none."""
        return getattr(self, subject)

    def others_of(self, subject: Subject) -> tuple[int | None, ...]:
        """The others of a subject, in the order of `OTHERS`."""
        return _OTHERS_OF[subject](self)


_FIELDS: Final = {"visitors": "visitor", "accounts": "account", "addresses": "address", "countries": "country"}
_OTHERS_OF: Final[dict[Subject, Callable[[Party], tuple[int | None, ...]]]] = {
    subject: attrgetter(*(_FIELDS[kind] for kind in kinds)) for subject, kinds in OTHERS.items()
}


def party_of(number: int, event: Event, visitor: int | None) -> Party:
    """The party of an event of the organization with this number."""
    return make_party(
        number,
        event.environment,
        event.occurred_at_ms,
        visitor,
        event.account_id,
        address_id(event.ip_address),
        event.country_code,
    )


def make_party(
    number: int,
    environment: Environment,
    at_ms: int,
    visitor: int | None,
    account_id: str | None,
    address: int,
    country_code: str | None,
) -> Party:
    """The party of an event with these values. `visitor` is the number of its visitor, `None` = not identifiable;
    `address`: see `address_id`.
    """
    return Party(
        number,
        environment,
        at_ms // 1000,
        visitor,
        None if account_id is None else account_digest(number, account_id),
        address,
        None if country_code is None else country_digest(country_code),
    )


def read_row(snapshot: Snapshot, who: Party, subject: Subject, now_s: int) -> VelocityRow:
    """The row of a subject that has one, without what has left the longest window by now; an empty one where it has
    none.
    """
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return row_of(snapshot, who.organization, kind_of(who.environment), subject, subject_id, now_s)


def row_of(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, subject: Subject, subject_id: int, now_s: int
) -> VelocityRow:
    """As `read_row`, of the subject that rows know by this id."""
    period, of = now_s // LONGEST_S, (KINDS.index(kind), SUBJECTS.index(subject), subject_id)
    row = snapshot.get(VELOCITY, number, period, *of)
    if row is None:
        row = snapshot.get(VELOCITY, number, max(period - 1, 0), *of)
    return EMPTY if row is None else row.within(now_s)


def row_key(who: Party, subject: Subject, period: int) -> tuple[int, ...]:
    """The key of the row of a subject that has one, in a period of 30 days since 1970."""
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return who.organization, period, KINDS.index(kind_of(who.environment)), SUBJECTS.index(subject), subject_id


def row_keys(who: Party) -> Iterator[tuple[int, ...]]:
    """Keys of all rows that may count an event of this party: of its period of 30 days, and of the one that follows."""
    period = who.at_s // LONGEST_S
    for subject in SUBJECTS:
        if who.id_of(subject) is not None:
            yield row_key(who, subject, period)
            yield row_key(who, subject, period + 1)
