"""What a browser garbles on purpose, so that noise is not taken for a changed device.

What may live here: for each browser that randomizes or levels its answers, how it is recognized and which attributes
are worthless then. Such a browser is not a suspect: it protects its user.
"""

from __future__ import annotations

from collections.abc import Sequence

from svc.identify.model import Attribute, Claims, RequestFacts
from svc.identify.report.table import Reading, first_part

NOTHING: frozenset[Attribute] = frozenset()

RENDERING = frozenset({Attribute.CANVAS, Attribute.AUDIO, Attribute.WEBGL})
"""Safari 17 and later add noise to what is read back of these in private windows."""
BRAVE = RENDERING | {Attribute.FONTS, Attribute.HARDWARE, Attribute.PLUGINS}
"""Brave adds noise per site and session: rendering always, and with its shields up also the number of cores, the
memory, the plugins and the fonts it admits to."""
RESIST_FINGERPRINTING = RENDERING | {
    Attribute.GPU,
    Attribute.FONTS,
    Attribute.HARDWARE,
    Attribute.SCREEN,
    Attribute.PIXEL_RATIO,
    Attribute.FRAME,
    Attribute.COLOUR,
    Attribute.TIMEZONE,
    Attribute.PLUGINS,
}
"""Firefox with `privacy.resistFingerprinting` (Tor Browser too): random canvas, the rest the same for everyone, and a
screen that is only the window, rounded."""

STANDARD_PLUGINS = (
    "PDF Viewer",
    "Chrome PDF Viewer",
    "Chromium PDF Viewer",
    "Microsoft Edge PDF Viewer",
    "WebKit built-in PDF",
)
"""The list that the HTML standard prescribes. Brave's shields change it, so this very list shows them down."""

NAMELESS_RENDERER = "Mozilla"
"""What Firefox calls its graphics where it resists fingerprinting."""

_LEVELLED_CORES = (2, 4, 8)
_LETTERBOX = (200, 100)
"""Firefox rounds the window down to multiples of 200 by 100 pixels, of 100 by 100 when it is small."""


def deliberate_noise(
    claims: Claims, facts: RequestFacts, readings: Sequence[Reading], *, incognito: bool | None
) -> frozenset[Attribute]:
    """Return the attributes to which this browser adds noise on purpose, which must not be compared; none for most
    browsers, and if it is not evident.
    """
    if _is_brave(claims, facts):
        names = first_part(readings, "plugin_names")
        return RENDERING if names == STANDARD_PLUGINS else BRAVE
    user_agent = facts.user_agent or claims.user_agent or ""
    if "Firefox/" in user_agent:
        return RESIST_FINGERPRINTING if _is_leveled(claims, readings) else NOTHING
    if incognito and _is_safari(user_agent):
        return RENDERING
    return NOTHING


def _is_leveled(claims: Claims, readings: Sequence[Reading]) -> bool:
    """Return whether UTC, a usual number of cores, and a screen no larger than the page, in a letterbox step, coincide.

    If nothing is known of the page, a screen without a desktop is enough. Releases that no longer round have a renderer
    without a name and a window no larger than the page.
    """
    if claims.timezone not in ("UTC", "Atlantic/Reykjavik"):
        return False
    page, screen = claims.inner_window, claims.screen
    if page is not None and screen is not None and sorted(page) != sorted(screen):
        return False
    if page is not None and page == claims.outer_window and claims.gpu_renderer == NAMELESS_RENDERER:
        return True
    if claims.cores is not None and claims.cores not in _LEVELLED_CORES:
        return False
    frame = first_part(readings, "frame")
    if claims.screen is None or (frame is not None and any(frame)):
        return False
    long_side, short_side = max(claims.screen), min(claims.screen)
    across, down = _LETTERBOX
    return (long_side % across == 0 or long_side < 500) and long_side % down == 0 and short_side % down == 0


def _is_safari(user_agent: str) -> bool:
    return "Safari/" in user_agent and "Version/" in user_agent and "Chrom" not in user_agent


def _is_brave(claims: Claims, facts: RequestFacts) -> bool:
    return any(brand == "Brave" for hints in (claims.hints, facts.hints) for brand, _ in hints.brands)
