"""W3C Trace Context Level 2: what is read of `traceparent` and `tracestate`, and what is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from svc.kernel.net.trace_context import MAX_STATE, TraceContext, read_trace

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
LATER = PARENT.replace("00-", "cc-", 1)


def read(parent: str, state: str | None = None) -> TraceContext | None:
    return read_trace({"traceparent": parent, **({} if state is None else {"tracestate": state})})


def state_of(text: str) -> str:
    found = read(PARENT, text)
    assert found is not None, "a bad tracestate costs the trace nothing (3.3)"
    return found.tracestate


def test_a_traceparent_is_read_and_sent_with_the_span_of_the_request():
    found = read(PARENT)
    assert found == TraceContext(bytes.fromhex(TRACE), bytes.fromhex(SPAN), 1)
    assert found.is_sampled
    assert found.child(bytes(range(8))).headers == {"traceparent": f"00-{TRACE}-0001020304050607-01"}


@pytest.mark.parametrize(
    "parent",
    [
        "",
        PARENT + "-",
        PARENT + "-more",
        PARENT + "0",
        PARENT[:-1],
        PARENT.upper(),
        PARENT.replace("00-", "ff-", 1),
        PARENT.replace("00-", "0-", 1),
        PARENT.replace("00-", "0g-", 1),
        PARENT.replace("-", "_"),
        PARENT.replace(TRACE, "0" * 32),
        PARENT.replace(SPAN, "0" * 16),
        PARENT.replace(TRACE, TRACE[:-1] + "."),
        PARENT.replace(TRACE, TRACE[:-1] + "\u0661"),
        " " + PARENT,
        f"{PARENT}, {PARENT}",
        PARENT + "\n",
        LATER + "0",
        LATER + ".more",
    ],
)
def test_a_traceparent_that_breaks_a_rule_counts_for_nothing(parent: str):
    """3.2.2: two of them, too, which arrive joined by a comma."""
    assert read(parent, "a=1") is None


@pytest.mark.parametrize("parent", [LATER, LATER + "-", LATER + "-more-01"])
def test_a_later_version_is_read_as_far_as_this_one_goes(parent: str):
    """3.2.4: what is sent is of version 00."""
    found = read(parent)
    assert found is not None
    assert found.headers == {"traceparent": PARENT}


@pytest.mark.parametrize(("flags", "sent"), [("00", "00"), ("01", "01"), ("02", "02"), ("ff", "03"), ("fc", "00")])
def test_flags_that_level_2_does_not_know_are_sent_as_zero(flags: str, sent: str):
    """3.2.2.5"""
    found = read(PARENT[:-2] + flags)
    assert found is not None
    assert found.headers["traceparent"] == PARENT[:-2] + sent


LONG = "l=" + "x" * 127


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("", ""),
        (" , ,\t", ""),
        ("a=1", "a=1"),
        ("a=1,b=2", "a=1,b=2"),
        (" a=1 ,\t,b=2 ", "a=1,b=2"),
        ("fw529a3039@dt=FfAAA,1a-2b@c/*_=x y", "fw529a3039@dt=FfAAA,1a-2b@c/*_=x y"),
        (f"{'k' * 256}={'v' * 255}", f"{'k' * 256}={'v' * 255}"),
        (f"{'k' * 257}=v", ""),
        (f"k={'v' * 257}", ""),
        ("a", ""),
        ("=1", ""),
        ("a=", ""),
        ("A=1", ""),
        ("a =1", ""),
        ("a=1=2", ""),
        ("_a=1", ""),
        ("a=\u00e9", ""),
        ("a=\x01", ""),
        ("a=1,a=2", ""),
        (",".join(f"k{number}=v" for number in range(32)), ",".join(f"k{number}=v" for number in range(32))),
        (",".join(f"k{number}=v" for number in range(33)), ""),
        (f"a=1,{LONG},{'b' * 250}={'v' * 250},c=3", f"a=1,{LONG},c=3"),
        (",".join(f"{name}=" + "x" * 120 for name in "abcde"), ",".join(f"{name}=" + "x" * 120 for name in "abcd")),
    ],
)
def test_a_tracestate_is_passed_on_or_dropped(text: str, sent: str):
    """3.3.1: of more than 512 characters, entries go: those longer than 128 first, from the end."""
    assert state_of(text) == sent


@given(st.text(st.sampled_from("a1=,@ -\t_é"), max_size=700), st.text(st.sampled_from("0af-"), max_size=60))
def test_whatever_arrives_what_is_sent_can_be_read_again(state: str, parent: str):
    read(parent, state)
    kept = state_of(state)
    assert len(kept) <= MAX_STATE
    assert state_of(kept) == kept
