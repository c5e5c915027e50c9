"""Readers of bytes: bodies, requests, receivers' answers, certificates, databases and lists."""

from __future__ import annotations

import base64
import gzip
import json
import ssl
from collections.abc import Iterator
from functools import cache
from ipaddress import IPv4Address, ip_address
from itertools import pairwise
from typing import Any

import cbor2
import h11
import httpcore
import msgspec
import trio
import trio.testing
from hypothesis import strategies as st

from svc.features.webhooks.addresses import TargetPolicy
from svc.features.webhooks.records import Attempted
from svc.features.webhooks.transport.transport import WebhookTransport
from svc.http.body import MAX_BODY_BYTES, decode, decode_signals, unpack
from svc.http.schema import IdentifyBody
from svc.http.server.http1 import HttpProtocol
from svc.http.server.messages import BodyPart, MalformedRequest, RequestHead
from svc.identify.attestation.app_attest import NewKey, failures_of
from svc.identify.attestation.challenge import AttestedKey
from svc.identify.attestation.claim import Attestation, read_attestation
from svc.identify.attestation.key_attestation import KeyDescription, read_key_description
from svc.identify.attestation.trust import Trust, read_apple_roots, read_revoked, read_roots
from svc.identify.network_data import NetworkFileError
from svc.identify.network_data.lists import AddressSet, Database, read_list
from svc.kernel.values.refusals import Refusal
from tests.domain import apple_world, attestation_world
from tests.edge.test_framing import AMBIGUOUS, AMBIGUOUS_BODIES, CHUNKED, ENCLOSED, SOUND, framed
from tests.fuzz.target import Target, json_values, mutated
from tests.fuzz.texts import NOW_MS
from tests.support.mmdb_writer import Tree

# Bodies

BODIES = [
    b'{"sdk":{"platform":"web","version":"1"},"signals":{"a":[1,-0.5e3,"\\u00e9\\ud83d\\ude00",null,true]},"tag":"x"}',
    b'{"sdk":{},"signals":{"a":{"b":[[],[{}],"\\\\\\""]}}}',
    b'{"sdk":{},"signals":{},"sdk":{}}',
    b'{"sdk":{},"signals":{"a":' + b"[" * 31 + b"]" * 31 + b"}}",
    b"[]",
]
TOKENS = [
    b"{",
    b"}",
    b"[",
    b"]",
    b'"',
    b"\\",
    b",",
    b":",
    b"NaN",
    b"1e999",
    b"\\ud800",
    b"\xed\xa0\x80",
    b"\\u0000",
    b'"sdk":',
    b" ",
]


def read_body(sent: tuple[bytes, str | None]) -> Any:
    wire, encoding = sent
    text = unpack(wire, "application/json", encoding)
    if isinstance(text, Refusal):
        return text
    body = decode(text, IdentifyBody)
    return body if isinstance(body, Refusal) else decode_signals(bytes(body.signals))


def check_body(sent: tuple[bytes, str | None], found: Any) -> None:
    if isinstance(found, Refusal):
        assert found.status in {413, 422}
        assert len(found.details) == (found.status == 422)
        msgspec.json.encode(found.details)
        return
    wire, encoding = sent
    text = gzip.decompress(wire) if encoding else wire
    assert len(text) <= MAX_BODY_BYTES

    def no_constant(name: str) -> Any:
        raise AssertionError(name)

    assert json.loads(text, parse_constant=no_constant)["signals"] == found, "another parser reads something else"


bodies = mutated(BODIES, TOKENS) | json_values.map(
    lambda value: b'{"sdk":{},"signals":%b}' % json.dumps({"a": value}).encode()
)

# Requests

REQUESTS = [
    *AMBIGUOUS.values(),
    *SOUND.values(),
    *(framed(CHUNKED, body=body) for body in AMBIGUOUS_BODIES.values()),
    *(sent for sent, _, _ in ENCLOSED.values()),
]
REQUEST_PIECES = [
    b"\r\n",
    b"\n",
    b"\r",
    b": ",
    b";",
    b"0\r\n\r\n",
    b"Content-Length: 5\r\n",
    b"Transfer-Encoding: chunked\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
]


def read_requests(sent: tuple[bytes, int]) -> tuple[list[Any], list[Any], list[Any]]:
    """What is understood of it when it comes at once, when it is cut into packets, and by h11."""
    raw, step = sent
    return list(_requests(raw, len(raw) or 1)), list(_requests(raw, step)), list(_requests_by_h11(raw))


def _requests(raw: bytes, step: int) -> Iterator[Any]:
    """Method, target, fields and body of each request up to the first that is malformed, and how it ends."""
    http = HttpProtocol(16_384)
    body = bytearray()
    for at in range(0, len(raw), step):
        http.receive_data(raw[at : at + step])
        while (event := http.next_event()) is not None:
            if isinstance(event, MalformedRequest):
                yield "malformed", event.status
                return
            if isinstance(event, RequestHead):
                yield event.method, event.target, event.headers
            elif isinstance(event, BodyPart):
                body += event.data
            else:
                yield "body", bytes(body)
                length = [(b"Content-Length", b"%d" % len(body))]
                yield "response", http.send_head(200, length) + http.send_body(bytes(body)) + http.send_end()
                body.clear()
                if not http.can_continue:
                    yield "closed"
                    return
                http.start_next_cycle()
    yield "more", bytes(body)


def _requests_by_h11(raw: bytes) -> Iterator[Any]:
    """The same of another implementation, which is less strict; without its responses."""
    http = h11.Connection(h11.SERVER)
    http.receive_data(raw)
    body = bytearray()
    while True:
        try:
            event = http.next_event()
        except h11.RemoteProtocolError:
            return
        if isinstance(event, h11.Request):
            fields = [(name.lower(), value) for name, value in event.headers.raw_items()]
            yield event.method.decode(), event.target, fields
        elif isinstance(event, h11.Data):
            body += event.data
        elif isinstance(event, h11.EndOfMessage):
            yield "body", bytes(body)
            body.clear()
            # A 2xx to CONNECT would switch protocols.
            http.send(h11.Response(status_code=404, headers=[("Content-Length", "0")]))
            http.send(h11.EndOfMessage())
            if http.our_state is not h11.DONE:
                return
            http.start_next_cycle()
        else:
            return


def check_requests(_: tuple[bytes, int], found: tuple[list[Any], list[Any], list[Any]]) -> None:
    whole, in_steps, by_h11 = found
    assert in_steps == whole
    understood = [event for event in whole if event[0] not in ("malformed", "response", "more") and event != "closed"]
    for ours, theirs in zip(understood, by_h11, strict=False):
        assert _without_repeated_lengths(ours) == _without_repeated_lengths(theirs)
    assert len(understood) <= len(by_h11), "what is understood here, another one understands, too"
    for event in understood:
        if len(event) == 3:
            _, target, fields = event
            assert target[:1] == b"/"
            names = [name for name, _ in fields]
            assert not (b"content-length" in names and b"transfer-encoding" in names)
            assert names.count(b"host") <= 1


def _without_repeated_lengths(event: Any) -> Any:
    """h11 keeps one of several Content-Length fields that say the same."""
    if len(event) != 3:
        return event
    method, target, fields = event
    lengths = [field for field in fields if field[0] == b"content-length"]
    return method, target, [field for field in fields if field not in lengths], set(lengths)


# A receiver's answers

RESPONSES = [
    b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
    b"HTTP/1.1 429 Slow down\r\nRetry-After: 120\r\nContent-Length: 0\r\n\r\n",
    b"HTTP/1.1 503 No\r\nRetry-After: Wed, 21 Oct 2026 07:28:00 GMT\r\nConnection: close\r\n\r\n",
    b"HTTP/1.1 503 No\r\nRetry-After: Fri, 31 Dec 9999 23:59:59 -2359\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nX: y\r\n\r\n",
    b"HTTP/1.0 301 Moved\r\nLocation: https://a/\r\n\r\nbody",
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n\x00\x01",
]
RESPONSE_PIECES = [
    b"\r\n",
    b"Retry-After: ",
    b" ",
    b"-1",
    b"99999999999",
    b"Content-Length: ",
    b"HTTP/1.1 ",
    b"2026 ",
    b":",
    b"+9999",
    b"Jan",
    b"0" * 30,
]
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


class Responding(httpcore.AsyncMockStream):
    """A connection on which this arrives, in pieces; without TLS, as there is none to read ahead in."""

    def get_extra_info(self, info: str) -> Any:
        return None if info == "ssl_object" else super().get_extra_info(info)


class Receiver(httpcore.AsyncMockBackend):
    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        return Responding(list(self._buffer))


def read_response(sent: bytes) -> Attempted:
    async def attempt() -> Attempted:
        backend = Receiver([sent[at : at + 50] for at in range(0, len(sent), 50)])
        transport = WebhookTransport(_resolved, TargetPolicy(), TLS, lambda: NOW_MS, backend=backend)
        try:
            return await transport.post("https://hooks.example/", b"{}", {}, 1)
        finally:
            await transport.aclose()

    return trio.run(attempt, clock=trio.testing.MockClock(autojump_threshold=0))


async def _resolved(_: str, __: int) -> list[str]:
    return ["81.2.69.160"]


def check_response(_: bytes, found: Attempted) -> None:
    assert found.response_code is None or 200 <= found.response_code <= 999
    assert found.error in {None, "timeout", "connection_reset", "redirect", "http_status", "response_too_large"}
    assert (found.error is None) <= (found.response_code is not None and 200 <= found.response_code < 300)
    assert found.retry_after_s is None or 0 <= found.retry_after_s < 300_000_000_000


# Attestation

TRUST: Trust = msgspec.structs.replace(attestation_world.trust(), apple=apple_world.trust())
CHAIN = attestation_world.chain()
DESCRIPTIONS = [attestation_world.described(), attestation_world.described(levels=(2, 0), software={}, hardware={})]
DER_PIECES = [
    b"\x30\x80",
    b"\x30\x84\xff\xff\xff\xff",
    b"\x02\x01\x00",
    b"\x04\x00",
    b"\xbf\x85\x3e",
    b"\x1f\xff\xff\xff\xff",
    b"\x0a\x01\x09",
]


def read_claim(sent: tuple[list[bytes], object]) -> Attestation | None:
    certificates, challenge = sent
    claim = attestation_world.attested(certificates)
    if challenge is not None:
        claim["challenge"] = challenge
    return read_attestation({"attestation": claim}, "android", TRUST, NOW_MS)


def check_claim(sent: tuple[list[bytes], object], found: Attestation | None) -> None:
    assert found is not None
    assert found.failures or sent[0] == CHAIN, "a chain that was not made by the root"
    assert all(name.replace("_", "").isalpha() for name in found.failures)


DEVICE = apple_world.Device()
ATTESTATION = DEVICE.attestation()
ASSERTIONS = [DEVICE.assertion(), DEVICE.assertion(extensions=apple_world.EXTENSIONS_OF_IOS_27)]
CBOR_PIECES = [b"\xa0", b"\x80", b"\x9f", b"\xbf\xff", b"\x5b\x7f\xff\xff\xff", b"\xf9\x7e\x00", b"\xd8\x1d\x00"]


def read_app_attest(sent: tuple[bytes, bytes]) -> Attestation | None:
    """An attestation, or else an assertion."""
    attestation, assertion = sent
    claim = DEVICE.attested(raw=attestation) if attestation else DEVICE.asserted(raw=assertion)
    return read_attestation({"attestation": claim}, "ios", TRUST, NOW_MS)


def check_app_attest(sent: tuple[bytes, bytes], found: Attestation | None) -> None:
    assert found is not None
    assert (found.proof is None) == bool(found.failures)
    if isinstance(found.proof, NewKey):
        judged = [cbor2.loads(raw) for raw in (sent[0], ATTESTATION)]
        assert judged[0]["authData"] == judged[1]["authData"]
        assert judged[0]["attStmt"]["x5c"] == judged[1]["attStmt"]["x5c"]
    elif found.proof is not None:
        known = AttestedKey(DEVICE.point, apple_world.APP, "production", 0, "", 0, 0)
        is_sound = cbor2.loads(sent[1]) in [cbor2.loads(raw) for raw in ASSERTIONS]
        assert is_sound or "signature_invalid" in failures_of(found.proof, known, "production")


def check_description(raw: bytes, found: KeyDescription | None) -> None:
    if found is not None:
        assert found.challenge in raw
        assert read_key_description(raw + b"\0") is None, "bytes behind the end"


def read_trust_files(raw: bytes) -> list[Any]:
    found: list[Any] = []
    for reader in (read_roots, read_apple_roots, read_revoked):
        try:
            found.append(reader(raw))
        except ValueError as error:
            found.append(str(error))
    return found


def check_trust_files(_: bytes, found: list[Any]) -> None:
    for one in found:
        assert isinstance(one, frozenset | tuple) or "\n" not in one


PEM = b"-----BEGIN CERTIFICATE-----\n" + base64.encodebytes(CHAIN[-1]) + b"-----END CERTIFICATE-----\n"
STATUSES = b'{"entries":{"6681152659205225093":{"status":"REVOKED"},"c35747a084470c3135aeefe2":{"status":"SUSPENDED"}}}'

# Databases and lists

PROBES = tuple(ip_address(text) for text in ("1.2.3.4", "81.2.69.160", "255.255.255.255", "::1", "2001:db8::1"))


@cache
def databases() -> list[bytes]:
    country, system = Tree(), Tree()
    for number, code in enumerate(("DE", "JP", "US")):
        first = int(IPv4Address(f"{81 + number}.0.0.0"))
        country.add(first, first + 0xFFFF, {"country": {"iso_code": code, "names": {"en": "x" * number}}})
        system.add(first, first + 0xFFFFFF, {"autonomous_system_number": 64496, "autonomous_system_organization": "é"})
    return [tree.content(kind, NOW_MS // 1000) for tree, kind in ((country, "Country"), (system, "ASN"))]


def read_database(raw: bytes) -> Any:
    try:
        database = Database(raw, "x.mmdb")
    except NetworkFileError as error:
        return str(error)
    found: list[Any] = []
    for probe in PROBES:
        try:
            found.append(database.find(probe))
        except LookupError as error:
            found.append(str(error))
    return found


def check_database(_: bytes, found: Any) -> None:
    if isinstance(found, str):
        assert len(found) < 1_000
        return
    for one in found:
        if not isinstance(one, str):
            country, system = one
            assert country is None or (len(country.code) == 2 and len(country.name or "") <= 200)
            assert system is None or 0 < system.number < 1 << 32


LISTS = [
    b"# comment\n192.0.2.0/24\n10.0.0.1 ; x\n2001:db8::/32\n\n::1\n",
    b"\xef\xbb\xbf1.2.3.4\r\n1.2.3.5\r\n1.2.3.0/30\r\n",
    b"0.0.0.0/8\n255.255.255.255\nffff::/16\n",
]  # fmt: skip


def read_addresses(raw: bytes) -> Any:
    try:
        return _ranges(read_list(raw))
    except NetworkFileError as error:
        return str(error), error.line


def _ranges(found: AddressSet) -> Any:
    return (
        list(zip(found._starts4, found._ends4, strict=True)),
        found._starts6,
        found._ends6,
        [p in found for p in PROBES],
    )


def check_addresses(raw: bytes, found: Any) -> None:
    if isinstance(found[0], str):
        assert len(found[0]) < 300
        assert found[1] is None or 1 <= found[1] <= raw.count(b"\n") + raw.count(b"\r") + len(raw)
        return
    ranges4 = found[0]
    assert len(ranges4) <= len(raw)
    assert all(start <= end for start, end in ranges4)
    assert all(before[1] + 1 < after[0] for before, after in pairwise(ranges4)), "ranges overlap or touch"


TARGETS = {
    "bodies": Target(
        bodies.map(lambda raw: (raw, None))
        | mutated([gzip.compress(raw) for raw in BODIES]).map(lambda raw: (raw, "gzip")),
        read_body,
        check_body,
    ),
    "requests": Target(st.tuples(mutated(REQUESTS, REQUEST_PIECES), st.integers(1, 40)), read_requests, check_requests),
    "answers": Target(mutated(RESPONSES, RESPONSE_PIECES), read_response, check_response),
    "attestations": Target(
        st.tuples(
            st.lists(st.sampled_from(CHAIN), max_size=4)
            | st.tuples(*(mutated([raw], DER_PIECES) for raw in CHAIN)).map(list),
            st.none() | json_values,
        ),
        read_claim,
        check_claim,
    ),
    "app-attest": Target(
        st.tuples(st.just(b"") | mutated([ATTESTATION], CBOR_PIECES), mutated(ASSERTIONS, CBOR_PIECES)),
        read_app_attest,
        check_app_attest,
    ),
    "key-descriptions": Target(mutated(DESCRIPTIONS, DER_PIECES), read_key_description, check_description),
    "trust-files": Target(
        mutated([PEM, json.dumps([PEM.decode()]).encode(), STATUSES], [b'"', b"[", b"]", b"-----"]),
        read_trust_files,
        check_trust_files,
    ),
    "databases": Target(mutated(databases()), read_database, check_database),
    "lists": Target(
        mutated(LISTS, [b"/", b":", b".", b"#", b"\n", b"/0", b"\xc2\x85"]), read_addresses, check_addresses
    ),
}
