"""Requests that two parsers could read in two ways, and the bounds of heads and chunks.

`test_production.py` sends each shape to the service, and `tests/http/test_protocol.py` splits each anywhere.
"""

from __future__ import annotations

import pytest

from svc.http.server.http1 import MAX_CHUNKS, MAX_FIELDS
from tests.edge.world import get, post, running_edge

HIDDEN = get("/hidden")


def framed(*lines: bytes, body: bytes = b"", first: bytes = b"POST /echo HTTP/1.1", host: bytes = b"Host: a") -> bytes:
    return b"\r\n".join([first, *([host] if host else []), *lines, b"", body])


CHUNKED = b"Transfer-Encoding: chunked"
END = b"0\r\n\r\n"

AMBIGUOUS = {
    # a body framed twice, or in a way that not everybody knows
    "length and chunks": framed(b"Content-Length: 5", CHUNKED, body=END),
    "chunks and length": framed(CHUNKED, b"Content-Length: 5", body=END),
    "length of nothing and chunks": framed(b"Content-Length: 0", CHUNKED, body=END),
    "two lengths": framed(b"Content-Length: 5", b"Content-Length: 6", body=b"hello"),
    "two lengths in one field": framed(b"Content-Length: 5, 6", body=b"hello"),
    "a signed length": framed(b"Content-Length: +5", body=b"hello"),
    "a negative length": framed(b"Content-Length: -1", body=b"hello"),
    "a hexadecimal length": framed(b"Content-Length: 0x5", body=b"hello"),
    "a length with an underscore": framed(b"Content-Length: 1_0", body=b"hellohello"),
    "a length with a fraction": framed(b"Content-Length: 5.0", body=b"hello"),
    "an empty length": framed(b"Content-Length: ", body=b"hello"),
    "a length of many digits": framed(b"Content-Length: " + b"9" * 40, body=b"hello"),
    "a length and a comma": framed(b"Content-Length: 5,", body=b"hello"),
    "a length in two words": framed(b"Content-Length: 5 5", body=b"hello"),
    "a length behind a vertical tab": framed(b"Content-Length: \x0b5", body=b"hello"),
    "a length behind a hard space": framed(b"Content-Length: \xa05", body=b"hello"),
    "two lengths in two spellings": framed(b"content-length: 5", b"CONTENT-LENGTH: 0", body=b"hello"),
    "a length in other digits": framed("Content-Length: \u0665".encode(), body=b"hello"),
    "another coding": framed(b"Transfer-Encoding: gzip", body=END),
    "the identity coding": framed(b"Transfer-Encoding: identity", body=END),
    "chunks in another coding": framed(b"Transfer-Encoding: gzip, chunked", body=END),
    "chunks and then another coding": framed(b"Transfer-Encoding: chunked, identity", body=END),
    "chunks of chunks": framed(b"Transfer-Encoding: chunked, chunked", body=END),
    "chunks twice": framed(CHUNKED, CHUNKED, body=END),
    "chunks almost": framed(b"Transfer-Encoding: xchunked", body=END),
    "chunks in quotes": framed(b'Transfer-Encoding: "chunked"', body=END),
    "chunks behind a vertical tab": framed(b"Transfer-Encoding: \x0bchunked", body=END),
    "chunks behind a hard space": framed(b"Transfer-Encoding: \xa0chunked", body=END),
    "chunks and a nul": framed(b"Transfer-Encoding: chunked\x00", body=END),
    "chunks and a comma": framed(b"Transfer-Encoding: chunked,", body=END),
    "chunks behind an empty coding": framed(b"Transfer-Encoding: ", CHUNKED, body=END),
    "chunks with a parameter": framed(b"Transfer-Encoding: chunked;a=b", body=END),
    "an empty coding": framed(b"Transfer-Encoding: ", body=END),
    "chunks in 1.0": framed(CHUNKED, body=END, first=b"POST /echo HTTP/1.0"),
    # lines
    "a space before the colon": framed(b"Content-Length : 5", body=b"hello"),
    "a tab before the colon": framed(b"Transfer-Encoding\t: chunked", body=END),
    "a folded line": framed(b"X: a", b" Content-Length: 5", body=b"hello"),
    "a folded coding": framed(b"Transfer-Encoding:", b" chunked", body=END),
    "a folded first line": framed(b"X: a", first=b"POST /echo HTTP/1.1\r\n X: y"),
    "a space before the first field": b"GET /echo HTTP/1.1\r\n Host: a\r\n\r\n",
    "bare line feeds": b"POST /echo HTTP/1.1\nHost: a\nContent-Length: 0\n\n",
    "one bare line feed": framed(b"X: a\nContent-Length: 5", body=b"hello"),
    "a bare line feed at the end": b"GET /echo HTTP/1.1\r\nHost: a\r\n\n",
    "a bare carriage return": framed(b"X: a\rContent-Length: 5", body=b"hello"),
    "a carriage return and no line feed": b"GET /echo HTTP/1.1\r\nHost: a\r\n\r" + HIDDEN,
    "a nul": framed(b"X: a\x00b"),
    "a nul in a name": framed(b"X\x00: a"),
    "a field without a colon": framed(b"Content-Length 5", body=b"hello"),
    "a field without a name": framed(b": a"),
    "a name with a parenthesis": framed(b"Content-Length(: 5", body=b"hello"),
    "a name not in ASCII": framed(b"X\xff: a"),
    "an empty line first": b"\r\n" + framed(b"Content-Length: 0"),
    # the first line
    "an absolute target": framed(first=b"GET http://localhost/hello HTTP/1.1"),
    "an absolute target of another host": framed(first=b"GET https://other/hello HTTP/1.1"),
    "a target with an authority": framed(first=b"CONNECT localhost:443 HTTP/1.1"),
    "a tunnel to a path": framed(first=b"CONNECT /hello HTTP/1.1"),
    "an asterisk": framed(first=b"OPTIONS * HTTP/1.1"),
    "a target without a slash": framed(first=b"GET hello HTTP/1.1"),
    "a query without a path": framed(first=b"GET ?a HTTP/1.1"),
    "a fragment": framed(first=b"GET /hello#/hidden HTTP/1.1"),
    "a backslash": framed(first=b"GET \\hello HTTP/1.1"),
    "a nul in the target": framed(first=b"GET /hel\x00lo HTTP/1.1"),
    "a method that is no token": framed(first=b"G@T /hello HTTP/1.1"),
    "a space at the beginning": framed(first=b" GET /hello HTTP/1.1"),
    "a byte order mark": framed(first=b"\xef\xbb\xbfGET /hello HTTP/1.1"),
    "a proxy's introduction": framed(first=b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET /hello HTTP/1.1"),
    "a version and more": framed(first=b"GET /hello HTTP/1.1x"),
    "a version with a zero": framed(first=b"GET /hello HTTP/01.1"),
    "no target": framed(first=b"GET HTTP/1.1"),
    "no version": framed(first=b"GET /hello"),
    "two spaces": framed(first=b"GET  /hello HTTP/1.1"),
    "a tab between": framed(first=b"GET\t/hello HTTP/1.1"),
    "a space at the end": framed(first=b"GET /hello HTTP/1.1 "),
    "a target in two words": framed(first=b"GET /hello there HTTP/1.1"),
    "a target not in ASCII": framed(first="GET /hell\u00f6 HTTP/1.1".encode()),
    "another version": framed(first=b"GET /hello HTTP/1.2"),
    "version 2.0": framed(first=b"GET /hello HTTP/2.0"),
    "version 0.9": framed(first=b"GET /hello HTTP/0.9"),
    "a version of two digits": framed(first=b"GET /hello HTTP/1.10"),
    "a version in lower case": framed(first=b"GET /hello http/1.1"),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    # Host
    "no host": framed(host=b""),
    "two hosts": framed(b"Host: b"),
    "the same host twice": framed(b"Host: a"),
    "two hosts in one field": framed(host=b"Host: a b"),
    "two hosts with a comma": framed(host=b"Host: a/, b"),
    "a host with a path": framed(host=b"Host: a/b"),
    "a host with a user": framed(host=b"Host: user@a"),
}

AMBIGUOUS_BODIES = {
    "a chunk without a size": b"\r\nhello\r\n" + END,
    "a chunk size that is no number": b"five\r\nhello\r\n" + END,
    "a chunk size with a sign": b"+5\r\nhello\r\n" + END,
    "a chunk size with a prefix": b"0x5\r\nhello\r\n" + END,
    "a chunk size behind a space": b" 5\r\nhello\r\n" + END,
    "a chunk size of many digits": b"%s5\r\nhello\r\n" % (b"0" * 30) + END,
    "a chunk size of 33 bits": b"100000005\r\nhello\r\n" + END,
    "a chunk size of 65 bits": b"10000000000000005\r\nhello\r\n" + END,
    "a chunk size of 80 bits": b"fffffffffffffffffffff\r\nhello\r\n" + END,
    "a negative chunk size": b"-5\r\nhello\r\n" + END,
    "a chunk size with an underscore": b"0_5\r\nhello\r\n" + END,
    "a chunk size in front of a space": b"5 \r\nhello\r\n" + END,
    "a chunk size with a bare line feed": b"5\nhello\r\n" + END,
    "an extension with a bare line feed": b"5;a\nb\r\nhello\r\n" + END,
    "an extension with a bare carriage return": b"5;a\rb\r\nhello\r\n" + END,
    "an extension with a nul": b"5;a\x00\r\nhello\r\n" + END,
    "an extension with a line end in quotes": b'5;a="\r\nhello\r\n"\r\n' + END,
    "a very long extension": b"5;%s\r\nhello\r\n" % (b"a" * 1_000) + END,
    "a chunk longer than it says": b"5\r\nhello there\r\n" + END,
    "a chunk without an end": b"5\r\nhello" + END,
    "a chunk that ends in a line feed": b"5\r\nhello\n" + END,
    "trailers with bare line feeds": b"5\r\nhello\r\n0\r\nX: a\n\n",
    "an end with a bare line feed": b"5\r\nhello\r\n0\r\n\n",
    "a trailer with a space before the colon": b"5\r\nhello\r\n0\r\nX : a\r\n\r\n",
    "a folded trailer": b"5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n",
    "a trailer with a nul": b"5\r\nhello\r\n0\r\nX: a\x00\r\n\r\n",
    "a trailer without a colon": b"5\r\nhello\r\n0\r\n" + HIDDEN,
    "a length in the trailers": b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    "a coding in the trailers": b"5\r\nhello\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "a host in the trailers": b"5\r\nhello\r\n0\r\nHost: b\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", list(AMBIGUOUS.values())[::7], ids=list(AMBIGUOUS.keys())[::7])
async def test_an_ambiguous_request_after_a_valid_one_does_not_affect_its_response(request_bytes: bytes) -> None:
    async with running_edge() as world:
        client = await world.connect()
        sound = await client.ask(post("/echo", b"sound"), request_bytes, HIDDEN)
        assert (sound.status, sound.body, sound.closes) == (200, b"sound", False)
        assert (await client.response()).status == 400
        await client.ended()
        assert world.handlers.paths == ["/echo"]


SOUND = {
    "a length": framed(b"Content-Length: 5", body=b"hello"),
    "the same length twice": framed(b"Content-Length: 5", b"Content-Length: 5", body=b"hello"),
    "spaces around a length": framed(b"Content-Length: \t 5 \t", body=b"hello"),
    "chunks": framed(CHUNKED, body=b"2\r\nhe\r\n3\r\nllo\r\n" + END),
    "chunks in capitals": framed(b"TRANSFER-ENCODING: Chunked", body=b"5\r\nhello\r\n" + END),
    "chunks with extensions and trailers": framed(CHUNKED, body=b'5;a="b"\r\nhello\r\n0\r\nX: a\r\nY: b\r\n\r\n'),
    "a host with a port": framed(b"Content-Length: 5", body=b"hello", host=b"Host: [::1]:8080"),
    "an empty host": framed(b"Content-Length: 5", body=b"hello", host=b"Host: "),
    "a query": framed(b"Content-Length: 5", body=b"hello", first=b"POST /echo?a=http://b/ HTTP/1.1"),
}


UPGRADE = (b"Connection: Upgrade, HTTP2-Settings", b"HTTP2-Settings: AAMAAABkAAQAAP__")
HIDDEN_LENGTH = b"Content-Length: %d" % len(HIDDEN)
IN_CHUNKS = b"%x\r\n%b\r\n" % (len(HIDDEN), HIDDEN) + END

ENCLOSED = {
    # name: what is sent, how many answers it gets, whether these are the last ones
    "in a length": (framed(HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "in a length that is said twice": (framed(HIDDEN_LENGTH, HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "in chunks": (framed(CHUNKED, body=IN_CHUNKS), 1, False),
    "in the extension of a chunk": (framed(CHUNKED, body=b"5;GET /hidden HTTP/1.1\r\nhello\r\n" + END), 1, False),
    "in a trailer": (framed(CHUNKED, body=b"0\r\nX: GET /hidden HTTP/1.1\r\n\r\n"), 1, False),
    "in a field": (framed(b"X: GET /hidden HTTP/1.1", b"Content-Length: 0"), 1, False),
    "in the body of a GET": (framed(HIDDEN_LENGTH, body=HIDDEN, first=b"GET /hello HTTP/1.1"), 1, False),
    "in the chunks of a GET": (framed(CHUNKED, body=IN_CHUNKS, first=b"GET /hello HTTP/1.1"), 1, False),
    "in the body of a refused request": (
        framed(HIDDEN_LENGTH, body=HIDDEN, first=b"POST /unauthorized HTTP/1.1"), 1, False,
    ),
    "in the body of an unknown path": (framed(HIDDEN_LENGTH, body=HIDDEN, first=b"POST /nowhere HTTP/1.1"), 1, False),
    "in a body that was to be asked for": (framed(b"Expect: 100-continue", HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "in a body with another expectation": (framed(b"Expect: 200-ok", HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "behind an offer of h2c": (framed(*UPGRADE, b"Upgrade: h2c", HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "behind an offer of a websocket": (framed(*UPGRADE, b"Upgrade: websocket", HIDDEN_LENGTH, body=HIDDEN), 1, False),
    "in a body whose length is to be dropped": (
        framed(b"Connection: content-length", HIDDEN_LENGTH, body=HIDDEN), 1, False,
    ),
    "behind a length with an underscore": (framed(b"Content_Length: 5"), 1, False),
    "behind the last request": (framed(b"Connection: close", b"Content-Length: 5", body=b"hello" + HIDDEN), 1, True),
    "behind a 1.0 request": (framed(first=b"GET /hello HTTP/1.0", body=HIDDEN), 1, True),
    "behind a 1.0 request that would stay": (
        framed(b"Connection: keep-alive", b"Content-Length: 5", first=b"POST /echo HTTP/1.0", body=b"hello" + HIDDEN),
        1, True,
    ),
    "in a body larger than is taken": (framed(b"Content-Length: 999999", body=HIDDEN), 1, True),
    "in a body of 2^64 bytes and five": (framed(b"Content-Length: 18446744073709551621", body=HIDDEN), 1, True),
    "in the preface of HTTP/2 behind a sound request": (
        framed(b"Content-Length: 0") + b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN, 2, True,
    ),
}  # fmt: skip


def test_the_test_shapes_are_many_and_distinct() -> None:
    shapes = [*AMBIGUOUS.values(), *(framed(CHUNKED, body=body) for body in AMBIGUOUS_BODIES.values())]
    shapes += [sent for sent, _, _ in ENCLOSED.values()]
    assert len(set(shapes)) == len(shapes) >= 130


async def test_tiny_chunks_are_bounded_in_number_and_do_not_block_others() -> None:
    async with running_edge() as world:
        client, other = await world.connect(), await world.connect()
        enough = framed(CHUNKED, body=b"1\r\nx\r\n" * (MAX_CHUNKS - 1) + END)
        await client.send(enough)
        assert (await other.ask(get("/hello"))).status == 200
        assert (await client.response()).body == b"x" * (MAX_CHUNKS - 1)
        assert (await client.ask(enough)).status == 200  # counted again
        assert (await client.ask(framed(CHUNKED, body=b"1\r\nx\r\n" * MAX_CHUNKS + END))).status == 400
        await client.ended()


async def test_too_many_header_fields_are_refused() -> None:
    async with running_edge() as world:
        client = await world.connect()
        fields = [b"X: a"] * (MAX_FIELDS - 2)  # the request line and the host are lines, too
        assert (await client.ask(get("/hello", *fields))).status == 200
        assert (await client.ask(get("/hello", *fields, b"X: a"))).status == 431
        await client.ended()


async def test_a_head_of_exactly_the_limit_is_served_and_one_byte_more_is_refused() -> None:
    limit = 1_000
    filler = limit - len(get("/hello", b"X: "))
    async with running_edge(max_header_bytes=limit) as world:
        client = await world.connect()
        assert (await client.ask(get("/hello", b"X: " + b"x" * filler))).status == 200
        assert (await client.ask(get("/hello", b"X: " + b"x" * (filler + 1)))).status == 431
        await client.ended()


async def test_an_endless_head_is_refused_as_soon_as_it_is_too_large() -> None:
    async with running_edge(max_header_bytes=1_000) as world:
        client = await world.connect()
        assert (await client.ask(b"GET /hello HTTP/1.1\r\nX: ", b"x" * 1_000)).status == 431
        await client.ended()
