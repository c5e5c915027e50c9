"""Attestation: proof by a device's secure hardware, against a challenge of ours, that a report is of a genuine device.

Pure. A reader begins with `claim`, what a report carries and what is asked of it; then `chain` and `key_description`,
how certificates are verified and what they say; `trust`, whom to believe; `challenge`, the rule of single use.
"""

from __future__ import annotations

from svc.domain.attestation.claim import Attestation, observe, read_attestation
from svc.domain.attestation.trust import Trust, published_trust, read_revoked, read_roots

__all__ = ["Attestation", "Trust", "observe", "published_trust", "read_attestation", "read_revoked", "read_roots"]
