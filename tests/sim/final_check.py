"""The end of a run: what was answered, held against what the service shows and what arrived."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode
from uuid import UUID

import msgspec
import trio

from svc.features.billing.jobs import statement
from svc.features.checks.invariants import violations
from svc.features.webhooks.tables import ATTEMPTS, DELIVERIES, ENDPOINTS, WEBHOOK_EVENTS
from svc.identify.records import Event
from svc.identify.tables import DOCUMENTS, EVENTS
from svc.kernel.store.snapshot import Snapshot
from svc.kernel.tenants.billing import Usage
from svc.kernel.tenants.jobs import holding
from svc.kernel.tenants.tables import BALANCES, LEDGER, SETTLEMENTS
from svc.kernel.values.ids import DAY_MS, made_at_ms
from svc.kernel.values.timestamps import timestamp
from svc.world import LONGEST_LEAD_MS
from tests.sim.client import request, talk
from tests.sim.following import check_followers
from tests.sim.model import (
    ATTEMPT_S,
    Fact,
    check_facts,
    check_posts,
    check_repeats,
    check_silence,
    is_over,
    name_of,
)
from tests.sim.plan import FAR_S, HOUR_S, Client, Jump, Plan
from tests.support.worlds import EPOCH_MS

if TYPE_CHECKING:
    from tests.sim.acts import Account, Acts
    from tests.sim.simulation import Simulation

# As the interface and the decisions have them, whatever the service may think.
ATTEMPTS_IN_ALL = 9
GONE = 410
NOTIFIABLE = (401, 402, 413, 422, 429)
"""Refusals that subscribers hear of."""
IDENTIFIABLE_MICROS, UNIDENTIFIABLE_MICROS = 3_000, 500

FARTHEST_S = 4 * HOUR_S
"""How far a clock may be from where it began without being far ahead or behind."""
FOREIGN_READS = 40
"""Events that somebody else tries to read."""


async def find_violations(run: Simulation) -> list[str]:
    """Everything that is wrong with a run that has drained; the service is still up."""
    with run.machine.store.read() as snapshot:
        found = list(_judge(run, snapshot))
    found += [fault async for fault in _read_back(run)]
    found += await check_followers(run.acts.following, _by_environment(run))
    return found + [fault async for fault in _manage(run)]


def _judge(run: Simulation, snapshot: Snapshot) -> Iterator[str]:
    yield from violations(snapshot)
    acts, numbers = run.acts, [shop.number for shop in run.acts.shops]
    events = {number: dict(_events(snapshot, number)) for number in numbers}
    by_tag = {event.tag: (number, raw_id, event) for number in numbers for raw_id, event in events[number].items()}
    yield from _responses(acts, by_tag, sum(map(len, events.values())))
    yield from acts.afterwards.check(snapshot, numbers, run.seen)
    for shop in acts.shops:
        yield from _money(snapshot, acts, shop, events[shop.number])
    for named in acts.attested:
        yield from _challenge(snapshot, named, by_tag)
    yield from _refusals(snapshot, acts)
    told = dict(_told(snapshot, numbers))
    outcomes = dict(_outcomes(snapshot, numbers))
    redelivered = Counter(event_id for one in acts.hooks.listening.values() for event_id in one.redelivered)
    yield from _ended(snapshot, numbers, redelivered, _times_behind(run.plan))
    facts = [*acts.facts, *_facts(run, by_tag), *_settled(snapshot, numbers)]
    endpoints = list(acts.hooks.listening.values())
    upsets = [*run.machine.leader_ended_at, *run.machine.broke_at]
    yield from check_posts(run.seen, [shop.id for shop in acts.shops], acts.hooks.secret_of, acts.jumps)
    yield from check_repeats(run.seen, upsets)
    yield from check_silence(run.seen)
    yield from check_facts(facts, endpoints, run.seen, told, outcomes)


def _events(snapshot: Snapshot, number: int) -> Iterator[tuple[bytes, Event]]:
    return ((raw_id, event) for (_, raw_id), event in snapshot.scan(EVENTS, number))


def _by_environment(run: Simulation) -> dict[tuple[int, bool], dict[bytes, Event]]:
    """The events of each shop, production and other ones."""
    found: dict[tuple[int, bool], dict[bytes, Event]] = {}
    with run.machine.store.read() as snapshot:
        for shop, account in enumerate(run.acts.shops):
            for production in (True, False):
                found[shop, production] = {
                    raw_id: event
                    for raw_id, event in _events(snapshot, account.number)
                    if (event.environment == "production") == production
                }
    return found


Tagged = Mapping[str | None, tuple[int, bytes, Event]]


def _responses(acts: Acts, by_tag: Tagged, stored: int) -> Iterator[str]:
    if len(by_tag) != stored:
        yield f"{stored} events were recorded for {len(by_tag)} requests"
    by_key: dict[tuple[int, int], set[str]] = defaultdict(set)
    for one in acts.asked:
        found = by_tag.get(str(one.number))
        ids = {one.request_id} if one.request_id is not None else set[str]()
        if found is not None:
            number, raw_id, event = found
            ids.add(str(UUID(bytes=raw_id)))
            if (number, event.environment == "production") != (acts.shops[one.shop].number, one.production):
                yield f"request {one.number} was recorded for somebody else"
            if one.response is not None and one.response.status != 200 and not one.was_waited_for:
                yield f"request {one.number} was refused and recorded"
        elif one.key is None and one.request_id is not None and not _may_be_gone(acts, one.request_id):
            yield f"request {one.number} was acknowledged and is gone"
        by_key[one.shop, -one.number if one.key is None else one.key] |= ids
    for (shop, key), ids in by_key.items():
        at = [made_at_ms(UUID(one).bytes) for one in ids if not is_over(one)]  # a key goes with its event
        if len(at) > 1 and max(at) - min(at) < DAY_MS:  # a key is remembered for a day
            yield f"key {key} of shop {shop} has {len(ids)} events"


def _may_be_gone(acts: Acts, request_id: str) -> bool:
    return acts.afterwards.is_erased(request_id) or is_over(request_id)


def _money(snapshot: Snapshot, acts: Acts, shop: Account, events: Mapping[bytes, Event]) -> Iterator[str]:
    """The ledger charges what is stored, and what was until its visitor was erased."""
    charged = {raw_id: _price(event) for raw_id, event in events.items() if event.environment == "production"}
    lines = {
        raw_id: -entry.amount_micros
        for (_, raw_id), entry in snapshot.scan(LEDGER, shop.number)
        if entry.kind == "identification"
    }
    for raw_id in lines.keys() | charged.keys():
        is_gone = raw_id not in charged and _may_be_gone(acts, str(UUID(bytes=raw_id)))
        if lines.get(raw_id) != charged.get(raw_id) and not is_gone:
            yield f"request {UUID(bytes=raw_id)} is charged {lines.get(raw_id)} and costs {charged.get(raw_id)}"
    if snapshot.get(BALANCES, shop.number) != shop.credit_micros - sum(lines.values()):
        yield f"the balance of organization {shop.number} is not its credit without what was charged"
    yield from _days(snapshot, shop.number)
    for raw_id, event in events.items():
        if not 0 <= made_at_ms(raw_id) - event.occurred_at_ms <= LONGEST_LEAD_MS:
            yield f"request {UUID(bytes=raw_id)} has an id that is not within an hour of its arrival"


def _days(snapshot: Snapshot, number: int) -> Iterator[str]:
    """Decisions 17.2: settled = statement for each day, and what was counted last is what the statement says of it."""
    stated = {day.day: day.usage for day in statement(snapshot, number, 0, 1 << 20).days}
    for (_, day), settled in snapshot.scan(SETTLEMENTS, number):
        usage = stated.get(day, Usage())
        if (settled.amount_micros, settled.free) != (usage.charged_micros, usage.free):
            yield f"day {day} of organization {number} is settled with {settled.amount_micros} and stated {usage}"
    held = holding(snapshot, number)
    of_day = stated.get(held.day, Usage())
    counted, said = held.usage, (of_day.identifiable, of_day.unidentifiable, of_day.free)
    if (counted.identifiable, counted.unidentifiable, counted.free) != said:
        yield f"the counts of day {held.day} of organization {number} are {counted}, its statement says {of_day}"


def _price(event: Event) -> int:
    if event.verdict.state != "enriched":
        return 0
    return IDENTIFIABLE_MICROS if event.verdict.identifiable else UNIDENTIFIABLE_MICROS


def _challenge(snapshot: Snapshot, named: list[int], by_tag: Tagged) -> Iterator[str]:
    """Of those who named it exactly one has used it; a clock that was set in between may have made it expire."""
    recorded = [by_tag[str(number)] for number in named if str(number) in by_tag]
    documents = [snapshot.get(DOCUMENTS, number, raw_id) for number, raw_id, _ in recorded]
    failed = sum(document is not None and "attestation_failed" in document.evidence for document in documents)
    if len(recorded) - failed > 1:
        yield f"a challenge was used by {len(recorded) - failed} of the requests {named}"


def _refusals(snapshot: Snapshot, acts: Acts) -> Iterator[str]:
    """No more refusals are counted than there were; a request without a response may have been refused."""
    for shop, account in enumerate(acts.shops):
        told = sum(
            msgspec.json.decode(row.body)["data"]["count"]
            for _, row in snapshot.scan(WEBHOOK_EVENTS, account.number)
            if row.type == "identification.refused"
        )
        asked = [one for one in acts.asked if one.shop == shop]
        refused = sum(one.response is None or one.response.status in NOTIFIABLE for one in asked)
        if told > refused:
            yield f"shop {shop} was told of {told} refusals, of {refused} at most"


def _told(snapshot: Snapshot, numbers: list[int]) -> Iterator[tuple[tuple[int, str, str], str]]:
    for (number, raw_id), row in snapshot.scan(WEBHOOK_EVENTS):
        event: dict[str, Any] = msgspec.json.decode(row.body)
        assert event["id"] == str(UUID(bytes=raw_id))
        yield (numbers.index(number), event["type"], name_of(event)), event["id"]


def _outcomes(snapshot: Snapshot, numbers: list[int]) -> Iterator[tuple[tuple[str, str], str]]:
    for number in numbers:
        for (_, place), endpoint in snapshot.scan(ENDPOINTS, number):
            for (*_, raw_id, kind), delivery in snapshot.scan(DELIVERIES, number, place):
                if kind == 0:
                    yield (endpoint.id, str(UUID(bytes=raw_id))), delivery.state


def _times_behind(plan: Plan) -> list[tuple[int, int]]:
    """From when until when the clock was far behind, as it would have been otherwise: what is tried then is listed at
    times that retention deletes once the clock is right.
    """
    jumps = [step for step in plan.steps if isinstance(step, Jump) and step.seconds == -FAR_S]
    times = [(step.at - FARTHEST_S, step.at + step.back_after_s + FARTHEST_S) for step in jumps]
    return [(EPOCH_MS + round(1000 * since), EPOCH_MS + round(1000 * until)) for since, until in times]


def _ended(
    snapshot: Snapshot, numbers: list[int], redelivered: Counter[str], behind: Sequence[tuple[int, int]]
) -> Iterator[str]:
    """What is listed failed was tried as often as it must be, and no attempt was used up by a pause. Of what was under
    way while the clock was far `behind` not all attempts are known.
    """
    for number in numbers:
        attempts: Counter[tuple[int, bytes]] = Counter()
        gone: set[tuple[int, bytes]] = set()
        for (_, _), attempt in snapshot.scan(ATTEMPTS, number):
            attempts[attempt.endpoint, attempt.event_id] += 1
            if not 0 <= attempt.duration_ms <= ATTEMPT_S * 1000:
                yield f"an attempt at {attempt.endpoint_id} took {attempt.duration_ms} ms"
            by_hand = attempt.event == "webhook.test" or str(UUID(bytes=attempt.event_id)) in redelivered
            if attempt.error == "paused" and not by_hand:
                yield f"an attempt at {attempt.endpoint_id} was used up by a pause"
            if attempt.response_code == GONE:
                gone.add((attempt.endpoint, attempt.event_id))
        for (_, place), endpoint in snapshot.scan(ENDPOINTS, number):
            for (*_, raw_id, kind), delivery in snapshot.scan(DELIVERIES, number, place):
                tried, ended = attempts[place, raw_id], (place, raw_id) in gone
                was_behind = any(delivery.queued_at_ms < until and since < delivery.due_ms for since, until in behind)
                is_known = not is_over(raw_id) and not was_behind
                early = delivery.state == "failed" and tried < ATTEMPTS_IN_ALL and not ended and is_known
                late = tried > ATTEMPTS_IN_ALL + redelivered[str(UUID(bytes=raw_id))]
                if kind == 0 and (early or late):
                    yield f"event {UUID(bytes=raw_id)} is {delivery.state} at {endpoint.id} after {tried} attempts"


def _facts(run: Simulation, by_tag: Tagged) -> Iterator[Fact]:
    """Every event that is stored, acknowledged or not: it happened between the request and the answer."""
    ends = [*run.machine.ended_at, float("inf")]
    for one in run.acts.asked:
        if str(one.number) not in by_tag:
            continue
        _, raw_id, event = by_tag[str(one.number)]
        if is_over(raw_id):
            continue
        until = min(one.until, next(end for end in ends if end >= one.since))
        types = ["identification.completed"]
        if event.verdict.suspect_level in ("medium", "high"):
            types.append("visitor.suspect")
        for event_type in types:
            yield Fact(event_type, one.shop, one.production, str(UUID(bytes=raw_id)), one.since, until)


def _settled(snapshot: Snapshot, numbers: list[int]) -> Iterator[Fact]:
    """Nobody outside knows when a day was settled: these must reach who listened from the beginning to the end."""
    for number in numbers:
        for (_, day), _ in snapshot.scan(SETTLEMENTS, number):
            name = timestamp(day * DAY_MS)[:10]
            yield Fact("usage.daily_settled", numbers.index(number), True, name, 60.0, trio.current_time())


async def _read_back(run: Simulation) -> Any:
    """Everybody reads the own events, all of them, and nobody else's."""
    shown: dict[tuple[int, bool], set[str]] = {}
    for shop, account in enumerate(run.acts.shops):
        for production in (True, False):
            shown[shop, production] = await _listed(run, account.keys[production, "secret"].secret)
    for one in run.acts.asked:
        if one.request_id is None or one.request_id in shown[one.shop, one.production]:
            continue
        key = run.acts.shops[one.shop].keys[one.production, "secret"].secret
        readable = (await _get(run, f"/events/{one.request_id}", key)).status == 200  # outside the window
        if not readable and not _may_be_gone(run.acts, str(one.request_id)):
            yield f"request {one.request_id} was acknowledged, and its owner cannot read it"
    for owner, other in combinations(shown, 2):
        if shown[owner] & shown[other]:
            yield f"{owner} and {other} read the same events"
    chance = run.machine.chance
    owned = [(owner, request_id) for owner, ids in shown.items() for request_id in sorted(ids)]
    for owner, request_id in chance.sample(owned, min(FOREIGN_READS, len(owned))):
        reader = chance.choice(list(shown))
        key = run.acts.shops[reader[0]].keys[reader[1], "secret"].secret
        status = (await _get(run, f"/events/{request_id}", key)).status
        if status != (200 if reader == owner else 404):
            yield f"{reader} asked for the event {request_id} of {owner} and was answered {status}"


async def _listed(run: Simulation, key: str) -> set[str]:
    """Every event that a secret key lists, page by page."""
    now_ms = run.machine.now_ms()
    window = {"from": timestamp(now_ms - 5 * DAY_MS), "to": timestamp(now_ms + DAY_MS)}
    ids: set[str] = set()
    for page in count(1):
        query = urlencode({**window, "limit": 50, "page": page})
        rows = (await _get(run, f"/events?{query}", key)).json["rows"]
        ids.update(row["request_id"] for row in rows)
        if len(rows) < 50:
            break
    return ids


async def _manage(run: Simulation) -> Any:
    """Every customer lists the own endpoints, and every attempt to reach them."""
    for shop, account in enumerate(run.acts.shops):
        base = f"/management/organizations/{account.id}"
        listed = [row["url"] for row in (await _get(run, f"{base}/webhooks", account.management)).json["endpoints"]]
        present = [one.path for one in run.acts.hooks.present.values() if one.shop == shop]
        if sorted(url.partition(".example")[2] for url in listed) != sorted(present):
            yield f"shop {shop} has the endpoints {present}, and is shown {listed}"
        with run.machine.store.read() as snapshot:
            logged = {str(UUID(bytes=raw_id)) for (_, raw_id), _ in snapshot.scan(ATTEMPTS, account.number)}
        ids: list[str] = []
        cursor: str | None = ""
        while cursor is not None:
            query = urlencode({"limit": 200, **({"cursor": cursor} if cursor else {})})
            page = (await _get(run, f"{base}/webhook-deliveries?{query}", account.management)).json
            ids += [row["id"] for row in page["deliveries"]]
            cursor = page.get("next_cursor")
        missing = [one for one in logged - set(ids) if not is_over(one)]  # which retention may have deleted meanwhile
        if missing or len(set(ids)) != len(ids):
            yield f"shop {shop} is shown {len(set(ids))} attempts in {len(ids)} rows, without {missing}"


async def _get(run: Simulation, path: str, key: str) -> Any:
    response = await talk(run.machine.connect(), request("GET", path, x_api_key=key), Client())
    assert response is not None, f"no answer to GET {path}"
    return response
