"""Plain messages: which ones are, and that nothing tells whether one was read and written with h11 or without."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.http.messages import EndOfRequest, Headers, ResponseError
from svc.http.plain import read_plain, write_plain
from svc.http.protocol import HttpProtocol
from tests.edge.test_framing import AMBIGUOUS, CHUNKED, framed
from tests.edge.world import get, post

HEADS = {
    # name: the head, whether it is plain
    "a GET": (get("/hello?a=%20b"), True),
    "a POST": (framed(b"Content-Length: 5"), True),
    "a length of nothing": (framed(b"Content-Length: 0"), True),
    "a GET with a length": (framed(b"Content-Length: 5", first=b"GET /hello HTTP/1.1"), True),
    "an empty value": (get("/", b"X:"), True),
    "a value with blanks around": (get("/", b"X: \t a b \t"), True),
    "a value not in ASCII": (get("/", b"X: \xc3\xa9"), True),
    "a connection that is kept": (get("/", b"Connection: Keep-Alive"), True),
    "a field that comes twice": (get("/", b"X: a", b"x: b"), True),
    "a POST without a length": (framed(), False),
    "the same length twice": (framed(b"Content-Length: 5", b"content-length: 5"), False),
    "a list of lengths": (framed(b"Content-Length: 5, 5"), False),
    "a length of many digits": (framed(b"Content-Length: 0000000000000005"), False),
    "chunks": (framed(CHUNKED), False),
    "a body that is to be asked for": (framed(b"Content-Length: 5", b"Expect: 100-continue"), False),
    "an upgrade": (get("/", b"Upgrade: h2c"), False),
    "a connection that is closed": (get("/", b"Connection: close"), False),
    "a connection with an option": (get("/", b"Connection: keep-alive, te"), False),
    "an event stream": (get("/", b"Accept: text/html, Text/Event-Stream"), False),
    "HTTP/1.0": (get("/").replace(b"1.1", b"1.0"), False),
    "a method in lower case": (get("/").replace(b"GET", b"get"), False),
    "a control character": (get("/", b"X: \x7f"), False),
}


@pytest.mark.parametrize(("head", "is_plain"), HEADS.values(), ids=HEADS.keys())
def test_a_head_is_recognized_as_plain_or_not(head: bytes, is_plain: bool):
    assert (read_plain(head) is not None) == is_plain


@pytest.mark.parametrize("head", AMBIGUOUS.values(), ids=AMBIGUOUS.keys())
def test_an_ambiguous_head_is_never_plain(head: bytes):
    assert read_plain(head[: head.find(b"\r\n\r\n") + 4]) is None


NAMES = st.sampled_from(
    [
        b"Content-Length",
        b"content-length",
        b"X-Request-Id",
        b"Vary",
        b"Connection",
        b"Transfer-Encoding",
        b"Host",
        b"x y",
    ]
)
VALUES = st.sampled_from(
    [b"5", b"0", b"05", b"5, 5", b"", b"a b", b"close", b"chunked", b"a\r\nb: c", b"\xe9", b"\x00"]
)
RESPONSES = st.tuples(
    st.sampled_from([200, 201, 204, 304, 404, 503]),
    st.lists(st.tuples(NAMES, VALUES), max_size=4),
    st.lists(st.sampled_from([b"hello", b"he", b"llo", b""]), max_size=3),
    st.booleans(),
)


def responded(
    request: bytes, status: int, headers: Headers, parts: list[bytes], *, lean: bool, is_last: bool
) -> object:
    """The bytes of a response and whether the connection goes on; only that it is an error, where it is one."""
    http = HttpProtocol(16_384, lean=lean)
    http.receive_data(request)
    while http.next_event() != EndOfRequest():
        pass
    try:
        sent = http.send_head(status, headers, is_last=is_last)
        sent += b"".join(map(http.send_body, parts)) + http.send_end()
    except ResponseError:
        return "an error", http.can_continue
    if not http.can_continue:
        return sent, "last"
    http.start_next_cycle()
    http.receive_data(get("/next"))
    return sent, http.next_event(), http.next_event()


@given(RESPONSES, st.sampled_from([get("/"), get("/").replace(b"GET", b"HEAD"), post("/", b"hello")]))
def test_a_response_has_the_same_bytes_with_and_without_h11(
    response: tuple[int, Headers, list[bytes], bool], request: bytes
):
    status, headers, parts, is_last = response
    with_h11, without = (
        responded(request, status, headers, parts, lean=lean, is_last=is_last) for lean in (False, True)
    )
    assert with_h11 == without


@pytest.mark.parametrize(
    ("status", "headers", "is_plain"),
    [
        (200, [(b"content-length", b"5")], True),
        (204, [], True),
        (200, [], False),
        (200, [(b"content-length", b"5"), (b"transfer-encoding", b"chunked")], False),
        (200, [(b"content-length", b"5"), (b"x", b"a\r\nb: c")], False),
        (101, [(b"content-length", b"0")], False),
    ],
)
def test_a_response_without_a_length_is_left_to_h11(status: int, headers: Headers, is_plain: bool):
    assert (write_plain(status, headers, b"GET", is_last=False) is not None) == is_plain
