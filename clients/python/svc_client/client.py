"""The two clients: `Client` blocks, `AsyncClient` runs under asyncio or trio."""

from __future__ import annotations

import inspect
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime
from types import TracebackType
from typing import Any, Self, cast

import anyio
import httpx

from svc_client.async_operations import AsyncOperations
from svc_client.call import Call
from svc_client.checks import Action, Checked, CheckedVerdict, checked, is_request_id, may_count, problems_with
from svc_client.connections import LoopConnections, ProcessConnections
from svc_client.deadlines import ending_at
from svc_client.errors import ApiError, SvcError, unexpected
from svc_client.operations import Operations
from svc_client.retries import Retries
from svc_client.transport import Body, address_of, failure_of, key_of, read, request, unreachable
from svc_client.types import ChangesAnswer, EventBody, EventsAnswer, UnreadableEventBody
from svc_client.verdicts import Expected, KeyRing, checked_verdict

TIMEOUT_S = 5.0
DEADLINE_S = 15.0
NO_SUCH_EVENT = frozenset({"event_not_found", "invalid_request_id"})


class Client(Operations):
    """Calls the service with one key, and waits. Threads may share one, and so may processes that are forked.

    `base_url` is where the service is, without `/api/v1`. `timeout_s` is for each attempt, `deadline_s` for all
    attempts of a call and the waits between them. `http` takes the place of a connection pool of the client's own, and
    is not closed by it; each of its reads has the limit of an attempt. Raises `ValueError` for what is no address or
    key.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        deadline_s: float = DEADLINE_S,
        retries: Retries | None = None,
        http: httpx.Client | None = None,
    ) -> None:
        self._base_url, self._api_key = address_of(base_url), key_of(api_key)
        self._timeout_s, self._deadline_s = timeout_s, deadline_s
        self._retries = retries or Retries()
        self._connections = ProcessConnections(http)
        self._key_rings: dict[str, KeyRing] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections, unless they are of the caller's `http`."""
        self._connections.close()

    def check(  # noqa: PLR0913  all by name: what the action is
        self,
        request_id: object,
        *,
        origin: str | None,
        tag: str | None,
        ip: str | None = None,
        account_id: str | None = None,
        action: str | None = None,
        platform: str | None = None,
        proven: bool = False,
        same_network: bool = False,
        allow_unknown: bool = False,
        is_first_use: Callable[[str], bool],
        now: datetime | None = None,
    ) -> Checked:
        """Read an event with a secret key, check that it belongs to the action that is being served, and decide: act on
        `decision` of what comes back, and log its `reasons`.

        Raises `ApiError` and `UnreachableError`: decide beforehand what goes on without a verdict.

        Args:
            request_id: From the visitor's client: anything at all.
            origin: Of the page; `None` for an app.
            tag: That of this action, best a random value of this session; `None` for none.
            ip: The address that is talking to you, to compare it: `other_address` asks for a second factor, and honest
                visitors have it who reach the service by IPv6 and you by IPv4.
            account_id: That of your session, `None` not to compare it: `other_account` is the problem of another one,
                and of none. At a sign-up there is none yet; `update_event` sets it.
            action: What is being served, such as `log_in`; `None` not to compare it.
            platform: By which it must have been scored: `web`, `android` or `ios`; `None` not to compare it. A report
                that names another platform than its page or app is scored by other weights.
            proven: Whether to ask for a visit that its browser proved: `unproven` asks for a second factor. A first
                visit is never proven: it brings the key that later ones are compared with.
            same_network: Whether it is enough that `ip` is of the same network, of IPv4 the /24 and of IPv6 the /48:
                `other_network` takes the place of `other_address`.
            allow_unknown: Whether a visitor is accepted that is new (confidence 0), or the same by all that is known
                and not proven (85 to 89), as after its storage was cleared. For a sign-up: no `not_known`.
            is_first_use: Stores the id and says whether it was new: a unique key in your database. Called last, for
                an event that counts for this action, at once or after a second factor.
            now: The time, with a time zone; that of the machine by default.

        """
        if not isinstance(request_id, str) or not is_request_id(request_id):
            return checked(("not_found",), None, allow_unknown=allow_unknown)
        try:
            event = self.get_event(request_id)
        except ApiError as error:
            if error.code in NO_SUCH_EVENT:
                return checked(("not_found",), None, allow_unknown=allow_unknown)
            raise
        problems = problems_with(
            event,
            Action(
                origin=origin,
                tag=tag,
                ip=ip,
                account_id=account_id,
                action=action,
                platform=platform,
                proven=proven,
                same_network=same_network,
                now=now,
            ),
            request_id,
        )
        if may_count(problems) and not _at_once(is_first_use(request_id)):
            problems = ("used_before",)
        return checked(problems, event, allow_unknown=allow_unknown)

    def check_verdict(
        self, token: object, expected: Expected, *, is_first_use: Callable[[str], bool]
    ) -> CheckedVerdict:
        """Check a signed verdict that the visitor's client handed over: its signature, age, environment, and that it
        belongs to the action that is being served. Asks the service for the organization's keys once an hour, and for
        nothing else; `is_first_use` and the errors are those of `check`.
        """
        ring = self._key_rings.setdefault(expected.organization_id, KeyRing())
        if ring.must_be_read(token, time.monotonic()):
            ring.put(self.get_verdict_keys(expected.organization_id).get("keys"), time.monotonic())
        found = ring.check(token, expected)
        if found.verdict and may_count(found.problems) and not _at_once(is_first_use(found.verdict["jti"])):
            return checked_verdict(("used_before",), found.verdict, expected)
        return found

    def iterate_events(self, **filters: Any) -> Iterator[EventBody | UnreadableEventBody]:
        """Every event of a list, newest first, page after page; arguments as of `list_events`, but `page`, `order` and
        `after`. One that is corrupt in the store has `request_id` and `error` alone.
        """
        while True:
            page = self.list_events(**filters)
            yield from rows_of(page)
            if page.get("next_cursor") is None:
                return
            filters["cursor"] = page.get("next_cursor")

    def iterate_feed(self, *, follow: bool = True, poll_s: float = 1.0, **query: Any) -> Iterator[EventsAnswer]:
        """The pages of the feed, oldest first: each event once, behind `after` or else from the oldest on; arguments as
        of `list_events`, but `order`, `page`, `cursor`, `to`, and filters on what may change later: `account_id`,
        `action`, `tag`, `label` and `rule` are a 422 (`not_with_order`).

        Store `next_cursor` of a page together with what you made of its rows, and begin with it as `after`. At the end
        it waits for `poll_s` seconds and looks again; without `follow` it ends.
        """
        query.setdefault("limit", 200)
        while True:
            page = self.list_events(order="oldest", **query)
            rows_of(page)
            yield page
            query.pop("from_", None)
            query["after"] = page.get("next_cursor")
            if not page.get("has_more"):
                if not follow:
                    return
                time.sleep(poll_s)

    def iterate_changes(self, *, follow: bool = True, poll_s: float = 1.0, **query: Any) -> Iterator[ChangesAnswer]:
        """The pages of changes, oldest first: new events, updates and erasures, each once, behind `after` or else from
        the oldest on; arguments as of `list_changes`.

        Store `next_cursor` of a page together with what you made of its changes, and begin with it as `after`. At the
        end it waits for `poll_s` seconds and looks again; without `follow` it ends.
        """
        query.setdefault("limit", 200)
        while True:
            page = self.list_changes(**query)
            rows_of(page, "changes")
            yield page
            query["after"] = page.get("next_cursor")
            if not page.get("has_more"):
                if not follow:
                    return
                time.sleep(poll_s)

    def _send(self, call: Call) -> Any:
        ends_s = time.monotonic() + self._deadline_s
        attempt = 0
        while True:
            attempt += 1
            try:
                return self._attempt(call, min(self._timeout_s, ends_s - time.monotonic()))
            except SvcError as error:
                wait_s = _wait_s(self._retries, error, attempt, call, left_s=ends_s - time.monotonic())
                if wait_s is None:
                    raise
            time.sleep(wait_s)

    def _attempt(self, call: Call, limit_s: float) -> Any:
        ends_s = time.monotonic() + limit_s
        sent = request(self._base_url, self._api_key, call)
        try:
            http = self._connections.http()
            with ending_at(ends_s), http.stream(**sent, timeout=limit_s, follow_redirects=False) as response:
                if response.is_stream_consumed:  # of a transport that has it already
                    return read(response, response.content)
                body = Body(response)
                for chunk in response.iter_raw():
                    if not body.add(chunk):
                        break
                    if time.monotonic() >= ends_s:
                        raise httpx.ReadTimeout("timed out")
                return read(response, body.content())
        except httpx.RequestError as error:
            raise failure_of(error, httpx.URL(self._base_url)) from error


class AsyncClient(AsyncOperations):
    """Calls the service with one key, under asyncio or trio. The arguments are those of `Client`. Event loops may share
    one, at once or one after the other: each has connections of its own, unless they are of `http`.
    """

    def __init__(
        self,
        base_url: str,
        api_key: str,
        *,
        timeout_s: float = TIMEOUT_S,
        deadline_s: float = DEADLINE_S,
        retries: Retries | None = None,
        http: httpx.AsyncClient | None = None,
    ) -> None:
        self._base_url, self._api_key = address_of(base_url), key_of(api_key)
        self._timeout_s, self._deadline_s = timeout_s, deadline_s
        self._retries = retries or Retries()
        self._connections = LoopConnections(http)
        self._key_rings: dict[str, KeyRing] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections of this event loop, unless they are of the caller's `http`."""
        await self._connections.aclose()

    async def check(  # noqa: PLR0913  all by name: what the action is
        self,
        request_id: object,
        *,
        origin: str | None,
        tag: str | None,
        ip: str | None = None,
        account_id: str | None = None,
        action: str | None = None,
        platform: str | None = None,
        proven: bool = False,
        same_network: bool = False,
        allow_unknown: bool = False,
        is_first_use: Callable[[str], bool | Awaitable[bool]],
        now: datetime | None = None,
    ) -> Checked:
        """As `Client.check`; `is_first_use` may be a coroutine function."""
        if not isinstance(request_id, str) or not is_request_id(request_id):
            return checked(("not_found",), None, allow_unknown=allow_unknown)
        try:
            event = await self.get_event(request_id)
        except ApiError as error:
            if error.code in NO_SUCH_EVENT:
                return checked(("not_found",), None, allow_unknown=allow_unknown)
            raise
        problems = problems_with(
            event,
            Action(
                origin=origin,
                tag=tag,
                ip=ip,
                account_id=account_id,
                action=action,
                platform=platform,
                proven=proven,
                same_network=same_network,
                now=now,
            ),
            request_id,
        )
        if may_count(problems):
            is_first = is_first_use(request_id)
            if not (await is_first if inspect.isawaitable(is_first) else is_first):
                problems = ("used_before",)
        return checked(problems, event, allow_unknown=allow_unknown)

    async def check_verdict(
        self, token: object, expected: Expected, *, is_first_use: Callable[[str], bool | Awaitable[bool]]
    ) -> CheckedVerdict:
        """As `Client.check_verdict`; `is_first_use` may be a coroutine function."""
        ring = self._key_rings.setdefault(expected.organization_id, KeyRing())
        if ring.must_be_read(token, time.monotonic()):
            ring.put((await self.get_verdict_keys(expected.organization_id)).get("keys"), time.monotonic())
        found = ring.check(token, expected)
        if found.verdict and may_count(found.problems):
            is_first = is_first_use(found.verdict["jti"])
            if not (await is_first if inspect.isawaitable(is_first) else is_first):
                return checked_verdict(("used_before",), found.verdict, expected)
        return found

    async def iterate_events(self, **filters: Any) -> AsyncIterator[EventBody | UnreadableEventBody]:
        """Every event of a list, newest first, page after page; arguments as of `list_events`, but `page`, `order` and
        `after`. One that is corrupt in the store has `request_id` and `error` alone.
        """
        while True:
            page = await self.list_events(**filters)
            for row in rows_of(page):
                yield row
            if page.get("next_cursor") is None:
                return
            filters["cursor"] = page.get("next_cursor")

    async def iterate_feed(
        self, *, follow: bool = True, poll_s: float = 1.0, **query: Any
    ) -> AsyncIterator[EventsAnswer]:
        """The pages of the feed; see `Client.iterate_feed`."""
        query.setdefault("limit", 200)
        while True:
            page = await self.list_events(order="oldest", **query)
            rows_of(page)
            yield page
            query.pop("from_", None)
            query["after"] = page.get("next_cursor")
            if not page.get("has_more"):
                if not follow:
                    return
                await anyio.sleep(poll_s)

    async def iterate_changes(
        self, *, follow: bool = True, poll_s: float = 1.0, **query: Any
    ) -> AsyncIterator[ChangesAnswer]:
        """The pages of changes; see `Client.iterate_changes`."""
        query.setdefault("limit", 200)
        while True:
            page = await self.list_changes(**query)
            rows_of(page, "changes")
            yield page
            query["after"] = page.get("next_cursor")
            if not page.get("has_more"):
                if not follow:
                    return
                await anyio.sleep(poll_s)

    async def _send(self, call: Call) -> Any:
        ends_s = anyio.current_time() + self._deadline_s
        attempt = 0
        while True:
            attempt += 1
            try:
                return await self._attempt(call, min(self._timeout_s, ends_s - anyio.current_time()))
            except SvcError as error:
                wait_s = _wait_s(self._retries, error, attempt, call, left_s=ends_s - anyio.current_time())
                if wait_s is None:
                    raise
            await anyio.sleep(wait_s)

    async def _attempt(self, call: Call, limit_s: float) -> Any:
        was_sent = self._connections.are_given  # whose transport may follow no trace

        async def note(event: str, _: object) -> None:
            nonlocal was_sent
            if event.startswith("connection.connect_tcp."):
                was_sent = False
            elif event.endswith(".send_request_headers.started"):
                was_sent = True

        url = httpx.URL(self._base_url)
        sent = request(self._base_url, self._api_key, call)
        given: dict[str, Any] = {"timeout": None, "follow_redirects": False, "extensions": {"trace": note}}
        try:
            with anyio.fail_after(limit_s):
                async with self._connections.http().stream(**sent, **given) as response:
                    if response.is_stream_consumed:  # of a transport that has it already
                        return read(response, response.content)
                    body = Body(response)
                    with anyio.CancelScope() as reading:  # leaving the loop would leave generators of httpx open
                        async for chunk in response.aiter_raw():
                            if not body.add(chunk):
                                reading.cancel()
                    return read(response, body.content())
        except TimeoutError as error:
            raise unreachable(url, "timed out", was_sent=was_sent) from error
        except (httpx.RequestError, ssl.SSLError) as error:  # httpx lets an alert of TLS pass under asyncio
            raise failure_of(error, url) from error


def rows_of(page: Any, name: str = "rows") -> list[Any]:
    """What is listed on a page. Raises `ApiError` where it has not the form of one."""
    rows, cursor = page.get(name), page.get("next_cursor")
    if not isinstance(rows, list) or not isinstance(cursor, str | None):
        raise unexpected(200)
    found = cast("list[Any]", rows)
    if not all(isinstance(row, dict) for row in found):
        raise unexpected(200)
    return found


def _at_once(is_first: object) -> bool:
    """Whether a use is the first one. Raises `TypeError` for what is to be awaited: it would be true for each use."""
    if inspect.isawaitable(is_first):
        raise TypeError("is_first_use is a coroutine function: only AsyncClient awaits it")
    return bool(is_first)


def _wait_s(retries: Retries, failure: SvcError, attempt: int, call: Call, *, left_s: float) -> float | None:
    """Seconds until the next attempt; `None` = there is none, or no time for it."""
    wait_s = retries.wait_s(failure, attempt=attempt, is_repeatable=call.is_repeatable, random=random.random())  # noqa: S311  no secret
    return None if wait_s is None or wait_s >= left_s else wait_s
