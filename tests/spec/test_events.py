"""Interface 2.3 and 4.2, decisions 7.1 to 7.3: events read back by the customer's server."""

from __future__ import annotations

import json
from contextlib import closing
from typing import Any
from uuid import UUID

import httpx
import msgspec
import pytest

from svc.features.weights.jobs import save_weights
from svc.identify.records import RETENTION_MS, Document
from svc.identify.scoring.score import WeightsChange, default_weights
from svc.identify.tables import DOCUMENTS
from svc.identify.tables import EVENTS as EVENT_ROWS
from svc.kernel.store.snapshot import Transaction
from svc.kernel.tenants import queries as lookups
from svc.kernel.values.timestamps import timestamp
from tests.spec.responses import (
    DRIVEN,
    HEADLESS,
    TIMESTAMP,
    TOO_LITTLE,
    assert_error,
    assert_invalid,
    forward,
    nothing_stored,
    post,
    visit,
)
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, report, succeeded

EVENTS = "/api/v1/events"
HOUR_MS = 3_600_000
NOBODY = "0" * 20
UNKNOWN = "019b76da-a800-7000-8000-000000000000"


async def get(live: Live, key: str, path: str = "", **query: Any) -> httpx.Response:
    """A read with a secret key; `from_` is `from`."""
    parameters = {name.rstrip("_"): str(value) for name, value in query.items()}
    return await live.client.get(EVENTS + path, params=parameters, headers={"x-api-key": key})


async def listed(live: Live, key: str, **query: Any) -> list[str]:
    """The request ids of a page."""
    return [row["request_id"] for row in succeeded(await get(live, key, **query))["rows"]]


def secret_key(live: Live, environment: str = "development", **fields: Any) -> str:
    _, secret = live.issue("secret", environment, **fields)
    return secret


async def visits(
    live: Live, count: int, *, apart_ms: int = 1000, environment: str = "development", **given: Any
) -> list[str]:
    """Request ids of so many identifications, oldest first."""
    _, public = live.issue(environment=environment)
    made: list[str] = []
    for number in range(count):
        if number:
            live.clock.now_ms += apart_ms
        made.append((await visit(live, public, **given)).json()["request_id"])
    return made


# A row


async def test_a_row_has_the_values_of_its_identify_response_and_request(live: Live, public: str):
    """Interface 2.3: every field that applies."""
    answer = (await visit(live, public, tag="order 1", sdk={"platform": "web", "version": "0.1.0"})).json()
    page = succeeded(await get(live, secret_key(live, "production")))
    assert {name: page[name] for name in ("page", "page_size")} == {"page": 1, "page_size": 10}
    (row,) = page["rows"]
    assert TIMESTAMP.fullmatch(row.pop("occurred_at"))
    assert set(row.pop("velocity")) == {"visitor", "address"}
    assert row.pop("agent_version").startswith("137")
    for name in ("country_code", "country_name", "asn", "asn_name"):
        assert isinstance(row.pop(name, ""), str)
    assert row == {
        "request_id": answer["request_id"],
        "visitor_id": answer["visitor_id"],
        "state": "enriched",
        "environment": "production",
        "platform": "web",
        "sdk_platform": "web",
        "sdk_version": "0.1.0",
        "origin": ORIGIN,
        "tag": "order 1",
        "ip_address": PUBLIC_ADDRESS,
        "agent": "Chrome",
        "os": "Windows",
        "device_kind": "desktop",
        "visitor_kind": "human",
        "suspect_score": 0,
        "suspect_level": "low",
        "triggers": [],
        "signals": [],
        "visitor_confidence": 0,
        "proven": False,
        "visitor_is_new": True,
        "identifiable": True,
        "has_document": True,
    }


VERDICT = ("visitor_id", "visitor_is_new", "identifiable", "visitor_confidence", "proven", "state", "reason")
"""What identify answers of the visitor and the network."""


async def test_both_reads_have_the_visitor_fields_of_identify(live: Live, server_key: str, key: str):
    """Decisions 7.1: a new visitor, a known one, a report that identifies nobody; `reason` only where there is one."""
    answers = [
        (await visit(live, key, signals, headers=headers)).json()
        for signals, headers in (
            (report(), {}),
            (report(), {}),
            (TOO_LITTLE, {}),
            (report(2), {"x-forwarded-for": "10.0.0.1"}),
        )
    ]
    assert [(answer["visitor_confidence"], answer["identifiable"]) for answer in answers] == [
        (0, True),
        (100, True),
        (0, False),
        (0, True),
    ]
    rows = {row["request_id"]: row for row in (await get(live, server_key)).json()["rows"]}
    for answer in answers:
        single = (await get(live, server_key, f"/{answer['request_id']}")).json()
        said = {name: answer.get(name) for name in VERDICT}
        assert {name: single.get(name) for name in VERDICT} == said
        assert {name: rows[answer["request_id"]].get(name) for name in VERDICT} == said
    assert "reason" not in rows[answers[0]["request_id"]]
    assert rows[answers[3]["request_id"]]["reason"] == "private_address"


async def test_the_signals_of_an_event_are_the_triggers_of_identify(live: Live, key: str):
    """Decisions 7.1: names where `triggers` has groups, heaviest first, ties by name; empty when none fired."""
    headers = {**HEADLESS, "x-forwarded-for": "185.220.101.1"}
    answer = (await visit(live, key, report(**DRIVEN), headers=headers)).json()
    row = (await get(live, secret_key(live))).json()["rows"][0]
    assert row["signals"] == answer["triggers"]
    assert len(row["signals"]) > len(row["triggers"])
    assert row["signals"] == sorted(row["signals"], key=lambda fired: (-fired["weight"], fired["signal"]))
    assert {fired["group"] for fired in row["signals"]} == {group["signal"] for group in row["triggers"]}


async def test_inapplicable_fields_are_omitted_from_a_row_and_a_missing_score_is_null(live: Live, server_key: str):
    """Interface 2.3: no origin, tag, network or agent; `suspect_score: null`, no level, `triggers` there and empty."""
    assert (await forward(live, server_key, {"x-svc-visitor-ip": "10.0.0.1"}, signals={"q": 1})).status_code == 200
    ((row),) = (await get(live, server_key)).json()["rows"]
    assert (row["suspect_score"], row["triggers"], row["state"], row["sdk_version"]) == (
        None,
        [],
        "unavailable",
        "unknown",
    )
    absent = {"origin", "tag", "country_code", "asn", "anonymity_network", "agent", "os", "suspect_level", "document"}
    assert absent.isdisjoint(row)
    assert [name for name, value in row.items() if value is None] == ["suspect_score"]


async def test_the_triggers_of_a_row_are_groups_heaviest_first(live: Live, key: str):
    """Interface 2.3, decisions 3.8."""
    answer = (await visit(live, key, report(**DRIVEN), headers={**HEADLESS, "x-forwarded-for": "185.220.101.1"})).json()
    ((row),) = (await get(live, secret_key(live))).json()["rows"]
    groups = {trigger["group"] for trigger in answer["triggers"]}
    assert {"bot", "tor"} <= groups
    assert {trigger["signal"] for trigger in row["triggers"]} == groups
    assert len(row["triggers"]) == len(groups)
    weights = [trigger["weight"] for trigger in row["triggers"]]
    assert weights == sorted(weights, reverse=True)
    assert sum(weights) == row["suspect_score"] == answer["suspect_score"]
    assert (row["anonymity_network"], row["visitor_kind"]) == ("tor", "automation")


async def test_an_event_is_readable_in_the_same_millisecond_as_its_response(live: Live, server_key: str):
    """Decisions 7.2."""
    (made,) = await visits(live, 1)
    assert await listed(live, server_key) == [made]
    assert (await get(live, server_key, f"/{made}")).status_code == 200


async def test_an_event_is_listed_by_its_arrival_even_when_the_clock_was_set_back(live: Live, key: str):
    """Interface 2.3, 4.2: request ids never go backwards (decisions 1.1), the time of arrival does."""
    secret = secret_key(live)
    before = (await visit(live, key)).json()["request_id"]
    live.clock.now_ms -= HOUR_MS
    after = (await visit(live, key)).json()["request_id"]
    assert after > before
    assert await listed(live, secret, to=timestamp(live.clock.now_ms + 1)) == [after]
    assert await listed(live, secret) == [before, after], "as what another node has stored, by a clock that is ahead"
    live.clock.now_ms += HOUR_MS
    assert await listed(live, secret) == [before, after]


# Order, pages, windows


@pytest.mark.slow(0.2)
async def test_events_come_newest_first_in_pages_of_ten_by_default(live: Live, server_key: str):
    """Interface 4.2."""
    made = (await visits(live, 23))[::-1]
    assert await listed(live, server_key) == made[:10]
    assert await listed(live, server_key, page=3) == made[20:]
    assert await listed(live, server_key, page=4) == []
    assert await listed(live, server_key, page=2, limit=5) == made[5:10]
    assert await listed(live, server_key, limit=200) == made
    answer = (await get(live, server_key, page=2, limit=20)).json()
    assert (answer["page"], answer["page_size"], len(answer["rows"])) == (2, 20, 3)


async def test_events_of_one_millisecond_come_newest_first_too(live: Live, server_key: str):
    made = await visits(live, 5, apart_ms=0)
    assert await listed(live, server_key) == made[::-1]
    assert await listed(live, server_key, page=2, limit=2) == made[::-1][2:4]


async def test_a_window_includes_its_start_and_excludes_its_end(live: Live, server_key: str):
    """Interface 4.2: inclusive, exclusive; any offset (decisions 1.2)."""
    first_ms = live.clock.now_ms
    made = await visits(live, 3)
    first, second, third = (timestamp(first_ms + 1000 * number) for number in range(3))
    assert await listed(live, server_key, from_=first, to=third) == [made[1], made[0]]
    assert await listed(live, server_key, from_=second) == [made[2], made[1]]
    assert await listed(live, server_key, to=second) == [made[0]]
    assert await listed(live, server_key, from_="2026-01-01T05:30:00.000001+05:30", to=third) == [made[1]]
    unescaped = f"{EVENTS}?from=2026-01-01T05:30:00+05:30&to=2026-01-01T00:00:01Z"
    response = await live.client.get(unescaped, headers={"x-api-key": server_key})
    assert [row["request_id"] for row in response.json()["rows"]] == [made[0]]


async def test_the_window_is_the_last_24_hours_by_default(live: Live, server_key: str):
    """Interface 4.2; decisions 7.1: the start is 24 hours before the end."""
    made = await visits(live, 3, apart_ms=24 * HOUR_MS)
    assert await listed(live, server_key) == [made[2], made[1]]
    assert await listed(live, server_key, to=timestamp(live.clock.now_ms)) == [made[1]]
    assert await listed(live, server_key, to=timestamp(live.clock.now_ms - 24 * HOUR_MS)) == [made[0]]
    assert await listed(live, server_key, from_=timestamp(live.clock.now_ms - 48 * HOUR_MS)) == made[::-1]


async def test_an_event_is_readable_for_30_days_and_then_does_not_exist(live: Live, server_key: str):
    """Interface 2.3, 8: gone by the clock, deleted yet or not."""
    (made,) = await visits(live, 1)
    live.clock.now_ms += RETENTION_MS
    oldest = timestamp(live.clock.now_ms - RETENTION_MS)
    assert await listed(live, server_key, from_=oldest) == [made]
    soon_after = timestamp(live.clock.now_ms - RETENTION_MS + HOUR_MS)
    assert await listed(live, server_key, to=soon_after) == [made], (
        "the default start is not before that (decisions 7.1)"
    )
    assert (await get(live, server_key, f"/{made}")).status_code == 200
    live.clock.now_ms += 1
    assert_error(await get(live, server_key, from_=oldest), 422, "invalid_window", ("from", "out_of_range", "query"))
    assert await listed(live, server_key, from_=timestamp(live.clock.now_ms - RETENTION_MS)) == []
    assert_error(await get(live, server_key, f"/{made}"), 404, "event_not_found")
    assert len(live.events()) == 1


# Filters


async def test_the_visitor_filter_is_exact(live: Live, server_key: str, key: str):
    """Interface 4.2."""
    answers = [(await visit(live, key, report(device, timezone=zone))).json() for device, zone in
               [(1, "Europe/London"), (2, "Asia/Tokyo"), (1, "Europe/London")]]  # fmt: skip
    one, other, again = answers
    assert one["visitor_id"] == again["visitor_id"] != other["visitor_id"]
    assert await listed(live, server_key, visitor=one["visitor_id"]) == [again["request_id"], one["request_id"]]
    assert await listed(live, server_key, visitor=one["visitor_id"], limit=1, page=2) == [one["request_id"]]
    assert await listed(live, server_key, visitor=other["visitor_id"]) == [other["request_id"]]
    assert await listed(live, server_key, visitor=one["visitor_id"].swapcase()) == []
    assert await listed(live, server_key, visitor=NOBODY) == []


async def test_an_unidentifiable_visitor_is_found_by_its_id(live: Live, key: str):
    """Decisions 3.6."""
    answer = (await visit(live, key, TOO_LITTLE)).json()
    assert await listed(live, secret_key(live), visitor=answer["visitor_id"]) == [answer["request_id"]]


async def test_the_level_filter_matches_each_level_and_omits_unscored_events(live: Live, server_key: str, key: str):
    """Interface 4.2, with and without a visitor."""
    unscored = (await forward(live, server_key, {"x-svc-visitor-ip": PUBLIC_ADDRESS}, signals={"q": 1})).json()
    made: dict[str, str] = {}
    for signals, headers in ((report(), {}), (report(**DRIVEN), {}), (report(**DRIVEN), HEADLESS)):
        answer = (await visit(live, key, signals, headers=headers)).json()
        made[answer["suspect_level"]] = answer["request_id"]
        live.clock.advance(seconds=1)
    assert set(made) == {"low", "medium", "high"}
    rows = (await get(live, server_key)).json()["rows"]
    assert [row["request_id"] for row in rows] == [*list(made.values())[::-1], unscored["request_id"]]
    for level, request_id in made.items():
        assert await listed(live, server_key, level=level) == [request_id]
        ((row),) = [row for row in rows if row["request_id"] == request_id]
        assert await listed(live, server_key, level=level, visitor=row["visitor_id"]) == [request_id]
        assert await listed(live, server_key, level=level, visitor=unscored["visitor_id"]) == []
    assert await listed(live, server_key, visitor=unscored["visitor_id"]) == [unscored["request_id"]]


# Who may read what


@pytest.mark.slow(0.2)
async def test_events_of_other_environments_and_organizations_do_not_exist(live: Live):
    """Interface 4.2, 5; by list, by filter and by id."""
    visitor_id = ""
    made: dict[str, str] = {}
    for environment in ("development", "staging", "production"):
        _, public = live.issue(environment=environment)
        answer = (await visit(live, public)).json()
        made[environment], visitor_id = answer["request_id"], answer["visitor_id"]
    other = live.new_organization()
    for environment, request_id in made.items():
        own, foreign = secret_key(live, environment), secret_key(live, environment, organization=other.number)
        for query in ({}, {"visitor": visitor_id}, {"level": "low"}, {"visitor": visitor_id, "level": "low"}):
            assert await listed(live, own, **query) == [request_id]
            assert await listed(live, foreign, **query) == []
        for name, one in made.items():
            assert (await get(live, own, f"/{one}")).status_code == (200 if name == environment else 404)
            assert_error(await get(live, foreign, f"/{one}"), 404, "event_not_found")


@pytest.mark.parametrize("path", ["", f"/{UNKNOWN}"])
async def test_only_a_secret_key_from_a_server_reads_events(live: Live, path: str):
    """Interface 5; decisions 2.8, 3.11: another kind, none, or one with an Origin is refused, and no CORS answered."""
    for kind in ("public", "proxy", "management"):
        _, key = live.issue(kind)
        assert_error(await get(live, key, path), 401, "unauthorized")
    assert_error(await live.client.get(EVENTS + path), 401, "unauthorized")
    headers = {"x-api-key": secret_key(live), "origin": ORIGIN}
    response = await live.client.get(EVENTS + path, headers=headers)
    assert_error(response, 401, "unauthorized")
    assert not [name for name in response.headers if name.startswith("access-control-")]


async def test_a_read_updates_the_last_use_of_the_key_at_most_once_a_minute(live: Live):
    """Decisions 2.3."""
    key, secret = live.issue("secret")

    def last_used_ms() -> int | None:
        with live.found.store.read() as snapshot:
            (found,) = [one for one in lookups.keys_of(snapshot, live.organization.number) if one.id == key.id]
        return found.last_used_at_ms

    start_ms = live.clock.now_ms
    assert last_used_ms() is None
    for seconds, path, noted_s in ((0, "", 0), (59, "", 0), (1, f"/{UNKNOWN}", 60)):
        live.clock.advance(seconds=seconds)
        await get(live, secret, path)
        assert last_used_ms() == start_ms + 1000 * noted_s
    with nothing_stored(live):
        await get(live, secret)


# What a query may not say


async def test_a_bad_window_filter_or_offset_is_an_invalid_window(live: Live, server_key: str):
    """Interface 4.2, decisions 7.1; the detail says which parameter."""
    for query, wrong, issue in (
        ({"level": "severe"}, "level", "invalid_value"),
        ({"level": "High"}, "level", "invalid_value"),
        ({"level": ""}, "level", "invalid_value"),
        ({"visitor": ""}, "visitor", "invalid_value"),
        ({"visitor": "0" * 19}, "visitor", "invalid_value"),
        ({"visitor": "0" * 21}, "visitor", "invalid_value"),
        ({"visitor": "0" * 19 + "-"}, "visitor", "invalid_value"),
        ({"visitor": "0" * 19 + "ü"}, "visitor", "invalid_value"),
        ({"from_": "yesterday"}, "from", "invalid_value"),
        ({"from_": ""}, "from", "invalid_value"),
        ({"to": "2026-01-01"}, "to", "invalid_value"),
        ({"to": "2026-01-01T00:00:00"}, "to", "invalid_value"),
        ({"from_": "2026-01-01T00:00:00Z"}, "from", "out_of_range"),
        ({"from_": "2025-12-01T23:59:59.999Z"}, "from", "out_of_range"),
        ({"from_": "2025-12-31T00:00:00Z", "to": "2025-12-31T00:00:00Z"}, "from", "out_of_range"),
        ({"from_": "2025-12-31T00:00:00Z", "to": "2025-12-30T00:00:00Z"}, "from", "out_of_range"),
        ({"from_": "2025-12-10T00:00:00Z", "to": "2026-01-10T00:00:00Z"}, "to", "out_of_range"),
        ({"page": 1002}, "page", "out_of_range"),
        ({"page": 52, "limit": 200}, "page", "out_of_range"),
        ({"page": 2**70}, "page", "out_of_range"),
    ):  # fmt: skip
        assert_error(await get(live, server_key, **query), 422, "invalid_window", (wrong, issue, "query"))


async def test_a_parameter_of_the_wrong_type_or_name_is_a_validation_error(live: Live, server_key: str):
    """Interface 4.2, decisions 1.6, 7.1."""
    for query, wrong, issue in (
        ({"page": "two"}, "page", "wrong_type"),
        ({"page": ""}, "page", "wrong_type"),
        ({"page": "1.5"}, "page", "wrong_type"),
        ({"page": "1e2"}, "page", "wrong_type"),
        ({"limit": "1e2"}, "limit", "wrong_type"),
        ({"page": 0}, "page", "out_of_range"),
        ({"page": -1}, "page", "wrong_type"),
        ({"limit": 0}, "limit", "out_of_range"),
        ({"limit": 201}, "limit", "out_of_range"),
        ({"limit": "all"}, "limit", "wrong_type"),
        ({"visitors": NOBODY}, "visitors", "unknown_field"),
        ({"start": "2026-01-01T00:00:00Z"}, "start", "unknown_field"),
    ):
        assert_invalid(await get(live, server_key, **query), wrong, issue, "query")


async def test_ten_thousand_events_may_precede_a_page(live: Live, server_key: str):
    """Interface 4.2."""
    (made,) = await visits(live, 1)
    assert await listed(live, server_key, page=1001) == []
    assert await listed(live, server_key, page=51, limit=200) == []
    assert await listed(live, server_key, page=10_001, limit=1) == []
    assert await listed(live, server_key, page=1, limit=1) == [made]


async def test_the_longest_window_is_30_days(live: Live, server_key: str):
    """Interface 8: to the millisecond, and an end in the future is no mistake."""
    assert await listed(live, server_key, from_="2025-12-02T00:00:00Z") == []
    assert await listed(live, server_key, from_="2025-12-02T00:00:00Z", to="2026-01-01T00:00:00Z") == []
    assert await listed(live, server_key, from_="2025-12-31T00:00:00Z", to="2026-01-30T00:00:00Z") == []


# One event


async def test_one_event_is_its_row_and_its_archive(live: Live, server_key: str, key: str):
    """Interface 2.3, decisions 7.3: the submission byte for byte, the threshold and weights that scored it."""
    signals = b'{ "timezone":"Europe\\/London", "a":1.50,\n "a":2, "\\u0062":"\xc3\xbc" }'
    sent = await post(live, key, b'{"sdk":{"version":"9"},"tag":"t","signals":%b}' % signals)
    request_id = sent.json()["request_id"]
    response = await get(live, server_key, f"/{request_id}")
    assert response.status_code == 200
    assert b'"signals":%b,' % signals in response.content
    answer = response.json()
    document = answer.pop("document")
    assert [answer] == (await get(live, server_key)).json()["rows"]
    network = document.pop("network")
    assert network["state"] == "enriched"
    assert all(answer[name] == value for name, value in network.items())
    assert document == {
        "signals": json.loads(signals),
        "sdk": {"version": "9"},
        "tag": "t",
        "suspect_threshold": 30,
        "weights": default_weights("web"),
        "weights_scope": "default",
        "evidence": {},
        "linkage": {"outcome": "unidentifiable", "confidence": 0, "probability": 0.0, "token_conflict": False},
    }


async def document_of(live: Live, secret: str, answer: dict[str, Any]) -> dict[str, Any]:
    return (await get(live, secret, f"/{answer['request_id']}")).json()["document"]


async def test_a_document_has_the_evidence_of_each_fired_signal(live: Live, server_key: str, key: str):
    """Decisions 7.3; a signal without a weight does not fire (3.8), so nothing is said of it."""
    answer = (await visit(live, key, report(**DRIVEN), headers=HEADLESS)).json()
    evidence = (await document_of(live, server_key, answer))["evidence"]
    assert set(evidence) == {trigger["signal"] for trigger in answer["triggers"]} >= {"automation", "headless"}
    assert all(evidence.values())
    change = WeightsChange(weights={"automation": 0})
    live.found.store.write_now(
        [lambda txn: save_weights(txn, live.organization.number, None, "web", change, live.clock.now_ms)]
    )
    again = (await visit(live, key, report(**DRIVEN), headers=HEADLESS)).json()
    assert (await document_of(live, server_key, again))["evidence"].keys() == evidence.keys() - {"automation"}


async def test_a_document_shows_how_the_visitor_was_matched_and_what_has_changed(live: Live, server_key: str, key: str):
    """Decisions 7.3: by nothing, by the same report, by likeness, by a token, and by the token of another device."""
    token, screen = {"client_token": "t" * 32}, {"width": 3840, "height": 2160}
    stranger = {
        "webgl": {"vendor": "Apple", "renderer": "Apple M3"},
        "hardwareConcurrency": 24,
        "deviceMemory": 2,
        "platform": "MacIntel",
        "screen": screen,
    }
    documents = []
    for signals in (
        report(1, **token, client_token_is_new=True),
        report(1),
        report(1, screen={**report(1)["screen"], **screen}),
        report(1, **token),
        report(1, **token, **stranger),
    ):
        answer = (await visit(live, key, signals)).json()
        document = await document_of(live, server_key, answer)
        assert document["linkage"]["confidence"] == answer["visitor_confidence"]
        assert ("changes" in document) != answer["visitor_is_new"]
        assert ("token_conflict" in document["evidence"]) == document["linkage"]["token_conflict"]
        documents.append(document)
    outcomes = [document["linkage"]["outcome"] for document in documents]
    assert outcomes[:4] == ["no_candidate", "exact", "match", "token"]
    assert [document.get("changes") for document in documents[:4]] == [None, [], ["screen"], ["screen"]]
    probabilities = [document["linkage"]["probability"] for document in documents]
    assert probabilities[0] == 0
    assert all(probability > 0.5 for probability in probabilities[1:4])
    assert [document["linkage"]["token_conflict"] for document in documents] == [False] * 4 + [True]


async def test_an_archive_omits_what_was_not_sent(live: Live, server_key: str):
    """Decisions 7.3: `tag?`; and the reason of a network that could not be looked up."""
    sent = await forward(live, server_key, {"x-svc-visitor-ip": "10.0.0.1"}, sdk={"platform": "ios"})
    document = (await get(live, server_key, f"/{sent.json()['request_id']}")).json()["document"]
    assert "tag" not in document
    assert document["sdk"] == {"platform": "ios"}
    assert document["network"] == {"state": "unavailable", "reason": "private_address"}
    assert document["weights"] == default_weights("ios")


async def test_a_request_id_is_a_uuid_in_either_case(live: Live, server_key: str):
    """Interface 4.2."""
    (made,) = await visits(live, 1)
    assert (await get(live, server_key, f"/{made.upper()}")).json()["request_id"] == made
    for text in (UNKNOWN, "123e4567-e89b-12d3-a456-426614174000", "0" * 8 + "-0000" * 3 + "-" + "0" * 12):
        assert_error(await get(live, server_key, f"/{text}"), 404, "event_not_found")
    for text in ("1", "latest", made.replace("-", ""), made[:-1], made + "0", f"%7B{made}%7D", f"{made}%0A", "%00"):
        refused = await get(live, server_key, f"/{text}")
        assert_error(refused, 422, "invalid_request_id", ("request_id", "invalid_value", "path"))


async def test_one_event_takes_no_parameters(live: Live):
    """Decisions 1.6."""
    assert_invalid(await get(live, secret_key(live), f"/{UNKNOWN}", page=1), "page", "unknown_field", "query")


async def test_a_corrupt_archive_fails_the_request_for_its_event_alone(live: Live, server_key: str):
    """Decisions 17.5: `500`; the list, which does not read it, has the event."""
    (made,) = await visits(live, 1)

    def corrupt(transaction: Transaction) -> None:
        key = (live.organization.number, UUID(made).bytes)
        document = transaction.get(DOCUMENTS, *key)
        assert isinstance(document, Document)
        transaction.put(DOCUMENTS, key, msgspec.structs.replace(document, signals=document.signals[:-9] + bytes(9)))

    assert live.found.store.write_now([corrupt]) == [None]
    assert_error(await get(live, server_key, f"/{made}"), 500, "internal_error")
    assert [row["request_id"] for row in (await get(live, server_key)).json()["rows"]] == [made]


async def test_an_event_that_a_damaged_index_hides_is_an_error_and_not_unknown(live: Live, server_key: str):
    """Decisions 17.5: its archived report says that it exists."""
    (made,) = await visits(live, 1)
    key = EVENT_ROWS.key.pack(live.organization.number, UUID(made).bytes)
    engine = live.found.store.engine
    with closing(engine.read()) as reader:
        row = reader.get(EVENT_ROWS.name, key)
    assert row is not None
    engine.write(lambda writer: writer.delete(EVENT_ROWS.name, key))
    assert_error(await get(live, server_key, f"/{made}"), 500, "internal_error")
    live.clock.advance(hours=31 * 24)
    assert_error(await get(live, server_key, f"/{made}"), 404, "event_not_found")
    engine.write(lambda writer: writer.put_many(EVENT_ROWS.name, [(key, row)]))
