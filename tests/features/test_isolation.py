"""Interface 4, decisions 1.8: no organization sees or changes anything of another, by any route.

Two organizations have the same devices, and the same of everything. One asks each route for what the other has, by
each name that the request may have, one at a time. It gets what it gets for a name that was never given; nothing of
the other is in it, and every row of the other stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from svc.http.route import CONSOLE_ROOT, Route
from tests.features.house import BY_ID, OFF, SERVED, Asked, House, Names, ask
from tests.features.rows import rows
from tests.spec.subscriber import Names as Hosts
from tests.support.live import Live, live_service
from tests.support.receivers import OK, Receivers, always

OF_NOBODY = {
    "request_id": "019b76da-a800-7000-8000-000000000000",
    "identified": "019b76da-a800-7000-8000-000000000000",
    "event_id": "019b76da-a800-7000-8000-000000000000",
    "account_id": "nobody",
    "tag": "of nobody",
    "address": "198.51.100.77",
}
"""What could be the name of something, and is not. Other names are ids of twenty letters and digits behind a prefix."""
NAMES_NOTHING = {"platform", "revision", "deferred_token", "email", "invitation", "code", "password"}
"""Of what a request names: what is no organization's, or proves by itself who may use it."""
OF_QUERY = {
    "visitor": "visitor_id",
    "account": "account_id",
    "account_id": "account_id",
    "tag": "tag",
    "ip_address": "address",
    "rule": "rule_id",
    "rule_id": "rule_id",
    "endpoint_id": "webhook_id",
    "assignee": "member_id",
    "actor": "member_id",
    "q": "account_id",
    "value": "account_id",
}
"""Parameter of a query -> what it names."""
NO_SUBJECT = frozenset(
    ("level", "country", "signal", "kind", "action", "asn", "decision", "label", "from", "to", "page", "limit", "order",
     "environment", "min_visitors", "min_accounts", "sort", "network", "state", "step", "format", "before", "shadow",
     "group", "screen")
)  # fmt: skip
CURSORS = ("cursor", "after")
OF_EVERYBODY = {"getVerdictKeys": "public keys, for whoever holds a verdict"}
"""Routes that show something of an organization to all."""
OWN_WORDS = {"identify", "addListEntries", "createConsoleView", "proposeRules"}
"""Routes to which every name is a word of the caller's own, and makes something new."""
UNENDING = {"streamEvents"}
SESSIONS = {
    "signOut",
    "changePassword",
    "offerTotp",
    "confirmTotp",
    "replaceRecoveryCodes",
    "signIn",
    "acceptInvitation",
}
"""What changes how somebody is signed in, and names nothing."""


def nobody(name: str, own: str) -> str:
    """A value for this name, in the form of one's own, that was never given."""
    return OF_NOBODY.get(name) or own[:-20] + "0" * 20


def questions(route: Route, under: str, own: Names, others: Names) -> list[tuple[str, Asked, Asked]]:
    """For each name that a request may have: the request with the other's and with nobody's."""
    names = Names(own)
    ask(route, names, under)
    found: list[tuple[str, Asked, Asked]] = []
    for name in sorted(names.used - NAMES_NOTHING):
        named = (others[name], nobody(name, own[name]))
        of_other, of_nobody = (Names(own | {name: value}) for value in named)
        found.append((name, ask(route, of_other, under), ask(route, of_nobody, under)))
    for parameter in msgspec.structs.fields(route.query) if route.query is not None else ():
        subject = OF_QUERY.get(parameter.encode_name)
        if subject is None:
            known = parameter.encode_name in (*NO_SUBJECT, *CURSORS) or route.operation_id in OFF
            assert known, f"{route.operation_id}: say whether {parameter.encode_name} names something"
            continue
        named = (others[subject], nobody(subject, own[subject]))
        of_other, of_nobody = (ask(route, Names(own), under, **{parameter.encode_name: value}) for value in named)
        found.append((parameter.encode_name, of_other, of_nobody))
    return found


def said(response: httpx.Response, asked: Asked) -> tuple[int, bytes]:
    """Status and body, without the request id and without what the request itself says."""
    body = response.content.replace(response.headers["x-request-id"].encode(), b"")
    for text in sorted({*asked.path.split("/"), *asked.query.values(), *words(asked.body)}, key=len, reverse=True):
        body = body.replace(text.encode(), b"") if len(text) > 5 else body
    return response.status_code, body


def words(body: Any) -> Iterator[str]:
    """Every text of a body."""
    if isinstance(body, str):
        yield body
    for inner in body.values() if isinstance(body, dict) else body if isinstance(body, list) else ():
        yield from words(inner)


async def two_houses(live: Live) -> tuple[House, House]:
    """Of the same visitors."""
    other = live.new_organization()
    houses = House(live, live.organization, "annaxq"), House(live, other, "bertzj", "81.2.69.17")
    for house in houses:
        await house.fill()
    return houses


@pytest.mark.slow(6)
async def test_nobody_sees_or_changes_anything_of_another_organization(directory: Path):
    async with live_service(directory, transport=Receivers(always(OK, 0)), resolver=Hosts()) as live:
        first, second = await two_houses(live)
        shown = {*first.names.values()} - {*second.names.values()} | {first.mark}
        before = rows(live.found.store.engine, first.organization.number)
        refused, wrong = 0, list[Any]()
        for route, under in sorted(SERVED, key=lambda served: served[0].operation_id in OWN_WORDS):
            if route.operation_id in UNENDING | SESSIONS | OFF.keys():
                continue
            variables = {*re.findall(r"{(\w+)}", route.path)}
            if variables <= NAMES_NOTHING and route.query is None and not route.body:
                answer = await second.send(route, ask(route, Names(second.names), under))
                assert not [text for text in shown if text.encode() in answer.content], route.operation_id
            for name, foreign, unknown in questions(route, under, second.names, first.names):
                where = f"{route.method} {under}{route.path} with another's {name}"
                if route.operation_id in OF_EVERYBODY:
                    continue
                nothing = said(await second.send(route, unknown), unknown)
                answer = await second.send(route, foreign)
                something = said(answer, foreign)
                if route.operation_id not in OWN_WORDS and something != nothing:
                    wrong.append((where, something, nothing))
                assert not [text for text in shown if text.encode() in something[1]], where
                refused += answer.status_code in (403, 404)
        assert rows(live.found.store.engine, first.organization.number) == before
        assert not wrong, "\n".join(map(str, wrong))
        assert refused > 60


@pytest.mark.slow(2)
async def test_a_cursor_of_another_organization_leads_nowhere(directory: Path):
    async with live_service(directory, transport=Receivers(always(OK, 0)), resolver=Hosts()) as live:
        first, second = await two_houses(live)
        tried = 0
        for route, under in SERVED:
            fields = [field.encode_name for field in msgspec.structs.fields(route.query)] if route.query else []
            if "cursor" not in fields or (under.startswith(CONSOLE_ROOT) and len(route.under) > 1):
                continue
            begun = await first.send(route, ask(route, Names(first.names), under, limit="1"))
            cursor = begun.json().get("next_cursor")
            assert cursor, f"{route.operation_id}: a filled organization has two of everything: {begun.text}"
            answer = await second.send(route, ask(route, Names(second.names), under, limit="1", cursor=cursor))
            assert answer.status_code == 422, (route.operation_id, answer.text)
            assert answer.json()["error"]["details"][0]["issue"] == "invalid_cursor"
            tried += 1
        feed = BY_ID["listEvents"]
        begun = await first.send(feed, ask(feed, Names(first.names), order="oldest"))
        answer = await second.send(
            feed, ask(feed, Names(second.names), order="oldest", after=begun.json()["next_cursor"])
        )
        assert answer.status_code == 422
        assert tried > 8
