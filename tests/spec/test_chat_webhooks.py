"""Decisions 16.2: endpoints of a chat format get one readable message, unsigned, with a link to the console."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
import pytest

from svc.cli.serve.doctor import chat_links, links_of
from svc.cli.serve.health_checks import Examined
from svc.features.webhooks.content.chat import DESCRIBED
from svc.features.webhooks.content.envelope import attempt_request, seal
from svc.features.webhooks.content.payloads import BillingStatusChanged, DailySettled, RefusedIdentification
from svc.features.webhooks.jobs.endpoints import queue_sample
from svc.features.webhooks.records import EVENT_TYPES, Attempted, Endpoint
from svc.features.webhooks.tables import WEBHOOK_EVENTS
from svc.kernel.config import Config, ConfigError
from svc.kernel.config_loading import load
from tests.spec.automation import Automation
from tests.spec.commands import Run
from tests.spec.responses import assert_error, assert_invalid, nothing_stored
from tests.spec.subscriber import COMPLETED, HOOKS, URL, Subscriber, subscribing
from tests.spec.test_webhook_events import SUSPICIOUS, suspect_everything
from tests.support.chats import CHATS, FakeChat, ShownMessage
from tests.support.receivers import Post
from tests.support.serving_postgresql import at_rest

PUBLIC = "https://svc.example/behind"
HOSTILE = "<!channel> *a* _b_ [c](https://evil.example) @everyone `d` |e| \\f & #g >h"


class Room(NamedTuple):
    """A chat that is told of everything, and the customer who told it to."""

    hooks: Subscriber
    chat: FakeChat
    endpoint: str

    async def after(self, **sent: Any) -> ShownMessage:
        """What an identification leads to."""
        signals = sent.pop("signals", None)
        assert (await self.hooks.live.identify(self.hooks.production, signals, **sent)).status_code == 200
        await at_rest()
        return self.message()

    def message(self) -> ShownMessage:
        assert self.chat.faults == []
        return self.chat.shown.pop()


@pytest.fixture(params=["slack", "discord", "teams"])
async def room(directory: Path, request: pytest.FixtureRequest) -> AsyncGenerator[Room]:
    async with subscribing(directory, public_url=PUBLIC + "/") as hooks:
        chat = CHATS[request.param]()
        hooks.receivers.script = chat
        answer = await hooks.post(format=request.param, events=EVENT_TYPES)
        assert answer.status_code == 201, answer.text
        yield Room(hooks, chat, answer.json()["endpoint"]["id"])


async def test_an_identification_is_one_readable_message_with_a_link_to_its_event(room: Room):
    answer = await room.hooks.live.identify(room.hooks.production, account_id="user-7", action="log_in", tag="order 1")
    await at_rest()
    said = answer.json()
    message = room.message()
    assert message.lines[0] == "New visitor identified"
    assert message.links == [f"{PUBLIC}/console#/events/{said['request_id']}"]
    assert f"Visitor: {said['visitor_id']}" in message.lines
    assert f"Score: {said['suspect_score']} ({said['suspect_level']})" in message.lines
    assert {"Account: user-7", "Action: log_in", "Tag: order 1", "Environment: production"} <= set(message.lines)
    (delivery,) = await room.hooks.deliveries()
    assert (delivery["status"], delivery["event"], delivery["attempt"]) == ("delivered", COMPLETED, 1)
    assert (await room.hooks.shown(room.endpoint))["delivered_24h"] == 1


async def test_what_visitors_send_is_shown_as_it_is_and_formats_nothing(room: Room):
    message = await room.after(account_id=HOSTILE, tag=HOSTILE)
    assert f"Account: {HOSTILE}" in message.lines
    assert f"Tag: {HOSTILE}" in message.lines
    assert len(message.links) == 1


@pytest.mark.any_store
async def test_the_longest_texts_fit_into_a_message_in_one_line_each(room: Room):
    message = await room.after(account_id="*" * 256, tag="\u202e\n\t\U0001f600" * 256, action="a" * 64)
    assert "Account: " + "*" * 199 + "…" in message.lines
    (tag,) = [line for line in message.lines if line.startswith("Tag: ")]
    assert len(tag) == len("Tag: ") + 200
    assert "\u202e" not in tag


async def test_a_message_is_unsigned_and_there_is_no_secret(room: Room):
    """Neither shown nor rotated."""
    answer = await room.hooks.post(format="slack", events=["webhook.test"])
    made = answer.json()
    assert (made["secret"], made["standard_secret"], made["endpoint"]["secret_last4"]) == ("", "", "")
    assert made["endpoint"]["format"] == "slack"
    shown = await room.hooks.shown(room.endpoint)
    assert (shown["secret_last4"], "previous_secret_expires_at" in shown) == ("", False)
    with nothing_stored(room.hooks.live):
        assert_error(await room.hooks.do(room.endpoint, "rotate-secret"), 409, "webhook_unsigned")


async def test_a_test_and_a_redelivery_are_messages_too(room: Room):
    await room.hooks.do(room.endpoint, "test")
    message = room.message()
    assert message.lines == ["This is a test delivery", f"Endpoint: {room.endpoint}"]
    assert message.links == [f"{PUBLIC}/console#/webhooks"]
    first = await room.after()
    (delivery,) = [each for each in await room.hooks.deliveries() if each["event"] == COMPLETED]
    answer = await room.hooks.do(room.endpoint, "redeliver", {"event_id": delivery["event_id"]})
    assert answer.status_code == 202
    assert room.message() == first


async def test_a_chat_that_refuses_is_tried_again_and_one_that_is_gone_is_failing(room: Room):
    """A `429` with Retry-After as of a busy chat; `410` as of an archived channel."""
    room.chat.answers = [Attempted(429, "http_status", 20, 7), Attempted(410, "http_status", 20, None)]
    assert (await room.hooks.live.identify(room.hooks.production)).status_code == 200
    await at_rest()
    assert 7 <= room.hooks.due_in_s() <= 10
    await room.hooks.wait(seconds=10)
    assert (await room.hooks.shown(room.endpoint))["status"] == "failing"
    await room.after()
    assert (await room.hooks.shown(room.endpoint))["status"] == "active"


SAMPLES: dict[str, tuple[msgspec.Struct, list[str]]] = {
    "identification.refused": (
        RefusedIdentification(
            request_id="019b8d2f-3c40-7a51-9d0e-6f1b2c3d4e5f",
            occurred_at="2026-01-05T10:00:00.000Z",
            code="unauthorized",
            status=401,
            environment="production",
            key_id="key_4fzZ0aQbX7Lr2WmKc9Tn",
            origin="https://other.example",
            count=3,
        ),
        ["Identifications are refused", "Error: 401 unauthorized", "Count: 3", "Site: https://other.example"],
    ),
    "billing.status_changed": (
        BillingStatusChanged(
            previous_status="active", current_status="blocked", accepting_traffic=False, blocked_reason="operator"
        ),
        ["The billing status has changed", "Before: active", "Now: blocked", "Traffic: refused (402)"],
    ),
    "usage.daily_settled": (
        DailySettled(
            date="2026-01-05",
            identifications=1250,
            identifiable=1160,
            unidentifiable=40,
            free=50,
            amount_micros=3_500_000,
            balance_micros=-1_234_003_500,
        ),
        ["A day was settled", "Day: 2026-01-05", "Identifications: 1,250", "Charge: $3.50", "Balance: -$1,234.0035"],
    ),
}


@pytest.mark.parametrize("event_type", SAMPLES)
async def test_other_events_are_readable(room: Room, event_type: Any):
    data, expected = SAMPLES[event_type]
    live, number = room.hooks.live, room.hooks.organization.number
    job = partial(queue_sample, number=number, endpoint_id=room.endpoint, event_type=event_type, data=data)
    event_id = live.world.request_id(live.clock.now_ms)
    queued: Any = live.found.store.write_now([partial(job, event_id=event_id, now_ms=live.clock.now_ms)])[0]
    live.service.outbox.wake((queued.queue,))
    await at_rest()
    message = room.message()
    assert set(expected) <= set(message.lines)
    assert message.lines[0] == expected[0]
    assert len(message.links) == 1


async def test_a_review_is_readable_when_it_is_opened_and_closed(room: Room):
    """By hand here; its event is what the link shows."""
    hooks = room.hooks
    answer = (await hooks.live.identify(hooks.production, account_id="user-7")).json()
    await at_rest()
    room.message()
    opened = await hooks("POST", "/reviews", {"request_id": answer["request_id"]})
    assert opened.status_code == 201, opened.text
    await at_rest()
    message = room.message()
    assert message.lines[0] == "A review was opened"
    assert {"Account: user-7", f"Visitor: {answer['visitor_id']}"} <= set(message.lines)
    assert message.links == [f"{PUBLIC}/console#/events/{answer['request_id']}"]
    body = {"label": "fraud", "label_reason": "chargeback", "note": HOSTILE}
    closed = await hooks("POST", f"/reviews/{opened.json()['review']['id']}/close", body)
    assert closed.status_code == 200, closed.text
    await at_rest()
    message = room.message()
    assert message.lines[:3] == ["A review was closed", "Label: fraud (chargeback)", f"Note: {HOSTILE}"]


async def test_what_is_erased_from_the_queue_is_in_no_message(room: Room):
    """The stored envelope is what a message is made of, when it is sent."""
    room.chat.answers = [Attempted(503, "http_status", 20, None)]
    assert (await room.hooks.live.identify(room.hooks.production, account_id="user-7")).status_code == 200
    await at_rest()
    admin = type(room.hooks)(room.hooks.live, room.hooks.receivers, room.hooks.names)
    admin.key, admin.secret = room.hooks.live.issue("management", role="admin")
    assert (await admin("DELETE", "/accounts/user-7")).status_code == 204
    await room.hooks.wait(seconds=60)
    message = room.message()
    assert message.lines[0] == "New visitor identified"
    assert not any("user-7" in line for line in message.lines)


async def test_without_a_public_url_a_message_has_no_link(hooks: Subscriber):
    for name, make in CHATS.items():
        hooks.receivers.script = chat = make()
        endpoint = (await hooks.post(format=name, events=["webhook.test"])).json()["endpoint"]["id"]
        await hooks.do(endpoint, "test")
        assert (chat.faults, [message.links for message in chat.shown]) == ([], [[]])


@pytest.fixture
async def made(directory: Path) -> tuple[Path, str]:
    """A directory with two endpoints, and its organization."""
    async with subscribing(directory / "data") as hooks:
        await hooks.create()
        await hooks.post(format="slack", filter="score >= 60", url=f"{URL}/T0/secret")
        return directory / "data", hooks.organization.id


async def test_a_command_lists_endpoints_without_the_path_of_their_address(run: Run, made: tuple[Path, str]):
    directory, organization = made
    plain, chat = run("webhook", "list", organization, "--data", directory, "--json").json["endpoints"]
    assert (plain["format"], plain["filter"], plain["status"], plain["environment"]) == ("json", None, "active", "live")
    assert (chat["format"], chat["filter"], chat["events"]) == ("slack", "score >= 60", [COMPLETED])
    shown = run("webhook", "list", organization, "--data", directory).out
    assert "score >= 60" in shown
    assert "secret" not in shown + chat["url"]
    run("webhook", "list", "org_nobody", "--data", directory).assert_refused("org_nobody")


async def test_doctor_says_that_messages_have_no_link(hooks: Subscriber, tmp_path: Path):
    assert links_of(hooks.live.found.store).status == "ok"
    await hooks.create()
    assert links_of(hooks.live.found.store).status == "ok"
    await hooks.post(format="teams")
    found = links_of(hooks.live.found.store)
    assert (found.status, found.says) == (
        "warning",
        "the messages of 1 chat webhook have no link to the console",
    )
    set_to = Examined(tmp_path, None, Config(public_url=PUBLIC), None, hooks.live.world)
    assert chat_links(set_to).says == f"messages of chat webhooks link to {PUBLIC}/console"


@pytest.mark.any_store
@pytest.mark.parametrize("address", ["svc.example", "ftp://svc.example", "https://svc.example/?a", "https://a b", ""])
def test_a_public_url_that_is_no_address_is_refused_by_name(address: str):
    with pytest.raises(ConfigError, match=r"^SVC_PUBLIC_URL: "):
        load(None, {"SVC_PUBLIC_URL": address})


async def test_a_format_can_be_changed_and_what_waits_goes_out_in_the_new_one(hooks: Subscriber):
    endpoint, secret = await hooks.create()
    hooks.receivers.respond_with(Attempted(503, "http_status", 20, None))
    await hooks.happen()
    assert (await hooks.patch(endpoint, format="discord")).json()["secret_last4"] == ""
    hooks.receivers.script = chat = CHATS["discord"]()
    await hooks.wait(seconds=10)
    assert (chat.faults, len(chat.shown)) == ([], 1)
    changed = (await hooks.patch(endpoint, format="json")).json()
    assert (changed["format"], changed["secret_last4"]) == ("json", secret[-4:])
    hooks.receivers.respond_with(Attempted(200, None, 20, None))
    hooks.receivers.take()
    (post,) = await hooks.happen()
    assert post.signed_with(secret)


@pytest.mark.any_store
async def test_unknown_formats_are_refused(hooks: Subscriber):
    with nothing_stored(hooks.live):
        assert_invalid(await hooks.post(format="matrix"), "format", "invalid_value")
    assert (await hooks("GET", HOOKS)).json() == {"endpoints": []}


@pytest.mark.any_store
def test_every_type_has_words_and_an_unknown_one_is_shown_by_its_fields():
    assert set(EVENT_TYPES) <= DESCRIBED
    assert {"review.opened", "review.closed"} <= DESCRIBED


@pytest.mark.any_store
@pytest.mark.parametrize("chat", CHATS)
@pytest.mark.parametrize(
    ("event_type", "data", "lines", "place"),
    [
        ("later.version", {"some_id": "x", "parts": [1]}, ["later.version", "Some id: x"], "webhooks"),
        ("review.opened", {"id": "rev_1"}, ["A review was opened", "Review: rev_1"], "events/"),
        (COMPLETED, {}, ["Visitor identified", "Score: not scored"], "events/"),
    ],
)
def test_fields_that_are_not_known_are_no_fault(chat: Any, event_type: Any, data: Any, lines: list[str], place: str):
    """Of an event that another version has stored."""
    endpoint = Endpoint(
        id="whk_1",
        url=URL,
        description="",
        environment="live",
        events=(COMPLETED,),
        created_at_ms=0,
        secret_last4="",
        format=chat,
    )
    event = seal(UUID(int=0), event_type, "live", "org_1", data, 0)
    sent = attempt_request(endpoint, bytes(16), event, b"", PUBLIC, 0)
    reader = CHATS[chat]()
    _, answer = reader(Post(0, URL, sent.body, sent.headers))
    assert answer.error is None, reader.faults
    (message,) = reader.shown
    assert set(lines) <= set(message.lines)
    assert message.links == [f"{PUBLIC}/console#/{place}"]


async def test_the_stored_envelope_is_the_same_for_every_format(hooks: Subscriber):
    """One event is stored, however it is shown."""
    for name in ("json", *CHATS):
        await hooks.post(format=name)
    await hooks.happen()
    assert hooks.live.count(WEBHOOK_EVENTS) == 1
    assert len(await hooks.deliveries()) == 4


ONE_IDENTIFICATION: list[str] = [COMPLETED, "visitor.suspect", "review.opened"]
REVIEWED = [{"name": "Of note", "condition": "true", "action": "review"}]


async def reviewing(hooks: Subscriber) -> None:
    """From now on each identification is suspicious, and is for review."""
    suspect_everything(hooks.live)
    answer = await Automation(hooks.live)("PUT", "/rules", {"revision": 0, "rules": REVIEWED})
    assert answer.status_code == 200, answer.text


@pytest.mark.parametrize(
    ("events", "title"),
    [
        (ONE_IDENTIFICATION, "Suspicious visitor, for review"),
        ([COMPLETED, "visitor.suspect"], "Suspicious visitor, for review"),
        (["visitor.suspect", "review.opened"], "Suspicious visitor, for review"),
        ([COMPLETED, "review.opened"], "New visitor identified, for review"),
        (["review.opened"], "A review was opened"),
    ],
)
@pytest.mark.served(public_url=PUBLIC)
async def test_a_chat_gets_one_message_for_an_identification_whatever_it_causes(
    hooks: Subscriber, events: list[str], title: str
):
    await reviewing(hooks)
    hooks.receivers.script = chat = CHATS["slack"]()
    assert (await hooks.post(format="slack", events=events)).status_code == 201
    answer = (await hooks.live.identify(hooks.production, SUSPICIOUS, account_id="user-7")).json()
    await at_rest()
    (message,) = chat.shown
    assert (message.lines[0], chat.faults) == (title, [])
    assert {"Account: user-7", f"Visitor: {answer['visitor_id']}"} <= set(message.lines)
    assert message.links == [f"{PUBLIC}/console#/events/{answer['request_id']}"]
    (delivery,) = await hooks.deliveries()
    assert (delivery["status"], delivery["attempt"]) == ("delivered", 1)


async def test_a_program_beside_the_chat_gets_every_event(hooks: Subscriber):
    await reviewing(hooks)
    program, _ = await hooks.create(events=ONE_IDENTIFICATION)
    chat = (await hooks.post(format="teams", events=ONE_IDENTIFICATION)).json()["endpoint"]["id"]
    await hooks.happen()
    sent = [(each["endpoint_id"], each["event"]) for each in await hooks.deliveries()]
    assert sorted(event for endpoint, event in sent if endpoint == program) == sorted(ONE_IDENTIFICATION)
    assert [event for endpoint, event in sent if endpoint == chat] == ["visitor.suspect"]


async def test_the_one_message_is_tried_again_and_no_other_takes_its_place(hooks: Subscriber):
    await reviewing(hooks)
    hooks.receivers.script = chat = CHATS["discord"]()
    await hooks.post(format="discord", events=ONE_IDENTIFICATION)
    chat.answers = [Attempted(503, "http_status", 20, None)]
    await hooks.happen()
    assert chat.shown == []
    await hooks.wait(seconds=60)
    assert [message.lines[0] for message in chat.shown] == ["Suspicious visitor, for review"]
    await hooks.wait(hours=1)
    assert len(chat.shown) == 1
    attempts = [(each["event"], each["attempt"], each["status"]) for each in await hooks.deliveries()]
    assert sorted(attempts) == [("visitor.suspect", 1, "retrying"), ("visitor.suspect", 2, "delivered")]


async def test_what_happens_later_to_a_review_is_a_message_of_its_own(hooks: Subscriber):
    """And so is a review that a person opens: the identification was told before."""
    hooks.receivers.script = chat = CHATS["slack"]()
    await hooks.post(format="slack", events=[*ONE_IDENTIFICATION, "review.closed"])
    answer = (await hooks.live.identify(hooks.production, account_id="user-7")).json()
    await at_rest()
    opened = await hooks("POST", "/reviews", {"request_id": answer["request_id"]})
    await at_rest()
    await hooks("POST", f"/reviews/{opened.json()['review']['id']}/close", {"label": "legitimate"})
    await at_rest()
    titles = [message.lines[0] for message in chat.shown]
    assert titles == ["New visitor identified", "A review was opened", "A review was closed"]


async def test_a_filter_that_holds_the_identification_back_holds_its_review_back(hooks: Subscriber):
    await reviewing(hooks)
    hooks.receivers.script = chat = CHATS["slack"]()
    await hooks.post(format="slack", events=ONE_IDENTIFICATION, filter='present("account.id")')
    await hooks.happen()
    assert chat.shown == []
    assert (await hooks.live.identify(hooks.production, SUSPICIOUS, account_id="user-7")).status_code == 200
    await at_rest()
    assert [message.lines[0] for message in chat.shown] == ["Suspicious visitor, for review"]
