"""The address ranges that come with the program: Tor, VPN, relays, hosting, content networks, crawlers.

They are those of the `iporigin` package, loaded once. No outbound call is ever made.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from functools import lru_cache
from typing import Any, cast

import iporigin

from svc.domain.addresses import Address
from svc.domain.network import Range

_RESERVED_OR_UNKNOWN = ("reserved", "unknown")


class BuiltInRanges:
    """A `svc.domain.network.Ranges` over the bundled table."""

    def __init__(self) -> None:
        about = cast("dict[str, Any]", iporigin.dataset_info())  # untyped
        self.built_at: date = datetime.fromtimestamp(about["built_at"], UTC).date()
        self._count = about["ranges"]
        self.find = lru_cache(maxsize=16_384)(self._find)

    def __len__(self) -> int:
        return self._count

    def _find(self, address: Address, /) -> Range | None:
        origin = iporigin.classify(address)  # pyright: ignore[reportUnknownMemberType]  it is untyped
        return None if origin.kind in _RESERVED_OR_UNKNOWN else Range(origin.kind, origin.provider)
