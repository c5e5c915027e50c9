"""Where the checks of one report leave what they found, and how sure that makes each signal.

What may live here: the collecting of findings into observations. What to look for lives in the other modules.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Literal

from svc.identify.model import Level, Observation
from svc.identify.scoring.signals import CATALOG, CATALOG_ORDER
from svc.kernel.values.fields import Platform

Strength = Literal["definitive", "proof", "hint"]
"""`definitive` is enough alone, `proof` has no ordinary explanation, `hint` is a rule of thumb."""

TOO_MANY_LIES = 3
"""Contradictions about this many subjects mean an invented device (docs/signals.md)."""


class Findings:
    """The findings in one report so far. A *subject* is what a finding was read from, such as the user agent: two
    findings from one subject are one proof. A *topic* is the part of a report that contradicts another; a *lie* is what
    the contradiction is about: contradictions about one thing count once, however many topics have them.
    """

    def __init__(self) -> None:
        self.topics: defaultdict[str, dict[str, None]] = defaultdict(dict)
        """Topic -> names of the checks that contradict there, both in the order found."""
        self.lies: dict[str, None] = {}
        """What the report contradicts itself about; by default, the topic."""
        self.driver_traces: list[str] = []
        """Contradictions that stealth tools leave in one particular way."""
        self._evidence: defaultdict[str, dict[str, None]] = defaultdict(dict)
        self._proofs: defaultdict[str, set[str]] = defaultdict(set)
        self._settled: set[str] = set()

    def add(self, signal: str, evidence: str, strength: Strength = "proof", subject: str | None = None) -> None:
        """Record that the check `evidence` fired `signal`. Two `proof`s make it certain unless they have one `subject`,
        which is the check itself unless named. A check that is recorded twice counts once.
        """
        self._evidence[signal][evidence] = None
        if strength == "definitive":
            self._settled.add(signal)
        elif strength == "proof":
            self._proofs[signal].add(subject or evidence)

    def has(self, signal: str) -> bool:
        """Return whether a check fired `signal` so far."""
        return signal in self._evidence

    def contradict(
        self, topic: str, signal: str | None, evidence: str, strength: Strength = "proof", about: str | None = None
    ) -> None:
        """Record a contradiction on `topic`, `about` a thing that others tell of, too; with `signal` as `add` does."""
        self.topics[topic][evidence] = None
        self.lies[about or topic] = None
        if signal is not None:
            self.add(signal, evidence, strength)

    def add_contradictions(self, signal: str) -> None:
        """Record that every contradiction so far fired `signal`: one proof for each topic."""
        for topic, names in self.topics.items():
            for name in names:
                self.add(signal, name, "proof", topic)

    def observations(self, platform: Platform) -> tuple[Observation, ...]:
        """Return one observation per signal that exists on `platform`, in catalog order. Confidence: high for a
        `definitive` finding or two proofs, medium for one proof, low for hints alone (docs/signals.md).
        """
        return tuple(
            Observation(signal, self._confidence(signal), tuple(self._evidence[signal]))
            for signal in sorted(self._evidence, key=CATALOG_ORDER.__getitem__)
            if platform in CATALOG[signal].weights
        )

    def _confidence(self, signal: str) -> Level:
        proofs = len(self._proofs[signal])
        if signal in self._settled or proofs >= 2:
            return "high"
        return "medium" if proofs else "low"
