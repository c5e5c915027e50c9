"""User-Agent Client Hints: the `sec-ch-ua*` headers, and how a report's and a header's hints are joined.

What may live here: the syntax of those headers (RFC 8941 lists, strings and booleans, read leniently) and nothing that
knows what a brand means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from svc.domain.model import ClientHints
from svc.domain.report.brands import is_grease

LONGEST_HEADER = 1_024
MAX_BRANDS = 12
_BRAND = re.compile(r'"((?:[^"\\]|\\.){1,64})"(?:\s*;\s*v="([^"]{0,64})")?')
_ESCAPED = re.compile(r"\\(.)")
_NO_HINTS = ClientHints()


def read_hints(headers: Mapping[str, str]) -> ClientHints:
    """The client hints in request headers with lower-case names. A header that is missing or malformed counts as not
    sent.
    """
    if not any(name in headers for name in _HEADERS):
        return _NO_HINTS
    full = _brands(headers.get("sec-ch-ua-full-version-list"))
    return ClientHints(
        brands=full or _brands(headers.get("sec-ch-ua")),
        grease=_grease(headers.get("sec-ch-ua")),
        mobile={"?1": True, "?0": False}.get((headers.get("sec-ch-ua-mobile") or "")[:8].strip()),
        platform=_string(headers.get("sec-ch-ua-platform")),
        platform_version=_string(headers.get("sec-ch-ua-platform-version")),
        architecture=_string(headers.get("sec-ch-ua-arch")),
        model=_string(headers.get("sec-ch-ua-model")),
    )


def joined(reported: ClientHints, sent: ClientHints) -> ClientHints:
    """Client hints of both sources, field by field: the report's, else the header's. Brands with versions come before
    bare ones.
    """
    if sent in (_NO_HINTS, reported):
        return reported
    if reported == _NO_HINTS:
        return sent
    # Some collectors list brands without versions: then the header says more.
    versionless = not any(version for _, version in reported.brands)
    return ClientHints(
        brands=sent.brands if versionless and sent.brands else reported.brands,
        mobile=sent.mobile if reported.mobile is None else reported.mobile,
        platform=reported.platform or sent.platform,
        platform_version=reported.platform_version or sent.platform_version,
        architecture=reported.architecture or sent.architecture,
        model=reported.model or sent.model,
    )


_HEADERS = (
    "sec-ch-ua",
    "sec-ch-ua-platform",
    "sec-ch-ua-mobile",
    "sec-ch-ua-full-version-list",
    "sec-ch-ua-platform-version",
    "sec-ch-ua-arch",
    "sec-ch-ua-model",
)


def _brands(value: str | None) -> tuple[tuple[str, str], ...]:
    if not value:
        return ()
    found = _BRAND.findall(value[:LONGEST_HEADER])[:MAX_BRANDS]
    return tuple((_unescaped(brand), version) for brand, version in found if not is_grease(_unescaped(brand)))


def _grease(value: str | None) -> str | None:
    """The brand that the browser invented, as written."""
    found = (_unescaped(brand) for brand, _ in _BRAND.findall((value or "")[:LONGEST_HEADER])[:MAX_BRANDS])
    return next((brand for brand in found if is_grease(brand)), None)


def _string(value: str | None) -> str | None:
    """A quoted string; the quotes may be missing."""
    if not value or len(value) > 130:
        return None
    text = value.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = _unescaped(text[1:-1])
    return text if text and text.isprintable() else None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
