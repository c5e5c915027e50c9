"""Cases of `responses.json`: what a library for servers makes of the bytes of a response.

What may live here: the form of an event, of a refusal, of published keys and of a page, as the contract decides them
(README.md, "What has the form of an event").
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from typing import Any

from cases_for_servers import (
    ADDRESS,
    ALPHABET,
    BLOCK,
    CHALLENGE,
    CLAIMS,
    KEY,
    NEXT_KEY,
    NOW_MS,
    ORGANIZATION,
    ORIGIN,
    REQUEST_ID,
    SEEN,
    UNEXPECTED,
    expected_of,
    key_of,
    token_of,
)

MISSING = object()
"""A field that is left out."""
KINDS_OF_VALUES: dict[str, Any] = {
    "missing": MISSING, "null": None, "empty": "", "a number": 7, "zero": 0, "true": True, "false": False,
    "a list": [], "a list of texts": ["a"], "an object": {"a": "text"}, "a text": "text",
}  # fmt: skip
DEEPEST = 100
"""Levels of lists and objects."""


def response_cases() -> list[dict[str, Any]]:
    """Of `event`: what is concluded of the body of a `200`, an error where it is no event. Of `refusal`: the code of
    any other response, and for how long it asks to wait. Of `retry_after`: the seconds of a header. Of `keys`: what is
    concluded of a verdict that is right, with the keys of a body. Of `page`: the ids of a list of events, or an error.
    """
    return [
        *_fields(), *_texts(), *_names(), *_unread(), *_times(), *_addresses(), *_unicode(), *_refusals(),
        *_retry_afters(), *_keys(), *_pages(),
    ]  # fmt: skip


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def written(fields: dict[str, Any]) -> str:
    """The text of an object, without the fields that are missing."""
    return json.dumps({name: value for name, value in fields.items() if value is not MISSING}, ensure_ascii=False)


class _Events:
    """Cases of the body of an event and an action, which are equal unless they are changed."""

    def __init__(self) -> None:
        self.made: list[dict[str, Any]] = []

    def __call__(
        self,
        name: str,
        problem: str | None = None,
        *,
        body: bytes | str | None = None,
        event: dict[str, Any] | None = None,
        reasons: Sequence[str] = (),
        error: str | None = None,
        now_ms: int = NOW_MS,
        **changes: Any,
    ) -> None:
        content = written({**SEEN, **(event or {})}) if body is None else body
        content = content.encode() if isinstance(content, str) else content
        action = {"origin": ORIGIN, "tag": "signup", **changes}
        given = {"body": _base64(content), "action": action, "now_ms": now_ms}
        expect = {"error": error} if error else expected_of(problem, reasons)
        self.made.append({"name": name, "kind": "event", "given": given, "expect": expect})

    def no_event(self, name: str, body: bytes | str | None = None, **event: Any) -> None:
        self(f"no event: {name}", UNEXPECTED, body=body, event=event)


def _fields() -> list[dict[str, Any]]:  # noqa: PLR0912  a branch for each field
    """Each field that is read, by the kind of its value."""
    case = _Events()
    case("an event")
    for name in ("request_id", "occurred_at", "ip_address", "platform"):
        for kind, value in KINDS_OF_VALUES.items():
            if (name, kind) == ("platform", "a text"):
                case("a platform of tomorrow", event={name: value})
            else:
                case.no_event(f"{name} is {kind}", **{name: value})
    case.no_event("an error", body=fault())
    case.no_event("it is another one", request_id=REQUEST_ID[:-1] + "2")
    case.no_event("its id is in capitals", request_id=REQUEST_ID.upper())
    for kind, value in KINDS_OF_VALUES.items():
        if kind not in ("true", "false"):
            case.no_event(f"identifiable is {kind}", identifiable=value)
        if kind not in ("a number", "zero"):
            case.no_event(f"visitor_confidence is {kind}", visitor_confidence=value)
        if kind not in ("missing", "null"):
            case.no_event(f"decision is {kind}", decision=value)
        if not isinstance(value, str) and kind not in ("missing", "null"):
            for name in ("origin", "tag", "account_id", "action", "suspect_level"):
                case.no_event(f"{name} is {kind}", **{name: value})
        if kind != "true":
            case(f"proven is {kind}", event={"proven": value})
            case(f"proven is {kind}, which is asked for", "unproven", event={"proven": value}, reasons=["unproven"],
                 proven=True)  # fmt: skip
    known, new = [], ["not_known"]
    for text, reasons in (
        ("90", known), ("89", new), ("90.0", known), ("9e1", known), ("89.0", new), ("900e-1", known), ("-0", new),
        ("101", known), ("-1", new), (str(2**53 - 1), known), (str(1 - 2**53), new),
    ):  # fmt: skip
        body = written({**SEEN, "visitor_confidence": 12321}).replace("12321", text)
        case(f"a confidence of {text}", body=body, reasons=reasons)
    for text in ("90.5", "0.1", str(2**53), str(-(2**53)), "1e300", "9" * 400, "9" * 5000):
        body = written({**SEEN, "visitor_confidence": 12321}).replace("12321", text)
        case.no_event(f"a confidence of {text[:20]}, {len(text)} long", body=body)
    for name, decision in (
        ("nothing", {}), ("nothing but an action", {"action": "block"}), ("nothing but a rule", {"rule": "r"}),
        ("an action that is a number", {**BLOCK, "action": 1}), ("an action that is null", {**BLOCK, "action": None}),
        ("a rule that is a list", {**BLOCK, "rule": ["r"]}), ("a rule that is null", {**BLOCK, "rule": None}),
    ):  # fmt: skip
        case.no_event(f"a decision of {name}", decision=decision)
    case("a rule without a name", event={"decision": {**CHALLENGE, "rule": ""}}, reasons=["rule:"])
    case(
        "an action without a name",
        event={"decision": {**CHALLENGE, "action": ""}},
        reasons=[f"rule:{CHALLENGE['rule']}"],
    )
    case("a level without a name", event={"suspect_level": ""}, reasons=["level:"])
    case("a level in capitals", event={"suspect_level": "LOW"}, reasons=["level:LOW"])
    case("a level that is null", event={"suspect_level": None}, reasons=["not_scored"])
    for side, seen, asked in (
        ("both are null", None, None), ("both are empty", "", ""), ("one is null", None, ""),
        ("one is empty", "", None),
    ):  # fmt: skip
        case(f"a tag, of which {side}", event={"tag": seen}, tag=asked)
        case(f"an origin, of which {side}", event={"origin": seen}, origin=asked)
    for kind, value in (("missing", MISSING), ("null", None), ("empty", "")):
        case(f"the tag is {kind}, and one is expected", "other_tag", event={"tag": value})
        case(f"the origin is {kind}, and one is expected", "other_origin", event={"origin": value})
        case(
            f"the account is {kind}, and one is expected", "other_account", event={"account_id": value}, account_id="a"
        )
        case(f"the account is {kind}, and none is compared", event={"account_id": value})
        case(f"the action is {kind}, and one is expected", "other_action", event={"action": value}, action="log_in")
    return case.made


def _texts() -> list[dict[str, Any]]:
    """What is JSON (RFC 8259), and what is not."""
    case = _Events()
    text = written(SEEN)
    inside = text[:-1]
    case("blanks around it", body=f" \t\r\n{text}\n\r\t ")
    case("blanks within it", body=json.dumps(SEEN, indent="\t", separators=(" , ", " :\r\n ")))
    for name, body in {
        "nothing": "", "blanks": " \n", "null": "null", "true": "true", "a number": "1", "a text": '"event"',
        "a list": "[]", "a list of it": f"[{text}]", "an object": "{}", "no JSON": "<html></html>",
        "it ends early": inside, "it ends in a name": '{"request_id', "something is behind it": f"{text} x",
        "another one is behind it": f"{text}{text}", "a comma is behind it": f"{text},",
        "a comma at its end": f"{inside},}}", "a comment": f"/* */{text}", "a comment of one line": f"{text}\n// x",
        "a comment within it": f'{inside}, /* */ "x": 1}}', "single quotes": text.replace('"', "'"),
        "a form feed": f"\f{text}", "a vertical tab": f"{text}\v", "a no-break space": f"\u00a0{text}",
        "a line separator": f"{text}\u2028", "NUL behind it": f"{text}\0", "a byte order mark": f"\ufeff{text}",
        "NaN": f'{inside}, "x": NaN}}', "Infinity": f'{inside}, "x": Infinity}}',
        "-Infinity": f'{inside}, "x": -Infinity}}',
        "a name without quotes": f"{inside}, x: 1}}", "a name that is a number": f"{inside}, 1: 1}}",
        "a zero before a number": f'{inside}, "x": 01}}', "a plus": f'{inside}, "x": +1}}',
        "a point at the end": f'{inside}, "x": 1.}}',
        "a point at the beginning": f'{inside}, "x": .5}}', "an exponent without digits": f'{inside}, "x": 1e}}',
        "a minus": f'{inside}, "x": -}}', "hexadecimal": f'{inside}, "x": 0x10}}',
        "undefined": f'{inside}, "x": undefined}}',
        "True": f'{inside}, "x": True}}', "a line break in a text": f'{inside}, "x": "\n"}}',
        "a tab in a text": f'{inside}, "x": "\t"}}',
        "an escape that is none": f'{inside}, "x": "\\x41"}}', "a short escape": f'{inside}, "x": "\\u12"}}',
        "an escaped quote": f'{inside}, "x": "\\\'"}}', "half of an emoji": f'{inside}, "x": "\\ud83d"}}',
        "the other half": f'{inside}, "x": "\\ude00"}}', "the halves exchanged": f'{inside}, "x": "\\ude00\\ud83d"}}',
        "half of an emoji in a name": f'{inside}, "\\uD83D": 1}}', "a colon too many": f'{inside}, "x":: 1}}',
        "no colon": f'{inside}, "x" 1}}', "no value": f'{inside}, "x": }}', "another bracket at its end": f"{inside}]",
    }.items():  # fmt: skip
        case.no_event(name, body=body)
    for name, content in {
        "UTF-16": text.encode("utf-16"), "UTF-16 without a mark": text.encode("utf-16-be"),
        "UTF-32": text.encode("utf-32-le"), "Latin-1": f'{inside}, "x": "é"}}'.encode("latin-1"),
        "an overlong slash": f'{inside}, "x": "'.encode() + b"\xc0\xaf" + b'"}',
        "half of an emoji in UTF-8": f'{inside}, "x": "'.encode() + b"\xed\xa0\xbd" + b'"}',
        "a character cut short": f'{inside}, "x": "'.encode() + b"\xe2\x82" + b'"}',
        "beyond Unicode": f'{inside}, "x": "'.encode() + b"\xf4\x90\x80\x80" + b'"}',
    }.items():  # fmt: skip
        case.no_event(name, body=content)
    for levels, is_event in ((DEEPEST, True), (DEEPEST + 1, False), (3_000, False)):
        for begin, middle, end in (("[", "", "]"), ('{"a":', "1", "}")):
            body = f'{inside}, "x": {begin * (levels - 1)}{middle}{end * (levels - 1)}}}'
            name = f"{levels} levels of {'lists' if begin == '[' else 'objects'}"
            if is_event:
                case(name, body=body)
            else:
                case.no_event(name, body=body)
    case.no_event("nothing but 20,000 brackets", body="[" * 20_000)
    for name, value in {
        "a long number": "1" * 400, "a number of 5,000 digits": "7" * 5_000,
        "a fraction of 400 digits": "0." + "3" * 400,
        "an exponent": "1E+2", "a tiny number": "1e-400", "minus zero": "-0.0",
        "an escaped NUL": '"\\u0000"', "an escaped backslash before a u": '"\\\\ud83d"',
        "an emoji in escapes": '"\\ud83d\\uDE00"', "every escape": '"\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041"',
        "DEL": '"\x7f"',
        "an empty name": '{"": 1}', "a name that is a number": '{"0": 1, "1": 2}',
        "__proto__": '{"__proto__": {"origin": 1}}',
    }.items():  # fmt: skip
        case(f"a field of tomorrow: {name}", body=f'{inside}, "x": {value}}}')
    case(
        "__proto__ instead of a tag",
        "other_tag",
        body=written({**SEEN, "tag": MISSING})[:-1] + ', "__proto__": {"tag": "signup"}}',
    )
    return case.made


def _names() -> list[dict[str, Any]]:
    """Names are what they are written as, and of two the last one counts."""
    case = _Events()
    inside = written(SEEN)[:-1]
    for name in ("REQUEST_ID", "Occurred_At", "Ip_Address", "PLATFORM", "Identifiable", "VISITOR_CONFIDENCE"):
        case.no_event(f"{name} in place of {name.lower()}", **{name.lower(): MISSING, name: SEEN[name.lower()]})
        case(f"{name} beside {name.lower()}", body=f'{inside}, "{name}": null}}')
    for name, value in (("ORIGIN", "https://other.example"), ("Tag", "payment"), ("Suspect_Level", "high"),
                        ("\u017fuspect_level", "high"), ("Decision", BLOCK), ("account\u005fID", "b"),
                        ("tag ", "payment")):  # fmt: skip
        case(
            f"{name} beside the right one", body=f"{inside}, {json.dumps(name)}: {json.dumps(value)}}}", account_id="a"
        )
    case("TAG in place of tag", "other_tag", event={"tag": MISSING, "TAG": "signup"})
    case(
        "a decision with ACTION beside action",
        event={"decision": {**BLOCK, "ACTION": "allow"}},
        reasons=["rule:Third account"],
    )
    case.no_event("a decision with ACTION in place of action", decision={"ACTION": "allow", "rule": "r"})
    case("an escaped name", body=inside.replace('"tag"', '"\\u0074ag"') + "}")
    case("two tags, the last one right", body=inside.replace('"tag"', '"tag": "payment", "tag"') + "}")
    case("two tags, the first one right", "other_tag", body=f'{inside}, "tag": "payment"}}')
    case("two tags, the last one null", "other_tag", body=f'{inside}, "tag": null}}')
    case.no_event("two platforms, the last one null", body=f'{inside}, "platform": null}}')
    block, allow = json.dumps(BLOCK), '{"action": "allow"}'
    case.no_event(
        "two decisions, the last one of half the fields", body=f'{inside}, "decision": {block}, "decision": {allow}}}'
    )
    case("two decisions, the last one null", body=f'{inside}, "decision": {block}, "decision": null}}')
    case(
        "two decisions, the last one blocks",
        body=f'{inside}, "decision": null, "decision": {block}}}',
        reasons=["rule:Third account"],
    )
    case(
        "two actions in a decision",
        body=f'{inside}, "decision": {{"action": "block", "rule": "r", "action": "allow"}}}}',
    )
    return case.made


def _unread() -> list[dict[str, Any]]:
    """What the checks do not read may be anything."""
    case = _Events()
    trigger = {"signal": "a", "weight": 1.5, "confidence": "low"}
    for name, value in (
        ("triggers", [trigger]), ("triggers", 1), ("triggers", [None]), ("signals", {}), ("suspect_score", 2**53 + 1),
        ("suspect_score", "high"), ("suspect_score", 1.5), ("visitor_id", None), ("visitor_is_new", "yes"),
        ("velocity", []), ("document", [1]), ("has_document", None), ("sdk_version", 1), ("label", 7),
        ("future", {"a": [1.5, None]}),
    ):  # fmt: skip
        case(f"not read: {name} is {json.dumps(value)}", event={name: value})
    return case.made


def _times() -> list[dict[str, Any]]:
    """Times of RFC 3339, to a millisecond."""
    case = _Events()
    for text, age_ms in (
        ("2026-03-01T10:00:00.000Z", 0), ("2026-03-01T10:00:00Z", 0), ("2026-03-01T10:00:00.5Z", -500),
        ("2026-03-01T10:00:00.123456Z", -123), ("2026-03-01T10:00:00.123999999Z", -123),
        ("2026-03-01T10:00:00+00:00", 0),
        ("2026-03-01T11:30:00+01:30", 0), ("2026-03-01T00:00:00.250-10:00", -250), ("2026-03-01T10:00:00-00:00", 0),
        ("2026-02-28T23:59:59Z", 36_001_000), ("2024-02-29T10:00:00Z", 63_158_400_000),
        ("1969-12-31T23:59:59.999Z", NOW_MS + 1),
    ):  # fmt: skip
        case(f"{text}, just fresh", event={"occurred_at": text}, now_ms=NOW_MS - age_ms + 299_999)
        case(f"{text}, just too old", "too_old", event={"occurred_at": text}, now_ms=NOW_MS - age_ms + 300_000)
        case(f"{text}, just not ahead", event={"occurred_at": text}, now_ms=NOW_MS - age_ms - 29_999)
        case(f"{text}, just ahead", "too_old", event={"occurred_at": text}, now_ms=NOW_MS - age_ms - 30_000)
    for text in (
        "2026-03-01", "2026-03-01T10:00:00", "2026-03-01 10:00:00Z", "2026-03-01t10:00:00z", "20260301T100000Z",
        "2026-3-1T10:00:00Z", "2026-03-01T10:00Z", "2026-03-01T10Z", "2026-03-01T10:00:00.Z", "2026-03-01T10:00:00,5Z",
        "2026-03-01T10:00:00.1234567890Z", "2026-03-01T10:00:60Z", "2026-03-01T10:60:00Z", "2026-03-01T24:00:00Z",
        "2026-02-30T10:00:00Z", "2025-02-29T10:00:00Z", "2026-00-01T10:00:00Z", "2026-13-01T10:00:00Z",
        "2026-03-00T10:00:00Z",
        "2026-04-31T10:00:00Z", "2026-03-01T10:00:00+0000", "2026-03-01T10:00:00+00", "2026-03-01T10:00:00+24:00",
        "2026-03-01T10:00:00+00:60", "2026-W09-7T10:00:00Z", "2026-060T10:00:00Z", "+2026-03-01T10:00:00Z",
        "-2026-03-01T10:00:00Z",
        "0000-03-01T10:00:00Z", "12026-03-01T10:00:00Z", " 2026-03-01T10:00:00Z", "2026-03-01T10:00:00Z ",
        "2026-03-01T10:00:00Z\n",
        "Sun, 01 Mar 2026 10:00:00 GMT", "March 1, 2026 10:00:00 UTC", "1772359200", "now", "yesterday",
        "2026-03-01T10:00:00 GMT",
        "\uff12\uff10\uff12\uff16-03-01T10:00:00Z", "2026-03-01T10:00:00Z[UTC]", "2026-03-01T10:00:00\u22120:00",
    ):  # fmt: skip
        case.no_event(f"{text!r} is no time", occurred_at=text)
    return case.made


def _addresses() -> list[dict[str, Any]]:
    """Addresses of the event, and of the caller: `argument` is the error of what is none there."""
    case = _Events()
    for text in _no_addresses():
        case.no_event(f"{text!r} is no address", ip_address=text)
        if text:
            case(f"{text!r} is no address to compare", error="argument", ip=text)
    other = ["other_address"]
    for seen, asked, is_same in (
        (ADDRESS, ADDRESS, True), (ADDRESS, "203.0.113.8", False), (ADDRESS, f"::ffff:{ADDRESS}", True),
        (f"::ffff:{ADDRESS}", ADDRESS, True), (ADDRESS, "::FFFF:CB00:7107", True),
        (ADDRESS, "0:0:0:0:0:ffff:cb00:7107", True),
        (ADDRESS, f"::{ADDRESS}", False), (ADDRESS, "::cb00:7107", False), (f"::{ADDRESS}", "::cb00:7107", True),
        (ADDRESS, f"64:ff9b::{ADDRESS}", False), (f"64:ff9b::{ADDRESS}", "64:ff9b::cb00:7107", True),
        (ADDRESS, f"::ffff:0:{ADDRESS}", False), ("fe80::1", "fe80::1%eth0", True), ("fe80::1%eth0", "fe80::1", True),
        ("fe80::1%1", "fe80::1%eth0", True), ("fe80::1%25eth0", "fe80::1", True), ("fe80::1%br_lan.2", "fe80::1", True),
        (f"::ffff:{ADDRESS}%eth0", ADDRESS, True), ("2001:db8::1", "2001:0DB8:0:0:0:0:0:0001", True),
        ("2001:db8::1", "2001:db8:0:0::0:1", True), ("2001:db8::1", "2001:db8::2", False),
        ("::", "0:0:0:0:0:0:0:0", True),
        ("::1", "::0.0.0.1", True), ("1:2:3:4:5:6:7::", "1:2:3:4:5:6:7:0", True),
        ("::2:3:4:5:6:7:8", "0:2:3:4:5:6:7:8", True),
        ("1:2:3:4:5:6:1.2.3.4", "1:2:3:4:5:6:102:304", True), ("0.0.0.1", "::1", False),
        ("255.255.255.255", "::ffff:ffff:ffff", True),
    ):  # fmt: skip
        reasons = [] if is_same else other
        problem = None if is_same else "other_address"
        case(f"{seen} and {asked}", problem, event={"ip_address": seen}, ip=asked, reasons=reasons)
    for seen, asked, is_same in (
        (ADDRESS, "203.0.113.255", True), (ADDRESS, "203.0.112.7", False), (ADDRESS, "::ffff:203.0.113.1", True),
        (ADDRESS, f"::{ADDRESS}", False), ("fe80::1%eth0", "fe80:0:0:1::1%eth1", True),
        ("2001:db8:1:2::1", "2001:db8:1:ffff::2", True),
        ("2001:db8:1::1", "2001:db8:2::1", False), ("::1", "::ffff:0:0:1", True),
        ("2001:db8::", "2001:db8:0:1:1:1:1:1", True),
    ):  # fmt: skip
        reasons = [] if is_same else ["other_network"]
        problem = None if is_same else "other_network"
        given = {"ip": asked, "same_network": True}
        case(f"the networks of {seen} and {asked}", problem, event={"ip_address": seen}, reasons=reasons, **given)
    return case.made


def _no_addresses() -> Iterator[str]:
    yield from (
        "", " ", "nowhere", "localhost", "shop.example", f" {ADDRESS}", f"{ADDRESS} ", f"{ADDRESS}\n", f"{ADDRESS}:443",
        f"{ADDRESS}, 10.0.0.1", f"{ADDRESS}/32", f"[{ADDRESS}]", f"{ADDRESS}.", "203.0.113", "203.0.113.",
        "203.0.113.7.1", "203.0.113.256",
        "203.0.113.-1", "203.0.113.+7", "203.0.113.007", "203.0.113.0x7", "0313.0.113.7", "3405803783", "0xcb007107",
        "203.7", "1.2.3",
        "\uff1203.0.113.7", f"{ADDRESS}%eth0", f"{ADDRESS}\0", "[2001:db8::1]", "[2001:db8::1]:443", "2001:db8::1/128",
        "2001:db8::1%", "%eth0", "::%",
        "2001:db8::1 ", "2001:db8::1\n", ":", ":::", "1::2::3", ":1:2:3:4:5:6:7", "1:2:3:4:5:6:7:", "1:2:3:4:5:6:7",
        "1:2:3:4:5:6:7:8:9",
        "1:2:3:4:5:6:7:8:", "::1:2:3:4:5:6:7:8", "12345::1", "g::1", "::ffff:203.0.113", "::ffff:203.0.113.256",
        "::ffff:203.0.113.007",
        "::203.0.113.7.1", "203.0.113.7::", "1:2:3:4:5:6:7:1.2.3.4", "::1.2.3.4:5", "::ffff:1.2.3.4.",
        "fe80::1%eth0%eth1", "-1::1", "::-1", "0x1::1",
    )  # fmt: skip


def _unicode() -> list[dict[str, Any]]:
    """Texts are equal where their characters are."""
    case = _Events()
    for name, seen, asked, is_same in (
        ("an emoji", "😀", "😀", True), ("NFC and NFD", "\u00e9", "e\u0301", False),
        ("an Angstrom and a letter", "\u212b", "\u00c5", False),
        ("capitals", "Signup", "signup", False), ("sharp s", "straße", "strasse", False),
        ("a dotless i", "\u0131", "i", False),
        ("a blank at the end", "signup ", "signup", False), ("a zero-width space", "sign\u200bup", "signup", False),
        ("a byte order mark", "\ufeffsignup", "signup", False), ("NUL", "a\0b", "a\0b", True),
        ("NUL and nothing", "a\0", "a", False),
        ("full width", "\uff53ignup", "signup", False), ("digits", "1e1", "10", False), ("zeros", "0", "00", False),
        ("1,024 characters", "é" * 1024, "é" * 1024, True),
    ):  # fmt: skip
        case(f"tags: {name}", None if is_same else "other_tag", event={"tag": seen}, tag=asked)
    for name, asked in (
        ("with a slash", f"{ORIGIN}/"), ("in capitals", "https://SHOP.example"), ("with its port", f"{ORIGIN}:443"),
        ("by http", "http://shop.example"), ("null as a text", "null"),
    ):  # fmt: skip
        case(f"origins: {name}", "other_origin", origin=asked)
    return case.made


# Refusals


def fault(**changes: Any) -> bytes:
    """The body of a refusal."""
    error = {"code": "rate_limited", "message": "Later.", "status": 429, **changes}
    return json.dumps(
        {"error": {n: v for n, v in error.items() if v is not MISSING}, "request_id": REQUEST_ID}
    ).encode()


def _refusals() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(
        name: str,
        code: str,
        body: bytes = fault(),
        status: int = 429,
        after: str | None = None,
        seconds: int | None = None,
    ) -> None:
        headers = {} if after is None else {"Retry-After": after}
        given = {"status": status, "headers": headers, "body": _base64(body), "now_ms": NOW_MS}
        expect = {"code": code, "retry_after_s": seconds}
        cases.append({"name": f"refused: {name}", "kind": "refusal", "given": given, "expect": expect})

    detail = {"field": "label", "issue": "invalid_value", "location": "body"}
    case("as it is documented", "rate_limited")
    case("after a while", "rate_limited", after="7", seconds=7)
    case("a status of tomorrow", "rate_limited", status=499)
    case("details", "rate_limited", fault(details=[detail]))
    case(
        "details without a field",
        "rate_limited",
        fault(details=[{"issue": "malformed_json", "location": "body", "field": None}]),
    )
    case("no details", "rate_limited", fault(details=None))
    case("by a web page", UNEXPECTED, b"<html>", status=503, after="7", seconds=7)
    for kind, value in KINDS_OF_VALUES.items():
        for name in ("code", "message"):
            if not isinstance(value, str):
                case(f"{name} is {kind}", UNEXPECTED, fault(**{name: value}))
        if kind not in ("missing", "null", "a list"):
            case(f"details are {kind}", UNEXPECTED, fault(details=value))
        if kind not in ("missing", "null", "a list", "an object"):
            case(f"a detail is {kind}", UNEXPECTED, fault(details=[detail, None if value is MISSING else value]))
        if not isinstance(value, str) and kind not in ("missing", "null"):
            case(f"the issue of a detail is {kind}", UNEXPECTED, fault(details=[{**detail, "issue": value}]))
        content = {} if value is MISSING else {"error": value}
        case(f"the error is {kind}", UNEXPECTED, json.dumps(content).encode())
        if value is not MISSING:
            case(f"the body is {kind}", UNEXPECTED, json.dumps(value).encode())
    case("an empty code", UNEXPECTED, fault(code=""))
    case("an empty message", "rate_limited", fault(message=""))
    case("CODE in place of code", UNEXPECTED, fault(code=MISSING, CODE="rate_limited"))
    case(
        "two codes",
        "unauthorized",
        fault().replace(b'"code"', b'"code": "a", "code"').replace(b"rate_limited", b"unauthorized"),
        401,
    )
    case("in UTF-16", UNEXPECTED, fault().decode().encode("utf-16"))
    case("with NaN", UNEXPECTED, fault().replace(b"429", b"NaN"))
    return cases


def _retry_afters() -> list[dict[str, Any]]:
    return [
        {"name": f"Retry-After: {value[:40]!r}, {len(value)} long, at {now_ms - NOW_MS}", "kind": "retry_after",
        "given": {"value": value, "now_ms": now_ms}, "expect": seconds}
        for value, seconds, now_ms in (
            ("0", 0, NOW_MS), ("1", 1, NOW_MS), ("007", 7, NOW_MS), ("3600", 3600, NOW_MS),
            ("999999999", 999_999_999, NOW_MS),
            ("1000000000", 999_999_999, NOW_MS), ("9" * 5_000, 999_999_999, NOW_MS), ("0" * 5_000, 0, NOW_MS),
            ("0" * 5_000 + "2", 2, NOW_MS),
            ("", None, NOW_MS), ("-1", None, NOW_MS), ("+1", None, NOW_MS), ("1.5", None, NOW_MS),
            ("1e3", None, NOW_MS), ("0x10", None, NOW_MS),
            ("1 s", None, NOW_MS), ("1, 2", None, NOW_MS), ("soon", None, NOW_MS), ("\u0661", None, NOW_MS),
            ("NaN", None, NOW_MS), ("1_0", None, NOW_MS),
            ("Sun, 01 Mar 2026 10:00:03 GMT", 3, NOW_MS), ("Sun, 01 Mar 2026 10:00:03 GMT", 3, NOW_MS + 1),
            ("Sun, 01 Mar 2026 10:00:03 GMT", 2, NOW_MS + 1_000),
            ("Sun, 01 Mar 2026 10:00:03 GMT", 1, NOW_MS + 2_999), ("Sun, 01 Mar 2026 10:00:00 GMT", 0, NOW_MS),
            ("Sun, 01 Mar 2026 09:59:59 GMT", 0, NOW_MS),
            ("Thu, 01 Jan 1970 00:00:00 GMT", 0, NOW_MS), ("Sun, 06 Nov 1994 08:49:37 GMT", 0, NOW_MS),
            ("Fri, 31 Dec 9999 23:59:59 GMT", 999_999_999, NOW_MS),
            ("Mon, 01 Mar 2026 10:00:03 GMT", 3, NOW_MS), ("Thu, 29 Feb 2024 10:00:00 GMT", 0, NOW_MS),
            ("Sun, 1 Mar 2026 10:00:03 GMT", None, NOW_MS), ("Sun, 01 Mar 2026 10:00:03 UTC", None, NOW_MS),
            ("Sun, 01 Mar 2026 10:00:03 +0000", None, NOW_MS),
            ("01 Mar 2026 10:00:03 GMT", None, NOW_MS), ("sun, 01 mar 2026 10:00:03 gmt", None, NOW_MS),
            ("Sunday, 01-Mar-26 10:00:03 GMT", None, NOW_MS),
            ("Sun Mar  1 10:00:03 2026", None, NOW_MS), ("Sun, 30 Feb 2026 10:00:03 GMT", None, NOW_MS),
            ("Sue, 01 Mar 2026 10:00:03 GMT", None, NOW_MS),
            ("Sun, 01 Mar 2026 24:00:00 GMT", None, NOW_MS),
            ("Sun, 01 Mar 2026 10:00:60 GMT", None, NOW_MS), ("Sun, 01 Foo 2026 10:00:03 GMT", None, NOW_MS),
            ("Sun, 00 Mar 2026 10:00:03 GMT", None, NOW_MS),
            ("2026-03-01T10:00:03Z", None, NOW_MS), ("Sun, 01 Mar 2026 10:00:03 GMT, 1", None, NOW_MS),
        )
    ]  # fmt: skip


# Keys of verdicts, pages


def _keys() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []
    key, other = key_of(KEY), key_of(NEXT_KEY)

    def case(name: str, problem: str | None, body: Any) -> None:
        content = body if isinstance(body, bytes) else json.dumps(body).encode()
        given = {
            "body": _base64(content), "token": token_of(CLAIMS), "now_ms": NOW_MS,
            "expected": {"organization_id": ORGANIZATION, "environment": "production", "origin": ORIGIN,
            "tag": "signup"},
        }  # fmt: skip
        cases.append({"name": f"keys: {name}", "kind": "keys", "given": given, "expect": expected_of(problem, ())})

    case("both", None, {"keys": [key, other], "future": 1})
    case("the other one", "invalid", {"keys": [other]})
    case("none", "invalid", {"keys": []})
    case("one of another curve beside it", None, {"keys": [{**other, "kty": "EC", "crv": "P-256", "y": "AA"}, key]})
    case("of another curve", "invalid", {"keys": [{**key, "crv": "Ed448"}]})
    case("of another type", "invalid", {"keys": [{**key, "kty": "EC"}]})
    for name, x in {
        "too short": key["x"][:-4], "too long": key["x"] + "AAAA", "empty": "", "no base64": "*" * 43,
        "padded": key["x"] + "=",
        "of the other alphabet": "+" * 43,
        "of another spelling": key["x"][:-1] + ALPHABET[ALPHABET.index(key["x"][-1]) ^ 1], "no ASCII": "é" * 43,
    }.items():  # fmt: skip
        case(f"its x is {name}", "invalid", {"keys": [{**key, "x": x}]})
        case(f"beside one whose x is {name}", None, {"keys": [{**other, "x": x}, key]})
    for kind, value in KINDS_OF_VALUES.items():
        if kind != "a list":
            case(f"they are {kind}", UNEXPECTED, {} if value is MISSING else {"keys": value})
        if value is not MISSING:
            case(f"one is {kind}", UNEXPECTED, {"keys": [key, value]})
            case(f"the body is {kind}", UNEXPECTED, value)
        if not isinstance(value, str):
            for name in ("kty", "crv", "kid", "x"):
                given = {n: v for n, v in {**key, name: value}.items() if v is not MISSING}
                case(f"a {name} is {kind}", UNEXPECTED, {"keys": [given]})
    case("KEYS in place of keys", UNEXPECTED, {"KEYS": [key]})
    case("KID beside kid", None, {"keys": [{**key, "KID": "x"}]})
    case("two of its id, the last one right", None, {"keys": [{**other, "kid": key["kid"]}, key]})
    case("a web page", UNEXPECTED, b"<html>")
    return cases


def _pages() -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = []

    def case(name: str, expect: Any, body: Any) -> None:
        given = {"body": _base64(json.dumps(body).encode())}
        wanted = {"error": UNEXPECTED} if expect is UNEXPECTED else expect
        cases.append({"name": f"page: {name}", "kind": "page", "given": given, "expect": wanted})

    page = {"rows": [SEEN, {"request_id": "b", "error": "corrupt"}], "page": 1, "page_size": 10}
    case("two events", [REQUEST_ID, "b"], page)
    case("no event", [], {**page, "rows": []})
    case("a cursor that is null", [REQUEST_ID, "b"], {**page, "next_cursor": None})
    for kind, value in KINDS_OF_VALUES.items():
        if kind != "a list":
            case(f"rows are {kind}", UNEXPECTED, {n: v for n, v in {**page, "rows": value}.items() if v is not MISSING})
        if kind not in ("missing", "an object"):
            case(f"a row is {kind}", UNEXPECTED, {**page, "rows": [SEEN, value]})
        if not isinstance(value, str) and kind not in ("missing", "null"):
            case(f"the cursor is {kind}", UNEXPECTED, {**page, "next_cursor": value})
        if value is not MISSING:
            case(f"the body is {kind}", UNEXPECTED, value)
    return cases
