"""The request and the plain answers beside h11, which reads and writes the same."""

from __future__ import annotations

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from svc.features.webhooks.transport.connections import ReceivedResponse, read_response, write_request

HEADERS = {"Host": "receiver.test", "Content-Length": "2", "Content-Type": "application/json"}
LINES = st.sampled_from(
    [
        b"Content-Length: 2",
        b"content-length:2 ",
        b"Content-Length: 02",
        b"Content-Length: 0",
        b"Content-Length: 2, 2",
        b"Content-Length: -2",
        b"Content-Length: +2",
        b"Content-Length:",
        b"Transfer-Encoding: chunked",
        b"Connection: close",
        b"Connection: Keep-Alive",
        b"Connection: keep-alive, close",
        b"Upgrade: h2c",
        b"Server: a b\tc",
        b"X-Empty: \t ",
        b" folded",
        b"No-Colon",
        b"Bad Name: 1",
        b"X: \xe9",
        b"X: \x00",
    ]
)
STARTS = st.sampled_from(
    [
        b"HTTP/1.1 200 OK",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 201 Created",
        b"HTTP/1.1 204 No Content",
        b"HTTP/1.1 205 Reset Content",
        b"HTTP/1.0 200 OK",
        b"HTTP/1.1 304 Not Modified",
        b"HTTP/1.1 500 Oops",
        b"HTTP/1.1 100 Continue",
        b"HTTP/1.1  200 OK",
        b"http/1.1 200 OK",
    ]
)


def as_h11_reads(data: bytes) -> tuple[int, int, bool] | None:
    """(status, bytes of the body, whether another exchange may follow) of a whole answer; `None` for any other."""
    http = h11.Connection(h11.CLIENT)
    http.send(h11.Request(method="POST", target="/", headers=[("Host", "receiver.test")]))
    http.send(h11.EndOfMessage())
    http.receive_data(data)
    status, size = 0, 0
    try:
        while isinstance(event := http.next_event(), h11.Event):
            match event:
                case h11.Response():
                    status = event.status_code
                case h11.Data():
                    size += len(event.data)
                case h11.EndOfMessage():
                    free = http.states == {h11.CLIENT: h11.DONE, h11.SERVER: h11.DONE}
                    return status, size, free and not http.trailing_data[0]
                case _:
                    pass
    except h11.RemoteProtocolError:
        return None
    return None


@given(
    STARTS, st.lists(LINES, max_size=4), st.sampled_from([b"\r\n", b"\n"]), st.sampled_from([b"", b"o", b"ok", b"okay"])
)
@example(b"HTTP/1.1 200 OK", [b"Content-Length: 2"], b"\r\n", b"ok")
@example(b"HTTP/1.1 204 No Content", [], b"\r\n", b"")
def test_a_plain_response_is_read_as_by_h11(start: bytes, lines: list[bytes], ending: bytes, body: bytes):
    data = ending.join([start, *lines, b"", b""]) + body
    plain = read_response(data)
    if plain is not None and plain.head_bytes + plain.body_bytes <= len(data):
        surplus = len(data) - plain.head_bytes - plain.body_bytes
        assert as_h11_reads(data) == (plain.status, plain.body_bytes, not surplus)
    elif plain is not None:
        assert as_h11_reads(data) is None, "h11 waits for more, too"


@pytest.mark.parametrize(
    ("data", "plain"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", ReceivedResponse(200, 38, 2)),
        (b"HTTP/1.1 202\r\nContent-Length: 9\r\nConnection: keep-alive\r\n\r\n", ReceivedResponse(202, 59, 9)),
        (b"HTTP/1.1 204 No Content\r\nDate: today\r\n\r\n", ReceivedResponse(204, 40, 0)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", None),
        (b"HTTP/1.1 200 OK\r\n\r\n", None),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n", None),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok", None),
        (b"", None),
    ],
)  # fmt: skip
def test_only_an_unambiguous_response_is_plain(data: bytes, plain: ReceivedResponse | None):
    assert read_response(data) == plain


@given(st.text(st.sampled_from("abcXYZ/?&=%-"), max_size=30), st.binary(max_size=40))
def test_a_request_equals_that_of_h11(path: str, body: bytes):
    headers = {**HEADERS, "Content-Length": str(len(body))}
    http = h11.Connection(h11.CLIENT)
    events = (
        h11.Request(method="POST", target="/" + path, headers=list(headers.items())),
        h11.Data(body),
        h11.EndOfMessage(),
    )
    written = b"".join(http.send(event) or b"" for event in events)
    assert write_request("/" + path, headers, body) == written


@pytest.mark.parametrize("value", ["a\r\nX-Other: b", "a\n", "a\0", "é", " a", ""])
def test_a_value_with_a_line_break_is_rejected(value: str):
    with pytest.raises(ValueError, match="header"):
        write_request("/", {**HEADERS, "X-Svc-Event-Type": value}, b"{}")


@pytest.mark.parametrize("path", ["", "no-slash", "/ HTTP/1.1", "/\r\nX: 1"])
def test_a_path_with_invalid_characters_is_rejected(path: str):
    with pytest.raises(ValueError, match="path"):
        write_request(path, HEADERS, b"{}")
