"""Where `svc data update` has its files from: addresses, licenses, bounds, and how each becomes a file of the folder.

What may live here: the table and the forms in which its sources publish. A source is in the table only if its license
allows what the service does with it; docs/adr/0028 says what each adds. Nothing of them comes with the program.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from svc.identify.network_data import NetworkFileError

Converter = Callable[["Source", Sequence[bytes]], bytes]


class Source(NamedTuple):
    """One file that `svc data update` can keep."""

    name: str
    """As the setting `network_sources` names it."""
    file: str
    """Its name in the folder."""
    urls: tuple[str, ...]
    """What it is made of, in this order."""
    convert: Converter
    """From the contents of `urls` to the file. Raises `ValueError` or `NetworkFileError`."""
    license: str
    credit: str
    at_least: int
    """Entries; a database's are its nodes. Fewer are taken for a source that broke."""
    most_addresses: int = 1 << 24
    """IPv4 addresses that a list may cover; more are taken for a slip."""
    most_bytes: int = 16 << 20
    """Of each URL."""
    checksum_url: str | None = None
    """Where the publisher has the SHA-256 of the only URL."""
    slow: bool = False
    """Whether it may stay the same for months. A list of the others that stays the same keeps its date, so that a
    source that nobody maintains any more grows old, and is noticed.
    """
    recommended: bool = True


def whole(_: Source, parts: Sequence[bytes]) -> bytes:
    """Return the only part, unchanged: a database, which is checked by the reader of the service afterwards."""
    (content,) = parts
    return content


def addresses(source: Source, parts: Sequence[bytes]) -> bytes:
    """Join and sort plain lists of one address or network (CIDR) per line, without duplicates and comments (`#`).
    Entries are not validated. Raises `NetworkFileError` if there is none, and `ValueError` for bytes that are not
    UTF-8.
    """
    return _list(source, (line.split("#", 1)[0].strip() for line in _lines(parts)))


def tor_nodes(source: Source, parts: Sequence[bytes]) -> bytes:
    """Return the addresses of CSV with the header `fingerprint, ipaddr, port`. Raises `ValueError` for another."""
    rows = [[cell.strip() for cell in line.split(",")] for line in _lines(parts)]
    if not rows or rows[0][:2] != ["fingerprint", "ipaddr"]:
        raise ValueError("does not begin with the header `fingerprint, ipaddr, port`")
    return _list(source, (row[1] for row in rows[1:] if len(row) > 1))


def proxy_networks(source: Source, parts: Sequence[bytes]) -> bytes:
    """Return lines of `network;owner;confidence` with a header; those of the highest confidence, 1.0, are taken."""
    rows = [line.split(";") for line in _lines(parts) if not line.startswith("#")]
    return _list(source, (row[0].strip() for row in rows if len(row) == 3 and row[2].strip() == "1.0"))


def hosting_networks(source: Source, parts: Sequence[bytes]) -> bytes:
    """Return CSV of `ASN,Entity` with a header, without access providers: the list is made against abuse."""
    lines = _lines(parts)
    if not lines or not lines[0].upper().startswith("ASN,"):
        raise ValueError("does not begin with the header `ASN,Entity`")
    entries: dict[int, str] = {}
    for row in csv.reader(lines[1:]):
        number = row[0].strip()
        if not (number.isascii() and number.isdecimal()):
            raise ValueError(f"has a line that begins with {number[:60]!r}, which is not an AS number")
        name = "".join(character for character in ",".join(row[1:]) if character.isprintable()).strip(' "')
        if int(number) not in CONNECT_PEOPLE and not name.endswith((", NG", "Reserved AS-, ZZ")):
            entries.setdefault(int(number), name)
    return _text(source, (f"AS{number} # {name}" for number, name in sorted(entries.items())))


class _Prefix(msgspec.Struct):
    network4: str | None = msgspec.field(default=None, name="ipv4Prefix")
    network6: str | None = msgspec.field(default=None, name="ipv6Prefix")


class _Prefixes(msgspec.Struct):
    """The form in which most operators of crawlers publish their addresses; Google introduced it."""

    prefixes: list[_Prefix]


def prefixes(source: Source, parts: Sequence[bytes]) -> bytes:
    """Join documents such as `{"prefixes": [{"ipv4Prefix": "192.0.2.0/24"}, {"ipv6Prefix": ...}]}` into one list."""
    try:
        found = [prefix for part in parts for prefix in msgspec.json.decode(part, type=_Prefixes).prefixes]
    except msgspec.DecodeError as error:
        raise ValueError(f"is not a JSON document with `prefixes`: {error}") from error
    return _list(source, (network for prefix in found for network in (prefix.network4, prefix.network6) if network))


CONNECT_PEOPLE = frozenset(
    {
        3561, 4323, 6939, 7850, 8477, 13955, 16535, 18570, 22903, 28855, 29119, 33891, 36290, 36666, 37521, 38279,
        40824, 42705, 47588, 51248, 53013, 53918, 55967, 58667, 60505, 327784, 327942, 394330,
    }
)  # fmt: skip
"""Networks of `hosting_networks` through which people go online: transit (CenturyLink, Hurricane Electric), cable,
radio and satellite (EchoStar, Talia), hotels, banks and schools. Beside them all that the list has of Nigeria: these
are that country's access networks.
"""


def _lines(parts: Sequence[bytes]) -> list[str]:
    """Return the lines that are not empty. Raises `UnicodeDecodeError`, a `ValueError`."""
    lines = (line.strip() for part in parts for line in part.decode("utf-8-sig").splitlines())
    return [line for line in lines if line]


def _list(source: Source, entries: Iterable[str]) -> bytes:
    found = {entry for entry in entries if entry}
    if not found:
        raise NetworkFileError("holds no address")
    return _text(source, sorted(found))


def _text(source: Source, lines: Iterable[str]) -> bytes:
    """Format a list. The bytes depend on the entries alone, so that a comparison shows what has changed."""
    head = [f"# {source.name}: kept by `svc data update`, which replaces this file", f"# {source.credit}"]
    return "\n".join([*head, *lines, ""]).encode()


_IP_LOCATION_DB = "https://github.com/sapics/ip-location-db/releases/download"


def _database(name: str, published: str) -> Source:
    """Describe a database from the releases of ip-location-db, which replaced its npm packages."""
    return Source(
        name,
        f"{name}.mmdb",
        (f"{_IP_LOCATION_DB}/latest/{published}.mmdb",),
        whole,
        "PDDL 1.0",
        f"{published} of ip-location-db (https://github.com/sapics/ip-location-db), PDDL 1.0",
        at_least=10_000,
        most_bytes=256 << 20,
        checksum_url=f"{_IP_LOCATION_DB}/checksum/{published}.mmdb.sha256",
    )


def _repository(
    name: str,
    repository: str,
    branch: str,
    files: Iterable[str],
    convert: Converter = addresses,
    *,
    terms: str = "MIT",
    note: str = "joined and sorted",
    part: str = "",
    **bounds: Any,
) -> Source:
    """Describe a list made of files of a repository. The credit names the `part` that is used, and in `note` what is
    done with it; `bounds` are further fields of `Source`.
    """
    urls = tuple(f"https://raw.githubusercontent.com/{repository}/{branch}/{file}" for file in files)
    credit = f"{part}{repository} (https://github.com/{repository}), {terms}; {note}"
    return Source(name, f"{name}.txt", urls, convert, terms, credit, **bounds)


def _servers(name: str, repository: str, *files: str) -> Source:
    """Describe the list of one VPN service: its exits, and its entries if they are published."""
    texts = [f"{file}.txt" for file in files]
    return _repository(
        f"vpn-{name}",
        f"tn3w/{repository}",
        "master",
        texts,
        terms="Apache-2.0",
        at_least=200,
        most_addresses=1 << 18,
    )


def _crawler(operator: str, *lists: str) -> Source:
    """Describe a mirror of an operator's lists. The service knows the operator by the same name."""
    files, part = [f"lists/{one}/ips.txt" for one in lists], f"{', '.join(lists)} of "
    return _repository(
        f"crawler-{operator}",
        "sefinek/known-bots-ip-whitelist",
        "main",
        files,
        part=part,
        at_least=2,
        slow=True,
    )


def _published(operator: str, *urls: str) -> Source:
    """Describe a list that an operator publishes for this purpose, and that has no known mirror."""
    return Source(
        f"crawler-{operator}",
        f"crawler-{operator}.txt",
        urls,
        prefixes,
        "published by the operator",
        f"published by the operator ({', '.join(urls)}); joined and sorted",
        1,
        slow=True,
        recommended=False,
    )


def _x4bnet(name: str, folder: str, at_least: int, most_addresses: int) -> Source:
    directory = f"output/{folder}"
    return _repository(
        name,
        "X4BNet/lists_vpn",
        "main",
        (f"{directory}/ipv4.txt", f"{directory}/ipv6.txt"),
        part=f"{directory} of ",
        at_least=at_least,
        most_addresses=most_addresses,
        recommended=False,
    )


_FIRST_PARTY = (
    "airvpn", "ivpn", "mullvad", "nordvpn", "ovpn", "pia", "protonvpn", "riseupvpn", "surfshark", "windscribe",
)  # fmt: skip

SOURCES: tuple[Source, ...] = (
    _database("country", "user-country"),
    _database("asn", "origin-asn"),
    _repository(
        "tor-exits", "alireza-rezaee/tor-nodes", "main", ["latest.exits.csv"], tor_nodes, note="its addresses only",
        at_least=300, most_addresses=1 << 16,
    ),
    _repository(
        "vpn-firstparty", "Joe12387/open-source-vpn-ip-lists", "master", [f"{one}.txt" for one in _FIRST_PARTY],
        terms="CC0-1.0", note="joined", at_least=3_000, most_addresses=1 << 20,
    ),
    _servers("protonvpn", "ProtonVPN-IPs", "protonvpn_ips", "protonvpn_entry_ips"),
    _servers("windscribe", "Windscribe-IPs", "windscribe_ips", "windscribe_entry_ips"),
    _servers("tunnelbear", "TunnelBear-IPs", "tunnelbear_ips"),
    _repository(
        "relay-icloud", "hroost/icloud-private-relay-iplist", "main", ["ip-ranges.txt"],
        part="Apple's egress ranges by ", note="sorted", at_least=300, most_addresses=1 << 22, slow=True,
    ),
    _repository(
        "asn-hosting", "brianhama/bad-asn-list", "master", ["bad-asn-list.csv"], hosting_networks,
        note="without networks that connect people", at_least=300, slow=True,
    ),
    _crawler("Googlebot", "googlebot"),
    _crawler("Bingbot", "bingbot"),
    _crawler("DuckDuckBot", "duckduckbot"),
    _crawler("Applebot", "applebot"),
    _crawler("GPTBot", "gptbot", "oai-searchbot", "chatgpt-user"),
    _crawler("ClaudeBot", "claudebot"),
    _crawler("PerplexityBot", "perplexitybot", "perplexity-user"),
    _published("Anthropic", "https://claude.com/crawling/bots.json"),
    _published("DuckAssistBot", "https://duckduckgo.com/duckassistbot.json"),
    _published("Google-Agent", "https://developers.google.com/static/crawling/ipranges/user-triggered-agents.json"),
    _published(
        "Kimi",
        *(f"https://www.kimi.ai/policies/{name}.json" for name in ("kimibot", "kimi-searchbot", "kimi-user")),
    ),
    _published("Liner", "https://docs.getliner.com/linerbot.json"),
    _published("MistralAI", *(f"https://mistral.ai/mistralai-{name}-ips.json" for name in ("user", "index"))),
    _published("OAI-AdsBot", "https://openai.com/adsbot.json"),
    _published("Parallel", "https://docs.parallel.ai/resources/shapbot.json"),
    _x4bnet("vpn-x4bnet", "vpn", 2_000, 1 << 24),
    _x4bnet("hosting-x4bnet", "datacenter", 10_000, 1 << 29),
    _repository(
        "residential-proxy-avastel", "antoinevastel/avastel-bot-ips-lists", "master",
        ["avastel-proxy-bot-ips-blocklist-8days.txt"], proxy_networks, note="networks of the highest confidence",
        at_least=20, most_addresses=1 << 20, recommended=False,
    ),
)  # fmt: skip
"""In the order in which they are fetched."""

BY_NAME = {source.name: source for source in SOURCES}
