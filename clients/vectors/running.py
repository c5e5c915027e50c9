"""How calls run beside each other on a phone: who reads, sends, attests, forgets and reports, and at what moment.

What may live here: an engine on virtual time, for a device, servers and an app that are scripts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from keeping import TOKEN, android_claim, challenge_bytes
from pools import FAULT, Clock, Event, Readings, Steps, Task, WorkerPool, nothing, took
from reporting import signals
from sending import ATTEMPT_MS, ATTEMPTS, FIRST_WAIT_MS, LONGEST_WAIT_MS, read_response

EPOCH_MS = 1_772_359_200_000
ATTESTATION_MS, CHALLENGE_MS = 3_000, 2_000
SECOND_MS, KEEP_MS, BACKGROUND_MS, TELL_MS = 10_000, 86_400_000, 6_000, 1_000
QUEUE_LENGTH = 5
POOLS = {"read": (2, 6), "send": (6, 6), "attest": (1, 0), "background": (1, 2), "callback": (1, 2)}
"""Kind of job -> how many run at a time, and how many that outlived their limit may be replaced."""
MADE = "8d0cbe8bdbd64a3f9a4c2f1b7a5e6d01"
OPTIONS: dict[str, Any] = {
    "timeout_ms": 10_000, "collect_ms": 1_000, "endpoints": 1, "storage": True, "device_id": True, "minimal": False,
    "attestation": False, "deferred": False,
}  # fmt: skip
CODES = {"offline": True, "timeout": True, "network": True, "aborted": False, "pin_mismatch": False}
"""Codes of the SDK's own, and whether they are tried again."""


class Exchange:
    """One request in its pool."""

    def __init__(
        self, world: World, path: str, about: dict[str, Any], limit: Callable[[], int], done: Callable[[Any], None]
    ) -> None:
        self._world, self._done, self._is_over = world, done, False
        step: dict[str, Any] = {}

        def begin() -> int | None:
            world.requests.append({"at_ms": world.clock.now, "path": path, **about})
            step.update(world.scripts[path].next())
            return took(step)

        def end() -> None:
            fault = step.get("fault")
            if fault == "pin":
                world.pin_failed = True
            code = {"pin": "pin_mismatch", "network": "network"}.get(fault or "")
            self._settle(failure(code) if code else self._read(path, step))

        self._task = Task(limit, begin, end, lambda: self._settle(failure("timeout")))
        world.pools["send"].run(self._task)

    def _read(self, path: str, step: dict[str, Any]) -> dict[str, Any]:
        body = json.loads(step["body"]) if path == "challenge" and step["status"] == 200 else {}
        if isinstance(body.get("challenge"), str):
            return {"response": body}
        return read_response("android", step, EPOCH_MS + self._world.clock.now)

    def _settle(self, outcome: Any) -> None:
        if not self._is_over:
            self._is_over = True
            self._done(outcome)

    def stop(self) -> None:
        self._is_over = True
        self._world.pools["send"].drop(self._task)


def failure(code: str) -> dict[str, Any]:
    return {"error": {"code": code, "status": 0, "retryable": CODES[code], "retry_after_ms": 0}}


class Turn:
    def __init__(self, ends_at: int, done: Callable[[dict[str, Any]], None]) -> None:
        self.ends_at, self.done, self.is_over = ends_at, done, False
        self.forgive: Event = nothing
        self.exchange: Exchange | None = None


class Attestations:
    """One after the other, within a limit of their own; what cannot be had in time is none."""

    def __init__(self, world: World) -> None:
        self._world, self._clock = world, world.clock
        self._turns: list[Turn] = []
        self._cannot = self._is_busy = self._is_hung = False

    def ask(self, ends_at: int, done: Callable[[dict[str, Any]], None]) -> Event:
        turn = Turn(min(ends_at, self._clock.now + ATTESTATION_MS), done)
        turn.forgive = self._clock.after(turn.ends_at - self._clock.now, lambda: self._end(turn, {"format": "none"}))
        self._turns.append(turn)
        if len(self._turns) == 1:
            self._go()
        return lambda: self._stop(turn)

    def _go(self) -> None:
        if not self._turns:
            return
        turn = self._turns[0]
        if self._cannot or self._is_hung or self._world.is_forgotten:
            self._end(turn, {"format": "none"})
            return
        if self._is_busy or turn.exchange is not None:
            return
        turn.exchange = Exchange(
            self._world,
            "challenge",
            {"endpoint": self._world.endpoint},
            lambda: min(CHALLENGE_MS, turn.ends_at - self._clock.now),
            lambda outcome: self._attest(turn, outcome.get("response", {}).get("challenge")),
        )

    def _attest(self, turn: Turn, challenge: Any) -> None:
        if challenge_bytes(challenge) is None:
            self._end(turn, {"format": "none"})
            return
        self._is_busy = True
        step: dict[str, Any] = {}

        def begin() -> int | None:
            self._world.attested.append(self._clock.now)
            step.update(self._world.scripts["attest"].next())
            return took(step)

        def end() -> None:
            self._is_busy = self._is_hung = False
            chain = None if step.get("fault") else step["chain"]
            self._cannot = self._cannot or chain is None
            self._end(turn, android_claim({"challenge": challenge, "chain": chain}))
            self._go()

        def overdue() -> None:
            self._is_hung = True
            self._end(turn, {"format": "none"})
            self._go()

        limit = turn.ends_at - self._clock.now
        self._world.pools["attest"].run(Task(lambda: limit, begin, end, overdue))

    def _end(self, turn: Turn, claim: dict[str, Any]) -> None:
        if not turn.is_over:
            self._stop(turn)
            turn.done(claim)

    def _stop(self, turn: Turn) -> None:
        if turn.is_over:
            return
        turn.is_over = True
        turn.forgive()
        if turn.exchange is not None:
            turn.exchange.stop()
        was_first = self._turns[0] is turn
        self._turns.remove(turn)
        if was_first:
            self._clock.after(0, self._go)


class Flight:
    """One report for all who wait for it: read, attest, send."""

    def __init__(self, world: World, subject: dict[str, Any]) -> None:
        self._world, self._clock, self._subject = world, world.clock, subject
        self.callers: dict[str, int] = {}
        """Call -> when it gives up."""
        self._is_over = False
        self._undo: Event = nothing

    def _ends_at(self) -> int:
        return max(self.callers.values(), default=0)

    def stop(self) -> None:
        self._is_over = True
        self._undo()

    def start(self) -> None:
        options, world = self._world.options, self._world
        names = ["token"] if world.stores() and world.token is None else []
        for source in world.given["sources"]:
            name = source["name"]
            if name == "android_id":
                wanted = world.stores() and options["device_id"]
            else:
                wanted = name in ("build", "app") or not options["minimal"]
            names += [name] if wanted else []
        names.insert(min(len(names), 4), "online")
        names += [f"flags.{check['name']}" for check in world.given["checks"]]
        ends_at = min(self._ends_at(), self._clock.now + options["collect_ms"])
        self._undo = world.readings.collect(names, ends_at, self._collected, self._seen)

    def _seen(self, name: str, value: Any) -> None:
        if name == "online" and value is False and not self._is_over:
            self._undo()
            self._finish(failure("offline"))

    def _collected(self, read: dict[str, Any]) -> None:
        if self._is_over:
            return
        world, options = self._world, self._world.options
        if isinstance(read.get("token"), str):
            world.token = read["token"]
        checks = [f"flags.{check['name']}" for check in world.given["checks"]]
        flags = [name.removeprefix("flags.") for name in checks if read.get(name) is True]
        self._about = signals(
            {
                "platform": "android",
                "device": {name: value for name, value in read.items() if name not in ("token", "online", *checks)},
                "options": {**options, "storage": world.stores(), "bridge": None},
                "flags": flags + (["mitm"] if world.pin_failed else []),
                "failed_checks": [name for name in (*checks, "token") if read.get(name) == FAULT],
                "token": world.token if world.stores() else None,
                "nonce": "",
                "collected_at": 0,
            }
        )
        if not options["attestation"]:
            self._send()
            return

        def claimed(claim: dict[str, Any]) -> None:
            if not self._is_over:
                self._about["attestation"] = claim
                self._send()

        self._undo = world.attestations.ask(self._ends_at(), claimed)

    def _send(self) -> None:
        self._endpoint, self._attempts = self._world.endpoint, 0
        self._attempt()

    def _attempt(self) -> None:
        self._attempts += 1
        at = self._endpoint
        about = {"endpoint": at, **self._subject, **summary(self._about)}

        def limit() -> int:
            return min(ATTEMPT_MS, self._ends_at() - self._clock.now)

        self._undo = Exchange(self._world, "identify", about, limit, lambda found: self._answered(found, at)).stop

    def _answered(self, outcome: dict[str, Any], at: int) -> None:
        if self._is_over:
            return
        error = outcome.get("error")
        if error is None or error["status"] != 0:
            self._world.endpoint = at
        if error is None or not error["retryable"] or self._attempts == ATTEMPTS:
            self._finish(outcome)
            return
        if error["status"] == 0:
            self._endpoint = (at + 1) % self._world.options["endpoints"]
        longest = min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (self._attempts - 1))
        wait = max(error["retry_after_ms"], longest // 2)
        if self._ends_at() - self._clock.now <= wait:
            self._finish(outcome)
            return
        self._undo = self._clock.after(wait, self._attempt)

    def _finish(self, outcome: dict[str, Any]) -> None:
        self._is_over = True
        self._world.finish(self, outcome)


def summary(about: dict[str, Any]) -> dict[str, Any]:
    """What a case says of a report."""
    has = [name for name in ("android_id", "client_token", "model") if name in about]
    found: dict[str, Any] = {"has": has, "left_out": about.get("app", {}).get("left_out", [])}
    if "flags" in about:
        found["flags"] = sorted(about["flags"])
    if "attestation" in about:
        found["attestation"] = about["attestation"]["format"]
    return found


class World:
    """The engine with its phone, servers and app."""

    def __init__(self, given: dict[str, Any]) -> None:
        self.given = given
        self.options = OPTIONS | given["options"]
        self.clock = Clock()
        self.pools = {name: WorkerPool(self.clock, *bounds) for name, bounds in POOLS.items()}
        self.scripts = {name: Steps(steps) for name, steps in given["scripts"].items()}
        self._steps = {
            **{one["name"]: Steps(one["readings"]) for one in (*given["sources"], *given["second"])},
            **{f"flags.{one['name']}": Steps(one["readings"]) for one in given["checks"]},
            "online": Steps(given["online"]),
            "token": Steps(given["store"]["readings"]),
        }
        self._constant = {one["name"] for one in given["sources"] if one["constant"]}
        self._stored: dict[str, str] = {}
        if given["store"]["token"] is not None:
            self._stored["token"] = given["store"]["token"]
        self._queue: list[dict[str, Any]] = []
        self.readings = Readings(self, self.pools["read"])
        self._second = Readings(self, self.pools["background"])
        self._collections: list[Event] = []
        self.attestations = Attestations(self)
        self._flights: dict[str, Flight] = {}
        self._of: dict[str, str] = {}
        self._forgive: dict[str, Event] = {}
        self.token: str | None = None
        self.endpoint = 0
        self.pin_failed = self.is_forgotten = self._is_flushing = self._is_asked_again = False
        self.reads: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.attested: list[int] = []
        self.reported: list[dict[str, Any]] = []
        self.forgotten: list[int] = []

    # The phone

    def stores(self) -> bool:
        return self.options["storage"] and not self.is_forgotten

    def step(self, name: str) -> dict[str, Any]:
        return self._steps[name].next()

    def is_constant(self, name: str) -> bool:
        return name in self._constant

    def value(self, name: str, step: dict[str, Any]) -> Any:
        if name != "token":
            return step["value"]
        known = self._stored.get("token")
        if self.is_forgotten:
            return None
        if known is None or not TOKEN.fullmatch(known):
            self._stored["token"] = MADE
        return self._stored["token"]

    # The app

    def run(self) -> dict[str, Any]:
        for event in self.given["events"]:
            self.clock.after(event["at_ms"], lambda event=event: getattr(self, f"_{event['do']}")(event))
        self.clock.run()
        stored = [*self._stored, *(f"deferred {one['id']}" for one in self._queue)]
        return {
            "reported": sorted(self.reported, key=lambda one: (one["at_ms"], one["call"])),
            "requests": sorted(self.requests, key=lambda one: (one["at_ms"], one["path"], str(one.get("tag")))),
            "reads": sorted(self.reads, key=lambda one: (one["at_ms"], one["name"])),
            "attested_at_ms": self.attested,
            "forgotten_at_ms": self.forgotten,
            "stored": sorted(stored),
        }

    def _identify(self, event: dict[str, Any]) -> None:
        call, tag = event["call"], event["tag"]
        flight, is_new = self._flights.get(tag), False
        if flight is None:
            flight = self._flights[tag] = Flight(self, {"tag": tag})
            is_new = True
        limit = event.get("timeout_ms", self.options["timeout_ms"])
        flight.callers[call] = self.clock.now + limit
        self._of[call] = tag
        self._forgive[call] = self.clock.after(limit, lambda: self._leave(call, "timeout"))
        if is_new:
            flight.start()

    def _cancel(self, event: dict[str, Any]) -> None:
        self._leave(event["call"], "aborted")

    def _forget(self, _event: dict[str, Any]) -> None:
        self.is_forgotten = True
        self.token = None
        self.readings.late.clear()
        for call in list(self._of):
            self._leave(call, "aborted")
        for stop in self._collections:
            stop()
        self._collections = []
        left = 4

        def one() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                self.pools["background"].run(Task(lambda: BACKGROUND_MS, lambda: 0, self._deleted))

        for name in ("read", "send", "attest", "background"):
            self.pools[name].after_these(one)

    def _deleted(self) -> None:
        self._stored.clear()
        self._queue.clear()
        self._tell("", lambda: self.forgotten.append(self.clock.now))

    def _leave(self, call: str, code: str) -> None:
        tag = self._of.pop(call, None)
        if tag is None:
            return
        self._forgive[call]()
        flight = self._flights[tag]
        del flight.callers[call]
        if not flight.callers:
            del self._flights[tag]
            flight.stop()
        self._tell(call, lambda: self.reported.append({"at_ms": self.clock.now, "call": call, "code": code}))

    def finish(self, flight: Flight, outcome: dict[str, Any]) -> None:
        del self._flights[next(tag for tag, one in self._flights.items() if one is flight)]
        said = {"code": outcome["error"]["code"]} if "error" in outcome else {"code": "ok"}
        for call in flight.callers:
            del self._of[call]
            self._forgive[call]()
            self._tell(call, lambda call=call: self.reported.append({"at_ms": self.clock.now, "call": call, **said}))
        if "response" in outcome:
            self._follow(outcome["response"])

    def _tell(self, call: str, tell: Event) -> None:
        """A callback begins when its turn comes, and takes what its script says."""

        def begin() -> int | None:
            tell()
            return None if call in self.given["hanging_callbacks"] else 0

        self.pools["callback"].run(Task(lambda: TELL_MS, begin, nothing))

    # Second reports

    def _follow(self, response: dict[str, Any]) -> None:
        if not self.options["deferred"] or self.is_forgotten:
            return
        if response.get("deferred_token") is None:
            self._flush()
            return
        names = [one["name"] for one in self.given["second"]]
        mine: list[Event] = []

        def read(_found: dict[str, Any]) -> None:
            self._collections.remove(mine[0])
            self.pools["background"].run(
                Task(lambda: BACKGROUND_MS, lambda: 0, lambda: self._kept(response["request_id"]))
            )

        mine.append(self._second.collect(names, self.clock.now + SECOND_MS, read))
        self._collections.append(mine[0])

    def _kept(self, request_id: str) -> None:
        if not self.is_forgotten:
            self._queue = [*self._queue, {"id": request_id}][-QUEUE_LENGTH:]
        self._flush()

    def _flush(self) -> None:
        if self._is_flushing:
            self._is_asked_again = True
            return
        self._is_flushing = True

        def end() -> None:
            for one in list(self._queue):
                if self.is_forgotten:
                    break
                self.requests.append({"at_ms": self.clock.now, "path": "supplement", "endpoint": self.endpoint})
                status = self.scripts["supplement"].next()["status"]
                if status == 0 or status >= 500 or status == 429:
                    break
                self._queue.remove(one)
            self._is_flushing = False
            if self._is_asked_again:
                self._is_asked_again = False
                self._flush()

        self.pools["background"].run(Task(lambda: BACKGROUND_MS, lambda: 0, end))


def run(given: dict[str, Any]) -> dict[str, Any]:
    """What was `reported`, `requests`, `reads`, when keys were attested and all was forgotten, and what is `stored`."""
    return World(given).run()
