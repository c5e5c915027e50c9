"""Successions: how often a new token beside a visitor's older one is another device's, and not cleared storage.

What may live here: the counts of such tokens and the share that they give. Pure; nothing here knows a visitor.
"""

from __future__ import annotations

import msgspec

from svc.identify.matching.parameters import APART, APART_OF_CLASS, APART_REMEMBERED


class Successions(msgspec.Struct, gc=False):
    """Counts of tokens, of one class, or of all desktops or mobiles."""

    joined: float = 0.0
    """Tokens that joined a visitor beside an older one by likeness."""
    parted: float = 0.0
    """Those of them that turned out to be another device's."""

    def learn(self, joined: float, parted: float) -> None:
        """Count what one visit showed."""
        self.joined += joined
        self.parted += parted
        if self.joined > APART_REMEMBERED:
            self.joined /= 2.0
            self.parted /= 2.0


def share_apart(of_class: Successions, of_all: Successions) -> float:
    """Return the share, 0 to 1, of such tokens that are another device's. A class that saw few is taken for what all
    desktops, or all mobiles, are.
    """
    usual = (of_all.parted + APART[0]) / (of_all.joined + APART[1])
    share = (of_class.parted + APART_OF_CLASS * usual) / (of_class.joined + APART_OF_CLASS)
    return min(share, 1.0)
