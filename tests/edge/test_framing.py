"""Requests that two parsers could read in two ways: one answer, a close, and nothing behind it is served."""

from __future__ import annotations

import pytest
import trio

from tests.edge.world import HANG_S, get, post, running_edge

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
    "an empty line first": b"\r\n" + framed(b"Content-Length: 0"),
    # the first line
    "an absolute target": framed(first=b"GET http://localhost/hello HTTP/1.1"),
    "an absolute target of another host": framed(first=b"GET https://other/hello HTTP/1.1"),
    "a target with an authority": framed(first=b"CONNECT localhost:443 HTTP/1.1"),
    "a tunnel to a path": framed(first=b"CONNECT /hello HTTP/1.1"),
    "an asterisk": framed(first=b"OPTIONS * HTTP/1.1"),
    "a target without a slash": framed(first=b"GET hello HTTP/1.1"),
    "a query without a path": framed(first=b"GET ?a HTTP/1.1"),
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
    "a chunk size with a bare line feed": b"5\nhello\r\n" + END,
    "an extension with a bare line feed": b"5;a\nb\r\nhello\r\n" + END,
    "an extension with a bare carriage return": b"5;a\rb\r\nhello\r\n" + END,
    "a chunk longer than it says": b"5\r\nhello there\r\n" + END,
    "a chunk without an end": b"5\r\nhello" + END,
    "a chunk that ends in a line feed": b"5\r\nhello\n" + END,
    "trailers with bare line feeds": b"5\r\nhello\r\n0\r\nX: a\n\n",
    "an end with a bare line feed": b"5\r\nhello\r\n0\r\n\n",
    "a trailer with a space before the colon": b"5\r\nhello\r\n0\r\nX : a\r\n\r\n",
    "a folded trailer": b"5\r\nhello\r\n0\r\nX: a\r\n b\r\n\r\n",
}


@pytest.mark.parametrize("request_bytes", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
async def test_an_ambiguous_head_gets_one_400_and_nothing_behind_it_is_served(request_bytes: bytes) -> None:
    with trio.fail_after(HANG_S):
        async with running_edge() as world:
            client = await world.connect()
            answer = await client.ask(request_bytes, HIDDEN)
            assert (answer.status, answer.error["code"], answer.closes) == (400, "bad_request", True)
            await client.ended()
            assert world.handlers.paths == []


@pytest.mark.parametrize("body", AMBIGUOUS_BODIES.values(), ids=AMBIGUOUS_BODIES.keys())
async def test_an_ambiguous_body_gets_one_400_and_nothing_behind_it_is_served(body: bytes) -> None:
    with trio.fail_after(HANG_S):
        async with running_edge() as world:
            client = await world.connect()
            answer = await client.ask(framed(CHUNKED, body=body), HIDDEN)
            assert (answer.status, answer.error["code"], answer.closes) == (400, "bad_request", True)
            await client.ended()
            assert world.handlers.bodies == []
            assert "/hidden" not in world.handlers.paths


@pytest.mark.parametrize("request_bytes", list(AMBIGUOUS.values())[::7], ids=list(AMBIGUOUS.keys())[::7])
async def test_an_ambiguous_request_behind_a_sound_one_takes_nothing_from_its_answer(request_bytes: bytes) -> None:
    with trio.fail_after(HANG_S):
        async with running_edge() as world:
            client = await world.connect()
            sound = await client.ask(post("/echo", b"sound"), request_bytes, HIDDEN)
            assert (sound.status, sound.body, sound.closes) == (200, b"sound", False)
            assert (await client.answer()).status == 400
            await client.ended()
            assert world.handlers.paths == ["/echo"]


@pytest.mark.parametrize("step", [1, 3])
async def test_a_bare_line_feed_is_found_however_the_request_is_cut_into_packets(step: int) -> None:
    request_bytes = b"POST /echo HTTP/1.1\r\nHost: a\r\nX: a\nContent-Length: 5\r\n\r\nhello"
    with trio.fail_after(HANG_S):
        async with running_edge() as world:
            client = await world.connect()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_send_in_steps, client.stream, request_bytes, step)
                assert (await client.answer()).status == 400
                nursery.cancel_scope.cancel()
            assert world.handlers.paths == []


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


@pytest.mark.parametrize("step", [1, 1_000])
@pytest.mark.parametrize("request_bytes", SOUND.values(), ids=SOUND.keys())
async def test_a_sound_request_is_served_however_it_is_cut_into_packets(request_bytes: bytes, step: int) -> None:
    with trio.fail_after(HANG_S):
        async with running_edge() as world:
            client = await world.connect()
            for _ in range(2):
                await _send_in_steps(client.stream, request_bytes, step)
                answer = await client.answer()
                assert (answer.status, answer.body) == (200, b"hello")
            assert world.edge.statistics().connections_accepted == 1


async def test_a_head_of_exactly_the_limit_is_served_and_one_byte_more_is_not() -> None:
    limit = 1_000
    filler = limit - len(get("/hello", b"X: "))
    with trio.fail_after(HANG_S):
        async with running_edge(max_header_bytes=limit) as world:
            client = await world.connect()
            assert (await client.ask(get("/hello", b"X: " + b"x" * filler))).status == 200
            assert (await client.ask(get("/hello", b"X: " + b"x" * (filler + 1)))).status == 431
            await client.ended()


async def test_a_head_without_an_end_is_refused_as_soon_as_it_is_too_large() -> None:
    with trio.fail_after(HANG_S):
        async with running_edge(max_header_bytes=1_000) as world:
            client = await world.connect()
            assert (await client.ask(b"GET /hello HTTP/1.1\r\nX: ", b"x" * 1_000)).status == 431
            await client.ended()


async def _send_in_steps(stream: trio.abc.SendStream, data: bytes, step: int) -> None:
    for position in range(0, len(data), step):
        await stream.send_all(data[position : position + step])
        await trio.lowlevel.checkpoint()
