"""What a request shows of the visitor: address and headers, its own or as a server forwards them (decisions 2.9, 2.10).

What may live here: reading `RequestFacts` out of headers, and refusing forwarded details that cannot be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network

import msgspec

from svc.http.callers.caller import ConnectionHeaders, HeaderMap
from svc.http.callers.client_address import client_address, is_trusted
from svc.identify.model import HeaderContext, RequestFacts
from svc.identify.network.request_headers import read_fetch_metadata
from svc.identify.useragent import read_hints
from svc.kernel.access.credentials import ApiKey
from svc.kernel.net.addresses import is_public, read_address
from svc.kernel.net.origins import is_loopback, normalize_origin
from svc.kernel.values.refusals import Detail, Issue, Refusal

MAX_USER_AGENT_BYTES = 1024
MAX_HEADERS_BYTES = 2048
"""Of `x-svc-visitor-headers`."""
LONGEST_CONNECTION_TEXT = 128
VISITOR_HEADERS = (
    "x-svc-visitor-ip",
    "x-svc-visitor-origin",
    "x-svc-visitor-user-agent",
    "x-svc-visitor-headers",
)
"""What a server forwards of a visitor; any of them makes the request that visitor's."""

NOT_PUBLIC = (
    "The address in x-svc-visitor-ip is not a public one, and a production key takes no other. Forward the address "
    "that the visitor's request came from, not that of a proxy or a load balancer of your own."
)
"""For a private address: the header is neither missing nor malformed."""
NOT_OF_A_VISITOR = (
    "x-svc-visitor-headers is a JSON object of texts, of at most 2,048 bytes, and takes accept-language, sec-ch-ua... "
    "and sec-fetch-... alone. Forward those headers of the visitor's request under their own names."
)

_forwarded = msgspec.json.Decoder(dict[str, str])


def own_facts(
    headers: HeaderMap,
    peer: str,
    trusted: Sequence[IPv4Network | IPv6Network],
    connection: ConnectionHeaders,
    *,
    context: HeaderContext | None = None,
) -> RequestFacts:
    """Return the facts about the sender itself: its address and headers. `trusted`: the networks of trusted proxies,
    the only ones whose headers about address and connection are believed, since anybody can send a header. `context`:
    see `page_context`.
    """
    edge: HeaderMap = headers if is_trusted(peer, trusted) else {}
    return RequestFacts(
        ip=client_address(peer, headers.get("x-forwarded-for"), trusted),
        user_agent=headers.get("user-agent"),
        accept_language=headers.get("accept-language"),
        hints=read_hints(headers),
        connection_os=edge.get(connection.os or ""),
        context=context,
        fetch=read_fetch_metadata(headers),
        connection_tls=_shortened(edge.get(connection.tls or "")),
    )


def page_context(origin: str | None, host: str) -> HeaderContext | None:
    """Return the context in which a browser sent a request to `host`, the value of the header; `None` if the origin is
    an app's or missing. Secure pages send only to secure addresses and to this machine. A page of this machine counts
    as secure and may send to others in plain text, without client hints and fetch metadata (W3C Mixed Content, Secure
    Contexts, Fetch Metadata).
    """
    if origin is None or not origin.startswith(("https://", "http://")):
        return None
    if origin.startswith("https://") and not is_loopback(origin):
        return "secure"
    own = normalize_origin(f"http://{host}")
    return "secure" if is_loopback(origin) and own is not None and is_loopback(own) else "plain"


def forwarded_facts(key: ApiKey, headers: HeaderMap, origin: str | None) -> RequestFacts | Refusal:
    """Return the visitor for whom a server speaks; `422 invalid_visitor_metadata` if something is missing or
    malformed. `origin` is the visitor's, normalized.
    """
    address = _forwarded_address(headers.get("x-svc-visitor-ip"), key)
    if isinstance(address, Refusal):
        return address
    user_agent = headers.get("x-svc-visitor-user-agent")
    if user_agent is not None and len(user_agent.encode("latin-1")) > MAX_USER_AGENT_BYTES:
        return bad_metadata("x-svc-visitor-user-agent", "too_long")
    passed_on = _forwarded_headers(headers.get("x-svc-visitor-headers"))
    if isinstance(passed_on, Refusal):
        return passed_on
    if passed_on is None:
        return RequestFacts(ip=address, user_agent=user_agent)
    return RequestFacts(
        ip=address,
        user_agent=user_agent,
        accept_language=passed_on.get("accept-language"),
        hints=read_hints(passed_on),
        context="forwarded" if origin is not None and page_context(origin, "localhost") == "secure" else None,
        fetch=read_fetch_metadata(passed_on),
    )


def bad_metadata(header: str, issue: Issue, explanation: str = "") -> Refusal:
    """Return `422 invalid_visitor_metadata` for one header."""
    return Refusal("invalid_visitor_metadata", (Detail(header, issue, "header"),), explanation=explanation)


def _forwarded_address(text: str | None, key: ApiKey) -> str | Refusal:
    name = "x-svc-visitor-ip"
    if text is None:
        return bad_metadata(name, "required")
    address = read_address(text)
    if address is None:
        return bad_metadata(name, "invalid_value")
    if key.environment == "production" and not is_public(address):
        return bad_metadata(name, "not_public_address", NOT_PUBLIC)
    return str(address)


def _forwarded_headers(text: str | None) -> dict[str, str] | Refusal | None:
    """Return the visitor's headers by lower-case name, or `None` where the server forwards none. Leave out empty ones,
    which proxies send that fill a template.
    """
    if text is None:
        return None
    name = "x-svc-visitor-headers"
    raw = text.encode("latin-1")
    if len(raw) > MAX_HEADERS_BYTES:
        return bad_metadata(name, "too_long", NOT_OF_A_VISITOR)
    try:
        found = _forwarded.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return bad_metadata(name, "invalid_value", NOT_OF_A_VISITOR)
    lowered = {header.lower(): value for header, value in found.items()}
    if len(lowered) < len(found):
        return bad_metadata(name, "invalid_value", NOT_OF_A_VISITOR)
    if not all(header == "accept-language" or header.startswith(("sec-ch-ua", "sec-fetch-")) for header in lowered):
        return bad_metadata(name, "unknown_field", NOT_OF_A_VISITOR)
    return {header: value for header, value in lowered.items() if value}


def _shortened(text: str | None) -> str | None:
    return text[:LONGEST_CONNECTION_TEXT] if text else None
