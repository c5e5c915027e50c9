"""The words that every part of the service shares: small value types, the facts about one report, and its verdict.

What may live here: types without behavior that at least two domain modules exchange. Values in, values out; nothing
here reads a clock, a socket or a store.
"""

from __future__ import annotations

from enum import IntEnum
from functools import lru_cache
from typing import Any, Final, Literal, get_args

import msgspec

from svc.kernel.values.fields import Platform, State

Level = Literal["low", "medium", "high"]
"""Suspect level, and also how sure a signal is (interface 2.2)."""
VisitorKind = Literal["human", "ai_bot", "automation", "search_crawler"]
DeviceKind = Literal["desktop", "mobile", "tablet", "server"]
AnonymityNetwork = Literal["tor", "vpn", "proxy", "hosting"]

HeaderContext = Literal["secure", "plain", "forwarded"]
"""`secure`: the visitor's own request, of a page in a secure context to a service in one; `plain`: of another page;
`forwarded`: passed on by a server, for a page in a secure context."""


@lru_cache(maxsize=1_024)  # asked several times of each request, and there are few
def scoring_platform(sdk_platform: str, origin: str | None = None) -> Platform:
    """Return the scoring profile of an SDK platform: native ones and their bridges, all else `web` (decisions 3.1).
    From a page, one with an `http` or `https` origin, it is `web` whatever the platform claims (decisions 2.7).
    """
    if origin is not None and origin.startswith(("https://", "http://")):
        return "web"
    if sdk_platform == "ios" or sdk_platform.endswith("-ios"):
        return "ios"
    if sdk_platform == "android" or sdk_platform.endswith("-android"):
        return "android"
    return "web"


class Attribute(IntEnum):
    """The canonical attributes by which two reports are compared. The numbers are stored: append, never renumber."""

    MODEL = 0
    GPU = 1
    SCREEN = 2
    PIXEL_RATIO = 3
    HARDWARE = 4
    """Cores and memory."""
    TOUCH = 5
    """Touch points, architecture and platform."""
    LANGUAGES = 6
    TIMEZONE = 7
    FONTS = 8
    CANVAS = 9
    WEBGL = 10
    AUDIO = 11
    FONT_PREFERENCES = 12
    FRAME = 13
    """What the desktop takes from the screen: task bars and docks."""
    COLOUR = 14
    ACCESSIBILITY = 15
    PLUGINS = 16
    MISCELLANEOUS = 17
    """Engine constants: math, vendor, storage kinds."""
    REST = 18
    """Whatever else the collector sent, volatile values left out."""
    FIRST_LANGUAGE = 19


class ClientHints(msgspec.Struct, frozen=True, omit_defaults=True):
    """User-Agent Client Hints, from the report or from the `sec-ch-ua*` headers. `None` = not said."""

    brands: tuple[tuple[str, str], ...] = ()
    """(brand, version), the GREASE entry left out; the order means nothing."""
    grease: str | None = None
    """The brand that the browser invented (W3C UA Client Hints, 6.2), as written, where the collector passes it on."""
    emptied: bool = False
    """The page has hints, but neither brands nor a platform in them: a driver's command that overrides the user agent
    without hints to go with it leaves them like that."""
    overridden: bool = False
    """The page was asked for the processor's architecture and width and knows neither: so it is on phones, and on
    desktops whose browser was started with another user agent."""
    form_factors: bool = False
    """The page's hints have a list of form factors, even an empty one: Chromium before about 124 has none."""
    mobile: bool | None = None
    platform: str | None = None
    platform_version: str | None = None
    architecture: str | None = None
    model: str | None = None


class Claims(msgspec.Struct, frozen=True, kw_only=True):
    """What the report says of browser and device, in plain terms, for detection. `None` = not said or not readable."""

    user_agent: str | None = None
    """`navigator.userAgent` as reported; the header's stands in `RequestFacts`."""
    os_cpu: str | None = None
    """`navigator.oscpu`, which only Firefox has."""
    hints: ClientHints = ClientHints()
    platform: str | None = None
    vendor: str | None = None
    vendor_flavors: tuple[str, ...] | None = None
    product_sub: str | None = None
    languages: tuple[str, ...] | None = None
    language: str | None = None
    """The one language, where the collector tells it apart from the list, of which it is the first."""
    timezone: str | None = None
    screen: tuple[float, float] | None = None
    """Width, height in CSS pixels."""
    outer_window: tuple[float, float] | None = None
    inner_window: tuple[float, float] | None = None
    framed: bool | None = None
    """Whether the page is shown inside another one, in which its window is that frame."""
    touch_points: int | None = None
    gpu_vendor: str | None = None
    gpu_renderer: str | None = None
    color_depth: float | None = None
    """Bits of a pixel."""
    webgl: bool | None = None
    """`False` = asked for and not to be had."""
    pointer: bool | None = None
    """Whether there is anything to point with, by the media queries: mouse, pen or finger."""
    cookies: bool | None = None
    """Whether the page can keep a cookie."""
    focused: bool | None = None
    """Whether the page had the keyboard's focus when it was looked at."""
    plugin_count: int | None = None
    point_size_limit: float | None = None
    """The largest point that WebGL draws, in pixels: it tells drivers apart that call themselves by another's name."""
    plugins_patched: bool | None = None
    """Whether the list of plugins behaves as no browser's does."""
    fonts: tuple[str, ...] | None = None
    apple_font: bool | None = None
    """Whether the font `-apple-system-body` is another than the default: it exists in Apple's WebKit alone."""
    canvas_noise: bool | None = None
    """Whether a drawn image is read back with other pixels than were drawn, or with others each time."""
    eval_length: int | None = None
    """Characters of `eval.toString()`, a constant of the engine."""
    webdriver: bool | None = None
    math: dict[str, float] | None = None
    cores: float | None = None
    memory_gb: float | None = None
    driver_marks: tuple[str, ...] | None = None
    """What a collector found of drivers beside the flag: `selenium`, `playwright`, `webdriver_writable`, and `cdp`,
    which open developer tools leave too. Sorted; empty = looked for and not found."""
    contexts: dict[str, dict[str, Any]] | None = None
    """The same questions asked in an `iframe` and in a `worker`: `user_agent`, `platform`, `language`, `cores`,
    `memory_gb`, `webdriver`, `gpu_vendor`, `gpu_renderer`, as far as each answered. Of a browser that is what it says,
    all answers agree with those of the page."""
    native_platform: Literal["android", "ios"] | None = None
    """Set when an app's SDK made the report: its user agent is that of an HTTP library and names no system."""
    native_os_version: str | None = None
    native_kind: Literal["mobile", "tablet"] | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """One canonical report, whatever library collected it (docs/report-fields.md)."""

    collectors: tuple[str, ...] = ()
    """The adapters that read a part of it, the one that gave the attributes first; empty = unknown shape."""
    attributes: dict[Attribute, str] = {}
    """Comparable values, each prefixed by its collector. An attribute that is absent is not compared."""
    fonts: tuple[str, ...] = ()
    rest: tuple[str, ...] = ()
    """`path=value` leaves that no attribute claims, sorted; for near comparison."""
    masked: frozenset[Attribute] = frozenset()
    """Attributes that this browser randomizes on purpose, left out of `attributes`."""
    claims: Claims = Claims()
    botd: dict[str, Any] | None = None
    """BotD components that could be read: name -> value as it was sent, for rules alone: it may be of any size."""
    device_flags: tuple[str, ...] = ()
    """What a native SDK found wrong with its device, by its flags, such as `rooted`; sorted."""
    factory_reset_at_ms: int | None = None
    client_token: str | None = None
    client_token_is_new: bool = False
    client_key: str | None = None
    """The public key of the browser that the token is in, as sent."""
    client_proof: str | None = None
    """A signature of the report by that key, as sent (`proof`)."""
    client_token_before: str | None = None
    client_key_before: str | None = None
    client_proof_before: str | None = None
    """Of a browser that renewed its token: those which token, key and proof are in place of (decisions 18.2)."""
    device_id: str | None = None
    """What the system calls this device (`android_id`), or this maker's apps on it (`identifier_for_vendor`)."""
    collected_at_ms: int | None = None
    nonce: str | None = None
    incognito: bool | None = None
    developer_tools: bool | None = None
    deferred: bool = False
    """The report says that it is a deferred one, which identify refuses (decisions 7.4)."""


NO_HINTS: Final = ClientHints()


class RequestHeaders(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The headers of a request that a verdict depends on, in the form in which they are archived. `None` = not sent."""

    user_agent: str | None = None
    accept_language: str | None = None
    hints: ClientHints = NO_HINTS
    """From the `sec-ch-ua*` headers."""
    connection_os: str | None = None
    """The operating system that a trusted edge saw in the connection itself, in its own words."""
    context: HeaderContext | None = None
    """Where the headers were seen, and so which of them a browser would have sent; `None` = not all were looked at, so
    that one which is missing shows nothing."""
    fetch: str | None = None
    """Of the `sec-fetch-*` headers site, mode and destination, such as `cross-site cors empty`; `-` for one that is
    missing. `None` = none was sent."""
    connection_tls: str | None = None
    """The fingerprint of the TLS handshake that a trusted edge saw, in its own words, such as a JA4."""


class RequestFacts(RequestHeaders, frozen=True, kw_only=True):
    """What the request itself shows of the visitor: its address and its browser's headers."""

    ip: str


class Agent(msgspec.Struct, frozen=True, kw_only=True):
    """What the user agent and its hints say (docs: useragents.md). Names are those shown on events."""

    agent: str | None = None
    agent_version: str | None = None
    os: str | None = None
    os_version: str | None = None
    device_kind: DeviceKind | None = None
    browser_family: str = "other"
    """`chrome`, `edge`, `firefox`, `safari`, `opera`, `samsung`, `brave`, ... : the class of matching."""
    browser_version: int = 0
    """Major version times ten plus the first minor digit; 0 = unknown. Grows with releases."""
    os_family: str = "other"
    """`windows`, `mac`, `ios`, `android`, `linux`, `chromeos`, `other`."""
    os_release: int = 0
    """Major times 100 plus minor; 0 = unknown."""
    mobile: bool = False
    program: str | None = None
    """Name of the program or crawler when the agent is not a browser of a person."""
    is_bare_name: bool = False
    """Nothing is known of `program` but that the user agent is its name, as that of an app may be."""
    crawler: Literal["search_crawler", "ai_bot"] | None = None
    """What kind of crawler it claims to be."""
    operator: str | None = None
    """The operator of the crawler, as the ranges name it, such as `Google`; `None` = no range is published."""


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of an address (docs: network-accuracy.md)."""

    state: State
    reason: str | None = None
    country_code: str | None = None
    country_name: str | None = None
    asn: str | None = None
    """The number in digits (asplain, RFC 5396)."""
    asn_name: str | None = None
    tor: bool = False
    vpn: bool = False
    relay: bool = False
    proxy: bool = False
    hosting: bool = False
    crawlers_of: tuple[str, ...] = ()
    """Whose published ranges of crawlers hold the address: several, where they publish a range under two names."""
    residential_proxy: bool = False
    attack_source: bool = False
    spam_source: bool = False
    """The last three: a list of the operator's holds the address."""

    @property
    def anonymity_network(self) -> AnonymityNetwork | None:
        """The strongest of what applies: tor, vpn (relays included), proxy, hosting (docs/signals.md)."""
        if self.tor:
            return "tor"
        if self.vpn or self.relay:
            return "vpn"
        if self.proxy:
            return "proxy"
        return "hosting" if self.hosting else None


class Observation(msgspec.Struct, frozen=True):
    """One signal that was observed, before its weight is known."""

    signal: str
    confidence: Level
    evidence: tuple[str, ...] = ()
    """Short names of the checks that gave it away, for people who ask why."""


class EventTrigger(msgspec.Struct, frozen=True, array_like=True):
    """A signal group that fired, with the sum of its weights (interface 2.3)."""

    signal: str
    """Name of the group."""
    weight: int
    confidence: Level


class EventSignal(msgspec.Struct, frozen=True, array_like=True):
    """A signal that fired, with the weight in force then (interface 2.2)."""

    signal: str
    group: str
    weight: int
    confidence: Level


RuleAction = Literal["allow", "review", "challenge", "block"]
"""What a rule may decide."""
RULE_ACTIONS: tuple[RuleAction, ...] = get_args(RuleAction)


class Decision(msgspec.Struct, frozen=True, array_like=True):
    """What the first rule that matched decided (decisions 13.2). Stored within an event: append fields."""

    action: RuleAction
    rule_id: str
    rule: str
    """Its name then."""


Label = Literal["fraud", "legitimate"]
"""What an event turned out to be (decisions 14.1)."""
LABELS: tuple[Label, ...] = get_args(Label)
LabelReason = Literal[
    "chargeback", "account_takeover", "multi_account", "promo_abuse", "bot", "scraping", "spam", "other"
]
"""Why it has that label. Open: stored as text."""
LABEL_REASONS: tuple[LabelReason, ...] = get_args(LabelReason)


ProofVersion = Literal[1, 2]
"""Of the proof in a report: 1 covers the visitor alone, 2 also account, action and tag (decisions 18.3)."""


class ShadowMatch(msgspec.Struct, frozen=True, array_like=True):
    """A rule in shadow mode whose condition was true. Stored within an event: append fields."""

    rule_id: str
    rule: str
    action: RuleAction


class Verdict(msgspec.Struct, frozen=True, array_like=True, kw_only=True):
    """The result of one identification: which visitor, how certain, and how suspicious (interface 2.2 and 2.3,
    decisions 7.1 and 8.10).

    It travels whole from the decision through the transaction into the stored event, to the response of identify, to
    reads of events and into webhooks; `event_row` takes it apart. Stored within an event, so fields are appended with
    defaults.
    """

    visitor_id: str
    state: State
    reason: str | None
    suspect_score: int | None
    """`None` = not scored."""
    suspect_level: Level | None
    triggers: tuple[EventTrigger, ...]
    identifiable: bool
    visitor_is_new: bool
    visitor_confidence: int
    """As `Recognition.confidence` (decisions 3.5, 18.1)."""
    linkage: str
    """How the visitor was matched: `token`, `exact`, `match`, ..., for operators."""
    signals: tuple[EventSignal, ...] | None = None
    """Heaviest first, ties by name; `None` in events stored by 0.1.0, which kept only their groups."""
    proven: bool = False
    """The report was signed by the key that its token had before this visit (`proof`)."""
    decision: Decision | None = None
    """`None` where no rule matched."""
    proof_version: ProofVersion | None = None
    """Of the valid signature of the report, by whatever key; `None` where there is none, and in events stored by
    0.3.0."""


Subject = Literal["visitor", "account"]


SUBJECTS: Final[tuple[Subject, ...]] = ("visitor", "account")
"""What labels are counted of, and notes are about. Their positions in keys are stored: append, never move."""
