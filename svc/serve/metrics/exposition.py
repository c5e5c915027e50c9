"""Metrics as text: Prometheus' format 0.0.4, or OpenMetrics 1.0.0, which has units and exemplars.

What may live here: one metric as the library wants it, and which of the two formats a scraper asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from typing import NamedTuple, cast

from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from svc.kernel.values.histogram import HistogramStatistics
from svc.serve.metrics.samples import Metric, Value

UNITS = ("seconds", "bytes")
"""With which the name of a metric may end."""
_END = b"# EOF\n"


class Format(NamedTuple):
    """One of the two formats."""

    media_type: bytes
    encode: Callable[[Collector], bytes]
    end: bytes
    """What follows after the last metric."""


def _open_metrics(registry: Collector) -> bytes:
    generate = cast("Callable[[Collector], bytes]", openmetrics.generate_latest)  # pyright: ignore[reportUnknownMemberType]
    return generate(registry).removesuffix(_END)


PROMETHEUS = Format(b"text/plain; version=0.0.4; charset=utf-8", generate_latest, b"")
OPEN_METRICS = Format(b"application/openmetrics-text; version=1.0.0; charset=utf-8", _open_metrics, _END)


def negotiated(accept: str) -> Format:
    """Return the format for a header `Accept` (RFC 9110, 12.5.1): OpenMetrics where it is named, in version 1.0.0 or in
    none, and not ranked below plain text; Prometheus' format for anything else, malformed or empty.
    """
    asked = [_read_range(part) for part in accept.split(",")]
    wanted = max((rank for name, version, rank in asked if name == _NAME and version in ("", "1.0.0")), default=0.0)
    plain = max((rank for name, _, rank in asked if name == "text/plain"), default=0.0)
    return OPEN_METRICS if wanted > 0 and wanted >= plain else PROMETHEUS


_NAME = "application/openmetrics-text"


def _read_range(part: str) -> tuple[str, str, float]:
    """Media type, `version` and `q` of one part of the header; a rank of 0 where `q` is not a number from 0 to 1."""
    name, *parameters = (piece.strip().lower() for piece in part.split(";"))
    given = {key.strip(): value.strip(' "') for key, _, value in (text.partition("=") for text in parameters)}
    try:
        rank = float(given.get("q", "1"))
    except ValueError:
        rank = 0.0
    return name, given.get("version", ""), rank if 0 <= rank <= 1 else 0.0


class OneFamily(Collector):
    """One metric, as prometheus-client wants what it writes."""

    def __init__(self, family: Family) -> None:
        self._family = family

    def collect(self) -> Iterable[Family]:
        """Return the one family."""
        return (self._family,)


def family(metric: Metric, values: Iterable[tuple[tuple[str, ...], Value]]) -> Family:
    """Return a metric with its values by labels; the unit is the end of its name."""
    unit = next((unit for unit in UNITS if metric.name.endswith(f"_{unit}")), "")
    if metric.kind == "histogram":
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels, unit=unit)
        for labels, value in values:
            assert isinstance(value, HistogramStatistics)
            histogram.add_metric(labels, list(_buckets(value)), value.total)
        return histogram
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    made = make(metric.name, metric.help, labels=metric.labels, unit=unit)
    for labels, value in values:
        assert not isinstance(value, HistogramStatistics)
        made.add_metric(labels, value)
    return made


def _buckets(value: HistogramStatistics) -> Iterator[tuple[str, float] | tuple[str, float, Exemplar]]:
    bounds = [*(repr(float(bound)) for bound in value.bounds), "+Inf"]
    for index, (bound, count) in enumerate(zip(bounds, accumulate(value.counts), strict=True)):
        found = value.exemplars.get(index)
        if found is None:
            yield bound, count
        else:
            yield bound, count, Exemplar({"trace_id": found.trace_id}, found.value, found.at_ms / 1000)
