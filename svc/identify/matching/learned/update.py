"""What one visit teaches the statistics of its organization.

What may live here: data only, made in the visit's transaction and applied once it is on the disk.
"""

from __future__ import annotations

from typing import Final

import msgspec

from svc.identify.matching.features import Features
from svc.identify.matching.learned import renderings
from svc.identify.matching.visitor import Visitor


class StatisticsUpdate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one visit adds to the statistics. Data only, so that an undone transaction can drop it."""

    features: Features | None = None
    """`None`: nothing to learn."""
    new_devices: float = 0.0
    """How many devices the visit adds, by expectation, 0 to 1."""
    returned: float | None = None
    """Probability that it was a return, when it came without a known token and tells devices apart."""
    before: Visitor | None = None
    """The record that it surely belongs to, as it stood before the visit."""
    days: int = 0
    """Whole days since that visitor's last visit."""
    proven: bool = False
    """The link was proven by a token rather than judged."""
    returned_at_s: int = 0
    """When `before` came back, in seconds since 1970, where its token or its own network proves that; 0 = nothing."""
    twins_waited: bool = False
    """A token that had joined its visitor beside an older one came back for the first time, that one silent since."""
    twins_found: int = 0
    """How many such tokens turned out to be other devices', since the older one came back."""
    joined: bool = False
    """A new token joined its visitor beside an older one by likeness."""
    parted: float = 0.0
    """How many tokens that had joined so turned out to be another device's, by expectation, 0 to 1."""
    handshake: int = 0
    """32-bit hash of the fingerprint of its TLS handshake, where that is to be learned; 0 = nothing."""
    rendered: renderings.Rendered = ""
    """What it teaches of what devices compute."""


NOTHING: Final = StatisticsUpdate()
