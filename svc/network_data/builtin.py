"""The address ranges that come with the program: Tor, VPN, relays, hosting, content networks, crawlers.

They are those of the `iporigin` package, loaded once.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, cast

import iporigin

from svc.domain.network.addresses import Address
from svc.domain.network.facts import Range

SOURCE = "built-in ranges"
_RESERVED_OR_UNKNOWN = ("reserved", "unknown")


class BuiltInRanges:
    """The bundled table; about 5 microseconds a look-up."""

    def __init__(self) -> None:
        about = cast("dict[str, Any]", iporigin.dataset_info())  # untyped
        self.built_at: date = datetime.fromtimestamp(about["built_at"], UTC).date()
        self._count = about["ranges"]
        self.providers = frozenset(cast("list[str]", about["providers"]))
        """Who runs what stands in the ranges; the operators of crawlers among others."""

    def __len__(self) -> int:
        return self._count

    def find(self, address: Address, /) -> Range | None:
        """The range that holds the address; `None` for addresses that are reserved or in no range."""
        origin = iporigin.classify(address)  # pyright: ignore[reportUnknownMemberType]  it is untyped
        return None if origin.kind in _RESERVED_OR_UNKNOWN else Range(origin.kind, origin.provider, SOURCE)
