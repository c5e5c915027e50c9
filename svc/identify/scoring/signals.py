"""The catalog of signals (what can fire, on which platforms, with which default weight), and texts for people.

What may live here: questions that the catalog (`svc/identify/data/signals.toml`) alone can answer. Its names are a
public contract and permanent. What makes a signal fire lives in `detection` and in the identification's
transaction; what a fired signal adds up to lives in `scoring`.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from svc.identify.data import read_tables
from svc.identify.model import Observation
from svc.kernel.values.fields import Platform, about, open_to

Mode = Literal["method", "confidence"]
"""How the VPN and the residential-proxy families are weighed: by how it was noticed, or by how sure it is."""

MAX_WEIGHT = 100
"""The largest weight a configuration may give to one signal (decisions 6.1)."""


class Signal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One signal of the catalog (docs/signals.md)."""

    name: str
    group: str
    description: str
    """One line for people: what it means."""
    fires_on: str = ""
    """For people who want to know exactly: the evidence that fires it. Empty = the description says it all."""
    weights: dict[Platform, int]
    """Default weight per platform; a platform that is absent does not know the signal."""
    mode: Mode | None = None
    """Set for the VPN and residential-proxy families only: the mode in which the signal fires."""
    doubled_by: str = ""
    """Evidence with which it weighs twice, and its confidence is high; empty = none."""
    since: str = "1"
    """Version of the catalog that introduced it. Profiles stored earlier count it as 0."""


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `signals.toml`."""

    signals: tuple[Signal, ...]
    evidence: dict[str, str]


_TABLES = read_tables("signals", _Tables)
CATALOG: dict[str, Signal] = {signal.name: signal for signal in _TABLES.signals}
"""Every signal by name, in the order of docs/signals.md."""
GROUPS: dict[str, tuple[str, ...]] = {
    group: tuple(name for name, signal in CATALOG.items() if signal.group == group)
    for group in dict.fromkeys(signal.group for signal in CATALOG.values())
}
"""Group -> names of its signals, both in the order of the catalog."""

_CONTEXTS = ("iframe", "worker")
"""Where a page's questions are asked once more (`Claims.contexts`)."""
EVIDENCE: dict[str, str] = {
    name.format(context=context): sentence.format(context=context)
    for name, sentence in _TABLES.evidence.items()
    for context in _CONTEXTS
}
"""Name of evidence -> a sentence that says what was seen."""

SignalName = Annotated[str, about("The signal. Names are permanent.", "automation", form=open_to(*CATALOG))]
SignalGroup = Annotated[
    str,
    about("The group that the signal belongs to.", "bot", form=open_to(*GROUPS)),
]


def weighs_twice(observation: Observation) -> bool:
    """Return whether an observation weighs twice, by its evidence or confidence: a stored one may lack either."""
    signal = CATALOG.get(observation.signal)
    if signal is None or not signal.doubled_by:
        return False
    return signal.doubled_by in observation.evidence or observation.confidence == "high"


CATALOG_ORDER: dict[str, int] = {name: position for position, name in enumerate(CATALOG)}


def signal_names(platform: Platform) -> tuple[str, ...]:
    """Return names of the signals that exist on `platform`, in catalog order."""
    return tuple(name for name, signal in CATALOG.items() if platform in signal.weights)


def default_weights(platform: Platform) -> dict[str, int]:
    """Return a new dictionary of the default weights of the signals on `platform`, in catalog order."""
    return {name: signal.weights[platform] for name, signal in CATALOG.items() if platform in signal.weights}


class Phrases(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `explanations.toml`: what names of an event's explanation mean, for people."""

    changes: dict[str, str]
    """Name in `document.changes` -> what differs from the visitor's last report."""
    linkage: dict[str, str]
    """Outcome of matching -> how the visitor was matched, or why it counts as new; `split_from` -> what it means that
    an event names that visitor."""
    proof: dict[str, str]
    """What the proof of a report is worth, as `document.linkage.proof` has it; `proven` and `none` where it has another
    meaning, or is missing."""
    certainty: dict[str, str]
    """What recognized a visitor, where that is not certain (`likeness`, a `token` or a `proven` token) -> a sentence;
    `unidentifiable` for one that is never recognized."""
    reasons: dict[str, str]
    """Reason of a verdict -> why nothing is known of the address."""


PHRASES = read_tables("explanations", Phrases)


def meaning(texts: dict[str, str], name: str) -> str:
    """Return what a name means by `EVIDENCE` or a field of `PHRASES`; one of another version as it is."""
    return texts.get(name, name)
