"""What customers do to their webhook endpoints over HTTP, with one order at a time for each endpoint.

An order whose answer was lost is given again, unless a look at the store shows that it was carried out.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from math import inf
from typing import Any
from uuid import UUID

import trio

from svc.features.webhooks.content.envelope import secrets_key, signing_secret
from svc.features.webhooks.queries import Registered, endpoints_of
from svc.features.webhooks.tables import DELIVERIES
from tests.sim.afterwards import AGAIN_S
from tests.sim.client import Response
from tests.sim.machine import Machine
from tests.sim.model import UNHEARD_S, Listening, Signing, Timeline
from tests.sim.plan import Change, Client, Register, Rotate

Manage = Callable[[int, str, str, Any, Client], Awaitable[Response | None]]
"""(shop, method, path below `/webhooks`, body, manner of the client) -> one answer, or none."""


class Hooks:
    """`listening` are all that ever were, by path; `present` those of now, by their number in the plan."""

    def __init__(self, machine: Machine, numbers: Callable[[int], int], manage: Manage) -> None:
        self.listening: dict[str, Listening] = {}
        self.present: dict[int, Listening] = {}
        self._machine = machine
        self._numbers = numbers
        self._manage = manage
        self._secrets: dict[tuple[str, int], str] = {}
        self._turns: dict[int, trio.Lock] = {}

    def secret_of(self, listening: Listening, generation: int) -> str:
        """What its owner was given; where the answer was lost, what it would have said."""
        given = self._secrets.get((listening.path, generation))
        return given or signing_secret(secrets_key(self._machine.opened.pepper), listening.id, generation)

    def paused(self) -> list[int]:
        """Those that are not surely on, or may soon be off."""
        return sorted(
            hook
            for hook, one in self.present.items()
            if self._turn(hook).locked() or not all(one.on.possible(inf, inf))
        )

    async def register(self, step: Register) -> None:
        async with self._turn(step.hook):
            if step.hook in self.present:
                return
            listening = Listening(
                hook=step.hook,
                path=f"/hooks/{step.hook}/{len(self.listening)}",
                shop=step.org,
                live=step.live,
                events=step.events,
                on=Timeline(False),
                signing=Timeline(Signing(1, None)),
            )
            self.listening[listening.path] = listening
            change = listening.on.change(True)
            body = {
                "url": f"https://hook{step.hook}.example{listening.path}",
                "environment": "live" if step.live else "test",
                "events": step.events,
                "description": "",
            }
            response = await self._order(listening, "POST", "", body, step.client, self._is_there)
            if response is not None and response.status != 201:
                change.settle(False)
                return
            if response is not None:
                self._secrets[listening.path, 1] = response.json["secret"]
            listening.id = self._peek(listening).endpoint.id
            change.settle(True)
            self.present[step.hook] = listening

    async def change(self, step: Change) -> None:
        async with self._turn(step.hook):
            listening = self.present.get(step.hook)
            if listening is None:
                return
            path = f"/{listening.id}"
            match step.what:
                case "pause" | "resume":
                    change = listening.on.change(step.what == "resume")
                    await self._order(listening, "PATCH", path, {"paused": step.what == "pause"}, step.client)
                    change.settle(step.what == "resume")
                case "remove":
                    change = listening.on.change(False)
                    listening.removed = True
                    await self._order(listening, "DELETE", path, None, step.client)
                    change.settle(False)
                    listening.removed_at = trio.current_time()
                    del self.present[step.hook]
                case "test":
                    await self._order(listening, "POST", f"{path}/test", None, step.client)
                case "redeliver":
                    await self._redeliver(listening, step.client)

    async def rotate(self, step: Rotate) -> None:
        async with self._turn(step.hook):
            listening = self.present.get(step.hook)
            if listening is None:
                return
            generation = listening.signing.changes[-1].value.generation + 1
            change = listening.signing.change(Signing(generation, None))
            body = {"previous_secret_valid_hours": step.overlap_hours}

            def happened(of: Listening) -> bool:
                return self._peek(of).endpoint.generation == generation

            response = await self._order(
                listening, "POST", f"/{listening.id}/rotate-secret", body, step.client, happened
            )
            if response is None:
                until_ms = self._peek(listening).endpoint.previous_secret_expires_at_ms
            else:
                self._secrets[listening.path, generation] = response.json["secret"]
                until = response.json["endpoint"].get("previous_secret_expires_at")
                until_ms = None if until is None else round(datetime.fromisoformat(until).timestamp() * 1000)
            change.settle(Signing(generation, until_ms))

    async def _redeliver(self, listening: Listening, client: Client) -> None:
        """The first event that was ever on its way there."""
        await self._machine.up.wait()
        queue = self._peek(listening).queue
        with self._machine.store.read() as snapshot:
            row = next(snapshot.scan(DELIVERIES, *queue), None)
        if row is None:
            return
        event_id = str(UUID(bytes=row[0][2]))

        def may_have_happened(_: Listening) -> bool:
            listening.redelivered.append(event_id)
            return False

        path = f"/{listening.id}/redeliver"
        answer = await self._order(listening, "POST", path, {"event_id": event_id}, client, may_have_happened)
        if answer is not None and answer.status == 202:
            listening.redelivered.append(event_id)

    async def _order(
        self,
        listening: Listening,
        method: str,
        path: str,
        body: Any,
        client: Client,
        happened: Callable[[Listening], bool] = lambda _: False,
    ) -> Response | None:
        """The answer; `None` where it was lost, and `happened` says of the store that the order was carried out."""
        while True:
            response = await self._manage(listening.shop, method, path, body, client)
            client = Client()
            status = None if response is None else response.status
            if status not in (
                None,
                408,
                422,
                500,
                503,
            ):  # 422 is a name that does not resolve as it should, for a while
                return response
            nobody_knows = status in (None, 500)
            await trio.sleep(UNHEARD_S if nobody_knows else AGAIN_S)
            await self._machine.up.wait()
            if nobody_knows and happened(listening):
                return None

    def _turn(self, hook: int) -> trio.Lock:
        return self._turns.setdefault(hook, trio.Lock())

    def _is_there(self, listening: Listening) -> bool:
        return self._find(listening) is not None

    def _peek(self, listening: Listening) -> Registered:
        found = self._find(listening)
        assert found is not None, "an endpoint is gone that nobody removed"
        return found

    def _find(self, listening: Listening) -> Registered | None:
        with self._machine.store.read() as snapshot:
            known = endpoints_of(snapshot, self._numbers(listening.shop))
        return next((found for found in known if found.endpoint.url.endswith(listening.path)), None)
