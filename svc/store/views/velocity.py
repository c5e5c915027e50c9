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
    """The subjects (visitor, account, address, ...) that take part in an event, by the ids under which velocity rows
    know them.
    """

    organization: int
    environment: Environment
    at_s: int
    visitor: int | None
    """Its number; `None` = not identifiable."""
    account: int | None
    address: int
    country: int | None

    def id_of(self, subject: Subject) -> int | None:
        """Return the id of a subject; `None` if the event has none."""
        return getattr(self, subject)

    def others_of(self, subject: Subject) -> tuple[int | None, ...]:
        """Return the ids of the other subjects that a subject's row counts, in the order of `OTHERS`."""
        return _OTHERS_OF[subject](self)


_FIELDS: Final = {"visitors": "visitor", "accounts": "account", "addresses": "address", "countries": "country"}
_OTHERS_OF: Final[dict[Subject, Callable[[Party], tuple[int | None, ...]]]] = {
    subject: attrgetter(*(_FIELDS[kind] for kind in kinds)) for subject, kinds in OTHERS.items()
}


def party_of(number: int, event: Event, visitor: int | None) -> Party:
    """Return the party of an event of the organization with this number. `visitor`: the number of its visitor."""
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
    """Return the party of an event with these values. `visitor`: the number of its visitor, `None` if not identifiable;
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
    """Return the velocity row of a subject that the party has, without entries older than the longest window; an empty
    row if none is stored.
    """
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return row_of(snapshot, who.organization, kind_of(who.environment), subject, subject_id, now_s)


def row_of(
    snapshot: Snapshot, number: int, kind: EnvironmentKind, subject: Subject, subject_id: int, now_s: int
) -> VelocityRow:
    """Return the same as `read_row`, for the subject with this id."""
    period, of = now_s // LONGEST_S, (KINDS.index(kind), SUBJECTS.index(subject), subject_id)
    row = snapshot.get(VELOCITY, number, period, *of)
    if row is None:
        row = snapshot.get(VELOCITY, number, max(period - 1, 0), *of)
    return EMPTY if row is None else row.within(now_s)


def row_key(who: Party, subject: Subject, period: int) -> tuple[int, ...]:
    """Return the key of the velocity row of a subject that the party has. `period`: a number of 30-day periods since
    1970.
    """
    subject_id = who.id_of(subject)
    assert subject_id is not None
    return who.organization, period, KINDS.index(kind_of(who.environment)), SUBJECTS.index(subject), subject_id


def row_keys(who: Party) -> Iterator[tuple[int, ...]]:
    """Yield the keys of all rows that may count an event of this party: in its 30-day period and in the next."""
    period = who.at_s // LONGEST_S
    for subject in SUBJECTS:
        if who.id_of(subject) is not None:
            yield row_key(who, subject, period)
            yield row_key(who, subject, period + 1)
