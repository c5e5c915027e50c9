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
    """Return whether an observation weighs twice: by its evidence, or by its confidence, of which a stored one may have
    either alone.
    """
    signal = CATALOG.get(observation.signal)
    if signal is None or not signal.doubled_by:
        return False
    return signal.doubled_by in observation.evidence or observation.confidence == "high"


CATALOG_ORDER: dict[str, int] = {name: position for position, name in enumerate(CATALOG)}


def signal_names(platform: Platform) -> tuple[str, ...]:
    """Return names of the signals that exist on `platform`, in catalog order."""
    return tuple(name for name, signal in CATALOG.items() if platform in signal.weights)


def default_weights(platform: Platform) -> dict[str, int]:
    """Return the default weight of each signal that exists on `platform`, in catalog order, as a new dictionary each
    time.
    """
    return {name: signal.weights[platform] for name, signal in CATALOG.items() if platform in signal.weights}


class _Explanations(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `explanations.toml`."""

    changes: dict[str, str]
    linkage: dict[str, str]
    proof: dict[str, str]
    certainty: dict[str, str]
    reasons: dict[str, str]


_EXPLANATIONS = read_tables("explanations", _Explanations)

CHANGES: dict[str, str] = _EXPLANATIONS.changes
"""Name in `document.changes` -> what differs from the visitor's last report."""

LINKAGE: dict[str, str] = _EXPLANATIONS.linkage
"""Outcome of matching -> how the visitor was matched, or why it counts as new; `split_from` -> what it means that an
event names that visitor."""

PROOF: dict[str, str] = _EXPLANATIONS.proof
"""What the proof of a report is worth, as `document.linkage.proof` has it -> a phrase; `proven` and `none` where it has
another meaning, or is missing."""

CERTAINTY: dict[str, str] = _EXPLANATIONS.certainty
"""What recognized a visitor, where that is not certain (`likeness`, a `token` or a `proven` token) -> a sentence;
`unidentifiable` for one that is never recognized."""

REASONS: dict[str, str] = _EXPLANATIONS.reasons
"""Reason of a verdict -> why nothing is known of the address."""


def evidence_text(name: str) -> str:
    """Return one sentence for a name of evidence. A name that only another version knows is returned as it is."""
    return EVIDENCE.get(name, name)


def change_text(name: str) -> str:
    """Return a phrase for a name in `document.changes`; an unknown name as it is."""
    return CHANGES.get(name, name)


def linkage_text(outcome: str) -> str:
    """Return a phrase for `linkage.outcome`; an unknown outcome as it is."""
    return LINKAGE.get(outcome, outcome)


def reason_text(reason: str) -> str:
    """Return a phrase for the `reason` of a verdict; an unknown reason as it is."""
    return REASONS.get(reason, reason)
