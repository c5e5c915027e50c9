"""TLS handshakes: which fingerprints the visitors of one class and engine version usually show.

What may live here: a bounded table of counts, how it learns and what it answers. It learns from visitors who came back
with their token, once a day each: a program that pretends to be a browser makes new visitors, and teaches it nothing.
No list of fingerprints is needed, and none ages.
"""

from __future__ import annotations

from typing import Final, TypeAlias

Handshakes: TypeAlias = dict[int, dict[int, float]]
"""Major version of the browser -> 32-bit hash of the fingerprint -> visits."""

VERSIONS: Final = 8
FINGERPRINTS: Final = 24
"""Of one version: antivirus programs and companies' gateways put handshakes of their own in place of the browser's."""
ENOUGH: Final = 500
"""Visits of one version, before a handshake that none of them showed is called unusual."""
FADING: Final = 4_000.0
"""Visits of one version, from which on older ones count half."""


def learn_handshake(known: Handshakes, version: int, fingerprint: int) -> None:
    """Count one visit. The versions and fingerprints with the fewest visits are dropped where there are too many."""
    counts = known.get(version)
    if counts is None:
        if len(known) >= VERSIONS:
            del known[min(known, key=lambda other: (sum(known[other].values()), other))]
        counts = known[version] = {}
    if fingerprint not in counts and len(counts) >= FINGERPRINTS:
        del counts[min(counts, key=lambda other: (counts[other], other))]
    counts[fingerprint] = counts.get(fingerprint, 0.0) + 1.0
    if sum(counts.values()) > FADING:
        for each in counts:
            counts[each] /= 2


def is_unusual(known: Handshakes, version: int, fingerprint: int) -> bool:
    """Whether none of the visits of this version, of which there are `ENOUGH`, showed this handshake."""
    counts = known.get(version)
    return counts is not None and fingerprint not in counts and sum(counts.values()) >= ENOUGH
