"""What an outsider knows of a run: who was answered what, who listened when, and what arrived where.

Every order takes a while, so an outsider knows of a change only that it happened between order and answer. A fact that
happened surely while an endpoint listened must arrive or be listed failed; one that surely did not must not arrive.
"""

from __future__ import annotations

import hmac
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec
import trio

from svc.features.webhooks.content.envelope import without_account
from svc.kernel.values.ids import DAY_MS, made_at_ms
from tests.sim.client import Response
from tests.sim.internet import Post, Receipt
from tests.support.worlds import EPOCH_MS

V = TypeVar("V")

ATTEMPT_S = 10.5
"""The longest that an attempt takes, and so the oldest that a signature is when it arrives."""
CUT_S = 0.1
"""Within which what is in flight is cut off."""
UNHEARD_S = 120.0
"""After which a request whose client has left is not recorded any more."""
ENVIRONMENTS = {True: "live", False: "test"}


class Change(msgspec.Struct, Generic[V]):
    """Something became `value` between two moments, in virtual seconds."""

    value: V
    ordered: float
    done: float = float("inf")
    tries: int = 1

    def settle(self, value: V) -> None:
        self.value, self.done = value, trio.current_time()


class Timeline(Generic[V]):
    """The values of something over time."""

    def __init__(self, first: V) -> None:
        self.changes = [Change(first, float("-inf"), float("-inf"))]

    def change(self, value: V) -> Change[V]:
        """It is ordered now; the caller that hears of its end settles it."""
        self.changes.append(Change(value, trio.current_time()))
        return self.changes[-1]

    def possible(self, since: float, until: float) -> list[V]:
        """Every value that it may have had at some moment of this time."""
        ends = [change.done for change in self.changes[1:]] + [float("inf")]
        return [
            change.value
            for change, end in zip(self.changes, ends, strict=True)
            if change.ordered <= until and since <= end
        ]

    def sure(self, since: float, until: float) -> V | None:
        """The one value that it had all this time; `None` where nobody can say."""
        values = self.possible(since, until)
        return values[0] if all(value == values[0] for value in values) else None


WAITS_S = 10.0
"""How long the service waits for a commit."""


class Asked(msgspec.Struct):
    """One identification that a client asked for. Its number is the `tag` of the event."""

    number: int
    shop: int
    production: bool
    key: int | None
    since: float
    until: float = float("inf")
    response: Response | None = None
    secret: str = ""
    """Of the key it was asked with."""

    @property
    def was_waited_for(self) -> bool:
        """Whether it was refused after `WAITS_S`: its commit may come yet (decisions 17.4)."""
        return self.response is not None and self.response.status == 503 and self.until - self.since > WAITS_S - 0.001

    @property
    def visitor_id(self) -> str | None:
        """As it was told; twins of an identification are not."""
        return None if self.request_id is None or self.response is None else self.response.json.get("visitor_id")

    @property
    def token(self) -> str | None:
        """For a deferred report, where it was asked by a browser."""
        by_browser = self.response is not None and self.response.status == 200 and self.secret.startswith("svc_pk_")
        return self.response.json.get("deferred_token") if by_browser and self.response is not None else None

    @property
    def request_id(self) -> str | None:
        """Of the event that it was told of."""
        if self.response is None or self.response.status != 200:
            return None
        return self.response.json["request_id"]


class Signing(NamedTuple):
    """By what an endpoint's deliveries are signed."""

    generation: int
    previous_until_ms: int | None
    """Wall clock."""


class Listening(msgspec.Struct):
    """A registered endpoint."""

    hook: int
    path: str
    """Of its URL, which no other has."""
    shop: int
    live: bool
    events: tuple[str, ...]
    on: Timeline[bool]
    """Registered and not paused."""
    signing: Timeline[Signing]
    id: str = ""
    """Once it is known."""
    removed: bool = False
    """Or its removal was ordered."""
    removed_at: float = float("inf")
    redelivered: list[str] = []
    """Event ids, as often as they were asked for."""


class Seen(msgspec.Struct):
    """One delivery as it arrived."""

    at: float
    wall_ms: int
    post: Post
    listening: Listening
    receipt: Receipt

    @property
    def event(self) -> dict[str, Any]:
        return json.loads(self.post.body)

    @property
    def event_id(self) -> str:
        return self.post.headers["x-svc-event-id"]


class Fact(NamedTuple):
    """Something of which subscribers are to be told."""

    type: str
    shop: int
    live: bool
    name: str
    """As `name_of` its event."""
    since: float
    until: float


def is_over(request_id: str | bytes) -> bool:
    """Whether this id was made while the clock was far behind: what has it is deleted once the clock is right."""
    raw_id = request_id if isinstance(request_id, bytes) else UUID(request_id).bytes
    return is_before_the_run(made_at_ms(raw_id))


def is_before_the_run(at_ms: int) -> bool:
    """Whether a wall clock that says so is far behind."""
    return at_ms < EPOCH_MS - DAY_MS


def name_of(event: dict[str, Any]) -> str:
    """Of the fact that an event tells, unique within organization and type."""
    data = event["data"]
    match event["type"]:
        case "billing.status_changed":
            return f"{event['created_at']} {data['previous_status']} {data['current_status']}"
        case "usage.daily_settled":
            return data["date"]
        case "identification.completed" | "visitor.suspect":
            return data["request_id"]
        case _:
            return event["id"]


def check_posts(
    seen: Sequence[Seen], shops: Sequence[str], secret_of: Callable[[Listening, int], str], jumps: Sequence[float]
) -> Iterator[str]:
    """Each delivery by itself: signed by who may, of its own organization, with the same bytes every time."""
    bodies: dict[str, bytes] = {}
    ids: dict[tuple[int, str, str], str] = {}
    for one in seen:
        event, listening = one.event, one.listening
        name = f"the delivery of {one.event_id} to endpoint {listening.hook} at {one.at:.3f}"
        body = without_account(one.post.body)  # which may leave what is still to be sent (decisions 11.6)
        if bodies.setdefault(one.event_id, body) != body:
            yield f"{name} has another body than the one before"
        if ids.setdefault((listening.shop, event["type"], name_of(event)), event["id"]) != event["id"]:
            yield f"{name} tells with another id of what was told before"
        if (event["id"], event["type"]) != (one.event_id, one.post.headers["x-svc-event-type"]):
            yield f"{name} has headers of another event"
        if event["organization_id"] != shops[listening.shop] or event["environment"] != ENVIRONMENTS[listening.live]:
            yield f"{name} is of another organization or environment"
        if event["type"] not in (*listening.events, "webhook.test"):
            yield f"{name} is of a type that it does not subscribe to"
        yield from _check_signature(one, name, secret_of, jumps)


def _check_signature(
    one: Seen, name: str, secret_of: Callable[[Listening, int], str], jumps: Sequence[float]
) -> Iterator[str]:
    at_s = int(one.post.headers["x-svc-timestamp"])
    signed = f"{at_s}.".encode() + one.post.body
    since = one.at - ATTEMPT_S
    possible = one.listening.signing.possible(since, one.at)
    known = {
        "sha256=" + hmac.digest(secret_of(one.listening, generation).encode(), signed, "sha256").hex(): generation
        for generation in range(1, max(state.generation for state in possible) + 1)
    }
    by = [known.get(signature) for signature in one.post.headers["x-svc-signature"].split(",")]
    allowed = [_signers(state, at_s * 1000) for state in possible]
    if by not in [signers for either in allowed for signers in either]:
        yield f"{name} is signed by generations {by}, not by one of {allowed}"
    jumped = any(since <= jump <= one.at for jump in jumps)
    if not jumped and not 0 <= one.wall_ms // 1000 - at_s <= ATTEMPT_S:
        yield f"{name} says it was signed {one.wall_ms // 1000 - at_s} s ago"


def _signers(state: Signing, at_ms: int) -> list[list[int]]:
    """Both ways to sign, where the previous secret expires in the very second of the signature."""
    alone, both = [state.generation], [state.generation, state.generation - 1]
    if state.previous_until_ms is None or at_ms >= state.previous_until_ms:
        return [alone]
    return [both] if at_ms + 1000 <= state.previous_until_ms else [alone, both]


def check_repeats(seen: Sequence[Seen], upsets: Sequence[float]) -> Iterator[str]:
    """What was answered 2xx comes again only when asked for, or after a life that ended before it was written down."""
    by_delivery: dict[tuple[str, str], list[Seen]] = defaultdict(list)
    for one in seen:
        by_delivery[one.listening.path, one.event_id].append(one)
    for (_, event_id), posts in by_delivery.items():
        asked = posts[0].listening.redelivered.count(event_id)
        for earlier, later in pairwise(posts):
            whole_at = earlier.receipt.read_at
            if whole_at is None or whole_at > later.at or any(earlier.at <= upset <= later.at for upset in upsets):
                continue
            asked -= 1
            if asked < 0:
                yield f"{event_id} came to endpoint {later.listening.hook} again at {later.at:.3f} for no reason"


def check_silence(seen: Sequence[Seen]) -> Iterator[str]:
    """Nothing arrives at an endpoint that was removed, nor at one that has been paused for as long as attempts take."""
    for one in seen:
        since = one.at - (CUT_S if one.at > one.listening.removed_at else ATTEMPT_S)
        if one.listening.on.sure(since, one.at) is False:
            yield f"{one.event_id} came to endpoint {one.listening.hook} at {one.at:.3f}, which was paused or removed"


def check_facts(
    facts: Sequence[Fact],
    listening: Sequence[Listening],
    seen: Sequence[Seen],
    event_ids: Mapping[tuple[int, str, str], str],
    outcomes: Mapping[tuple[str, str], str],
) -> Iterator[str]:
    """In the store: `event_ids` by shop, type and name; `outcomes` of deliveries by endpoint id and event id."""
    arrived: dict[tuple[str, str, str], list[Receipt]] = defaultdict(list)
    for one in seen:
        arrived[one.listening.path, one.event["type"], name_of(one.event)].append(one.receipt)
    for fact in facts:
        for endpoint in listening:
            if (endpoint.shop, endpoint.live) != (fact.shop, fact.live) or fact.type not in endpoint.events:
                continue
            came = arrived[endpoint.path, fact.type, fact.name]
            listened = endpoint.on.sure(fact.since, fact.until)
            name = f"{fact.type} {fact.name} and endpoint {endpoint.hook}"
            if listened is False and came:
                yield f"{name}: it arrived, and was not subscribed to"
            if listened is not True or endpoint.removed:
                continue
            event_id = event_ids.get((fact.shop, fact.type, fact.name), "")
            outcome = outcomes.get((endpoint.id, event_id), "not known")
            if outcome == "delivered" and all(receipt.answered_at is None for receipt in came):
                yield f"{name}: it is said to be delivered, and nobody has answered 2xx"
            elif outcome not in ("delivered", "failed"):
                yield f"{name}: it never arrived and is not listed failed, but {outcome}"
