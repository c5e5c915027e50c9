"""What a metric is, and the samples of metrics as tables that can be packed and added: those of one worker, and the sum
of several.

What may live here: plain additions. Which metrics there are is said in `svc.serve.metrics.registry`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple, TypeVar

import msgspec

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


class _Packed(msgspec.Struct, frozen=True, array_like=True):
    at_ms: int
    values: dict[str, list[tuple[Labels, Value]]]


_decoder = msgspec.msgpack.Decoder(_Packed)


def pack_samples(published: PublishedSamples) -> bytes:
    """Return the samples as MessagePack, which `read_samples` reads in workers of the same version."""
    return msgspec.msgpack.encode(
        _Packed(published.at_ms, {name: list(by.items()) for name, by in published.values.items()})
    )


def read_samples(content: bytes) -> PublishedSamples | None:
    """Return what `pack_samples` has packed; `None` for nothing. Raises `msgspec.MsgspecError` for anything else."""
    if not content:
        return None
    packed = _decoder.decode(content)
    return PublishedSamples(packed.at_ms, {name: dict(values) for name, values in packed.values.items()})


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
