"""Types of settings: what a number or a text may be."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Port = Annotated[int, Meta(ge=1, le=65535)]
Natural = Annotated[int, Meta(ge=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Seconds = Annotated[float, Meta(gt=0)]
Digest = Annotated[str, Meta(pattern="^[0-9a-fA-F]{64}$")]
AppleApp = Annotated[str, Meta(pattern="^[0-9A-Z]{10}[.][0-9A-Za-z._-]{1,155}$")]
LogFormat = Literal["json", "console"]
