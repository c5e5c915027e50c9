"""Readers of short texts: keys, tokens, queries, times, addresses, origins, user agents."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any
from urllib.parse import unquote, urlencode
from uuid import UUID

import msgspec
from hypothesis import strategies as st

from svc.features.routes import PATHS
from svc.features.webhooks.addresses import MAX_URL_LENGTH, TargetPolicy, addresses_to_dial, read_target
from svc.features.webhooks.addresses import Target as WebhookTarget
from svc.http.callers.client_address import client_address, is_trusted
from svc.http.query import read_query
from svc.http.route import RouteMatch
from svc.http.schema import ListEventsQuery
from svc.identify.events.listing import Asked, CursorScope, Listing, read_listing
from svc.identify.keys import deferred
from svc.identify.model import Agent, ClientHints, Report, RequestFacts
from svc.identify.records import RETENTION_MS
from svc.identify.useragent import read_agent, read_hints
from svc.kernel.access.credentials import Credential, issue_secret, parse
from svc.kernel.net.addresses import parse_ip
from svc.kernel.net.origins import MAX_LENGTH, normalize_origin, normalize_pattern, origin_allowed
from svc.kernel.values.encodings import Cursors
from svc.kernel.values.refusals import Refusal
from svc.kernel.values.timestamps import read_timestamp, timestamp
from tests.fuzz.target import AWKWARD_TEXT, Target, mutated, mutated_text

NOW_MS = 1_767_225_600_000

# Keys and tokens

KEYS = [
    issue_secret("public", "us", "production", bytes(32)),
    issue_secret("secret", "eu1", "development", bytes(range(32))),
    issue_secret("management", "us", None, b"\xff" * 32),
]


def check_key(text: str, found: Credential | None) -> None:
    if found is not None:
        assert text in KEYS, "a checksum that was not made here"
        assert (found.environment is None) == (found.kind == "management")
        assert found.secret == text
        assert text not in repr(found)


SIGNING_KEY = b"k" * 32
REQUEST_ID = UUID(int=7 << 76 | 2 << 62)
TOKEN = deferred.issue_token(SIGNING_KEY, REQUEST_ID, "key_a", "https://a.example", NOW_MS)


def check_token(text: str, found: deferred.DeferredToken | None) -> None:
    assert (found is None) == (text != TOKEN)


CURSORS = Cursors(SIGNING_KEY, "deliveries", 7)
CURSOR = CURSORS.write(REQUEST_ID.bytes)


def check_cursor(text: str, found: bytes | None) -> None:
    assert found == (REQUEST_ID.bytes if text == CURSOR else None)


# Queries and times


def read_events_query(raw: bytes) -> Listing | Refusal | None:
    query = read_query(raw, ListEventsQuery)
    if not isinstance(query, ListEventsQuery):
        return query
    given = {name: value for name, value in msgspec.structs.asdict(query).items() if value is not msgspec.UNSET}
    return read_listing(Asked(**given), NOW_MS, CursorScope(SIGNING_KEY, 7, "production"), RETENTION_MS)


def check_events_query(_: bytes, found: Listing | Refusal | None) -> None:
    assert found is not None
    if isinstance(found, Refusal):
        assert (found.status, found.code) in {(422, "validation_error"), (422, "invalid_window")}
        assert len(found.details) == 1
        msgspec.json.encode(found.details)
        return
    assert NOW_MS - RETENTION_MS <= found.from_ms < found.to_ms <= found.from_ms + RETENTION_MS + 1
    assert 0 <= found.offset <= 10_000
    assert 1 <= found.limit <= 200


QUERIES = [
    b"",
    b"from=2025-12-31T00:00:00.000Z&to=2026-01-01T00:00:00%2B02:00&page=2&limit=200&visitor=0qppzPLvL54VURDkQrfS&level=low",
    b"page=1&page=2",
    b"limit=1e2&from=&level=%ff&x=%00",
]
NAMES = ["from", "to", "page", "limit", "visitor", "level", "other"]


def check_time(text: str, found: int | None) -> None:
    if found is not None:
        assert abs(found) < 400_000_000_000_000
        if 0 <= found < 250_000_000_000_000:
            assert read_timestamp(timestamp(found)) == found


TIMES = [
    "2026-01-05T10:00:00.000Z",
    "2026-01-05 10:00:00+23:59",
    "0001-01-01T00:00:00-00:00",
    "9999-12-31t23:59:59.9999z",
]

# Addresses, proxies, origins, targets

ADDRESSES = [
    "192.0.2.1",
    "10.0.0.1",
    "::1",
    "2001:db8::1",
    "::ffff:10.0.0.1",
    "64:ff9b::a00:1",
    "fe80::1%eth0",
    "1.2.3",
    "",
]
PROXIES = tuple(map(ip_network, ("10.0.0.0/8", "2001:db8::/32", "127.0.0.1/32")))
FORWARDED = [
    "203.0.113.9, 10.0.0.2", "203.0.113.9:80,[2001:db8::1]:443", "unknown, 10.0.0.1", ",,,", "for=1.2.3.4", "10.0.0.1,",
    *ADDRESSES,
]  # fmt: skip


def check_forwarded(sent: tuple[str, str], found: str) -> None:
    peer, forwarded = sent
    if not is_trusted(peer, PROXIES):
        assert found == (parse_ip(peer) or peer)
    else:
        assert str(ip_address(found)) == found
        assert found == parse_ip(peer) or parse_ip(found) in map(_bare, forwarded.split(","))


def _bare(entry: str) -> str | None:
    entry = entry.strip()
    return parse_ip(entry) or parse_ip(entry.rpartition(":")[0].strip("[]")) or parse_ip(entry.strip("[]"))


ORIGINS = [
    "https://shop.example", "https://*.example.com", "HTTP://Shop.Example:80", "https://bücher.example:8443", "null",
    "*", "capacitor://localhost", "http://[::1]:3000", "https://user@a.example", "https://a.example/", "https://a..b",
    "a.example", "https://xn--bcher-kva.example", "https://-a.example", "https://a.example:0", "http://127.0.0.1",
]  # fmt: skip


def read_both(text: str) -> tuple[str | None, str | None]:
    return normalize_origin(text), normalize_pattern(text)


def check_origin(_: str, found: tuple[str | None, str | None]) -> None:
    origin, pattern = found
    if origin is not None:
        assert origin == pattern == normalize_origin(origin)
        assert origin.isascii()
        assert len(origin) <= MAX_LENGTH + 300
        assert origin_allowed(origin, [origin], "production")
    if pattern is not None:
        assert normalize_pattern(pattern) == pattern
        assert not origin_allowed(pattern, ["https://another.example"], "production")


URLS = [
    "https://hooks.example/in?a=b", "https://hooks.example:8443", "https://[2001:db8::1]/", "https://user:pw@a.example/",
    "http://a.example/", "https://2130706433/", "https://a.example/#f", "https://bücher.example/ä", "https:///", "https://a.example\\@b",
]  # fmt: skip


def check_url(text: str, found: WebhookTarget | None) -> None:
    if found is None:
        return
    assert len(text) <= MAX_URL_LENGTH
    assert found.host.isascii()
    assert found.host == found.host.lower()
    assert 0 < found.port < 65536
    assert found.path[0] == "/"
    assert found.path.isascii()
    assert not any(character.isspace() or character < " " for character in found.path + found.authority)
    assert found.authority.isascii()
    assert read_target(f"https://{found.authority}{found.path}") == found


def check_judged(answers: list[str], found: tuple[Any, ...] | None) -> None:
    if found is not None:
        assert len(found) == len(answers)
        assert all(address.is_global or address.version == 6 for address in found)


# User agents and what comes with them

AGENTS = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36",
    "Mozilla/5.0 (Linux; Android 14; Pixel 8 Build/AP4A; wv) AppleWebKit/537.36 Chrome/130 Mobile [FBAN/EMA;FBAV/1.2]",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) Version/18.5 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
    "Opera/9.80 (X11; Linux i686; Ubuntu/14.10) Presto/2.12.388 Version/12.16.2",
    "HbbTV/1.1 (;;;;;) CE-HTML/1.0", "curl/8.5.0", "okhttp/4.12.0", "Darwin/23.6.0 CFNetwork/1498",
]  # fmt: skip
PIECES = [
    "Android ",
    "; ",
    "(",
    ")",
    "/",
    "bot",
    "Browser/1",
    "Mac OS X",
    "Version/4.0",
    "K)",
    "compatible; ",
    "@",
    "https://",
]
HINTS = [
    '"Chromium";v="140", "Not=A?Brand";v="24", "Google Chrome";v="140"', "?1", '"Windows"', '"\\"";v="1"', '"a', ";v=",
    "?0",
]  # fmt: skip


def read_visitor(sent: tuple[str, dict[str, str]]) -> tuple[Agent, ClientHints]:
    user_agent, headers = sent
    hints = read_hints(headers)
    return read_agent(RequestFacts(ip="192.0.2.1", user_agent=user_agent, hints=hints), Report()), hints


def check_visitor(_: Any, found: tuple[Agent, ClientHints]) -> None:
    agent, hints = found
    for value in msgspec.structs.astuple(agent):
        assert not isinstance(value, str) or len(value) <= 200
    assert len(hints.brands) <= 12
    assert all(len(brand) <= 64 and len(version) <= 64 for brand, version in hints.brands)


# Paths

KNOWN_PATHS = [
    "/api/v1/identify", "/api/v1/events/019b76da-a800-7000-8000-000000000000", "/healthz", "/docs/api/reference.js",
    "/", "//",
    "/api/v1/management/organizations/org_0qppzPLvL54VURDkQrfS/sdk-keys/key_0qppzPLvL54VURDkQrfS/risk-weights/web",
]  # fmt: skip


def check_path(path: str, found: RouteMatch | None) -> None:
    if found is not None:
        assert set(found.resource.routes)
        assert all(value and value in unquote(path) for value in found.path.values())


headers = st.dictionaries(
    st.sampled_from(
        [f"sec-ch-ua{end}" for end in ("", "-mobile", "-platform", "-full-version-list", "-model", "-arch")]
    ),
    mutated_text(HINTS),
    max_size=4,
)
queries = st.dictionaries(st.sampled_from(NAMES), mutated_text([*TIMES, "1", "200", "low"]) | AWKWARD_TEXT, max_size=5)

TARGETS = {
    "keys": Target(mutated_text(KEYS, ["svc_", "pk", "mk", "_production_"]), parse, check_key),
    "tokens": Target(
        mutated_text([TOKEN], ["=", "-", "_"]),
        lambda text: deferred.open_token(SIGNING_KEY, text, "key_a", "https://a.example", NOW_MS),
        check_token,
    ),
    "cursors": Target(
        mutated_text([CURSOR], ["=", "-", "_"]),
        CURSORS.read,
        check_cursor,
    ),
    "queries": Target(
        queries.map(lambda given: urlencode(given, errors="replace").encode())
        | mutated(QUERIES, [b"&", b"=", b"%", b"+", b"%2B", b"%00"]),
        read_events_query,
        check_events_query,
    ),
    "timestamps": Target(mutated_text(TIMES, ["T", "Z", "+", "-", ":", ".", "99", "²"]), read_timestamp, check_time),
    "forwarding": Target(
        st.tuples(
            mutated_text(ADDRESSES) | st.sampled_from(ADDRESSES), mutated_text(FORWARDED, [",", ":", "[", "]", "%"])
        ),
        lambda sent: client_address(*sent, PROXIES),
        check_forwarded,
    ),
    "origins": Target(mutated_text(ORIGINS, ["://", "*.", ":", "[", "]", "ß", "..", "-"]), read_both, check_origin),
    "webhook-urls": Target(
        mutated_text(URLS, ["@", "#", "?", ":", "//", "[", "]", "\\", "%", " "]), read_target, check_url
    ),
    "resolved-addresses": Target(
        st.lists(mutated_text(ADDRESSES, [":", ".", "%"]) | st.ip_addresses().map(str), max_size=4),
        lambda answers: addresses_to_dial(answers, TargetPolicy()),
        check_judged,
    ),
    "user-agents": Target(st.tuples(mutated_text(AGENTS, PIECES), headers), read_visitor, check_visitor),
    "paths": Target(mutated_text(KNOWN_PATHS, ["/", "{", "}", "..", "%2f"]), PATHS.find, check_path),
}
