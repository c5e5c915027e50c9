"""Which zones belong to one country, as data: so that people of one large country do not look like people of several.

What may live here: the table of countries that keep more than one zone, and the one question it answers. Facts: the
public-domain time-zone database of IANA, release 2025b (`zone.tab`, `backward`).
"""

from __future__ import annotations

from svc.domain.detection.timezones import zone_fits_country


def country_of_zone(zone: str | None) -> str | None:
    """A name for the country whose people keep this zone, equal for all its zones.

    An ISO 3166-1 code where the country has several zones, else the zone itself: names are compared, never shown.
    `None` for what is no place: `UTC`, `Etc/GMT+5`, invented names, and Antarctica.
    """
    if zone is None or zone.startswith("Antarctica/") or zone_fits_country(zone, _ANY_COUNTRY) is None:
        return None
    country = _COUNTRY_OF_ZONE.get(zone)
    if country is not None:
        return country
    area = zone[: zone.rfind("/")]
    return _COUNTRY_OF_AREA.get(area, zone)


_ANY_COUNTRY = "GB"
"""Asked about any country, the tables of clocks say whether they know the zone."""

_COUNTRY_OF_AREA = {
    "America/Argentina": "AR",
    "America/Indiana": "US",
    "America/Kentucky": "US",
    "America/North_Dakota": "US",
    "Australia": "AU",
}
"""Areas that lie in one country."""

_ZONES = """
AR America: Buenos_Aires Catamarca Cordoba Jujuy Mendoza Rosario
BR America: Araguaina Bahia Belem Boa_Vista Campo_Grande Cuiaba Eirunepe Fortaleza Maceio Manaus Noronha Porto_Acre
BR America: Porto_Velho Recife Rio_Branco Santarem Sao_Paulo
CA America: Atikokan Blanc-Sablon Cambridge_Bay Coral_Harbour Creston Dawson Dawson_Creek Edmonton Fort_Nelson Glace_Bay
CA America: Goose_Bay Halifax Inuvik Iqaluit Moncton Montreal Nipigon Pangnirtung Rainy_River Rankin_Inlet Regina
CA America: Resolute St_Johns Swift_Current Thunder_Bay Toronto Vancouver Whitehorse Winnipeg Yellowknife
CD Africa: Kinshasa Lubumbashi
CL America: Coyhaique Punta_Arenas Santiago
CL Pacific: Easter
CN Asia: Chongqing Chungking Harbin Kashgar Shanghai Urumqi
CY Asia: Famagusta Nicosia
CY Europe: Nicosia
DE Europe: Berlin Busingen
EC America: Guayaquil
EC Pacific: Galapagos
ES Africa: Ceuta
ES Atlantic: Canary
ES Europe: Madrid
FM Pacific: Chuuk Kosrae Pohnpei Ponape Truk Yap
GB Europe: Belfast London
GL America: Danmarkshavn Godthab Nuuk Scoresbysund Thule
ID Asia: Jakarta Jayapura Makassar Pontianak Ujung_Pandang
IL Asia: Jerusalem Tel_Aviv
KI Pacific: Enderbury Kanton Kiritimati Tarawa
KZ Asia: Almaty Aqtau Aqtobe Atyrau Oral Qostanay Qyzylorda
MH Pacific: Kwajalein Majuro
MN Asia: Choibalsan Hovd Ulaanbaatar Ulan_Bator
MX America: Bahia_Banderas Cancun Chihuahua Ciudad_Juarez Ensenada Hermosillo Matamoros Mazatlan Merida Mexico_City
MX America: Monterrey Ojinaga Santa_Isabel Tijuana
MY Asia: Kuala_Lumpur Kuching
NZ Pacific: Auckland Chatham
PF Pacific: Gambier Marquesas Tahiti
PG Pacific: Bougainville Port_Moresby
PS Asia: Gaza Hebron
PT Atlantic: Azores Madeira
PT Europe: Lisbon
RU Asia: Anadyr Barnaul Chita Irkutsk Kamchatka Khandyga Krasnoyarsk Magadan Novokuznetsk Novosibirsk Omsk Sakhalin
RU Asia: Srednekolymsk Tomsk Ust-Nera Vladivostok Yakutsk Yekaterinburg
RU Europe: Astrakhan Kaliningrad Kirov Moscow Samara Saratov Ulyanovsk Volgograd
TR Asia: Istanbul
TR Europe: Istanbul
UA Europe: Kiev Kyiv Simferopol Uzhgorod Zaporozhye
US America: Adak Anchorage Atka Boise Chicago Denver Detroit Fort_Wayne Indianapolis Juneau Knox_IN Los_Angeles
US America: Louisville Menominee Metlakatla New_York Nome Phoenix Shiprock Sitka Yakutat
US Pacific: Honolulu
UZ Asia: Samarkand Tashkent
"""
"""Country, area, places. Countries that keep one zone under one name are left out."""


def _read_zones(table: str) -> dict[str, str]:
    zones: dict[str, str] = {}
    for line in table.strip().split("\n"):
        country, area, *places = line.split()
        zones.update((f"{area[:-1]}/{place}", country) for place in places)
    return zones


_COUNTRY_OF_ZONE = _read_zones(_ZONES)
