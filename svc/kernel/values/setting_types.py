"""Types of settings: what a number or a text may be."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Natural = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0)]
Digest = Annotated[str, Meta(pattern=r"^[0-9a-fA-F]{64}$(?!\n)")]
AppleApp = Annotated[str, Meta(pattern=r"^[0-9A-Z]{10}[.][0-9A-Za-z._-]{1,155}$(?!\n)")]
PublicUrl = Annotated[str, Meta(pattern=r"^https?://[0-9A-Za-z.:\[\]-]+(/[0-9A-Za-z._~/-]*)?$(?!\n)", max_length=200)]
LogFormat = Literal["auto", "json", "console"]

_PASSWORD = re.compile(r"//[^/?#@]*:[^/?#]*@|[?&](?:ssl)?password=", re.IGNORECASE)


def url_problem(url: str) -> str | None:
    """Return what to do about a store URL that contains a password, which must not be shown; `None` if it contains
    none.
    """
    if _PASSWORD.search(url) is None:
        return None
    return (
        "the store's URL holds a password, which everybody on this machine could read: put it into a file of mode 0600 "
        "and name that with SVC_STORE_PASSWORD_FILE, or use a passfile (~/.pgpass)"
    )
