"""Loaded by Schemathesis itself: SDKs send the `Origin` of their site, and nobody else does.

A hook and no setting: version 4.32 keeps the headers set for the first operation of a run in its session, and so would
send them with every other.
"""

from __future__ import annotations

from typing import Any

import schemathesis

ORIGIN = "https://shop.example"


@schemathesis.hook
def before_call(context: Any, case: Any, kwargs: Any) -> None:
    if "Client API" in case.operation.tags:
        case.headers = {**(case.headers or {}), "Origin": ORIGIN}
