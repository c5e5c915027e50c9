"""What earlier identifications make of this one: velocity, replay, shared addresses, rare devices (docs/signals.md).

What may live here: what is remembered of visitors, addresses and reports, how it follows an identification, and what
it shows. Pure: records in, records and observations out; the identification's transaction reads and writes them.

Everything remembered is short, whatever a visitor or an address does: a visitor's record has at most 6 counts, 6
addresses and 3 countries, an address's at most 16 visitors, and one that is full and floods is written no more that
day. What lies outside its window is ignored, on either side, so that a clock that jumps brings nothing to life and
keeps nothing.

Thresholds are set so that what people do every day stays silent: they move between Wi-Fi and mobile data, share the
address of an office or of a carrier, send a report again after a failure, and own uncommon hardware.
"""

from __future__ import annotations

import math
from ipaddress import IPv4Address
from typing import TYPE_CHECKING, Final, Literal, TypeVar

import msgspec
from blake3 import blake3

from svc.identify.history.activity import AddressHistory, VisitorHistory
from svc.identify.model import Attribute, Network, Observation, Report
from svc.identify.network.timezones import country_of_zone
from svc.kernel.net.addresses import read_address
from svc.kernel.values.ids import ordered_digest

if TYPE_CHECKING:
    from svc.identify.matching import Features, Recognition, Statistics
    from svc.identify.matching.lessons import Rendered

HOUR_S: Final = 3600
DAY_S: Final = 24 * HOUR_S
REPLAY_MEMORY_S: Final = 30 * DAY_S
"""How long a report is known again: as long as its event can be read (interface 8)."""

SLOT_S: Final = 600
SLOTS: Final = 6
"""An hour of activity is counted in six slots of ten minutes, the present one included: the last 50 to 60 minutes."""
MANY_IDENTIFICATIONS: Final = 60
"""Identifications in an hour: one a minute without a pause. People come in bursts and stay below."""
MANY_ADDRESSES: Final = 6
"""In an hour. On its way from one Wi-Fi network to another a phone uses three networks, and shows 3 to 5 addresses
where a carrier hands out a new one after a gap or IPv4 and IPv6 take turns. An IPv6 address counts by its /64, within
which devices change theirs on purpose (RFC 8981)."""
MANY_COUNTRIES: Final = 3
"""In a day. Two are ordinary: for people who live at a border, or travel with a SIM card whose data go through home."""
PLACES: Final = 8
"""Countries and networks that are remembered of a visitor."""
STALE_REPORT_MS: Final = 600_000
"""A report that was collected longer ago than this was stored and sent later (docs/signals.md)."""
SAMPLED_VISITORS: Final = 16
MANY_VISITORS: Final = 8
MANY_TIMEZONE_COUNTRIES: Final = 4
"""Behind one address in a day. Beside the number of countries, none of them may hold more than half of the visitors:
thousands of people of one carrier include some whose clocks show the time of another country."""
ENOUGH_DEVICES: Final = 500
"""Of a class, before anything in it is called rare: among fewer, every new value is the first of its kind."""
RARE_DEVICES: Final = 0.5
"""Expected number of other devices of the class that report the same."""
RARE_PARTS: Final = (Attribute.MODEL, Attribute.GPU, Attribute.SCREEN, Attribute.HARDWARE)
RARE_TOGETHER: Final = 2
"""Parts that must be rare, each by itself. One rare part is common: in a simulated year of 3,329 browsers 8 % of the
visits show one, 0.5 % show two; and the combination of all parts is unique for every third desktop."""

VISITOR_UPDATES: Final = 8
"""Visits of one visitor that matching learns from in a UTC day; a client token always stands for the same visitor. In
the simulated streams of `docs/internals/accuracy.md` 1 visit of 10,000 comes after the eighth of its browser's day."""
ADDRESS_UPDATES: Final = 16
"""Visits from one address (an IPv6 /64) that matching learns from in a UTC day. In the streams no address has more than
9; behind a large one, an office or a carrier, the first visitors of the day are a sample of the others."""
LOOKALIKES: Final = 32
"""New visitors from one public address (an IPv6 /64) in a UTC day whose very report others sent before. From then on it
floods: what comes from it is matched as usual and changes little (`match_visitor`). Honest lookalikes, such as phones
of one model behind a carrier, are known again by token and network and hardly by their reports."""

_Key = TypeVar("_Key", int, str)


class VisitorPlaces(msgspec.Struct, frozen=True, array_like=True):
    """Where a visitor came from, for as long as it is known. Append fields, never move them."""

    countries: tuple[str, ...] = ()
    """ISO 3166-1 codes of its addresses, the latest first, at most `PLACES`."""
    networks: tuple[int, ...] = ()
    """Numbers of the autonomous systems that its addresses are of, the latest first, at most `PLACES`; where none is
    known, the hash of the wide network."""


class ReportFingerprint(msgspec.Struct, frozen=True, array_like=True):
    """When, in seconds since 1970, and from which address (`address_id`) a report was sent first."""

    at_s: int
    address: int


class ReplayKey(msgspec.Struct, frozen=True):
    """By what a report is recognized when it is sent again."""

    digest: bytes
    """16 bytes, of the nonce (`ordered_digest`) or of the signals byte for byte as sent."""
    kind: Literal["nonce", "report"]
    stale: bool
    """It says that it was collected more than ten minutes before it arrived."""


class HistoryEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """What history compares of one identification: everything that does not need the store."""

    at_s: int
    address: int
    """64-bit id, of the /64 where the address is an IPv6 one."""
    is_public: bool
    """`False` if the address may be everybody's, such as that of an undeclared reverse proxy."""
    counts_address: bool
    """`False` if addresses change by themselves: Tor and privacy relays pick another exit at will."""
    country: str | None
    """Where the visitor's address is; `None` for that of Tor, a relay or a VPN, which does not show it."""
    place: tuple[str, int] | None
    """Country and network of the address, even of one of Tor or a VPN, as in `VisitorPlaces`; `None` = not known."""
    timezone_country: str | None
    """The country of the device's own clock, where its address is an ordinary one that people could share."""
    replay_key: ReplayKey | None
    """`None` = the report has neither a nonce nor a time, so that two equal ones prove nothing."""

    @property
    def day(self) -> int:
        """The UTC day, since 1970."""
        return self.at_s // DAY_S


def history_evidence(
    report: Report, network: Network, ip: str, signals_json: bytes, at_ms: int, wide_network: int = 0
) -> HistoryEvidence:
    """Return what history compares of this identification. `ip` is the visitor's address as text; `signals_json` the
    signals byte for byte as sent, whose hash recognizes a report without a nonce; `wide_network` that of `Features`.
    """
    wanders = network.tor or network.relay
    ordinary = network.state == "enriched" and not (wanders or network.vpn or network.proxy or network.hosting)
    zone = None if Attribute.TIMEZONE in report.masked else report.claims.timezone
    return HistoryEvidence(
        at_s=at_ms // 1000,
        address=address_id(ip),
        is_public=network.state == "enriched",
        counts_address=not wanders,
        country=None if wanders or network.vpn else network.country_code,
        place=_place(network, wide_network),
        timezone_country=country_of_zone(zone) if ordinary and not network.crawlers_of else None,
        replay_key=replay_key(report.nonce, report.collected_at_ms, signals_json, at_ms),
    )


def _place(network: Network, wide_network: int) -> tuple[str, int] | None:
    number = int(network.asn) if network.asn and network.asn.isdecimal() else wide_network
    return (network.country_code, number) if network.country_code and number else None


def address_id(ip: str) -> int:
    """Return 64 bits for an IPv4 address, or the /64 of an IPv6 one; other text is hashed as it is."""
    address = read_address(ip)
    if address is None:
        spelled = ip.encode("utf-8", "replace")
    else:
        spelled = address.packed if isinstance(address, IPv4Address) else address.packed[:8]
    return int.from_bytes(blake3(spelled).digest(8))


def replay_key(nonce: str | None, collected: int | None, signals_json: bytes, at_ms: int) -> ReplayKey | None:
    """Return the key of a report's nonce, which equal reports share; without a nonce, that of the signals; `None`
    without `collected`, its time in Unix ms, either.
    """
    stale = collected is not None and at_ms - collected > STALE_REPORT_MS
    if nonce is not None:
        digest = blake3(b"nonce " + nonce.encode("utf-8", "replace")).digest(16)
        return ReplayKey(ordered_digest(nonce, digest), "nonce", stale)
    return None if collected is None else ReplayKey(blake3(signals_json).digest(16), "report", stale)


def visited(before: VisitorHistory, seen: HistoryEvidence) -> VisitorHistory:
    """Return a visitor's history with this identification added, and without what has left its window."""
    now_s = seen.at_s
    slot = now_s // SLOT_S
    counts = {then: count for then, count in before.activity if abs(slot - then) < SLOTS}
    count = min(counts.pop(slot, 0) + 1, MANY_IDENTIFICATIONS)
    addresses = before.addresses
    if seen.counts_address:
        addresses = ((seen.address, now_s), *addresses)
    countries = before.countries
    if seen.country is not None:
        countries = ((seen.country, now_s), *countries)
    return VisitorHistory(
        ((slot, count), *counts.items())[:SLOTS],
        _latest(addresses, now_s, HOUR_S, MANY_ADDRESSES),
        _latest(countries, now_s, DAY_S, MANY_COUNTRIES),
        before.lessons,
        before.day,
    )


def _latest(
    entries: tuple[tuple[_Key, int], ...], now_s: int, window_s: int, most: int
) -> tuple[tuple[_Key, int], ...]:
    """Keep the first entry of each key within the window, in the order given (newest first), `most` at most."""
    kept: dict[_Key, int] = {}
    for key, at_s in entries:
        if abs(now_s - at_s) < window_s:
            kept.setdefault(key, at_s)
    return tuple(kept.items())[:most]


def velocity(history: VisitorHistory) -> list[Observation]:
    """Return the velocity signals of a visitor's history, in which this identification is already (`visited`)."""
    shown: list[Observation] = []
    if sum(count for _, count in history.activity) >= MANY_IDENTIFICATIONS:
        shown.append(Observation("high_activity", "low", ("identifications_in_an_hour",)))
    if len(history.addresses) >= MANY_ADDRESSES:
        shown.append(Observation("velocity_ip", "low", ("addresses_in_an_hour",)))
    if len(history.countries) >= MANY_COUNTRIES:
        shown.append(Observation("velocity_country", "low", ("countries_in_a_day",)))
    return shown


def came_from(before: VisitorPlaces, place: tuple[str, int]) -> VisitorPlaces:
    """Return the places of a visitor with a country and network added; the same object if they are in it already. A
    place seen long ago moves to the front only once it is in the back half, so that most visits change nothing.
    """
    country, network = place
    half = PLACES // 2
    countries, networks = before.countries, before.networks
    if country not in countries[:half]:
        countries = (country, *(known for known in countries if known != country))[:PLACES]
    if network not in networks[:half]:
        networks = (network, *(known for known in networks if known != network))[:PLACES]
    unchanged = (countries, networks) == (before.countries, before.networks)
    return before if unchanged else VisitorPlaces(countries, networks)


def new_place(before: VisitorPlaces, place: tuple[str, int]) -> Observation | None:
    """Return `network_new_for_visitor` if neither country nor network is among those that the visitor has."""
    country, network = place
    if not before.countries or country in before.countries or network in before.networks:
        return None
    return Observation("network_new_for_visitor", "low", ("country_and_network_never_seen",))


def met(before: AddressHistory, visitor: int, timezone_country: str) -> AddressHistory:
    """Return an address's history with a visitor added; the same object if it is in it, or the sample is full."""
    if len(before.visitors) >= SAMPLED_VISITORS or visitor in before.visitors:
        return before
    return msgspec.structs.replace(
        before, visitors=(*before.visitors, visitor), homelands=(*before.homelands, timezone_country)
    )


def with_lookalike(before: AddressHistory, seen: HistoryEvidence) -> AddressHistory:
    """Return the day of an address with one more new visitor whose exact report others sent before; the same object if
    the address is not public, or is flooding.
    """
    if not seen.is_public or before.lookalikes >= LOOKALIKES:
        return before
    return msgspec.structs.replace(before, lookalikes=before.lookalikes + 1)


def is_flooding(address: AddressHistory) -> bool:
    """Return whether `LOOKALIKES` new visitors from the address sent reports of others today: most may be copies."""
    return address.lookalikes >= LOOKALIKES


def may_teach(visitor: VisitorHistory, address: AddressHistory) -> bool:
    """Return whether matching may learn from one more visit of this visitor and this address today. The limit keeps a
    few thousand reports from one place from making it doubt everybody.
    """
    return visitor.lessons < VISITOR_UPDATES and address.lessons < ADDRESS_UPDATES


def is_shared_address(history: AddressHistory) -> bool:
    """Return whether people of many countries share the address, so that most are not where it is: it has at least
    `MANY_VISITORS` sampled visitors from `MANY_TIMEZONE_COUNTRIES` countries, none of which has more than half of them.
    """
    homelands = history.homelands
    if len(homelands) < MANY_VISITORS:
        return False
    countries = set(homelands)
    largest = max(homelands.count(country) for country in countries)
    return len(countries) >= MANY_TIMEZONE_COUNTRIES and 2 * largest <= len(homelands)


def with_shared_address(observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """Return the observations of an address that behaves like a residential proxy, in both modes of that family.

    Listed is one proof and says `residential_proxy_medium` already; both together are two.
    """
    behavior = Observation("residential_proxy_behavior", "low", ("many_countries",))
    listed = next((seen for seen in observations if seen.signal == "residential_proxy_listed"), None)
    if listed is None:
        return (*observations, behavior, Observation("residential_proxy_low", "low", behavior.evidence))
    others = (seen for seen in observations if seen.signal != "residential_proxy_medium")
    sure = Observation("residential_proxy_high", "high", listed.evidence + behavior.evidence)
    return (*others, behavior, sure)


def with_unusual_handshake(observations: tuple[Observation, ...]) -> tuple[Observation, ...]:
    """Return the observations with `forged_report` for a TLS handshake that no browser of the class makes."""
    known = next((seen for seen in observations if seen.signal == "forged_report"), None)
    if known is None:
        return (*observations, Observation("forged_report", "medium", ("unusual_handshake",)))
    others = (seen for seen in observations if seen is not known)
    return (*others, Observation("forged_report", "high", (*known.evidence, "unusual_handshake")))


def is_remembered(first: ReportFingerprint, now_s: int) -> bool:
    """Return whether a report sent first then still counts as sent before (`REPLAY_MEMORY_S`, on either side)."""
    return abs(now_s - first.at_s) < REPLAY_MEMORY_S


def replay(first: ReportFingerprint, seen: HistoryEvidence) -> Observation | None:
    """Return the `replayed` signal of a report that was sent before; `None` if the repetition is innocent. `first`: the
    earlier one; `seen.replay_key` must be set.

    A nonce is used once, whatever else is sent with it: a client that retries in good faith sends the same
    `Idempotency-Key` and is handled before. A report without a nonce may be repeated from the same address, and for ten
    minutes from another one, since a phone may change networks between two attempts.
    """
    assert seen.replay_key is not None
    if seen.replay_key.kind == "nonce":
        return Observation("replayed", "high", ("nonce_again",))
    if seen.replay_key.stale and first.address != seen.address:
        return Observation("replayed", "medium", ("report_again",))
    return None


def is_first_day(recognition: Recognition, now_s: int) -> bool:
    """Return whether a visitor is new, or was first seen on this UTC day."""
    before = recognition.statistics_update.before
    if before is None:
        return recognition.number is None
    return now_s // DAY_S <= before.first_seen_s // DAY_S


def rendered(features: Features, recognition: Recognition, now_s: int) -> Rendered:
    """Return what a visit teaches of what devices compute: each device once as new, once when its token first comes
    back on a later day, and again with another release.
    """
    before = recognition.statistics_update.before
    if recognition.number is None:
        return "new"
    if before is None or recognition.outcome != "token" or is_first_day(recognition, now_s):
        return ""
    version, gpu = features.browser_version // 10, Attribute.GPU
    if (version, features.values[gpu]) != (before.browser_version // 10, before.values[gpu]):
        return "moved"
    return "back" if before.last_seen_s // DAY_S <= before.first_seen_s // DAY_S else ""


def rare_device(statistics: Statistics, features: Features, known_alike: int = 0) -> Observation | None:
    """Return the `rare_device` signal where `RARE_TOGETHER` parts are each rare in the class of devices; `None`
    otherwise, and below `ENOUGH_DEVICES`. So many devices that are `known_alike` do not count. About 2 µs.
    """
    devices = statistics.devices(features.family)
    if devices < ENOUGH_DEVICES:
        return None
    logs = statistics.log_frequencies_of(features, RARE_PARTS)
    rare = [
        part
        for part, log in zip(RARE_PARTS, logs, strict=True)
        if features.values[part] and math.exp(log) * devices < RARE_DEVICES + known_alike
    ]
    if len(rare) < RARE_TOGETHER:
        return None
    return Observation("rare_device", "low", tuple(part.name.lower() for part in rare))
