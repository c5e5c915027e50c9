"""Reports that no browser sent: a request that the browser of the report could not have made.

What may live here: checks that fire `forged_report`. They compare the report with the headers that its browser always
sends, so they run only where those were looked at (`RequestHeaders.context`): not for archives of earlier versions, nor
for servers that do not forward them. A script of a page can neither set nor leave out these headers; a program writes
what it likes, and forgets some.
"""

from __future__ import annotations

import re
from typing import Final

import svc
from svc.identify.detection.claimed import Claimed
from svc.identify.detection.findings import Findings
from svc.identify.model import Agent, ClientHints, Report, RequestFacts
from svc.identify.network.request_headers import is_of_a_script
from svc.kernel.values.ids import time_of_uuid

SIGNAL: Final = "forged_report"

FIRST_WITH_FETCH_METADATA: Final = {"chromium": 80, "gecko": 90, "webkit": 1604}
"""Major version of Chromium and Firefox; of Safari, or of its system, major times 100 plus minor."""
MAX_WRONG_CLOCK_MS: Final = 400 * 86_400_000
"""How far the clock of a device can be off where a page was loaded over TLS: certificates are valid for 398 days at
most (CA/Browser Forum, Baseline Requirements, 6.3.2), and the page of a device at another time does not load."""
SAME_MOMENT_MS: Final = 60_000
"""The web SDK writes nonce and time one after the other."""

_FIREFOX = re.compile(r"Gecko/\S{1,32} Firefox/(\d{1,4})[\d.]{0,16}\Z")
_APPLE_VERSIONS = (re.compile(r"Version/(\d{1,3})\.(\d{1,3})"), re.compile(r" OS (\d{1,3})_(\d{1,3})[_ ]"))
_OWN_NETWORKING = re.compile(
    r"; ?wv\)|Version/4\.0 Chrome/|UCBrowser|MQQBrowser|TBS/|Quark/|[Bb]aidu|Puffin/|Cobalt/|Tizen|Web0S|PlayStation"
)
"""Web views, whose app may make the request itself, and browsers that send through a network of their own."""
_OF_THE_SDK = frozenset({"fingerprintjs", "botd"})
_OTHER_COLLECTORS = frozenset({"fpscanner", "thumbmark", "native"})
_RELEASE = re.compile(r"(\d{1,3})\.(\d{1,3})\.(\d{1,3})")


def detect_forged(
    report: Report,
    facts: RequestFacts,
    agent: Agent,
    claimed: Claimed,
    findings: Findings,
    at_ms: int | None,
    sdk_version: str | None,
) -> None:
    """Add `forged_report` if headers are missing that the claimed browser sends, if they contradict the report, or if
    the report cannot have been made at its time. Programs that name themselves are skipped. Call this after the checks
    of `tampering`. `at_ms`: when the request arrived (Unix ms); `sdk_version`: as sent.
    """
    if facts.context is None or agent.program is not None:
        return
    _look_at_languages(report, facts, claimed, findings)
    if facts.context != "plain":
        _look_at_hints(report.claims.hints, facts, claimed, findings)
        _look_at_fetch_metadata(facts, claimed, findings)
    _look_at_sdk(report, sdk_version, findings)
    if facts.context == "secure" and _is_of_another_time(report.collected_at_ms, at_ms):
        findings.add(SIGNAL, "collected_at_impossible", subject="time")


def _is_of_another_time(collected_at_ms: int | None, at_ms: int | None) -> bool:
    return None not in (collected_at_ms, at_ms) and abs((at_ms or 0) - (collected_at_ms or 0)) > MAX_WRONG_CLOCK_MS


def _look_at_languages(report: Report, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    """Report missing or contradicting `Accept-Language`. Chromium sends none if it is embedded in another program or
    has no window, so that only a browser that calls itself Chrome and nothing else must send it.
    """
    claims = report.claims
    sends = claimed.engine in ("gecko", "webkit") or (claimed.pure_chrome and not claimed.headless)
    if not facts.accept_language:
        if sends and (claims.languages or claims.language):
            findings.add(SIGNAL, "accept_language_missing", subject="languages")
    elif "languages_vs_header" in findings.topics.get("languages", ()):
        findings.add(SIGNAL, "languages_vs_header", "hint")


def _look_at_hints(reported: ClientHints, facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    sent = facts.hints
    if reported.brands and not sent.brands:
        findings.add(SIGNAL, "hints_missing", subject="hints")
    elif reported.brands and _differ(reported, sent):
        findings.add(SIGNAL, "hints_vs_report", subject="hints")
    elif sent.brands and claimed.engine in ("gecko", "webkit"):
        findings.add(SIGNAL, "sent_hints_of_another_engine", subject="hints")


def _differ(reported: ClientHints, sent: ClientHints) -> bool:
    """Return whether page and header differ in brands, versions, system or kind of device. Some collectors shorten the
    list of brands or omit the versions.
    """
    versions = {brand: version.partition(".")[0] for brand, version in sent.brands}
    for brand, version in reported.brands:
        major = version.partition(".")[0]
        if brand not in versions or (major and versions[brand] not in ("", major)):
            return True
    if reported.platform and sent.platform and reported.platform != sent.platform:
        return True
    return None not in (reported.mobile, sent.mobile) and reported.mobile != sent.mobile


def _look_at_fetch_metadata(facts: RequestFacts, claimed: Claimed, findings: Findings) -> None:
    user_agent = facts.user_agent or ""
    if facts.fetch is None:
        if sends_fetch_metadata(user_agent, claimed):
            findings.add(SIGNAL, "fetch_metadata_missing", subject="fetch")
    elif facts.context == "secure" and not is_of_a_script(facts.fetch):
        findings.add(SIGNAL, "fetch_metadata_of_no_script", subject="fetch")


def sends_fetch_metadata(user_agent: str, claimed: Claimed) -> bool:
    """Return whether the claimed browser is known to send `sec-fetch-*` with each request to a secure address."""
    if claimed.engine is None or _OWN_NETWORKING.search(user_agent):
        return False
    return _version(user_agent, claimed) >= FIRST_WITH_FETCH_METADATA[claimed.engine]


def _version(user_agent: str, claimed: Claimed) -> int:
    """Return the version as in `FIRST_WITH_FETCH_METADATA`; 0 = not known."""
    if claimed.engine == "chromium":
        return claimed.version
    if claimed.engine == "gecko":
        found = _FIREFOX.search(user_agent)
        return int(found[1]) if found else 0
    said = [int(found[1]) * 100 + int(found[2]) for form in _APPLE_VERSIONS if (found := form.search(user_agent))]
    # A Macintosh says 10_15_7 whatever its system is.
    return min((version for version in said if version >= 1100), default=0) if said else 0


def _look_at_sdk(report: Report, version: str | None, findings: Findings) -> None:
    """Report an imitated web SDK. The SDK sends probes with every report, and makes nonce and time in one moment.
    Others may use the same libraries, but hardly send everything that it sends, and name one of its releases.
    """
    collectors, collected = set(report.collectors), report.collected_at_ms
    if report.nonce is None or collected is None:
        return
    if "probes" in collectors:
        made_at_ms = time_of_uuid(report.nonce)
        if made_at_ms is not None and abs(made_at_ms - collected) > SAME_MOMENT_MS:
            findings.add(SIGNAL, "collected_at_vs_nonce", subject="time")
        return
    like_the_sdk = collectors >= _OF_THE_SDK and _OTHER_COLLECTORS.isdisjoint(collectors)
    if like_the_sdk and report.incognito is not None and is_sdk_release(version):
        findings.add(SIGNAL, "probes_missing")


def is_sdk_release(version: str | None) -> bool:
    """Return whether the web SDK, which has the versions of the service, may have been released under this one."""
    found, newest = _RELEASE.fullmatch(version or ""), _RELEASE.match(svc.__version__)
    return found is not None and newest is not None and (0, 1, 0) <= _numbers(found) <= _numbers(newest)


def _numbers(release: re.Match[str]) -> tuple[int, ...]:
    return tuple(map(int, release.groups()))
