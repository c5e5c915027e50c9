"""What a feature says of its rows that are of a visitor or an account: which they are, and how they go.

A module of the kind `erasure` has `ERASED`, and `FORGET` where its rows are not found by what erasure takes apart by
itself (`schema/table.py`: rows that a key leads to need neither).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias
from uuid import UUID

from svc.identify.model import Subject
from svc.identify.records import Event
from svc.kernel.store.schema.table import Table
from svc.kernel.store.snapshot import Snapshot, Transaction

Keys: TypeAlias = Iterator[tuple[Table[Any], tuple[Any, ...]]]


class Owner(NamedTuple):
    """The visitor whose part of a row is shown: the numbers of its organization and of itself (0 = it has none), and
    one of its events where the row was found by that.
    """

    number: int
    visitor: int
    request_id: bytes = b""
    event: Event | None = None


class Erased(NamedTuple):
    """The tables in which a function erases what is a visitor's (`ErasedBy`), and what finds the same rows for an
    export: by its id, by its number and id, or by an event of it. One of these is given.
    """

    tables: tuple[Table[Any], ...]
    of_visitor: Callable[[Snapshot, int, int, bytes], Keys] | None = None
    """Of a snapshot, the organization's number, the visitor's number and its id."""
    of_event: Callable[[Snapshot, int, bytes, Event], Keys] | None = None
    """Of a snapshot, the organization's number, the request id and the event."""
    of_subject: Callable[[Snapshot, int, Subject, str], Keys] | None = None
    """Keys of a visitor or of an account: of a snapshot, the organization's number, and the subject with its id."""
    of_account: Callable[[Snapshot, int, str], Keys] | None = None
    """Keys of an account: of a snapshot, the organization's number and the id of the account."""
    own: Callable[[Owner, tuple[Any, ...], Any], Any] | None = None
    """Of a row's key and value: the value without what it says of others, of a counter what the event added to it;
    `None` where nothing of it is the owner's. Not given: the row is of one visitor alone.
    """


def _unknown(_: Snapshot, _number: int, _subject: Subject, _id: str) -> bool:
    return False


def _done(_: Transaction, _number: int, _subject: Subject, _id: str) -> bool:
    return True


def _nothing(_: Transaction, _number: int, _subject: int | UUID) -> None:
    return None


class Forgetting(NamedTuple):
    """How a feature forgets a visitor or an account. All take the organization's number and the subject with its id."""

    is_known: Callable[[Snapshot, int, Subject, str], bool] = _unknown
    """Whether it has anything of the subject beside its events."""
    at_once: Callable[[Transaction, int, Subject, str], bool] = _unknown
    """Erases some hundred rows at most; returns whether there were any."""
    step: Callable[[Transaction, int, Subject, str], bool] = _done
    """Erases some rows in each of several transactions; returns whether nothing is left."""
    visitor: Callable[[Transaction, int, int], None] = _nothing
    """Erases what leads to a visitor by its number; also when retention deletes the visitor."""
    event: Callable[[Transaction, int, UUID], None] = _nothing
    """Erases what it has of one event of an erased visitor."""
    account_of_event: Callable[[Transaction, int, UUID], None] = _nothing
    """Takes the account out of what it has of one event."""
