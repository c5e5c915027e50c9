"""`GET /metrics` in OpenMetrics 1.0.0, by negotiation: units, exemplars, and an end (decisions 9.2)."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as read_open_metrics
from prometheus_client.parser import text_string_to_metric_families as read_plain

from svc.serve.metrics.registry import METRICS
from svc.serve.metrics.samples import OPEN_METRICS, PROMETHEUS, negotiated
from tests.spec.responses import visit
from tests.support.live import Live, report

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


@pytest.mark.served(metrics=True)
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


@pytest.mark.served(metrics=True)
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
