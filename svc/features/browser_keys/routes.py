"""Keys of visitors' browsers: how many first signed in a window of time, and revoking them (decisions 18.2)."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

from svc.features.browser_keys.jobs import Found, Signed, find_keys, revoke_keys
from svc.http.change import change
from svc.http.route import ORGANIZATION, Call, Route, Services
from svc.kernel.values.fields import TIME_FORM, about
from svc.kernel.values.ids import end_of_now
from svc.kernel.values.refusals import Location, Refusal, invalid
from svc.kernel.values.struct_fields import sent
from svc.kernel.values.timestamps import read_timestamp, timestamp
from svc.kernel.work.slices import Slice

_FIRST = timestamp(0)
_FROM = about("Start of the window.", "2026-01-01T10:00:00Z", form=TIME_FORM)
_TO = about("End of the window, exclusive; now when left out, which is best.", "2026-01-02T00:00:00Z", form=TIME_FORM)


class BrowserKeysQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Query of `countBrowserKeys`."""

    start: Annotated[
        str | UnsetType, about("Start of the window; all keys when left out.", "2026-01-01T10:00:00Z", form=TIME_FORM)
    ] = msgspec.field(default=UNSET, name="from")
    end: Annotated[str | UnsetType, _TO] = msgspec.field(default=UNSET, name="to")


class RevokeBrowserKeysBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Body of `revokeBrowserKeys`."""

    start: Annotated[str, _FROM] = msgspec.field(name="from")
    end: Annotated[str | UnsetType, _TO] = msgspec.field(default=UNSET, name="to")


class BrowserKeysBody(msgspec.Struct, frozen=True, kw_only=True):
    """Keys of browsers that first signed in a window, and have not been revoked, or now are."""

    start: Annotated[str, _FROM] = msgspec.field(name="from")
    end: Annotated[str, about("End of the window, exclusive.", "2026-01-02T00:00:00Z", form=TIME_FORM)] = msgspec.field(
        name="to"
    )
    visitors: Annotated[int, about("Visitors who have such keys.", 120)]
    keys: Annotated[int, about("The keys themselves: a browser has one on each site.", 131)]


async def count_keys(services: Services, call: Call) -> BrowserKeysBody | Refusal:
    """`GET .../browser-keys`: how many there are. `422 validation_error`."""
    query: BrowserKeysQuery = call.query
    signed = read_window(_FIRST if query.start is UNSET else query.start, sent(query.end), call.at_ms, "query")
    if isinstance(signed, Refusal):
        return signed
    visitors = keys = 0
    after: int | None = 0
    while after is not None:
        found = await _next(services, call, signed, after)
        visitors, keys, after = visitors + len(found.visitors), keys + found.keys, found.after
    return _body(signed, visitors, keys)


async def revoke(services: Services, call: Call) -> BrowserKeysBody | Refusal:
    """`POST .../browser-keys/revoke`: `200` once all of them are revoked. Where the request is cut short, what was
    revoked stays so, and the same request goes on. `422 validation_error`.
    """
    body: RevokeBrowserKeysBody = call.body
    signed = read_window(body.start, sent(body.end), call.at_ms, "body")
    if isinstance(signed, Refusal):
        return signed
    visitors = keys = 0
    after: int | None = 0
    number = call.organization.number
    while after is not None:
        found = await _next(services, call, signed, after)
        if found.visitors or not after:  # the first one is recorded in the audit log, whatever it finds
            job = partial(revoke_keys, number=number, signed=signed, visitors=found.visitors, now_ms=call.at_ms)
            revoked = await change(services, call, job, may_use_reserve=True)
            if isinstance(revoked, Refusal):
                return revoked
            visitors, keys = visitors + len(found.visitors), keys + revoked
        after = found.after
    return _body(signed, visitors, keys)


async def _next(services: Services, call: Call, signed: Signed, after: int) -> Found:
    time = Slice(services.world)
    find = partial(find_keys, number=call.organization.number, signed=signed, after=after)
    found = await services.store.query(find)
    await time.pause()
    return found


def _body(signed: Signed, visitors: int, keys: int) -> BrowserKeysBody:
    return BrowserKeysBody(start=timestamp(signed.from_ms), end=timestamp(signed.to_ms), visitors=visitors, keys=keys)


def read_window(start: str, end: str | None, now_ms: int, place: Location) -> Signed | Refusal:
    """Return a window of time, until now where it has no `end`. `422 validation_error` for what is not RFC 3339, for an
    end that is not after the start, and for a start that lies ahead.
    """
    from_ms = read_timestamp(start)
    if from_ms is None:
        return invalid("from", "invalid_value", place)
    to_ms = end_of_now(now_ms) if end is None else read_timestamp(end)
    if to_ms is None:
        return invalid("to", "invalid_value", place)
    if from_ms > now_ms:
        return invalid("from", "out_of_range", place)
    return Signed(from_ms, to_ms) if from_ms < to_ms else invalid("to", "out_of_range", place)


_route = partial(Route, tag="Management: keys", kinds=("management",), needs="administer")
ROUTES: tuple[Route, ...] = (
    _route(
        operation_id="countBrowserKeys",
        path=ORGANIZATION + "/browser-keys",
        summary="Count the keys of browsers",
        description="Those that first signed in a window of time and are not revoked. All visitors are looked through.",
        handler=count_keys,
        query=BrowserKeysQuery,
    ),
    _route(
        operation_id="revokeBrowserKeys",
        method="POST",
        path=ORGANIZATION + "/browser-keys/revoke",
        summary="Revoke the keys of browsers",
        description=(
            "After a script that was not yours ran on your pages: it may have planted a key, which proves as the "
            "visitor's own does, from anywhere. Keys that first signed in the window prove nothing from the next "
            "request on; the web SDK renews them, and their visitors stay, unproven for a visit. A planted key counts "
            "from when it first signed, which may be on a later visit: leave out `to`. May be repeated."
        ),
        handler=revoke,
        body=RevokeBrowserKeysBody,
    ),
)
