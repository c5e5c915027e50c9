"""User-Agent Client Hints: the `sec-ch-ua*` headers, and how a report's and a header's hints are joined.

What may live here: the syntax of those headers (RFC 8941 lists, strings and booleans, read leniently) and nothing that
knows what a brand means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from svc.identify.model import ClientHints
from svc.identify.report.values import is_grease

LONGEST_HEADER = 1_024
MAX_BRANDS = 12
_BRAND = re.compile(r'"((?:[^"\\]|\\.){1,64})"(?:\s*;\s*v="([^"]{0,64})")?')
_ESCAPED = re.compile(r"\\(.)")
_NO_HINTS = ClientHints()


def read_hints(headers: Mapping[str, str]) -> ClientHints:
    """Return the client hints in request headers with lower-case names. A header that is missing or malformed counts as
    not sent.
    """
    if _HEADERS.isdisjoint(headers):
        return _NO_HINTS
    full, _ = _brands(headers.get("sec-ch-ua-full-version-list"))
    brands, invented = _brands(headers.get("sec-ch-ua"))
    texts: dict[str, Any] = {field: _string(headers.get(name)) for field, name in _TEXTS.items()}
    mobile = {"?1": True, "?0": False}.get((headers.get("sec-ch-ua-mobile") or "")[:8].strip())
    return ClientHints(brands=full or brands, grease=invented, mobile=mobile, **texts)


def joined(reported: ClientHints, sent: ClientHints) -> ClientHints:
    """Return the client hints of both sources, field by field: the report's, else the header's. Brands with versions
    are preferred over bare ones.
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
        **{field: getattr(reported, field) or getattr(sent, field) for field in _TEXTS},
    )


_TEXTS = {
    "platform": "sec-ch-ua-platform",
    "platform_version": "sec-ch-ua-platform-version",
    "architecture": "sec-ch-ua-arch",
    "model": "sec-ch-ua-model",
}
"""Field of `ClientHints` -> header that has one quoted string."""
_HEADERS = frozenset({"sec-ch-ua", "sec-ch-ua-mobile", "sec-ch-ua-full-version-list", *_TEXTS.values()})


def _brands(value: str | None) -> tuple[tuple[tuple[str, str], ...], str | None]:
    """Return (brand, version) of each brand, and the one that the browser invented, as written."""
    found = [(_unescaped(brand), version) for brand, version in _BRAND.findall((value or "")[:LONGEST_HEADER])]
    invented = (brand for brand, _ in found[:MAX_BRANDS] if is_grease(brand))
    return tuple(pair for pair in found[:MAX_BRANDS] if not is_grease(pair[0])), next(invented, None)


def _string(value: str | None) -> str | None:
    """Read a quoted string; the quotes may be missing."""
    if not value or len(value) > 130:
        return None
    text = value.strip()
    if len(text) >= 2 and text[0] == text[-1] == '"':
        text = _unescaped(text[1:-1])
    return text if text and text.isprintable() else None


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text) if "\\" in text else text
