"""Leases: work that one node at a time may do, held for a term by the database's clock; offsets of clocks.

A lease is a row (name, holder, epoch, expires_at). A node that finds it expired takes it, and the epoch grows by one;
its holder renews it at every heartbeat (`nodes.py`). No clock of a node is compared with another's:

- Whether a lease has expired is decided by the database, with its own clock.
- What a holder believes is counted on its monotonic clock from before it asked, and ends a fifth of the term early.
- A holder that was stopped in between, and believes too long, is refused by the epoch: what it writes takes the fence
  of its lease in the same transaction, and a fence whose epoch has passed is not there.

What may live here: the statements about leases, and what their answers mean. No connection.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import closing

import structlog
import trio

from svc.kernel.store.group import LeaseEpoch
from svc.kernel.store.postgresql.connection.url import StoreUrl
from svc.kernel.store.postgresql.connection.values import float8, int8, int8s, integer, texts
from svc.kernel.store.postgresql.connection.wire import Result, Statement, Wire

log = structlog.get_logger()

FAR_S = 10.0
"""An offset that no network delay explains. Receivers refuse signatures that are 300 seconds off."""
READ_CLOCK = Statement(b"select (extract(epoch from clock_timestamp()) * 1000)::int8")
NEXT_STEP = "synchronize the clocks of this machine and the database's (NTP): webhooks are signed with this one"


class ClockOffset:
    """The offset of one node's clock. `ask` and `learn` belong to its heartbeat."""

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self._now_ms = now_ms
        self._sent_ms = 0
        self.offset_s = 0.0
        """The offset at the last heartbeat; see `offset_s`."""

    def ask(self) -> Statement:
        """Return the statement that reads the database's clock, and note the time: it must be sent at once."""
        self._sent_ms = self._now_ms()
        return READ_CLOCK

    def learn(self, answer: Result) -> None:
        """Set `offset_s` from the result of `ask`; log once if it is far off, and once when it is right again."""
        was_far, self.offset_s = self.is_far, offset_s(self._sent_ms, integer(answer.rows[0][0]), self._now_ms())
        if self.is_far and not was_far:
            log.warning("the clock is far from the database's", offset_s=self.offset_s, next_step=NEXT_STEP)
        elif was_far and not self.is_far:
            log.info("the clock is the database's again", offset_s=self.offset_s)

    @property
    def is_far(self) -> bool:
        """Whether the clock is certainly wrong."""
        return abs(self.offset_s) >= FAR_S


def offset_s(sent_ms: int, database_ms: int, answered_ms: int) -> float:
    """Return the seconds by which a clock is at least ahead of the database's (negative = behind), from the times at
    which it was asked, read by the database, and answered (Unix ms). 0 if the clock may be right, since the database
    read its clock at an unknown time in between.
    """
    return (max(0, sent_ms - database_ms) + min(0, answered_ms - database_ms)) / 1000


def offset_now_s(url: StoreUrl, now_ms: Callable[[], int]) -> float:
    """Return the seconds by which the clock of this machine is ahead of the database's, as `offset_s` does, with one
    query on its own connection. Blocks the thread. Raises `EngineError` if the database does not answer.
    """
    with closing(Wire.connect_now(url)) as wire:
        sent_ms = now_ms()
        (answer,) = wire.exchange_now([READ_CLOCK])
        return offset_s(sent_ms, integer(answer.rows[0][0]), now_ms())


TERM_S = 10.0
"""How long nobody has the lease after its holder has died."""
RENEWALS = 3
"""Renewals in a term."""
BELIEVED = 0.8
"""The share of a term for which a holder relies on its lease."""

_ADD = b"""
insert into svc.leases select name, '', 0, to_timestamp(0) from unnest($1::text[]) as lease (name)
on conflict do nothing
"""
_TAKE = b"""
with free as (
  select name from svc.leases where name = any($1::text[]) and expires_at <= clock_timestamp()
  order by name limit $4::int8 for update
)
update svc.leases l set holder = $2::text, epoch = epoch + 1, expires_at = clock_timestamp() + make_interval(secs => $3)
from free where l.name = free.name returning l.name, l.epoch
"""
"""Waits for writes under the lease, which have locked its row `for key share`. A renewal does not."""
_TAKE_FREE = _TAKE.replace(b"for update", b"for update skip locked")
"""Waits for nobody: a lease that another node takes, or writes under, is not free."""
_RENEW = b"""
update svc.leases l set expires_at = clock_timestamp() + make_interval(secs => $3)
from unnest($1::text[], $2::int8[]) as own (name, epoch)
where l.name = own.name and l.epoch = own.epoch returning l.name, l.epoch
"""
_END = b"""
update svc.leases l set expires_at = to_timestamp(0) from unnest($1::text[], $2::int8[]) as own (name, epoch)
where l.name = own.name and l.epoch = own.epoch
"""
_FENCE = b"""
select l.name from svc.leases l join unnest($1::text[], $2::int8[]) as held (name, epoch)
on l.name = held.name and l.epoch = held.epoch order by l.name for key share of l
"""


def lease_fence(leases: Collection[LeaseEpoch]) -> Statement:
    """Return the statement for a transaction that only the holder of these leases may make: sent before the commit, it
    prevents others from taking them until the transaction ends.
    """
    return Statement(_FENCE, _parameters(sorted(leases)))


def lost_leases(leases: Collection[LeaseEpoch], answer: Result) -> set[LeaseEpoch]:
    """Return the leases that others have, by the answer to `lease_fence`: with any, nothing may be committed."""
    held = {name for (name,) in answer.rows}
    return {lease for lease in leases if lease.name.encode() not in held}


def add_leases(names: Sequence[str]) -> Statement:
    """Return the statement that creates the rows of these leases, as far as they are missing."""
    return Statement(_ADD, (texts(names),))


def take_leases(names: Sequence[str], holder: str, term_s: float, most: int, *, wait: bool) -> Statement:
    """Return the statement that takes at most `most` of these leases that have expired, for a term of `term_s` seconds;
    it returns their names and epochs. `wait`: also wait for leases that another node is writing under, or taking, at
    this moment.
    """
    return Statement(_TAKE if wait else _TAKE_FREE, (texts(names), holder.encode(), float8(term_s), int8(most)))


def renew_leases(leases: Sequence[LeaseEpoch], term_s: float) -> Statement:
    """Return the statement that renews these leases for `term_s`; it returns (name, epoch) of those still held."""
    return Statement(_RENEW, (*_parameters(leases), float8(term_s)))


def end_leases(leases: Sequence[LeaseEpoch]) -> Statement:
    """Return the statement that releases these leases to others at once, as far as they are held."""
    return Statement(_END, _parameters(leases))


def _parameters(leases: Sequence[LeaseEpoch]) -> tuple[bytes, bytes]:
    return texts([one.name for one in leases]), int8s([one.epoch for one in leases])


def believed_until_s(sent_s: float, term_s: float) -> float:
    """Return until when, monotonic, a lease asked for at `sent_s` counts: the database began its term later."""
    return sent_s + BELIEVED * term_s


class Lease:
    """One lease from the view of one node. `ask` and `learn` belong to the node's heartbeat."""

    def __init__(self, name: str, holder: str, term_s: float = TERM_S) -> None:
        self.name = name
        self._holder = holder
        self._term_s = term_s
        self._epoch: int | None = None
        self._until_s = 0.0
        self._changed = trio.Event()

    @property
    def held(self) -> LeaseEpoch | None:
        """The epoch that this node's writes under the lease carry; `None` if it does not have the lease."""
        if self._epoch is None or trio.current_time() >= self._until_s:
            return None
        return LeaseEpoch(self.name, self._epoch)

    def is_held(self) -> bool:
        """Return whether this node may rely on having the lease now."""
        return self.held is not None

    async def lost(self) -> None:
        """Wait until this node can no longer rely on the lease."""
        while self.is_held():
            changed, until_s = self._changed, self._until_s
            with trio.move_on_at(until_s):
                await changed.wait()

    def setup(self) -> Statement:
        """Return the statement that creates the row of the lease if it is missing."""
        return add_leases([self.name])

    def ask(self) -> Statement:
        """Return the statement that renews the lease, or takes it if it has expired. A lease that this node held and
        that expired unnoticed is renewed: as long as the epoch is the same, no other node has had it.
        """
        if self._epoch is None:
            return take_leases([self.name], self._holder, self._term_s, 1, wait=True)
        return renew_leases([LeaseEpoch(self.name, self._epoch)], self._term_s)

    def learn(self, answer: Result, sent_s: float) -> None:
        """Take the result of `ask`, sent at `sent_s` of the loop's clock: another term or, with no row, no lease."""
        if not answer.rows:
            self.drop()
            return
        _, epoch = answer.rows[0]
        self._epoch = integer(epoch)
        self._until_s = believed_until_s(sent_s, self._term_s)
        self._note_change()

    def end(self) -> list[Statement]:
        """Give up the lease; return the statements, if it was held, that release it to other nodes."""
        epoch = self._epoch
        self.drop()
        return [] if epoch is None else [end_leases([LeaseEpoch(self.name, epoch)])]

    def drop(self) -> None:
        """Stop counting on the lease, because another node has it."""
        self._epoch = None
        self._note_change()

    def _note_change(self) -> None:
        self._changed.set()
        self._changed = trio.Event()
