"""What comes after an identification: a deferred report for it, and the erasure of its visitor."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from uuid import UUID

import msgspec
import trio

from svc.identify.tables import DEFERRED_REPORTS, EVENTS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.values.ids import DAY_MS, made_at_ms
from tests.sim.client import Response, request
from tests.sim.machine import Machine
from tests.sim.model import ATTEMPT_S, Asked, Seen, is_over
from tests.sim.plan import Client, Erase, Supplement
from tests.support.live import ORIGIN

AGAIN_S = 5.0
"""Until somebody asks again who was not answered, or not as he wished."""

Ask = Callable[[bytes, Client], Awaitable[Response | None]]


class Erasure(msgspec.Struct):
    shop: int
    done: float = float("inf")


class Owner(msgspec.Struct, frozen=True):
    """Whose automation asks."""

    id: str
    management: str


class Afterwards:
    """`erasures` are those that were ordered, by visitor id."""

    def __init__(self, machine: Machine, asked: list[Asked], ask: Ask) -> None:
        self.erasures: dict[str, Erasure] = {}
        self.broken: list[str] = []
        """Answers that break a rule."""
        self._machine = machine
        self._asked = asked
        self._ask = ask
        self._reports: dict[str, dict[int, bool]] = {}
        """request id -> variant of the report -> whether it was acknowledged"""

    def is_erased(self, request_id: str) -> bool:
        """Whether its visitor's erasure was ordered."""
        return self._machine.visitors.get(UUID(request_id).bytes) in self.erasures

    async def erase(self, step: Erase, owner: Owner) -> None:
        """Until it is done."""
        visitor_id = self._visitor(step.org)
        if visitor_id is None or visitor_id in self.erasures:
            return
        erasure = self.erasures[visitor_id] = Erasure(step.org)
        path = f"/management/organizations/{owner.id}/visitors/{visitor_id}"
        response = await self._ask(request("DELETE", path, x_api_key=owner.management), step.client)
        if response is not None and response.status == 404:
            self.broken.append(f"{visitor_id} is to be erased, and is not known")
        while response is None or response.status not in (204, 404):
            await trio.sleep(AGAIN_S)
            response = await self._ask(request("DELETE", path, x_api_key=owner.management), Client())
        erasure.done = trio.current_time()

    async def supplement(self, step: Supplement) -> None:
        """The latest that was told a token gets a deferred report; the first is kept, the same again is the same."""
        told = [one for one in self._asked if one.shop == step.org and one.token is not None]
        if not told:
            return
        one = told[-1]
        assert one.request_id is not None
        body = {"token": one.token, "sdk": {}, "signals": {"tier": "deferred", "variant": step.variant}}
        path, reports = f"/events/{one.request_id}/supplement", self._reports.setdefault(one.request_id, {})
        reports.setdefault(step.variant, False)
        sent = request("POST", path, body, x_api_key=one.secret, origin=ORIGIN)
        since, sent_ms = trio.current_time(), self._machine.now_ms()
        response = await self._ask(sent, step.client)
        made_ms = made_at_ms(UUID(one.request_id).bytes)
        is_expired = any(abs(at_ms - made_ms) > DAY_MS / 2 for at_ms in (sent_ms, self._machine.now_ms()))
        status = None if response is None else response.status
        others = [variant for variant in reports if variant != step.variant]
        if status == 500 and any(at >= since for at in self._machine.broke_at):
            return
        if status == 202:
            reports[step.variant] = True
            if any(reports[variant] for variant in others):
                self.broken.append(f"request {one.request_id} has two deferred reports")
        elif status == 409 and not others:
            self.broken.append(f"request {one.request_id} refused the only deferred report")
        elif status not in (None, 401, 408, 409, 503) and not (
            status == 422 and (is_expired or self.is_erased(one.request_id))
        ):
            self.broken.append(f"a deferred report of request {one.request_id} was answered {status}")

    def check(self, snapshot: Snapshot, numbers: list[int], seen: list[Seen]) -> Iterator[str]:
        """Nothing is left of who was erased, and deferred reports are where they belong."""
        for number in numbers:
            for (_, raw_id), event in snapshot.scan(EVENTS, number):
                if event.verdict.visitor_id in self.erasures:
                    yield f"request {UUID(bytes=raw_id)} is of visitor {event.verdict.visitor_id}, who was erased"
        for one in seen:
            visitor_id = one.event["data"].get("visitor_id")
            erasure = self.erasures.get(visitor_id)
            if erasure is not None and one.at > erasure.done + ATTEMPT_S:
                yield f"{one.event_id} tells of visitor {visitor_id} at {one.at:.3f}, who was erased"
        kept = {raw_id for number in numbers for (_, raw_id), _ in snapshot.scan(DEFERRED_REPORTS, number)}
        for request_id, reports in self._reports.items():
            if (
                any(reports.values())
                and UUID(request_id).bytes not in kept
                and not (self.is_erased(request_id) or is_over(request_id))
            ):
                yield f"the deferred report of request {request_id} was acknowledged and is gone"

    def _visitor(self, shop: int) -> str | None:
        """Of the latest who was told."""
        told = [one.visitor_id for one in self._asked if one.shop == shop and one.visitor_id is not None]
        return told[-1] if told else None
