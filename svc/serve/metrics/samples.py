"""What a metric is, and the samples of metrics as tables that can be packed and added: those of one worker, and the sum
of several.

What may live here: plain additions. Which metrics there are is said in `svc.serve.metrics.registry`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import accumulate
from typing import Literal, NamedTuple, TypeVar, cast

import msgspec
from prometheus_client.core import CounterMetricFamily, Exemplar, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric as Family
from prometheus_client.openmetrics import exposition as openmetrics
from prometheus_client.registry import Collector

from svc.kernel.values.histogram import HistogramStatistics

T = TypeVar("T", bound=str)
V = TypeVar("V")

Value = float | HistogramStatistics
Labels = tuple[str, ...]
SampleTable = dict[str, dict[Labels, Value]]
"""Metric by name -> its values by labels."""


class Metric(NamedTuple):
    """The declaration of one metric; counters are exposed with `_total` behind the name."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    is_summed: bool = False
    """Of a gauge: whether those of all workers are added, as all counters are; else the leader's is shown."""


Samples = Iterator[tuple[Metric, Iterable[tuple[tuple[str, ...], Value]]]]
"""Metrics with their values by labels."""


class PublishedSamples(msgspec.Struct, frozen=True):
    """What a worker has published: when, in Unix milliseconds, and its values."""

    at_ms: int
    values: SampleTable


_decoder = msgspec.msgpack.Decoder(PublishedSamples)


def pack_samples(published: PublishedSamples) -> bytes:
    """Return the samples as MessagePack, which `read_samples` reads in workers of the same version."""
    return msgspec.msgpack.encode(published)


def read_samples(content: bytes) -> PublishedSamples | None:
    """Return what `pack_samples` has packed; `None` for nothing. Raises `msgspec.MsgspecError` for anything else."""
    return _decoder.decode(content) if content else None


def one(value: Value) -> list[tuple[Labels, Value]]:
    """Return the samples of a metric without labels."""
    return [((), value)]


def by(values: Mapping[T, V]) -> list[tuple[tuple[T], V]]:
    """Return the samples of a metric with one label, by its values."""
    return [((name,), value) for name, value in values.items()]


def added(one: SampleTable, other: SampleTable) -> SampleTable:
    """Return the sums of two tables, name by name and labels by labels; what one of them lacks counts as 0."""
    total = {name: dict(values) for name, values in one.items()}
    for name, values in other.items():
        into = total.setdefault(name, {})
        for labels, value in values.items():
            into[labels] = value if labels not in into else _sum(into[labels], value)
    return total


def _sum(one: Value, other: Value) -> Value:
    if isinstance(one, HistogramStatistics) and isinstance(other, HistogramStatistics):
        assert one.bounds == other.bounds, "workers of one service are of one version"
        counts = tuple(map(sum, zip(one.counts, other.counts, strict=True)))
        latest = sorted((*one.exemplars.items(), *other.exemplars.items()), key=lambda found: found[1].at_ms)
        return HistogramStatistics(one.bounds, counts, one.total + other.total, dict(latest))
    assert not isinstance(one, HistogramStatistics), "of one kind"
    assert not isinstance(other, HistogramStatistics), "of one kind"
    return one + other


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
    """Return media type, `version` and `q` of one part of the header; `q` is 0 if it is not a number from 0 to 1."""
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
