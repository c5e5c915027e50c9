"""Decisions 9.2: `GET /metrics` in Prometheus' format, at an address of its own. What requests do is what it shows."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import pytest
import trio
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as read_plain

from svc.features.identification.pipeline.messages import band
from svc.features.refusals import CATALOG
from svc.features.retention.sweeper import Progress, sweep
from svc.features.reviews.tables import OPEN_REVIEWS
from svc.features.routes import API, ROUTES
from svc.features.tables import TABLES
from svc.features.webhooks.queries import LEAPS
from svc.http.pages.app import create_app, documentation, operation_id, site
from svc.http.traffic import GONE, PREFLIGHT, UNKNOWN
from svc.identify.model import RULE_ACTIONS
from svc.identify.scoring.signals import CATALOG as SIGNAL_NAMES
from svc.identify.tables import EVENTS
from svc.serve.metrics.registry import METRICS, Metrics
from svc.serve.metrics.samples import OPEN_METRICS, PROMETHEUS, negotiated
from tests.spec.automation import Automation
from tests.spec.responses import assert_error, visit
from tests.spec.subscriber import Subscriber
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, live_service, report
from tests.support.receivers import DOWN, OK
from tests.support.serving_postgresql import analyze
from tests.support.worlds import HeldThreads

pytestmark = pytest.mark.served(metrics=True)


class Scraped:
    """Samples by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self.samples[sample.name, frozenset(sample.labels.items())] = sample.value

    def __call__(self, name: str, **labels: str) -> float:
        """The value with exactly these labels; 0 where there is none."""
        return self.samples.get((name, frozenset(labels.items())), 0)

    def all(self) -> list[tuple[str, dict[str, str], float]]:
        return [(name, dict(labels), value) for (name, labels), value in self.samples.items()]

    def labels(self, label: str) -> set[str]:
        return {value for _, labels in self.samples for name, value in labels if name == label}


async def scrape(live: Live) -> Scraped:
    async with httpx.AsyncClient(verify=False) as client:
        response = await client.get(live.metrics_url)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    return Scraped(response.text)


LOOPBACK_HOSTS = ["localhost", "LOCALHOST:9464", "svc.localhost", "127.0.0.1:1", "[::1]:9464", "10.1.2.3", "[fe80::1]"]


@pytest.mark.parametrize(
    ("host", "status"),
    [(host, 200) for host in [*LOOPBACK_HOSTS, "svc-metrics", "Metrics.Internal.:9464"]]
    + [(host, 421) for host in ("rebound.example", "localhost.example:9464", "127.0.0.1.example", "svc", "[", "")],
)
async def test_the_metrics_are_read_by_no_name_of_somebody_else(directory: Path, host: str, status: int):
    """Decisions 9.2: a page whose name leads here for a moment (DNS rebinding) reads nothing."""
    settings = {"metrics_hosts": ("metrics.internal",), "metrics_bind": "svc-metrics:9464"}
    async with live_service(directory, metrics=True, **settings) as live, httpx.AsyncClient(verify=False) as client:
        for method in ("GET", "HEAD"):
            response = await client.request(method, live.metrics_url, headers={"host": host})
            assert response.status_code == status
            if status == 421 and method == "GET":
                assert "add the name to the setting metrics_hosts" in response.text
            assert ("svc_http_requests_total" in response.text) is (status == 200 and method == "GET")


async def test_the_metrics_address_serves_only_metrics(directory: Path):
    async with live_service(directory, metrics=True) as live, httpx.AsyncClient(verify=False) as client:
        assert (await live.client.get("/metrics")).status_code == 404
        own = live.metrics_url.removesuffix("/metrics")
        for path in ("/", "/healthz", "/api/v1/identify", "/metrics/", "//metrics"):
            response = await client.get(own + path)
            assert (response.status_code, response.content) == (404, b"")
        for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
            response = await client.request(method, live.metrics_url)
            assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD")
        head = await client.head(live.metrics_url)
        assert (head.status_code, head.content) == (200, b"")
        assert int(head.headers["content-length"]) > 1000
        for accept in ("application/openmetrics-text; version=x", "text/plain; version=\\xff", "*/*", ""):
            response = await client.get(live.metrics_url, headers={"accept": accept})
            assert (response.status_code, response.text.partition(" ")[0]) == (200, "#")


async def test_requests_are_counted_by_route_status_and_code(live: Live, key: str, server_key: str):
    for _ in range(2):
        assert (await live.identify(server_key, origin=None)).status_code == 200
    await live.identify(key, origin="https://other.example")
    await live.client.get("/api/v1/nowhere")
    await live.client.put("/api/v1/identify")
    await live.client.options("/api/v1/identify", headers={"origin": ORIGIN})
    found = await scrape(live)
    count = "svc_http_requests_total"
    assert found(count, route="identify", status="200", code="") == 2
    assert found(count, route="identify", status="401", code="unauthorized") == 1
    assert found(count, route=UNKNOWN, status="404", code="not_found") == 1
    assert found(count, route=UNKNOWN, status="405", code="method_not_allowed") == 1
    assert found(count, route=PREFLIGHT, status="204", code="") == 1
    assert found("svc_http_request_duration_seconds_count", route="identify") == 3
    assert found("svc_http_request_duration_seconds_bucket", route="identify", le="+Inf") == 3
    assert found("svc_http_requests_in_flight") == 0
    assert found("svc_connections_accepted_total") >= 1


async def test_identifications_are_counted_by_how_the_visitor_was_matched(live: Live, key: str):
    token = {"client_token": "a" * 32}
    for signals in (report(1, **token), report(1, **token), report(2), {}):
        assert (await visit(live, key, signals)).status_code == 200
    keyed = {"idempotency-key": "one"}
    for _ in range(2):
        await visit(live, key, report(3), headers=keyed)
    found = await scrape(live)
    stored = Counter((event.verdict.linkage, band(event.verdict.visitor_confidence)) for _, event in live.events())
    assert stored["token", "100"] == stored["no_candidate", "0"] == 1
    assert len(stored) >= 3
    counted = {
        (labels["match"], labels["confidence"]): value
        for name, labels, value in found.all()
        if name == "svc_identifications_total"
    }
    assert counted == stored
    assert found("svc_duplicates_total") == 1
    assert sum(value for name, _, value in found.all() if name == "svc_suspect_levels_total") == 5
    assert found("svc_network_lookups_total", state="enriched", reason="") == 5
    for mailbox in ("admission", "scorer", "visitor_index"):
        assert found("svc_mailbox_accepted_total", mailbox=mailbox) == 6
        assert found("svc_mailbox_wait_seconds_count", mailbox=mailbox) == 6


async def test_rows_are_counted_by_table(live: Live, key: str):
    """By a database, when it was analyzed last and looked at since."""
    for device in (1, 1, 2):
        await visit(live, key, report(device, client_token=f"{device:032x}"))
    if live.found.store.is_shared:
        await analyze(live.found)
    found = await scrape(live)
    assert found("svc_store_rows", table="events") == 3
    assert found("svc_store_rows", table="visitors") == 2


async def test_a_fired_signal_is_counted_by_its_name(live: Live, key: str):
    answer = (await visit(live, key, report(1, webdriver=True))).json()
    found = await scrape(live)
    fired = [trigger["signal"] for trigger in answer["triggers"]]
    assert fired
    assert all(found("svc_signals_total", signal=signal) == 1 for signal in fired)
    assert found("svc_suspect_levels_total", level=answer["suspect_level"]) == 1


@pytest.mark.slow
@pytest.mark.served(metrics=True, admission_capacity=1, stage_capacity=1, batch_limit=1)
async def test_requests_refused_at_admission_are_counted(live: Live, key: str, threads: HeldThreads):
    """Over the rate limit is 429; with a full mailbox for admission it is 503."""
    limited = live.new_organization(rate_limit=1)
    _, other = live.issue(organization=limited.number)
    statuses = [(await visit(live, other, report(1))).status_code for _ in range(2)]
    assert statuses == [200, 429]
    answered: list[int] = []

    async def ask() -> None:
        answered.append((await visit(live, key, report(2))).status_code)

    threads.hold()
    async with trio.open_nursery() as nursery:
        for _ in range(64):
            nursery.start_soon(ask)
        while 503 not in answered:
            await trio.lowlevel.checkpoint()
        full = await scrape(live)
        assert full("svc_http_requests_in_flight") >= 2
        threads.release()
    found = await scrape(live)
    refused = answered.count(503)
    assert found("svc_http_requests_total", route="identify", status="429", code="rate_limited") == 1
    assert found("svc_http_requests_total", route="identify", status="503", code="service_unavailable") == refused
    assert found("svc_mailbox_rejected_total", mailbox="admission") == refused
    assert found("svc_http_requests_in_flight") == 0


@pytest.mark.slow
async def test_a_client_disconnect_is_counted_as_such(live: Live, key: str, threads: HeldThreads):
    await live.identify(key)
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(live.identify, key)
        while not threads.waiting:
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    while (await scrape(live))("svc_http_requests_total", route="identify", status=GONE, code="") == 0:
        await trio.lowlevel.checkpoint()
    threads.release()
    found = await scrape(live)
    assert found("svc_http_requests_in_flight") == 0
    assert found("svc_http_requests_total", route="identify", status="200", code="") == 1


@pytest.mark.served(map_bytes=512 << 10, metrics=True)
async def test_a_full_store_is_reported_until_a_write_fits(live: Live, key: str):
    noise = {"noise": os.urandom(300_000).hex()}
    while (response := await visit(live, key, noise)).status_code == 200:
        pass
    assert_error(response, 503, "service_unavailable")
    found = await scrape(live)
    assert found("svc_store_full") == 1
    assert found("svc_store_used_bytes") / found("svc_store_map_bytes") > 0.5
    assert found("svc_store_disk_free_bytes") > 0


async def test_a_clock_behind_the_last_write_is_reported_as_nothing_being_stored(live: Live, key: str):
    assert (await visit(live, key)).status_code == 200
    for jump_s, is_failing in ((0, 0), (-3_601, 1), (3_601, 0)):
        live.clock.jump(seconds=jump_s)
        found = Scraped((await live.service.metrics.expose()).decode())
        assert found("svc_store_failing") == is_failing


async def test_a_node_that_is_not_the_leader_reports_its_own_store_and_loop(live: Live):
    """Where the database is away no node is the leader, and each has to say it."""
    sources = live.service._sources()._replace(is_leader=lambda: False)  # pyright: ignore[reportPrivateUsage]
    names = {name for name, _, _ in Scraped((await Metrics(sources).expose()).decode()).all()}
    assert names >= {
        "svc_store_full",
        "svc_store_failing",
        "svc_store_lost",
        "svc_store_commit_age_seconds",
        "svc_worker_silent_seconds",
    }


@pytest.mark.slow(2)
async def test_whatever_row_is_corrupt_the_metrics_are_served_and_say_so(hooks: Subscriber):
    """17.5: otherwise the page for the corrupt row would be one for a service that is down."""
    await hooks.create()
    hooks.receivers.respond_with(DOWN)
    await hooks.happen()
    live, told = hooks.live, set[str]()
    filled = live.contents()
    for table in (table for table in TABLES if filled.get(table.name)):
        before = (await scrape(live))("svc_corrupt_rows_total", operation="metrics")
        with live.corrupted(table):
            found = await scrape(live)
        assert found("svc_store_map_bytes") > 0, table.name
        if found("svc_corrupt_rows_total", operation="metrics") > before:
            told.add(table.name)
    assert told >= {"organizations", "holdings", "webhook_endpoints"}


@pytest.mark.slow(0.1)
async def test_webhook_metrics_show_the_current_state(hooks: Subscriber):
    endpoint, _ = await hooks.create()
    found = await scrape(hooks.live)
    assert found("svc_webhook_endpoints", status="active") == 1
    assert found("svc_webhook_deliveries_open") == 0
    hooks.receivers.respond_with(DOWN)
    await hooks.happen()
    found = await scrape(hooks.live)
    assert found("svc_webhook_attempts_total", result="retrying") == 1
    assert found("svc_webhook_attempt_errors_total", error="http_status") == 1
    assert found("svc_webhook_attempt_duration_seconds_count") == 1
    assert found("svc_webhook_deliveries_open") == 1
    assert found("svc_webhook_oldest_due_seconds", status="active") == 0
    hooks.live.clock.advance(hours=1)  # nobody wakes the outbox, which sleeps by another clock
    assert 3590 < (await scrape(hooks.live))("svc_webhook_oldest_due_seconds", status="active") <= 3600
    await hooks.patch(endpoint, paused=True)
    found = await scrape(hooks.live)
    assert found("svc_webhook_endpoints", status="paused") == 1
    assert found("svc_webhook_oldest_due_seconds", status="active") == 0
    assert found("svc_webhook_oldest_due_seconds", status="paused") > 3590
    hooks.receivers.respond_with(OK)
    await hooks.patch(endpoint, paused=False)
    await hooks.wait()
    found = await scrape(hooks.live)
    assert found("svc_webhook_attempts_total", result="delivered") == 1
    assert found("svc_webhook_deliveries_open") == 0


async def test_no_label_identifies_a_client(live: Live):
    """Labels come from lists of the program: operation ids, codes, signals, tables and what has a few states."""
    issued, key = live.issue()
    visitor = (await visit(live, key, report(1))).json()["visitor_id"]
    await live.client.get(f"/api/v1/{key}?key={key}", headers={"x-api-key": key})
    await live.client.get(f"/api/v1/management/organizations/{live.organization.id}/sdk-keys")
    await live.client.get(f"/sdk/{key}/{key}")
    await live.client.request(key[:20], "/api/v1/identify", headers={key: key})
    found = await scrape(live)
    for said in (key, issued.id, visitor, PUBLIC_ADDRESS, ORIGIN, "127.0.0.1", "/api"):
        assert said not in found.text
    named = [line.partition("{")[0] for line in found.text.splitlines() if live.organization.id in line]
    assert sorted(named) == ["svc_organization_share", "svc_organization_stored_bytes"], (
        "the ten that hold most are named, there alone"
    )
    pages = {operation_id(rule.endpoint) for rule in create_app(site, documentation, api=API).url_map.iter_rules()}
    assert found.labels("route") <= {route.operation_id for route in ROUTES} | pages | {UNKNOWN, PREFLIGHT}
    assert "getSdk" in found.labels("route")
    assert found.labels("code") <= set(CATALOG) | {""}
    assert found.labels("signal") <= set(SIGNAL_NAMES)
    assert found.labels("table") <= {table.name for table in TABLES}


async def test_two_services_in_one_process_share_no_metrics(directory: Path):
    async with live_service(directory / "a", metrics=True) as one, live_service(directory / "b", metrics=True) as other:
        _, key = one.issue()
        await visit(one, key, report(1))
        count: dict[str, Any] = {"route": "identify", "status": "200", "code": ""}
        assert (await scrape(one))("svc_http_requests_total", **count) == 1
        assert (await scrape(other))("svc_http_requests_total", **count) == 0


@pytest.mark.served
async def test_a_service_without_metrics_does_not_measure_loop_lag(live: Live):
    before = live.service.metrics
    await live.client.get("/healthz")
    text = (await before.expose()).decode()
    assert "svc_event_loop_lag_seconds_count 0.0" in text


async def test_restart_counters_start_at_0_for_every_peripheral_actor(live: Live):
    """What first appears with its first restart would show no rise."""
    found = Scraped((await live.service.metrics.expose()).decode())
    assert found.labels("actor") == {
        "relay",
        "store watch",
        "credit watch",
        "counts",
        "maintenance",
        "network watch",
        "recounter",
        "retention",
        "settler",
        "outbox",
        "indexer",
        "refusal log",
    }
    assert sum(value for name, _, value in found.all() if name == "svc_actor_restarts_total") == 0


@pytest.mark.parametrize("status", ["active", "paused", "failing"])
async def test_every_endpoint_status_is_exported_from_the_start(live: Live, status: str):
    found = Scraped((await live.service.metrics.expose()).decode())
    assert ("svc_webhook_endpoints", frozenset({("status", status)})) in found.samples


async def test_rows_deleted_by_retention_are_counted_by_table(live: Live, key: str):
    for device in (1, 2):
        await visit(live, key, report(device))
    live.clock.advance(hours=24 * 31)
    progress = Progress(live.clock.now_ms)
    await sweep(live.found.store, live.clock.now_ms, 365, progress, with_passes=True)
    deleted = progress.statistics().deleted
    assert deleted["events"] == deleted["idempotency"] + 2 == 2
    assert progress.statistics().failed == {}


async def test_a_failed_step_of_retention_is_counted(live: Live, key: str):
    await visit(live, key, report(1))
    live.clock.advance(hours=24 * 31)
    progress = Progress(live.clock.now_ms)
    with live.corrupted(EVENTS):
        await sweep(live.found.store, live.clock.now_ms, 365, progress, with_passes=False)
    assert progress.statistics().failed == {"events": 1}
    assert progress.statistics().deleted["events"] == 0


async def test_decisions_shadow_matches_and_failed_rules_are_counted(live: Live, public: str):
    rules = [
        {"name": "Failing", "condition": 'account.id == "x"', "action": "block"},
        {"name": "Shadow", "condition": "true", "action": "challenge", "mode": "shadow"},
        {"name": "Review", "condition": 'action == "buy"', "action": "review"},
    ]
    assert (await Automation(live)("PUT", "/rules", {"revision": 0, "rules": rules})).status_code == 200
    for given in ({"account_id": "a", "action": "buy"}, {"account_id": "b"}, {}):
        assert (await visit(live, public, report(1), **given)).status_code == 200
    found = await scrape(live)
    decided = {action: found("svc_decisions_total", action=action) for action in (*RULE_ACTIONS, "none")}
    assert decided == {"allow": 0, "review": 1, "challenge": 0, "block": 0, "none": 2}
    assert found.labels("action") == set(decided), "each is exported from the start, so that its first one is a rise"
    assert found("svc_shadow_matches_total", action="challenge") == 3
    assert found("svc_rule_errors_total") == 3, "of an account that is not there, and twice of such an action"


async def test_the_oldest_open_review_is_that_of_all_organizations(live: Live):
    assert (await scrape(live))("svc_review_oldest_open_seconds") == 0
    opened: list[tuple[Automation, str]] = []
    for _ in range(LEAPS + 2):
        organization = live.new_organization()
        _, key = live.issue(environment="production", organization=organization.number)
        answer = (await visit(live, key, report(1))).json()
        admin = Automation(live, organization=organization)
        review = await admin("POST", "/reviews", {"request_id": answer["request_id"]})
        opened.append((admin, review.json()["review"]["id"]))
        live.clock.advance(seconds=10)
    assert (await scrape(live))("svc_review_oldest_open_seconds") == 10 * len(opened)
    with live.corrupted(OPEN_REVIEWS):
        assert "svc_review_oldest_open_seconds" not in {name for name, _, _ in (await scrape(live)).all()}, "17.5"
    for admin, review_id in opened[:-1]:
        assert (await admin("POST", f"/reviews/{review_id}/close", {"label": "fraud"})).status_code == 200
    assert (await scrape(live))("svc_review_oldest_open_seconds") == 10


# `GET /metrics` in OpenMetrics 1.0.0, by negotiation: units, exemplars, and an end (decisions 9.2)


OPEN = "application/openmetrics-text; version=1.0.0"
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,application/openmetrics-text;"
    "version=0.0.1;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
)


@pytest.mark.parametrize(
    ("accept", "is_open"),
    [
        (OPEN, True),
        ("Application/OpenMetrics-Text; Version=1.0.0", True),
        ("application/openmetrics-text", True),
        ('application/openmetrics-text; version="1.0.0"; charset=utf-8', True),
        (PROMETHEUS_3, True),
        (f"{OPEN};q=0.4, text/plain;q=0.4", True),
        (f"{OPEN};q=0.3, text/plain;q=0.4", False),
        (f"{OPEN};q=0", False),
        (f"{OPEN};q=x", False),
        (f"{OPEN};q=nan", False),
        (f"{OPEN};q=2", False),
        ("application/openmetrics-text; version=0.0.1", False),
        ("application/openmetrics-text; version=2.0.0", False),
        ("application/openmetrics-text-more", False),
        ("text/plain", False),
        ("*/*", False),
        ("", False),
        (",;=,;q", False),
        ("\x00\xff", False),
    ],
)
def test_who_asks_for_openmetrics_gets_it_and_nobody_else(accept: str, *, is_open: bool):
    assert negotiated(accept) is (OPEN_METRICS if is_open else PROMETHEUS)


async def get(url: str, accept: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=False) as client:
        return await client.get(url, headers={"accept": accept})


async def test_openmetrics_has_every_metric_with_its_unit_and_the_values_of_the_other_format(live: Live, key: str):
    assert (await visit(live, key, report(1))).status_code == 200
    found, plain = await get(live.metrics_url, PROMETHEUS_3), await get(live.metrics_url, "*/*")
    assert found.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert {found.headers["vary"], plain.headers["vary"]} == {"Accept"}
    assert found.text.endswith("\n# EOF\n")
    assert found.text.count("# EOF") == 1
    assert "# EOF" not in plain.text
    families = {family.name: family for family in read_open_metrics(found.text)}
    assert {metric.name for metric in METRICS} <= families.keys()
    assert {metric.name: families[metric.name].type for metric in METRICS} == {each.name: each.kind for each in METRICS}
    units = {name: family.unit for name, family in families.items() if name.startswith("svc_")}
    assert set(units.values()) == {"", "seconds", "bytes"}
    assert all(not unit or name.endswith(f"_{unit}") for name, unit in units.items())
    assert units["svc_http_request_duration_seconds"] == "seconds"

    def samples(parsed: Any) -> set[tuple[str, frozenset[tuple[str, str]]]]:
        return {(one.name, frozenset(one.labels.items())) for each in parsed for one in each.samples}

    assert samples(families.values()) == samples(read_plain(plain.text))


async def test_the_latency_of_a_sampled_trace_is_the_exemplar_of_its_bucket(live: Live, key: str):
    """Not of one that its caller did not record: nobody could look it up."""
    for digit, flags in (("1", "01"), ("2", "00")):
        headers = {"traceparent": f"00-{digit * 32}-{'a' * 16}-{flags}"}
        assert (await live.identify(key, headers=headers)).status_code == 200
    found = read_open_metrics((await get(live.metrics_url, OPEN)).text)
    arrived_s = live.clock.now_ms / 1000
    plain = await get(live.metrics_url, "text/plain")
    exemplars = [
        (sample.name, sample.labels, sample.exemplar)
        for family in found
        for sample in family.samples
        if sample.exemplar is not None
    ]
    ((name, labels, exemplar),) = exemplars
    assert (name, labels["route"]) == ("svc_http_request_duration_seconds_bucket", "identify")
    assert exemplar.labels == {"trace_id": "1" * 32}
    assert 0 < exemplar.value <= float(labels["le"])
    assert float(exemplar.timestamp) == arrived_s
    assert "1" * 32 not in plain.text
