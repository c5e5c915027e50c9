"""What is computed from the time-zone database: facts that have held for years."""

from __future__ import annotations

import subprocess
import sys

import pytest

from svc.identify.network.timezones import country_of_zone, zone_fits_country


@pytest.mark.parametrize(
    ("zone", "country", "fits"),
    [
        ("Europe/Vienna", "DE", True),  # the same clocks all year round
        ("Europe/London", "DE", False),
        ("Africa/Lagos", "DE", False),  # the same in January alone
        ("America/Phoenix", "US", True),
        ("Pacific/Honolulu", "US", True),
        ("America/Sao_Paulo", "US", False),
        ("Asia/Calcutta", "IN", True),  # a former name
        ("Asia/Kathmandu", "NP", True),
        ("Asia/Kolkata", "NP", False),  # a quarter of an hour
        ("Australia/Lord_Howe", "AU", True),  # half an hour of daylight saving time
        ("Antarctica/Troll", "AQ", True),
        ("Atlantic/Azores", "PT", True),
        ("Asia/Urumqi", "CN", True),
    ],
)
def test_a_zone_fits_the_countries_whose_clocks_show_the_same(zone: str, country: str, fits: bool):
    assert zone_fits_country(zone, country) is fits


@pytest.mark.parametrize(
    "zone", ["UTC", "Etc/GMT+5", "US/Pacific", "CET", "", "Mars/Olympus", "Europe", "Europe/", "../zone.tab"]
)
def test_nothing_is_known_of_a_zone_without_a_place(zone: str):
    assert zone_fits_country(zone, "DE") is None
    assert country_of_zone(zone) is None


@pytest.mark.parametrize("country", ["", "XK", "de", "EU"])
def test_nothing_is_known_of_a_country_missing_from_the_database(country: str):
    assert zone_fits_country("Europe/Berlin", country) is None


@pytest.mark.parametrize(
    ("names", "country"),
    [
        ({"Asia/Calcutta", "Asia/Kolkata"}, "IN"),
        ({"America/Atikokan", "America/Coral_Harbour", "America/Toronto", "America/Montreal"}, "CA"),
        ({"Pacific/Chuuk", "Pacific/Truk", "Pacific/Yap", "Pacific/Ponape", "Pacific/Kosrae"}, "FM"),
        ({"Africa/Bamako", "Africa/Timbuktu"}, "ML"),
        ({"Africa/Asmara", "Africa/Asmera"}, "ER"),
        ({"America/St_Thomas", "America/Virgin"}, "VI"),
        ({"Arctic/Longyearbyen", "Atlantic/Jan_Mayen"}, "SJ"),
        ({"Europe/Belfast", "Europe/London"}, "GB"),
        ({"Europe/Istanbul", "Asia/Istanbul"}, "TR"),
        ({"Africa/Abidjan"}, "Africa/Abidjan"),  # many former names of other countries link to it
        ({"Africa/Accra"}, "Africa/Accra"),
    ],
)
def test_all_names_of_the_zones_of_a_country_give_one_country(names: set[str], country: str):
    assert {country_of_zone(zone) for zone in names} == {country}


def test_the_time_zone_data_of_the_machine_is_not_read():
    """With a search path that leads nowhere, as on a machine without time zones."""
    code = (
        "import zoneinfo; zoneinfo.reset_tzpath(['/nowhere'])\n"
        "from svc.identify.network.timezones import zone_fits_country\n"
        "opened = []\n"
        "import sys; sys.addaudithook(lambda event, given: event == 'open' and opened.append(str(given[0])))\n"
        "assert zone_fits_country('Europe/Vienna', 'DE')\n"
        "zones = [name for name in opened if 'zoneinfo' in name]\n"
        "assert zones and all('/tzdata/zoneinfo/' in name for name in zones), zones\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
