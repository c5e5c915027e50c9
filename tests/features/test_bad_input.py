"""Interface 2.12, decisions 1.5: what a schema does not allow is refused as documented, and changes nothing.

Each route that takes a body, a query or something in its path gets its ordinary request with one part of it replaced,
at every place and by whatever JSON has. The published schema decides which of them are wrong. What it allows may have
any response but a fault. Every response is held to the document by `tests/support/conformance.py`.
"""

from __future__ import annotations

import copy
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec
import pytest
from jsonschema_rs import Draft202012Validator

from svc.features.routes import API
from svc.http.openapi.json_schema import components, example, parameters, reference
from svc.http.route import Route
from tests.features.house import NAMED, OFF, Asked, House, Names, ask
from tests.features.rows import changes, rows
from tests.spec.subscriber import Names as Hosts
from tests.support.effort import effort
from tests.support.live import live_service
from tests.support.receivers import OK, Receivers, always
from tests.support.serving_postgresql import at_rest

pytestmark = [pytest.mark.usefixtures("engine"), pytest.mark.any_store]

ANYTHING: tuple[Any, ...] = (
    None, True, -1, 0, 1.5, 10**12, "", " ", "x" * 1025, "x" * 5000, "nonsense", "\0", "a\x1bb\x7f", "\u202e\ufeff",
    [], [None], {}, {"unknown": 1},
)  # fmt: skip
"""What stands in the place of each part of a body."""
TEXTS = ("", "-1", "0", "1.5", "9" * 30, "nonsense", "x" * 1025, "x" * 5000, "\0", "a\x1bb", "\U0001f642", "../..")
"""What stands in the place of a parameter and of a part of a path."""
NO_BODIES = (b"", b"{", b"[]", b"null", b'"text"', b"\xff\xfe", b'{"a": NaN}', b'{"a": 1, "a": 2}')
UNENDING = {"streamEvents"}
HASHED = {"signIn", "acceptInvitation", "offerTotp", "confirmTotp", "replaceRecoveryCodes", "changePassword"}
"""Routes at which each guess costs a tenth of a second: they get what is wrong, and not what is merely unusual."""
FREE_TEXT = {"account_id", "asset"}
ONE_IN = effort(6, 1)
"""Of what is sent, one in so many; another one with each commit."""


class Body:
    """What a route takes, and what its schema says of a value."""

    def __init__(self, body: type[msgspec.Struct]) -> None:
        schemas = components([body], [])
        self.schema = reference(body)
        self.schemas = schemas
        self._validator = Draft202012Validator(
            {**self.schema, "components": {"schemas": schemas}}, validate_formats=True
        )

    def allows(self, value: Any) -> bool:
        return self._validator.is_valid(value)

    def whole(self, ordinary: Any) -> Any:
        """The ordinary value, with the examples of the fields that it leaves out, as far as both go together."""
        merged = {**example(self.schemas, self.schema), **ordinary}
        return merged if self.allows(merged) else ordinary


def places(value: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of a value."""
    yield before
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for name, part in inner:
        yield from places(part, (*before, name))


def replaced(value: Any, place: tuple[Any, ...], by: Any) -> Any:
    if not place:
        return by
    changed = copy.copy(value)
    changed[place[0]] = replaced(value[place[0]], place[1:], by)
    return changed


def without(value: Any, place: tuple[Any, ...]) -> Any:
    changed = copy.deepcopy(value)
    inner = changed
    for name in place[:-1]:
        inner = inner[name]
    del inner[place[-1]]
    return changed


def bodies(of: Body, ordinary: Any) -> Iterator[Any]:
    """The value with each part replaced, left out, and with one more field."""
    whole = of.whole(ordinary)
    for place in places(whole):
        if place and place[0] == "signals" and len(place) > 1:
            continue  # of a report, whose fields are read leniently (tests/fuzz)
        for anything in ANYTHING if place else ANYTHING[1:]:  # null as a whole is in NO_BODIES
            yield replaced(whole, place, anything)
        if place:
            yield without(whole, place)
    yield {**whole, "unknown_field": 1}


class Sent(NamedTuple):
    """A request, and whether it has to be refused."""

    what: str
    asked: Asked
    is_wrong: bool
    content: bytes | None = None
    """Instead of the body."""


def requests(route: Route, names: Names, under: str, part: int) -> Iterator[Sent]:
    """Every request of a route that is tried."""
    ordinary = ask(route, names, under)
    if route.body is not None:
        of = Body(route.body)
        for at, body in enumerate(bodies(of, ordinary.body)):
            if (at + part) % ONE_IN == 0:
                yield Sent(f"{json.dumps(body)[:200]}", ordinary._replace(body=body), not of.allows(body))
        for content in NO_BODIES:
            yield Sent(repr(content), ordinary, is_wrong=bool(content) or route.body_required, content=content)
    for parameter in parameters(route.query) if route.query is not None else ():
        for text, is_wrong in list(texts(parameter["schema"]))[part % ONE_IN :: ONE_IN]:
            asked = ordinary._replace(query=ordinary.query | {parameter["name"]: text})
            yield Sent(f"{parameter['name']}={text[:20]!r}", asked, is_wrong)
    yield Sent("an unknown parameter", ordinary._replace(query=ordinary.query | {"unknown_field": "1"}), is_wrong=True)
    for variable in [part for part in route.path.split("/") if part.startswith("{")]:
        for text in TEXTS[1:]:
            name = NAMED.get((route.operation_id, variable[1:-1]), variable[1:-1])
            named = Names({**names, name: quote(text, safe="")})
            yield Sent(f"{variable} {text[:20]!r}", ask(route, named, under), variable[1:-1] not in FREE_TEXT)


def texts(schema: Any) -> Iterator[tuple[str, bool]]:
    """Values of a parameter, and whether they are wrong."""
    allows, kind = Draft202012Validator(schema, validate_formats=True).is_valid, schema.get("type")
    for text in TEXTS:
        if kind == "boolean" and text in ("0", "1"):
            continue  # which are read as what they mean
        yield text, not allows(int(text) if kind == "integer" and text.lstrip("-").isdigit() else text)


async def send(house: House, route: Route, sent: Sent) -> httpx.Response:
    if not route.kinds:
        house.live.clock.advance(seconds=1)  # one address may not try any number of times a second
    if sent.content is None:
        return await house.send(route, sent.asked)
    headers = house.headers(route) | {"content-type": "application/json"}
    return await house.live.client.request(
        sent.asked.method, sent.asked.path, params=sent.asked.query, headers=headers, content=sent.content
    )


async def changed_by(house: House, route: Route, everything: Sequence[Any], wrong: list[Any]) -> Any:
    """What the wrong requests of a route change; each that is not refused is noted in `wrong`."""
    await at_rest()
    before = rows(house.live.found.store.engine)
    for sent in (sent for sent in everything if sent.is_wrong):
        response = await send(house, route, sent)
        if not 400 <= response.status_code < 500:
            wrong.append((route.operation_id, sent.what, response.status_code, response.text[:200]))
    return changes(before, rows(house.live.found.store.engine))


@pytest.mark.slow(8)
async def test_what_a_schema_does_not_allow_is_refused_and_changes_nothing(tmp_path: Path, crash_seed: int):
    async with live_service(tmp_path, transport=Receivers(always(OK, 0)), resolver=Hosts()) as live:
        house = House(live, live.organization, "annaxq")
        await house.fill()
        tried, wrong = Counter[bool](), list[Any]()
        for route in API:
            if route.operation_id in UNENDING | OFF.keys():
                continue
            everything = list(requests(route, house.names, route.under[0], crash_seed))
            # A delivery that was under way may have ended meanwhile, which it does not do twice.
            changed = await changed_by(house, route, everything, wrong)
            if changed and (changed := await changed_by(house, route, everything, wrong)):
                wrong.append((route.operation_id, "rows changed", changed))
            unusual = () if route.operation_id in HASHED else (sent for sent in everything if not sent.is_wrong)
            for sent in unusual:
                response = await send(house, route, sent)
                if response.status_code >= 500:
                    wrong.append((route.operation_id, sent.what, response.status_code, response.text[:200]))
            tried.update(sent.is_wrong for sent in everything)
        assert not wrong, "\n".join(map(str, wrong))
        assert tried[True] > 1_000, tried
