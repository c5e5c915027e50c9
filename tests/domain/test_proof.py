"""Proofs of reports: what is signed, what is believed, and that nothing that anybody sends makes the check raise."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from svc.identify.history.evidence import REPLAY_MEMORY_S
from svc.identify.keys.proof import WINDOW_MS, Proof, Subject, archived_proof, examine, signed_text
from svc.identify.model import Report, RequestFacts
from svc.identify.report import read_report
from svc.kernel.values.encodings import base64url
from tests.clients.vectors import cases
from tests.support.proofs import BrowserKey, compact

ORIGIN = "https://shop.example"
NOW_MS = 1_772_359_200_000
KEY, FORMER = BrowserKey(), BrowserKey(2)
DAY_MS = 24 * 3600 * 1000
SIGNALS: dict[str, Any] = {
    "userAgent": "Mozilla/5.0",
    "components": {"fonts": {"value": ["Zoë", "😀"], "duration": 1.5}},
    "client_token": "0123456789abcdef0123456789abcdef",
    "nonce": "01901234-5678-7abc-8abc-0123456789ab",
    "collected_at": NOW_MS,
}


def examined(signals_json: bytes, origin: str | None = ORIGIN, at_ms: int = NOW_MS) -> Proof | None:
    report = read_report(json.loads(signals_json), RequestFacts(ip="81.2.69.160"))
    return examine(report, signals_json, origin, at_ms)


def problem(signals_json: bytes, origin: str | None = ORIGIN, at_ms: int = NOW_MS) -> str | None:
    proof = examined(signals_json, origin, at_ms)
    assert proof is not None
    assert (proof.key is None) == (proof.problem is not None)
    return proof.problem


def with_members(signed: bytes, **changes: Any) -> bytes:
    """Signed signals with other members, in the same order: a thief who can write, and not sign."""
    return compact({**json.loads(signed), **changes})


def test_a_signed_report_proves_its_key():
    assert examined(KEY.signed(SIGNALS)) == Proof(KEY.point, None, 2)


SUBJECT = Subject('Zoë "1"\u2028\x7f', None, "\t\n\x1f\\ 😀")


def test_a_proof_covers_account_action_and_tag():
    """Decisions 18.3: none of them can be exchanged, left out or added."""
    signed = KEY.signed(SIGNALS, subject=SUBJECT)
    report = read_report(json.loads(signed), RequestFacts(ip=""))
    assert examine(report, signed, ORIGIN, NOW_MS, SUBJECT) == Proof(KEY.point, None, 2)
    others = [Subject(), SUBJECT._replace(account_id="x"), SUBJECT._replace(action="pay"), SUBJECT._replace(tag=None)]
    for other in [*others, Subject(None, SUBJECT.account_id, SUBJECT.tag)]:
        assert examine(report, signed, ORIGIN, NOW_MS, other) == Proof(None, "signature")


@pytest.mark.parametrize("case", cases("proof"), ids=lambda case: case["name"])
def test_what_is_signed_is_what_every_sdk_signs(case: dict[str, Any]):
    """Decisions 18.3, byte for byte, by `clients/vectors`."""
    about = Subject(*(case["given"][name] for name in Subject._fields))
    text = signed_text(case["given"]["signals"].encode(), case["given"]["origin"], 2, about)
    assert text == case["expect"]["text"].encode()


def test_a_proof_of_version_1_covers_the_visitor_alone():
    signed = KEY.signed(SIGNALS, version=1)
    report = read_report(json.loads(signed), RequestFacts(ip=""))
    for subject, known in ((Subject(), None), (SUBJECT, None), (SUBJECT, 1)):
        assert examine(report, signed, ORIGIN, NOW_MS, subject, known) == Proof(KEY.point, None, 1)


def renewing(**changes: Any) -> bytes:
    """A report that the key of the token before signed, too."""
    return KEY.renewing({**SIGNALS, **changes}, ("0" * 32, FORMER), subject=SUBJECT)


def test_the_former_key_is_proven_where_it_signed_what_the_new_one_signed():
    """Decisions 18.2; alike in a replay of old traffic, where the new key's proof is believed."""
    signed = renewing()
    report = read_report(json.loads(signed), RequestFacts(ip=""))
    for known in (None, 2):
        proof = examine(report, signed, ORIGIN, NOW_MS, SUBJECT, known)
        assert proof == Proof(KEY.point, None, 2, FORMER.point)
    changed = examine(report, signed, ORIGIN, NOW_MS, Subject("another"), 2)
    assert changed == Proof(KEY.point, None, 2, None)


@pytest.mark.parametrize("member", ["client_token_before", "client_key_before", "client_proof_before"])
@pytest.mark.parametrize("value", [None, "", "x" * 86, "x" * 87, "!" * 86, "!" * 87, "B" + "A" * 86, 5])
def test_a_former_key_that_cannot_be_is_none(member: str, value: Any):
    """The new key's own proof stands: it signed whatever is there."""
    changed = json.loads(renewing()) | {member: value}
    del changed["client_proof"]
    signed = KEY.proven_text(compact(changed), ORIGIN, SUBJECT, 2)
    report = read_report(json.loads(signed), RequestFacts(ip=""))
    assert examine(report, signed, ORIGIN, NOW_MS, SUBJECT) == Proof(KEY.point, None, 2, None)


def test_a_former_key_needs_its_token_and_the_text_that_it_signed():
    signed = KEY.renewing(SIGNALS, ("", FORMER))
    assert examined(signed) == Proof(KEY.point, None, 2, None)
    report = read_report(json.loads(renewing()), RequestFacts(ip=""))
    assert examine(report, renewing() + b" ", ORIGIN, NOW_MS, SUBJECT, 2) == Proof(KEY.point, None, 2, None)


def test_a_report_without_key_and_proof_has_none():
    assert examined(compact(SIGNALS)) is None


def test_key_and_proof_are_about_the_visit_and_never_compared():
    signed, unsigned = (
        read_report(json.loads(one), RequestFacts(ip="")) for one in (KEY.signed(SIGNALS), compact(SIGNALS))
    )
    assert (signed.attributes, signed.rest, signed.claims) == (unsigned.attributes, unsigned.rest, unsigned.claims)


def test_an_archived_report_is_examined_alike():
    """An event of 0.3.0 does not say by which version."""
    assert archived_proof(KEY.signed(SIGNALS, version=1), ORIGIN, NOW_MS, None) == Proof(KEY.point, None, 1)
    assert archived_proof(KEY.signed(SIGNALS, subject=SUBJECT), ORIGIN, NOW_MS, 2) == Proof(KEY.point, None, 2)
    assert archived_proof(compact(SIGNALS), ORIGIN, NOW_MS, None) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"client_token": "f" * 32},
        {"nonce": "another-nonce"},
        {"collected_at": NOW_MS + 1},
        {"userAgent": "Mozilla/5.1"},
        {"client_key": base64url(BrowserKey(2).point)},
        {"client_proof": base64url(bytes(64))},
        {"client_proof": base64url(b"\xff" * 64)},
        {"client_proof": BrowserKey(2).signed(SIGNALS)[-88:-2].decode()},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_nothing_in_a_signed_report_can_be_exchanged(changes: dict[str, Any]):
    assert problem(with_members(KEY.signed(SIGNALS), **changes)) == "signature"


def test_a_proof_holds_for_one_origin():
    signed = KEY.signed(SIGNALS)
    assert problem(signed, "https://shop.example:8443") == "signature"
    assert problem(signed, "http://shop.example") == "signature"
    assert problem(signed, None) == "no_origin"


def test_who_reserializes_the_json_breaks_the_proof():
    signed = KEY.signed(SIGNALS)
    assert problem(json.dumps(json.loads(signed)).encode()) == "signature"
    assert problem(compact(dict(sorted(json.loads(signed).items())))) == "signature"
    assert problem(signed[:-1] + b',"added":1}') == "signature"
    assert problem(signed[:-1] + b" }") == "signature"


def test_a_clock_that_is_wrong_by_a_day_or_a_week_still_proves():
    for days in (-7, -1, 0, 1, 7):
        signed = KEY.signed({**SIGNALS, "collected_at": NOW_MS + days * DAY_MS})
        assert problem(signed) is None
    for days in (-8, 8):
        assert problem(KEY.signed({**SIGNALS, "collected_at": NOW_MS + days * DAY_MS})) == "time"


def test_a_nonce_is_remembered_for_longer_than_its_proof_is_accepted():
    assert 2 * WINDOW_MS < REPLAY_MEMORY_S * 1000


@pytest.mark.parametrize("without", ["client_token", "nonce", "collected_at"])
def test_a_proof_needs_a_token_a_nonce_and_a_time(without: str):
    signals = {name: value for name, value in SIGNALS.items() if name != without}
    names = {"client_token": "no_token", "nonce": "no_nonce", "collected_at": "time"}
    assert problem(KEY.signed(signals)) == names[without]


@pytest.mark.parametrize(
    "key",
    [
        "", "x", "é" * 87, "*" * 87, "A" * 86, "A" * 88, "A" * 87, None, 7, [], {}, "A" * 100_000,
        base64url(b"\x04" + b"\xff" * 64),  # beyond the field
        base64url(b"\x04" + KEY.point[1:33] + KEY.point[1:33]),  # not on the curve
        base64url(b"\x02" + KEY.point[1:]),
        base64url(b"\x00" * 65),  # the point at infinity has one byte
    ],
)  # fmt: skip
def test_what_is_no_key_is_malformed(key: Any):
    assert problem(with_members(KEY.signed(SIGNALS), client_key=key)) == "malformed"


@pytest.mark.parametrize("proof", ["", "x", "é" * 86, "*" * 86, "A" * 85, "A" * 87, None, 7, [], {}, "A" * 100_000])
def test_what_is_no_proof_is_malformed(proof: Any):
    assert problem(with_members(KEY.signed(SIGNALS), client_proof=proof)) == "malformed"


def test_key_or_proof_alone_is_malformed():
    said = json.loads(KEY.signed(SIGNALS))
    for missing in ("client_key", "client_proof"):
        assert problem(compact({name: value for name, value in said.items() if name != missing})) == "malformed"


def test_a_member_that_stands_twice_is_signed_twice():
    """JSON parsers believe the last. What another believes, it is signed as well."""
    signed = KEY.signed(SIGNALS)
    assert problem(signed.replace(b"{", b'{"client_token":"' + b"f" * 32 + b'",', 1)) == "signature"
    assert problem(signed[:-1] + b"," + signed[-104:-1] + b"}") == "signature"


@pytest.mark.slow(0.3)
def test_no_report_makes_the_proof_raise():
    chance = random.Random(84)
    alphabet = [b"", b"A", b"_", b"\xc3\xa9", b'"', b"\\u0000", b"\\ud800", b"{", b"}", b"0"]
    signed = KEY.signed(SIGNALS)
    for _ in range(3_000):
        where = chance.randrange(len(signed))
        hostile = signed[:where] + chance.choice(alphabet) + signed[where + chance.randrange(3) :]
        try:
            said: Any = json.loads(hostile)
        except ValueError:
            continue
        if said.__class__ is dict:
            proof = examine(read_report(said, RequestFacts(ip="")), hostile, ORIGIN, NOW_MS)
            assert proof is None or proof.key is None or hostile == signed


def test_lone_surrogates_in_an_origin_or_a_proof_are_no_accident():
    proof = Report(client_key="A" * 87, client_proof="\ud800" * 86, client_token="x" * 16, nonce="y" * 16)
    assert examine(proof, b"{}", "https://\ud800", NOW_MS) == Proof(None, "time")
