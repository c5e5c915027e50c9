"""The headers of a request, archived so that an identification can be run again."""

from __future__ import annotations

import pytest

from svc.identify.model import ClientHints, RequestFacts
from svc.identify.network.request_headers import RequestHeaders, _archived, archived_headers, facts_of, read_headers
from svc.identify.useragent.agent import read_hints
from tests.spec.responses import BROWSER

CHROME = {
    "sec-ch-ua": '"Google Chrome";v="137", "Chromium";v="137", "Not/A)Brand";v="24"',
    "sec-ch-ua-mobile": "?0",
    "sec-ch-ua-platform": '"Windows"',
}


@pytest.mark.parametrize(
    "facts",
    [
        RequestFacts(ip="192.0.2.1"),
        RequestFacts(ip="2001:db8::1", user_agent=""),
        RequestFacts(ip="192.0.2.1", user_agent="\xff\x00\\" * 700, accept_language='de,"', connection_os="Linux 6"),
        RequestFacts(ip="192.0.2.1", user_agent=BROWSER["user-agent"], hints=read_hints(CHROME)),
    ],
)
def test_archived_headers_are_restored_unchanged(facts: RequestFacts):
    assert facts_of(facts.ip, read_headers(archived_headers(facts))) == facts


def test_the_headers_of_a_browser_take_less_than_a_hundred_bytes():
    headers = {**BROWSER, **CHROME}
    facts = RequestFacts(
        ip="192.0.2.1",
        user_agent=headers["user-agent"],
        accept_language=headers.get("accept-language", "en-GB,en;q=0.9"),
        hints=read_hints(headers),
    )
    assert len(archived_headers(facts)) < 100


def test_headers_archived_by_earlier_versions_are_still_read():
    """The dictionary of the compression is part of the stored format."""
    stored = bytes.fromhex("4373757269518ebe859e210ef390cca8ad0500")
    assert read_headers(stored) == RequestHeaders(user_agent="curl/8.1", accept_language="en")


def test_the_same_headers_are_the_same_bytes_whoever_sent_them_first():
    """A browser without hints has an object of its own for them, which is equal to the default."""
    sent = RequestFacts(ip="81.2.69.160", user_agent="A")
    own = RequestFacts(ip="81.2.69.160", user_agent="A", hints=ClientHints())
    _archived.cache_clear()
    first = archived_headers(own)
    _archived.cache_clear()
    assert archived_headers(sent) == first
