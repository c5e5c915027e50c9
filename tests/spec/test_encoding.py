"""Interface 8 (request body), decisions 1.9: Content-Encoding and the size of bodies."""

from __future__ import annotations

import gzip
from collections.abc import AsyncIterator

import pytest

from tests.spec.responses import BROWSER, IDENTIFY, assert_error, assert_invalid, body_of, nothing_stored, post
from tests.support.live import ORIGIN, Live

pytestmark = pytest.mark.any_store

MIB = 1 << 20


def padded(size: int) -> bytes:
    """A right body of so many bytes."""
    body = body_of()
    return body + b" " * (size - len(body))


@pytest.mark.parametrize("encoding", ["gzip", "GZIP", "Gzip"])
async def test_one_gzip_member_is_accepted(live: Live, key: str, encoding: str):
    """Decisions 1.9, at any level of compression."""
    for level in (0, 1, 9):
        response = await post(live, key, gzip.compress(body_of(tag="a"), level), content_encoding=encoding)
        assert response.status_code == 200
    assert len(live.events()) == 3


async def test_identity_is_accepted(live: Live, key: str):
    """Decisions 1.9."""
    assert (await post(live, key, body_of(), content_encoding="identity")).status_code == 200


async def test_another_encoding_is_refused(live: Live, key: str):
    """Decisions 1.9: "anything else `415`"."""
    with nothing_stored(live):
        for encoding in ("br", "deflate", "x-gzip", "zstd", "gzip, gzip", "gzip, identity", "gzip;q=1", "*"):
            for content in (body_of(), gzip.compress(body_of())):
                assert_error(await post(live, key, content, content_encoding=encoding), 415, "unsupported_media_type")


async def test_a_repeated_encoding_is_refused(live: Live, key: str):
    """Decisions 1.9, in two headers."""
    body = gzip.compress(gzip.compress(body_of()))
    lines = [f"POST {IDENTIFY} HTTP/1.1", "host: x", "connection: close", f"origin: {ORIGIN}", f"x-api-key: {key}"]
    lines += ["content-type: application/json", "content-encoding: gzip", "content-encoding: gzip"]
    lines += [f"content-length: {len(body)}", "", ""]
    with nothing_stored(live):
        assert_error(await live.raw("\r\n".join(lines).encode() + body), 415, "unsupported_media_type")


async def test_broken_or_trailing_gzip_is_malformed(live: Live, key: str):
    """Decisions 1.9: `422` (`malformed_encoding`). Each way to be broken: tests/http/test_body.py."""
    packed = gzip.compress(body_of())
    with nothing_stored(live):
        for content in (b"", body_of(), packed[:-1], packed + b"garbage"):
            assert_invalid(await post(live, key, content, content_encoding="gzip"), "", "malformed_encoding")


async def test_an_empty_gzip_member_is_invalid_json(live: Live, key: str):
    """Decisions 1.4 and 1.9: the encoding is right, the body is not."""
    with nothing_stored(live):
        assert_invalid(await post(live, key, gzip.compress(b""), content_encoding="gzip"), "", "malformed_json")


async def test_a_body_of_one_mebibyte_is_accepted_and_one_byte_more_is_refused(live: Live, key: str):
    """Interface 7 and 8: 1 MiB, `413 payload_too_large`; decisions 1.8: before its media type is looked at."""
    assert (await post(live, key, padded(MIB))).status_code == 200
    with nothing_stored(live):
        for media_type in ("application/json", "text/plain"):
            assert_error(await post(live, key, padded(MIB + 1), content_type=media_type), 413, "payload_too_large")


async def test_the_size_is_measured_after_decompression(live: Live, key: str):
    """Interface 8: not on the wire, where what does not compress has more than one mebibyte."""
    for level in (0, 6):
        response = await post(live, key, gzip.compress(padded(MIB), level), content_encoding="gzip")
        assert response.status_code == 200
    with nothing_stored(live):
        response = await post(live, key, gzip.compress(padded(MIB + 1)), content_encoding="gzip")
        assert_error(response, 413, "payload_too_large")


async def test_a_length_over_the_limit_is_refused_before_the_body_is_sent(live: Live, key: str):
    """Interface 7: by Content-Length alone."""
    head = f"POST {IDENTIFY} HTTP/1.1\r\nhost: x\r\norigin: {ORIGIN}\r\nx-api-key: {key}\r\n"
    more = f"content-type: application/json\r\ncontent-length: {100 * MIB}\r\n\r\n"
    with nothing_stored(live):
        response = await live.raw((head + more).encode())
        assert_error(response, 413, "payload_too_large")
        assert response.headers["access-control-allow-origin"] == ORIGIN


async def test_a_chunked_body_over_the_limit_is_refused(live: Live, key: str):
    """Interface 8: no length is announced, so it is counted as it comes."""
    headers = {"x-api-key": key, "origin": ORIGIN, "content-type": "application/json", **BROWSER}

    async def parts(size: int) -> AsyncIterator[bytes]:
        body = padded(size)
        for start in range(0, size, 65_536):
            yield body[start : start + 65_536]

    assert (await live.client.post(IDENTIFY, content=parts(MIB), headers=headers)).status_code == 200
    with nothing_stored(live):
        for size in (MIB + 1, 2 * MIB):
            response = await live.client.post(IDENTIFY, content=parts(size), headers=headers)
            assert_error(response, 413, "payload_too_large")
