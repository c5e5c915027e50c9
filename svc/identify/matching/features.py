"""What a report looks like to matching: hashed attributes, versions, token and network, as plain numbers.

What may live here: the step from a canonical report to `Features`, and the hashes it is made of. Nothing here knows
other reports, visitors or statistics.

Hashes are BLAKE3, cut to 32 or 64 bits. A faster checksum (CRC-32) would save about 4 of the 20 µs of an extraction,
but it is linear: structured values collide in families, and anyone could prepare a value that equals a stranger's
canvas or token without knowing it. 64 bits for tokens and whole reports keep accidental collisions below one in a
million at six million entries of one organization; a single attribute collides once in four thousand million pairs,
which is nothing beside honest twins. The sketches, which only tell near sets from far ones, do use CRC-32.
"""

from __future__ import annotations

import ipaddress
import struct
from collections.abc import Iterable
from functools import lru_cache
from zlib import crc32

import msgspec
from blake3 import blake3

from svc.identify.matching.parameters import (
    ATTRIBUTE_COUNT,
    HARDWARE_PARTS,
    IDENTIFIABLE_ATTRIBUTES,
    IDENTIFIABLE_BITS,
    INFORMATION_BITS,
    LOCALE_PARTS,
)
from svc.identify.model import Agent, Attribute, Network, Report, RequestFacts

_SKETCHED_MEMBERS = 1024
"""Members of a set that its sketch takes in: beyond that all 64 bits are set anyway."""
_CACHED_LENGTH = 256
"""Characters of a value whose hash is kept: 16,384 such are 5 MB at most."""
_FORGETFUL_BROWSERS = ("safari", "chrome_ios", "firefox_ios")
_DISGUISED = {"brave": "chrome"}
"""Browsers whose user agent is another one's: only hints tell them apart, and hints are not always sent."""
_NAMELESS = frozenset({("linux", "qt_web_engine"), ("linux", "safari")})
"""System and class of browsers whose user agent is that of their engine: Safari itself runs on Apple's systems only."""
_FROZEN_RELEASES = {"windows": 1000, "mac": 1015, "android": 1000}
"""What user agents say of the system whatever its release (User-Agent reduction, 2022): as good as unknown."""
_NATIVE = "native"
"""Collector of reports that an app's SDK makes."""
_ENGINES = {"chrome": "chromium", "edge": "chromium"}
"""Browsers with the version of their engine; others are engines of their own."""
_EXACT = struct.Struct(f"<IIHH{ATTRIBUTE_COUNT}I")
_BITS = tuple(INFORMATION_BITS[attribute] for attribute in Attribute)
_HARDWARE = tuple(map(int, HARDWARE_PARTS))
_LOCALE = tuple(map(int, LOCALE_PARTS))
_JOINT = {len(parts): struct.Struct(f"<{len(parts)}I") for parts in (_HARDWARE, _LOCALE)}


class Features(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One report as matching sees it. Hashes are never 0; 0 means "not reported"."""

    values: tuple[int, ...]
    """A 32-bit hash for each attribute, in the order of `Attribute`."""
    family: int
    """32-bit hash of the class: operating system, browser, mobile or not. Only visitors of one class are compared."""
    collector: int
    """32-bit hash of the adapter that gave the attributes. Values of different ones cannot be compared."""
    mobile: bool
    native: bool
    forgetful: bool
    """The browser erases what scripts store after a week without a visit."""
    browser_version: int
    os_release: int
    """16 bits each, growing with releases; 0 = unknown."""
    font_sketch: int
    rest_sketch: int
    """64-bit sketches of the set of fonts and of the leaves that no attribute claims."""
    hardware: int
    locale: int
    """32-bit hashes of the hardware attributes and of the locale, each taken together."""
    token: int
    """64-bit hash of the client token; the lowest bit is always 0, visitor records keep a flag there."""
    token_is_new: bool
    near_network: int
    """32-bit hash of the address's /24, or /48; 0 where the address tells nothing of where the device is."""
    wide_network: int
    """Of its /16, or /32; likewise."""
    address: int
    """32-bit hash of the whole address, or of its /64; likewise."""
    exact: int
    """64-bit hash of class, versions and all attributes."""
    information_bits: float
    identifiable: bool
    origin: int = 0
    """32-bit hash of the site in whose storage the token is; reports without a site have one, too. 0 = not known."""
    private: bool = False
    """The collector saw a private window, whose storage is erased when it is closed."""
    device: int = 0
    """64-bit hash of the identifier that the system gave the device or the app's maker on it; lowest bit 0."""
    fixed_device: bool = False
    """Another `device` is another device (Android). Elsewhere it may change while the device stays (iOS)."""
    key: int = 0
    """64-bit hash of the public key whose private half signed this report; 0 = none did."""
    token_before: int = 0
    key_before: int = 0
    """As `token` and `key`: those which `token` and `key` are in place of, where that key signed the report too."""
    release: int = 0
    """32-bit hash of engine, its major version, system, graphics renderer, if any, and collector; 0 = no version."""
    attested: bool = False
    """Hardware attests the app and the device (decisions 7.5), so that `device` cannot have been copied."""

    def before_renewal(self) -> Features:
        """Return the same report as if it had come with the token and the key before."""
        before, key = self.token_before, self.key_before
        return msgspec.structs.replace(self, token=before, token_is_new=False, key=key, token_before=0, key_before=0)

    @property
    def came_without_token(self) -> bool:
        """Whether its browser had no token before."""
        return not self.token or self.token_is_new

    def with_unknown(self, identifier: int) -> Features:
        """Return the same report after no visitor was found to have this token or device id. Such a token of a page is
        new, whatever the page says: an earlier page made it and sent nothing, or a tab beside this one did (ADR 173).
        """
        return self if self.native or identifier != self.token else msgspec.structs.replace(self, token_is_new=True)

    def without_token(self) -> Features:
        """Return the same report as if it had brought no token."""
        return msgspec.structs.replace(self, token=0, token_is_new=False)

    def without_device(self) -> Features:
        """Return the same report as if it had brought no device id."""
        return msgspec.structs.replace(self, device=0)

    @property
    def keys(self) -> tuple[int, ...]:
        """Return the token and the device id, as far as they are reported, the stronger one first: Android gives a
        device a permanent identifier, while Apple's belongs to the maker's apps and changes when the last one is
        removed.
        """
        if not self.device:
            return (self.token,) if self.token else ()
        if not self.token:
            return (self.device,)
        return (self.device, self.token) if self.fixed_device else (self.token, self.device)


def hash32(value: bytes) -> int:
    """Return a 32-bit hash of the bytes that is never 0, which means "not reported"."""
    return int.from_bytes(blake3(value).digest(4), "little") or 1


def _hash_of(value: str) -> int:
    return hash32(value.encode("utf-8", "replace"))


_hash_of_short = lru_cache(maxsize=16_384)(_hash_of)
"""Most values of a report were seen before, in other reports. The length limit bounds what strangers make us keep."""


_APP_COLLECTOR = hash32(_NATIVE.encode())


def is_of_app(collector: int) -> bool:
    """Return whether the last report of a visitor with this `collector` was an app's."""
    return collector == _APP_COLLECTOR


def hash64(value: bytes) -> int:
    """Return a 64-bit hash of the bytes that is never 0, which means "not reported"."""
    return int.from_bytes(blake3(value).digest(8), "little") or 1


def extract(
    report: Report,
    agent: Agent,
    facts: RequestFacts,
    network: Network | None = None,
    *,
    origin: str | None = None,
    key: bytes | None = None,
    key_before: bytes | None = None,
    app: bool = True,
) -> Features:
    """Return the features of one report. This is pure and takes about 20 µs, so it is done before a transaction is
    opened.

    `network`: what is known about the address. Anybody may be behind Tor, a VPN, a relay or a proxy: such an address
    says only that the visitor hides, as it may have done before. `origin`: the site that the report comes from; `key`:
    the public key that verifiably signed it; `key_before`: that of the token before, which signed it too. `app`:
    whether a key and an origin of an app sent it. An app's report that they did not send is of a class of its own, and
    has no device id (decisions 18.5).
    """
    values, bits, informative = _values(report)
    browser = _DISGUISED.get(agent.browser_family, agent.browser_family)
    said_native = _NATIVE in report.collectors
    native = app and said_native
    elsewhere = "|no app" if said_native and not app else ""
    family = hash32(f"{agent.os_family}|{browser}|{agent.mobile:d}{_embedding(report, agent)}{elsewhere}".encode())
    collector = hash32(f"{report.collectors[0]}{elsewhere}".encode()) if report.collectors else 0
    browser_version = agent.browser_version & 0xFFFF
    frozen = not native and agent.os_release == _FROZEN_RELEASES.get(agent.os_family)
    os_release = 0 if frozen else agent.os_release & 0xFFFF
    hidden = network is not None and (network.tor or network.vpn or network.relay or network.proxy)
    near_network, wide_network, address = (0, 0, 0) if hidden else networks(facts.ip)
    token = report.client_token
    return Features(
        values=tuple(values),
        family=family,
        collector=collector,
        mobile=agent.mobile,
        native=native,
        forgetful=not native and (agent.browser_family in _FORGETFUL_BROWSERS or agent.os_family == "ios"),
        browser_version=browser_version,
        os_release=os_release,
        font_sketch=sketch(report.fonts),
        rest_sketch=sketch(report.rest),
        hardware=_joint(values, _HARDWARE),
        locale=_joint(values, _LOCALE),
        token=_identifier(token) if token else 0,
        token_is_new=report.client_token_is_new if token else False,
        near_network=near_network,
        wide_network=wide_network,
        address=address,
        exact=hash64(_EXACT.pack(family, collector, browser_version, os_release, *values)),
        information_bits=bits,
        identifiable=informative >= IDENTIFIABLE_ATTRIBUTES and bits >= IDENTIFIABLE_BITS,
        origin=_hash_of_short(f"origin {origin or ''}"[:_CACHED_LENGTH]),
        private=report.incognito is True,
        # As a token: up to 0.2.0 it stood in the place of one that was missing, and visitors are known by it.
        device=_identifier(report.device_id) if native and report.device_id else 0,
        release=_release(agent, browser, values[Attribute.GPU], collector),
        fixed_device=native and report.claims.native_platform == "android",
        key=hash64(key) if key else 0,
        token_before=_identifier(report.client_token_before or "") if key_before else 0,
        key_before=hash64(key_before) if key_before else 0,
    )


def _values(report: Report) -> tuple[list[int], float, int]:
    """Return the hash of each attribute, how many bits tell devices apart, and how many attributes have any of them."""
    values = [0] * ATTRIBUTE_COUNT
    bits, informative = 0.0, 0
    for attribute, value in report.attributes.items():
        if value:
            values[attribute] = _hash_of_short(value) if len(value) <= _CACHED_LENGTH else _hash_of(value)
            gained = _BITS[attribute]
            if gained:
                bits += gained
                informative += 1
    return values, bits, informative


def _identifier(text: str) -> int:
    """Return a 64-bit hash with the lowest bit 0, where visitor records keep a flag."""
    return hash64(text.encode("utf-8", "replace")) & ~1 or 2


def _release(agent: Agent, browser: str, renderer: int, collector: int) -> int:
    version = agent.browser_version // 10
    if not version:
        return 0
    engine = _engine_release(_ENGINES.get(browser, browser), version, agent.os_family, mobile=agent.mobile)
    # Multipliers of xxHash. The parts are hashes themselves.
    return (engine ^ renderer * 0x9E3779B1 ^ collector * 0x85EBCA77) & 0xFFFFFFFF or 1


@lru_cache(maxsize=4096)
def _engine_release(engine: str, version: int, system: str, *, mobile: bool) -> int:
    return hash32(f"{engine} {version} {system} {mobile:d}".encode())


def _embedding(report: Report, agent: Agent) -> str:
    """Describe a browser that names only its engine, as many on QtWebEngine and WebKitGTK do: objects that the program
    adds to the page, whether it shows documents, and whether it draws with WebGL. Empty for browsers with a name.
    """
    if (agent.os_family, agent.browser_family) not in _NAMELESS:
        return ""
    flavors, plugins = report.claims.vendor_flavors, report.claims.plugin_count
    draws = report.claims.gpu_renderer is not None
    return f"|{','.join(sorted(flavors or ()))}|{plugins == 0:d}|{draws:d}"


def sketch(members: Iterable[str]) -> int:
    """Return a 64-bit sketch of a set, with one bit for each member: sets that share most members share most bits. Only
    the first `_SKETCHED_MEMBERS` members count.
    """
    bits = 0
    for count, member in enumerate(members):
        if count == _SKETCHED_MEMBERS:
            break
        bits |= 1 << (_bit_of_short(member) if len(member) <= 64 else crc32(member.encode("utf-8", "replace")) & 63)
    return bits


@lru_cache(maxsize=8192)
def _bit_of_short(member: str) -> int:
    # Font names and settings recur in nearly every report; the length limit bounds what strangers make us keep.
    return crc32(member.encode("utf-8", "replace")) & 63


def networks(address: str) -> tuple[int, int, int]:
    """Return hashes of an address's near network (/24, /48), its wide network (/16, /32) and itself (for IPv6 its /64);
    zeros if the text is not an address.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return 0, 0, 0
    if parsed.version == 6:
        mapped = parsed.ipv4_mapped
        if mapped is None:
            packed = parsed.packed
            return hash32(b"6" + packed[:6]), hash32(b"6" + packed[:4]), hash32(b"6" + packed[:8])
        parsed = mapped
    packed = parsed.packed
    return hash32(b"4" + packed[:3]), hash32(b"4" + packed[:2]), hash32(b"4" + packed)


def _joint(values: list[int], parts: tuple[int, ...]) -> int:
    selected = [values[part] for part in parts]
    return hash32(_JOINT[len(parts)].pack(*selected)) if any(selected) else 0
