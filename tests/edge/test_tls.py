"""TLS at the edge: which files it takes, which versions it speaks, and how long it waits for a handshake."""

from __future__ import annotations

import datetime as dt
import ssl
from pathlib import Path

import pytest
import trio
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from trio.testing import MockClock

from svc.http.server.listening import CertificateError, TlsListener, read_certificate
from tests.edge.world import get, running_edge
from tests.support.certificates import Files

HANDSHAKE = b"\x16"
"""The type of a record in which the server goes on with the handshake."""


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


async def test_requests_are_served_over_tls_1_2_and_1_3(files: Files) -> None:
    async with running_edge(ssl_context=files.serving()) as world:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = files.client()
            context.minimum_version = context.maximum_version = version
            context.set_alpn_protocols(["h2", "http/1.1"])
            client = await world.connect(context)
            assert (await client.ask(get("/hello"))).body == b"hello"
            assert isinstance(client.stream, trio.SSLStream)
            assert client.stream.selected_alpn_protocol() == "http/1.1"


def client_hello(version: bytes) -> bytes:
    """The first record of a client that knows this version as its highest (RFC 5246, 7.4.1.2)."""
    suites = bytes.fromhex("c02b c02f c009 c013")
    extensions = bytes.fromhex("000a 0004 0002 0017  000b 0002 0100  000d 0006 0004 0403 0401")
    hello = version + bytes(32) + b"\x00" + len(suites).to_bytes(2) + suites + b"\x01\x00"
    hello += len(extensions).to_bytes(2) + extensions
    handshake = b"\x01" + len(hello).to_bytes(3) + hello
    return b"\x16\x03\x01" + len(handshake).to_bytes(2) + handshake


async def test_a_client_limited_to_tls_1_1_is_closed_in_the_handshake(files: Files) -> None:
    async with running_edge(ssl_context=files.serving()) as world:
        newer = await world.connect()
        await newer.send(client_hello(b"\x03\x03"))
        assert (await newer.stream.receive_some(1)) == HANDSHAKE
        older = await world.connect()
        await older.send(client_hello(b"\x03\x02"))
        assert HANDSHAKE not in await older.rest()


async def test_plain_http_at_a_tls_port_is_closed_and_does_not_block_others(files: Files) -> None:
    async with running_edge(ssl_context=files.serving()) as world:
        plain = await world.connect()
        await plain.send(get("/hello"))
        assert b"HTTP/1.1" not in await plain.rest()
        client = await world.connect(files.client())
        assert (await client.ask(get("/hello"))).status == 200
        assert world.handlers.paths == ["/hello"]


@pytest.mark.parametrize("sent", [b"", b"\x16", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
async def test_a_client_silent_in_its_handshake_times_out_like_a_plain_one(
    files: Files, mock_clock: MockClock, sent: bytes
) -> None:
    waited: list[float] = []
    for context in (None, files.serving()):
        async with running_edge(ssl_context=context, request_timeout_s=10) as world:
            client = await world.connect()
            if sent and context is not None:
                await client.send(sent)
            await world.until(lambda world=world: world.edge.statistics().connections_open == 1)
            mock_clock.autojump_threshold = 0.05
            began = trio.current_time()
            await client.rest()
            waited.append(trio.current_time() - began)
            mock_clock.autojump_threshold = float("inf")
    plain, tls = waited
    assert tls <= plain + 0.1


async def test_new_connections_get_a_renewed_certificate_and_existing_ones_stay(files: Files) -> None:
    listener = TlsListener((await trio.open_tcp_listeners(0, host="127.0.0.1"))[0], files.serving())
    served: list[trio.SSLStream[trio.SocketStream]] = []

    async def accept() -> None:
        served.append(await listener.accept())
        await served[-1].do_handshake()

    async def connect() -> trio.SSLStream[trio.SocketStream]:
        port = listener.transport_listener.socket.getsockname()[1]
        stream = trio.SSLStream(
            await trio.open_tcp_stream("127.0.0.1", port), files.client(), server_hostname="localhost"
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(accept)
            nursery.start_soon(stream.do_handshake)
        return stream

    before = await connect()
    files.issue()
    listener.use(files.serving())
    after = await connect()
    assert before.getpeercert(binary_form=True) != after.getpeercert(binary_form=True)
    assert after.getpeercert(binary_form=True) == files.leaf()
    await served[0].send_all(b"still")
    assert await before.receive_some() == b"still"
    for stream in (before, after, *served):
        await trio.aclose_forcefully(stream)
    await listener.aclose()


def test_the_validity_dates_are_those_of_the_leaf(files: Files) -> None:
    then = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    files.issue(not_before=then, not_after=then + dt.timedelta(days=90))
    certificate = read_certificate(files.certfile, files.keyfile)
    assert certificate.is_valid(then)
    assert not certificate.is_valid(then - dt.timedelta(seconds=1))
    assert not certificate.is_valid(then + dt.timedelta(days=91))


def broken(files: Files, how: str) -> None:
    if how == "no file":
        files.keyfile.unlink()
    elif how == "another key":
        own = files.certfile.read_bytes()
        files.issue()
        files.certfile.write_bytes(own)
    elif how == "no certificate":
        files.certfile.write_bytes(files.keyfile.read_bytes())
    elif how == "no key":
        files.keyfile.write_bytes(files.certfile.read_bytes())
    else:
        key = ec.generate_private_key(ec.SECP256R1())
        form = serialization.PrivateFormat.PKCS8
        lock = serialization.BestAvailableEncryption(b"secret")
        files.keyfile.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, lock))


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("no file", r"cannot read .*key\.pem: No such file"),
        ("another key", r"key\.pem is not the key of the certificate in .*certificate\.pem"),
        ("no certificate", r"certificate\.pem holds no PEM certificate"),
        ("no key", r"key\.pem holds no PEM key"),
        ("passphrase", r"key\.pem is encrypted"),
    ],
)
def test_unusable_certificate_files_are_rejected_by_name(files: Files, how: str, told: str) -> None:
    broken(files, how)
    with pytest.raises(CertificateError, match=told):
        read_certificate(files.certfile, files.keyfile)
