"""What the short names in the explanation of an event mean, in a sentence or a phrase for people.

What may live here: look-ups in `svc/identify/data/explanations.toml` and, for evidence, in the catalog of signals. The
names are made where the checks are: in `detection`, `history`, `attestation` and `matching`.
"""

from __future__ import annotations

import msgspec

from svc.identify.data import read_tables
from svc.identify.scoring.signals import EVIDENCE


class _Tables(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `explanations.toml`."""

    changes: dict[str, str]
    linkage: dict[str, str]
    proof: dict[str, str]
    certainty: dict[str, str]
    reasons: dict[str, str]


_TABLES = read_tables("explanations", _Tables)

CHANGES: dict[str, str] = _TABLES.changes
"""Name in `document.changes` -> what differs from the visitor's last report."""

LINKAGE: dict[str, str] = _TABLES.linkage
"""Outcome of matching -> how the visitor was matched, or why it counts as new; `split_from` -> what it means that an
event names that visitor."""

PROOF: dict[str, str] = _TABLES.proof
"""What the proof of a report is worth, as `document.linkage.proof` has it -> a phrase; `proven` and `none` where it has
another meaning, or is missing."""

CERTAINTY: dict[str, str] = _TABLES.certainty
"""What recognized a visitor, where that is not certain (`likeness`, a `token` or a `proven` token) -> a sentence;
`unidentifiable` for one that is never recognized."""

REASONS: dict[str, str] = _TABLES.reasons
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
