"""Customers that follow the changes of their events and keep a copy (decisions 19): it ends up equal to the store.

They read around the moments at which something happens. A page that does not come is asked for again by the same
cursor, whatever process answers then.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode
from uuid import UUID

import msgspec
import trio

from svc.identify.queries.events import EventMatch, listed_row
from svc.identify.records import Event
from svc.kernel.values.timestamps import read_timestamp
from tests.sim.client import Response, request
from tests.sim.model import is_before_the_run, is_over
from tests.sim.plan import Client

HELD_S = 5.0
"""Longer than the service holds a change back."""
PAUSES_S = (0.0, 0.01, 0.5, 1.9, 2.1, 30.0)
"""From a step until who follows reads."""

Ask = Callable[[bytes, Client], Awaitable[Response | None]]


class Change(NamedTuple):
    """A change as it was shown."""

    type: str
    request_id: str
    at: str

    @property
    def may_expire(self) -> bool:
        """Whether it, or its event, was made while the clock was far behind: retention deletes both."""
        at_ms = read_timestamp(self.at)
        assert at_ms is not None
        return is_over(self.request_id) or is_before_the_run(at_ms)


class Follower:
    """Reads the changes of one environment, and applies them to a copy of its events."""

    def __init__(self, name: str, key: str, limit: int, ask: Ask) -> None:
        self.name = name
        self.got: list[Change] = []
        self.copy: dict[str, Any] = {}
        """request id -> event, as a row of the API."""
        self.broken: list[str] = []
        """Answers that break a rule."""
        self._key = key
        self._limit = limit
        self._ask = ask
        self._after: str | None = None
        self._shown: dict[str, str] = {}
        """request id -> type of its latest change."""
        self._is_reading = False

    async def read(self) -> bool:
        """Read what there is; return whether that was to the end."""
        if self._is_reading:
            return False
        self._is_reading = True
        try:
            while (page := await self._page()) is not None:
                for shown in page["changes"]:
                    self._apply(shown)
                self._after = page["next_cursor"]
                if not page["has_more"]:
                    return True
        finally:
            self._is_reading = False
        return False

    async def read_everything(self) -> None:
        """Read to the end, also what was held back."""
        await trio.sleep(HELD_S)
        while not await self.read():  # noqa: ASYNC110  what it waits for is on the other side of a connection
            await trio.sleep(HELD_S)

    async def _page(self) -> Any:
        query = {"limit": str(self._limit)} | ({} if self._after is None else {"after": self._after})
        response = await self._ask(request("GET", f"/changes?{urlencode(query)}", x_api_key=self._key), Client())
        if response is None or response.status >= 500 or response.status in (408, 429):
            return None
        if response.status != 200:
            self.broken.append(f"{self.name} asked for changes and was answered {response.status}")
            return None
        return response.json

    def _apply(self, shown: Mapping[str, Any]) -> None:
        change = Change(shown["type"], shown["request_id"], shown["at"])
        before = self._shown.get(change.request_id)
        if before == "event.erased" or (before is not None and change.type == "event.created"):
            self.broken.append(f"{self.name} was shown {change} after {before}")
        self._shown[change.request_id] = change.type
        self.got.append(change)
        if change.type == "event.erased":
            self.copy.pop(change.request_id, None)
        elif "event" in shown:
            self.copy[change.request_id] = shown["event"]

    def again(self) -> Follower:
        """One that begins with the oldest change that is kept."""
        return Follower(f"{self.name} from the beginning", self._key, 200, self._ask)


class Following:
    """Everybody who follows, by shop and environment; the number of the shop in the store is what a follower reads."""

    def __init__(self, seed: int, ask: Ask) -> None:
        self.followers: dict[tuple[int, bool], Follower] = {}
        self._chance = random.Random(f"following {seed}")
        self._ask = ask

    def begin(self, shop: int, production: bool, key: str) -> None:
        """Follow, from before the first event on."""
        limit = self._chance.choice((1, 3, 50, 200))
        name = f"who follows shop {shop} ({'production' if production else 'development'})"
        self.followers[shop, production] = Follower(name, key, limit, self._ask)

    def wake(self, nursery: trio.Nursery) -> None:
        """Something happens: somebody reads soon."""
        follower = self._chance.choice(list(self.followers.values()))
        nursery.start_soon(_read_later, follower, self._chance.choice(PAUSES_S))

    def broken(self) -> list[str]:
        """Answers that broke a rule since the last look."""
        found = [fault for follower in self.followers.values() for fault in follower.broken]
        for follower in self.followers.values():
            follower.broken = []
        return found


async def _read_later(follower: Follower, pause_s: float) -> None:
    await trio.sleep(pause_s)
    await follower.read()


async def check_followers(following: Following, events: Mapping[tuple[int, bool], Mapping[bytes, Event]]) -> list[str]:
    """Each change was shown once and in the order in which it is kept, none came behind a cursor, and each copy is
    equal to the `events` that are stored, by shop and environment. The service is up, and nothing else happens.
    """
    found: list[str] = []
    for of, follower in following.followers.items():
        again = follower.again()
        await follower.read_everything()
        await again.read_everything()
        found += [*follower.broken, *again.broken]
        found += check_order(follower, again, events[of])
        found += check_copy(follower, events[of])
        found += check_copy(again, events[of])
    return found


def check_order(follower: Follower, again: Follower, events: Mapping[bytes, Event]) -> Iterator[str]:
    """What a reader from the beginning is shown is what was shown all along, but for events that are gone."""
    kept, place = again.got, 0
    for change in follower.got:
        if place < len(kept) and kept[place] == change:
            place += 1
        elif not (change.may_expire or (change.type == "event.created" and _raw(change) not in events)):
            yield f"{follower.name} was shown {change}, which is not kept at its place"
            break
    if place < len(kept):
        yield f"{follower.name} was not shown {kept[place]} at its place, and {len(kept) - place - 1} after it"


def check_copy(follower: Follower, events: Mapping[bytes, Event]) -> Iterator[str]:
    """The copy has every event, as it is, and no other."""
    for raw_id, event in events.items():
        request_id = UUID(bytes=raw_id)
        row = msgspec.json.decode(msgspec.json.encode(listed_row(EventMatch(request_id, event))))
        if follower.copy.get(str(request_id)) != row and not is_over(raw_id):
            yield f"the copy of {follower.name} has {follower.copy.get(str(request_id))} of {row}"
    for request_id in follower.copy:
        if UUID(request_id).bytes not in events and not is_over(request_id):
            yield f"the copy of {follower.name} has request {request_id}, which is not stored"


def _raw(change: Change) -> bytes:
    return UUID(change.request_id).bytes
