"""Time zones and the countries that keep them, computed from the time-zone database of IANA.

What may live here: the two questions about zones and countries, and reading the database for them. It is always that of
the `tzdata` package and never the machine's, so that equal versions of the packages give equal results. A zone is read
at its first use, which takes a tenth of a millisecond.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache, lru_cache
from importlib.resources import files
from zoneinfo import ZoneInfo

import tzdata

_YEAR = int(tzdata.IANA_VERSION[:4])
"""Of the release (`2026f`): the year whose clocks are compared."""

_RETIRED_NAMES = {
    "Africa/Asmera": "ER",
    "Africa/Timbuktu": "ML",
    "America/Coral_Harbour": "CA",
    "America/Virgin": "VI",
    "Atlantic/Jan_Mayen": "SJ",
    "Pacific/Ponape": "FM",
    "Pacific/Truk": "FM",
    "Pacific/Yap": "FM",
}
"""Former names that the database links to a zone of another country with the same clocks (comments of `backward`)."""


def zone_fits_country(zone: str, country_code: str) -> bool | None:
    """Return whether clocks in `country_code` (ISO 3166-1 alpha-2) agree with `zone`; `None` if either is not known.
    Clocks agree if they show the same time in January and in July, so that a device set to Vienna fits an address in
    Germany. Zones without a location, such as `UTC` or `Etc/GMT+5`, are not known: somebody chose them, and may be
    anywhere.
    """
    clocks = _clocks_of_country(country_code)
    return _clock(zone) in clocks if clocks and zone in _countries() else None


def country_of_zone(zone: str | None) -> str | None:
    """Return a name for the country that uses this zone, equal for all its zones and all their names: an ISO 3166-1
    code if the country has several zones, else the zone itself. Such names are compared, never shown. `None` for zones
    without a country: `UTC`, `Etc/GMT+5`, invented names, and Antarctica.
    """
    country = _countries().get(zone or "")
    if country is None or zone is None or zone.startswith("Antarctica/"):
        return None
    return country if _zone_names()[country] > 1 else zone


@lru_cache(maxsize=256)
def time_zone(name: str) -> ZoneInfo | None:
    """Return the rules of a time zone by its IANA name, such as `Europe/Paris`; `None` if there is none."""
    if name not in _all_names():
        return None
    with (files(tzdata) / "zoneinfo" / name).open("rb") as file:
        return ZoneInfo.from_file(file, key=name)


@cache
def country_codes() -> frozenset[str]:
    """Return the codes of ISO 3166-1, and Kosovo's, which network databases have."""
    return frozenset(code for code, *_ in _rows("iso3166.tab", "\t")) | {"XK"}


@cache
def _all_names() -> frozenset[str]:
    return frozenset((files(tzdata) / "zones").read_text("utf-8").split())


@cache
def _clock(zone: str) -> tuple[timedelta | None, ...]:
    """Return the offsets from UTC on 1 January and 1 July."""
    rules = time_zone(zone)
    return tuple(datetime(_YEAR, month, 1, tzinfo=rules).utcoffset() for month in (1, 7))


@cache
def _clocks_of_country(code: str) -> frozenset[tuple[timedelta | None, ...]]:
    return frozenset(_clock(zone) for zone, country in _countries().items() if country == code)


@cache
def _countries() -> dict[str, str]:
    """Return the country of every zone that has a place, under all its names."""
    countries = {zone: code for code, _, zone, *_ in _rows("zone.tab", "\t")}
    areas = {zone.partition("/")[0] for zone in countries}
    for kind, *names in _rows("tzdata.zi", " "):
        if kind == "L" and names[1].partition("/")[0] in areas:
            zone, name = names
            countries.setdefault(name, _RETIRED_NAMES.get(name) or countries[zone])
    return countries


@cache
def _zone_names() -> Counter[str]:
    """Count the names of zones by country."""
    return Counter(_countries().values())


def _rows(name: str, separator: str) -> Iterator[list[str]]:
    for line in (files(tzdata) / "zoneinfo" / name).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            yield line.split(separator)
