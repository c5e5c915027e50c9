"""HTTP/1.1 without a socket: bytes in and events out, responses in and bytes out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.http.server.http1 import MAX_CHUNK_LINE_BYTES, MAX_CHUNKS, MAX_FIELDS, HttpProtocol, Phase
from svc.http.server.messages import BodyPart, EndOfRequest, HttpEvent, MalformedRequest, RequestHead, ResponseError
from tests.edge.test_framing import AMBIGUOUS, AMBIGUOUS_BODIES, CHUNKED, ENCLOSED, END, SOUND, framed
from tests.edge.world import get, post
from tests.fuzz.binary import REQUEST_PIECES, REQUESTS
from tests.fuzz.target import mutated

MAX_HEAD_BYTES = 1_000
LENGTH_0 = [(b"content-length", b"0")]
EXPECTING = framed(b"Content-Length: 5", b"Expect: 100-continue")


def protocol(*received: bytes) -> HttpProtocol:
    http = HttpProtocol(MAX_HEAD_BYTES)
    for data in received:
        http.receive_data(data)
    return http


def events(http: HttpProtocol) -> list[HttpEvent]:
    """What has been read so far."""
    return joined(iter(http.next_event, None))


def joined(found: Iterable[HttpEvent]) -> list[HttpEvent]:
    """With the parts of each body as one: where they are cut says nothing."""
    whole: list[HttpEvent] = []
    for event in found:
        if isinstance(event, BodyPart):
            before = whole.pop().data if whole and isinstance(whole[-1], BodyPart) else b""  # type: ignore[union-attr]
            whole.append(BodyPart(bytes(before + event.data)))
        else:
            whole.append(event)
    return whole


def respond(http: HttpProtocol, body: bytes = b"") -> bytes:
    """A whole response."""
    head = http.send_head(200, [(b"content-length", b"%d" % len(body))])
    return head + http.send_body(body) + http.send_end()


def understood(packets: list[bytes]) -> list[HttpEvent]:
    """The events of one request, or of the part of it that arrives."""
    http = protocol()
    found: list[HttpEvent] = []
    for packet in packets:
        http.receive_data(packet)
        found += events(http)
    return joined(found)


def conversation(packets: list[bytes]) -> list[HttpEvent]:
    """The events of all requests, each of which is answered when it is complete, until the client sends no more."""
    http = protocol()
    found: list[HttpEvent] = []
    for packet in packets:
        http.receive_data(packet)
        while new := events(http):
            found += new
            if new[-1] == EndOfRequest():
                respond(http)
                if not http.can_continue:
                    return joined(found)
                http.start_next_cycle()
    http.receive_eof()
    return joined([*found, *events(http)])


# Requests


def test_a_request_is_a_head_a_body_and_an_end():
    http = protocol(post("/echo?a=%20b", b"hello", b"X-Name: a value"))
    assert events(http) == [
        RequestHead(
            "POST",
            b"/echo?a=%20b",
            "1.1",
            [(b"host", b"localhost"), (b"content-length", b"5"), (b"x-name", b"a value")],
        ),
        BodyPart(b"hello"),
        EndOfRequest(),
    ]
    assert (http.phase, http.has_unread_body, http.has_unread_input) == (Phase.RESPONSE, False, False)


def test_chunks_form_one_body_and_trailers_are_not_part_of_it():
    body = b"2\r\nhe\r\n3;a=b\r\nllo\r\n0\r\nX: a\r\n\r\n"
    _, *rest = events(protocol(framed(CHUNKED, body=body)))
    assert rest == [BodyPart(b"hello"), EndOfRequest()]


def test_a_pipelined_request_waits_for_the_response_to_the_previous_one():
    http = protocol(post("/one", b"1") + get("/two") + b"GET /thr")
    assert [type(event) for event in events(http)] == [RequestHead, BodyPart, EndOfRequest]
    assert http._input == get("/two") + b"GET /thr"
    assert http.has_unread_input
    respond(http)
    http.start_next_cycle()
    assert http.phase is Phase.HEAD, "it has begun"
    two, end = events(http)
    assert isinstance(two, RequestHead)
    assert (two.target, end) == (b"/two", EndOfRequest())
    respond(http)
    http.start_next_cycle()
    assert (http.phase, events(http)) == (Phase.HEAD, [])
    http.receive_data(b"ee HTTP/1.0\r\n\r\n")
    three, end = events(http)
    assert isinstance(three, RequestHead)
    assert (three.target, three.http_version, end) == (b"/three", "1.0", EndOfRequest())


@pytest.mark.parametrize("sent", [*SOUND.values(), *(sent for sent, _, _ in ENCLOSED.values())])
def test_a_request_may_be_split_anywhere(sent: bytes):
    whole = conversation([sent])
    assert isinstance(whole[0], RequestHead)
    assert conversation([sent[at : at + 1] for at in range(len(sent))]) == whole
    for at in range(1, len(sent)):
        assert conversation([sent[:at], sent[at:]]) == whole, f"cut at {at}"


@pytest.mark.parametrize(
    "sent", [*AMBIGUOUS.values(), *(framed(CHUNKED, body=body) for body in AMBIGUOUS_BODIES.values())]
)
def test_an_ambiguous_request_is_malformed_however_it_is_split_and_nothing_follows(sent: bytes):
    sent += get("/hidden")
    whole = conversation([sent])
    assert whole[-1] == MalformedRequest(400)
    assert len([event for event in whole if isinstance(event, RequestHead)]) <= 1
    for at in range(1, len(sent)):
        assert conversation([sent[:at], sent[at:]]) == whole, f"cut at {at}"


@given(mutated(REQUESTS, REQUEST_PIECES), st.lists(st.integers(0, 2_000), max_size=8))
def test_the_events_are_the_same_however_the_bytes_are_split(sent: bytes, cuts: list[int]):
    edges = sorted({0, len(sent), *(cut for cut in cuts if cut < len(sent))})
    packets = [sent[start:end] for start, end in pairwise(edges)]
    whole = conversation([sent] if sent else [])
    assert conversation(packets) == whole
    assert conversation([sent[at : at + 1] for at in range(len(sent))]) == whole


@given(st.lists(st.binary(min_size=1, max_size=60), max_size=6), st.sampled_from([b"", *REQUESTS]))
def test_no_input_raises(packets: list[bytes], begun: bytes):
    conversation([begun, *packets] if begun else packets)


# Limits


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (get("/", b"X: " + b"x" * 1_000), 431),
        (get("/", b"X: " + b"x" * 1_000)[:MAX_HEAD_BYTES], None),
        (get("/", b"X: " + b"x" * 1_000)[: MAX_HEAD_BYTES + 1], 431),
        (get("/", *[b"a:"] * (MAX_FIELDS - 2)), None),
        (get("/", *[b"a:"] * (MAX_FIELDS - 1)), 431),
        (get("/", b"X: a\nb" + b"x" * 1_000), 400),
        (get("/", b"X: " + b"x" * 1_000 + b"a\nb"), 431),
        (framed(CHUNKED, body=b"0\r\nX: " + b"x" * 1_000), 431),
        (framed(CHUNKED, body=b"0\r\n" + b"a:\r\n" * (MAX_FIELDS + 1) + b"\r\n"), 431),
        (framed(CHUNKED, body=b"1\r\nx\r\n" * (MAX_CHUNKS - 1) + END), None),
        (framed(CHUNKED, body=b"1\r\nx\r\n" * MAX_CHUNKS + END), 400),
        (framed(CHUNKED, body=b"00000005;%b\r\nhello\r\n" % (b"a" * 256)), None),
        (framed(CHUNKED, body=b"5" + b";" * (MAX_CHUNK_LINE_BYTES - 1)), 400),
    ],
)
def test_an_oversized_request_is_malformed_as_soon_as_that_is_known(sent: bytes, status: int | None):
    found = understood([sent])
    assert found == understood([sent[at : at + 1] for at in range(len(sent))])
    assert [event.status for event in found if isinstance(event, MalformedRequest)] == ([status] if status else [])


@pytest.mark.parametrize("sent", [b"\x16\x03\x01", b"\r\n", b" ", b"\x00"])
def test_an_invalid_request_line_is_malformed_at_its_first_byte(sent: bytes):
    assert events(protocol(sent[:1])) == [MalformedRequest(400)]


# The end of the input


@pytest.mark.parametrize(
    ("sent", "is_malformed"),
    [
        (b"", False),
        (b"GET", True),
        (post("/echo", b"hello")[:-1], True),
        (framed(CHUNKED, body=b"5\r\nhello\r\n"), True),
        (post("/echo", b"hello"), False),
        (post("/echo", b"hello") + b"GET", False),
    ],
)
def test_an_incomplete_request_is_malformed_when_its_client_closes(sent: bytes, is_malformed: bool):
    http = protocol(*([sent] if sent else []))
    before = events(http)
    assert MalformedRequest(400) not in before
    http.receive_eof()
    assert events(http) == [MalformedRequest(400)] * is_malformed
    assert events(http) == [], "once"
    assert not http.has_unread_input, "nobody sends it"


def test_after_the_client_closes_its_sending_side_no_other_request_follows():
    http = protocol(post("/echo", b"hello") + get("/next"))
    events(http)
    http.receive_eof()
    assert b"connection: close" not in respond(http).lower()
    assert not http.can_continue


# Responses


def test_a_connection_is_kept_open_after_a_response():
    http = protocol(get("/"))
    for _ in range(3):
        events(http)
        assert respond(http, b"hello") == b"HTTP/1.1 200 \r\ncontent-length: 5\r\n\r\nhello"
        assert http.can_continue
        http.start_next_cycle()
        assert (http.phase, events(http)) == (Phase.IDLE, [])
        http.receive_data(get("/"))


@pytest.mark.parametrize(
    ("sent", "is_last"),
    [
        (get("/", b"Connection: close"), False),
        (get("/", b"Connection: close", b"Connection: keep-alive"), False),
        (get("/", b"Connection: te, Close"), False),
        (b"GET / HTTP/1.0\r\n\r\n", False),
        (b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", False),
        (get("/"), True),
    ],
)
def test_the_last_response_contains_connection_close(sent: bytes, is_last: bool):
    http = protocol(sent)
    events(http)
    head = http.send_head(200, LENGTH_0, is_last=is_last) + http.send_end()
    assert head.lower().count(b"\r\nconnection: close\r\n") == 1
    assert (http.can_continue, http.has_unread_input) == (False, False)


@pytest.mark.parametrize("arrived", [b"", b"hel"])
def test_a_response_to_an_incomplete_request_is_the_last_one(arrived: bytes):
    http = protocol(framed(b"Content-Length: 5") + arrived)
    events(http)
    assert http.has_unread_body
    assert b"connection: close" in respond(http)
    assert (http.phase, http.can_continue, http.has_unread_input) == (Phase.RESPONSE, False, True)
    http.receive_data(b"lo" if arrived else b"hello")
    assert events(http)[-1] == EndOfRequest(), "a handler may go on reading"
    assert (http.can_continue, http.has_unread_input) == (False, False)


def test_a_request_found_malformed_during_its_response_does_not_break_the_response():
    http = protocol(framed(CHUNKED, body=b"5\r\nhello\r\n"))
    events(http)
    begun = http.send_head(200, [])
    http.receive_data(b"nonsense\r\n")
    assert events(http) == [MalformedRequest(400)]
    assert (begun + http.send_body(b"all") + http.send_end()).endswith(b"3\r\nall\r\n0\r\n\r\n")
    assert not http.can_continue


def test_the_body_is_requested_once():
    http = protocol(EXPECTING)
    assert not http.is_continue_due
    events(http)
    assert http.is_continue_due
    assert http.send_continue() == b"HTTP/1.1 100 \r\n\r\n"
    assert not http.is_continue_due
    http.receive_data(b"hello")
    assert events(http) == [BodyPart(b"hello"), EndOfRequest()]
    respond(http)
    assert http.can_continue


@pytest.mark.parametrize("sent", [EXPECTING + b"hello", get("/"), EXPECTING.replace(b"1.1", b"1.0")])
def test_a_body_that_is_present_or_not_expected_is_not_requested(sent: bytes):
    http = protocol(sent)
    events(http)
    assert not http.is_continue_due


@pytest.mark.parametrize(("method", "status"), [(b"HEAD", 200), (b"GET", 204), (b"GET", 304)])
def test_a_response_that_may_not_have_a_body_has_none(method: bytes, status: int):
    http = protocol(get("/").replace(b"GET", method))
    events(http)
    headers = [(b"content-length", b"5")] if status != 204 else []
    assert http.send_head(status, headers).endswith(b"\r\n\r\n")
    assert http.send_body(b"hello") + http.send_end() == b""
    assert http.can_continue


@pytest.mark.parametrize(("version", "framing"), [(b"1.1", b"5\r\nhello\r\n0\r\n\r\n"), (b"1.0", b"hello")])
def test_a_body_of_unknown_length_is_framed_for_the_client_version(version: bytes, framing: bytes):
    http = protocol(get("/").replace(b"1.1", version))
    events(http)
    http.send_head(200, [])
    assert http.send_body(b"") + http.send_body(b"hello") + http.send_end() == framing
    assert http.can_continue == (version == b"1.1")


BAD_RESPONSES: dict[str, Callable[[HttpProtocol], object]] = {
    "a body without a head": lambda http: http.send_body(b"x"),
    "an end without a head": HttpProtocol.send_end,
    "two heads": lambda http: http.send_head(200, LENGTH_0) + http.send_head(200, LENGTH_0),
    "a longer body": lambda http: http.send_head(200, LENGTH_0) + http.send_body(b"x"),
    "a shorter body": lambda http: http.send_head(200, [(b"content-length", b"1")]) + http.send_end(),
    "two lengths": lambda http: http.send_head(200, [*LENGTH_0, (b"content-length", b"1")]),
    "a field in two lines": lambda http: http.send_head(200, [(b"x", b"a\r\nb: c")]),
    "a name that is none": lambda http: http.send_head(200, [(b"x y", b"a")]),
    "a status of no response": lambda http: http.send_head(101, []),
    "a body behind the end": lambda http: respond(http) + http.send_body(b"x"),
}


@pytest.mark.parametrize("send", BAD_RESPONSES.values(), ids=BAD_RESPONSES.keys())
def test_an_invalid_response_is_an_error_and_the_connection_is_not_reused(send: Callable[[HttpProtocol], object]):
    http = protocol(get("/"))
    events(http)
    with pytest.raises(ResponseError):
        send(http)
    assert not http.can_continue


def test_an_independent_client_reads_what_was_sent():
    """Another implementation's side: h11 as a client."""
    client, http = h11.Connection(h11.CLIENT), protocol()
    for body in (b"", b"hello", b"x" * 100_000):
        head = h11.Request(method="POST", target="/", headers=[("host", "a"), ("transfer-encoding", "chunked")])
        http.receive_data(client.send(head))
        http.receive_data(client.send(h11.Data(data=b"asked")) + client.send(h11.EndOfMessage()))
        assert events(http)[1:] == [BodyPart(b"asked"), EndOfRequest()]
        client.receive_data(respond(http, body))
        http.start_next_cycle()
        assert b"".join(bytes(event.data) for event in _client_events(client) if isinstance(event, h11.Data)) == body
        client.start_next_cycle()


NAMES = st.sampled_from(
    [b"Content-Length", b"content-length", b"X-Request-Id", b"Vary", b"Connection", b"Upgrade", b"x y"]
)
VALUES = st.sampled_from([b"5", b"0", b"05", b"5, 5", b"", b"a b", b"close", b"a\r\nb: c", b"\xe9", b"\x00"])


@given(
    st.sampled_from([200, 201, 204, 304, 404, 503]),
    st.lists(st.tuples(NAMES, VALUES), max_size=4),
    st.lists(st.sampled_from([b"hello", b"he", b"llo", b""]), max_size=3),
    st.sampled_from(["GET", "HEAD"]),
)
def test_a_response_is_an_error_or_read_by_another_implementation_as_it_was_meant(
    status: int, headers: list[tuple[bytes, bytes]], parts: list[bytes], method: str
):
    client, http = h11.Connection(h11.CLIENT), protocol()
    http.receive_data(client.send(h11.Request(method=method, target="/", headers=[("host", "a")])))
    client.send(h11.EndOfMessage())
    events(http)
    try:
        sent = http.send_head(status, headers) + b"".join(map(http.send_body, parts)) + http.send_end()
    except ResponseError:
        assert not http.can_continue
        return
    client.receive_data(sent)
    head, *rest = _client_events(client)
    assert isinstance(head, h11.Response)
    assert (head.status_code, http.can_continue) == (status, True)
    body = b"".join(bytes(event.data) for event in rest if isinstance(event, h11.Data))
    assert body == (b"" if method == "HEAD" or status in (204, 304) else b"".join(parts))
    assert client.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}


def _client_events(client: h11.Connection) -> Iterator[h11.Event]:
    while isinstance(event := client.next_event(), h11.Event):
        yield event
        if isinstance(event, h11.EndOfMessage):
            return


def test_a_closed_connection_emits_nothing():
    http = protocol(post("/echo", b"hello"))
    http.close()
    assert (http.phase, events(http)) == (Phase.CLOSING, [])
    http.receive_data(b"more")
    assert events(http) == []
