"""Which time zones a country keeps, as data: zones by what their clocks show, and countries by the same.

What may live here: the two tables and the one question they answer. Two zones are the same here when their clocks
agree in January and in July, so that a device set to Vienna fits an address in Germany. Facts: the public-domain
time-zone database of IANA, release 2025b, for the year 2025.
"""

from __future__ import annotations


def zone_fits_country(zone: str, country_code: str) -> bool | None:
    """Whether clocks in `country_code` (ISO 3166-1 alpha-2) agree with `zone`; `None` when either is not known.

    Zones without a place, such as `UTC` or `Etc/GMT+5`, are not known: they say what someone chose, not where.
    """
    clock = _CLOCK_OF_ZONE.get(zone)
    clocks = _CLOCKS_OF_COUNTRY.get(country_code)
    if clock is None or clocks is None:
        return None
    return clock in clocks


# Each clock is written as minutes east of Greenwich on 1 January / 1 July.
_ZONES = """
-660/-660
  Pacific: Midway Niue Pago_Pago Samoa
-600/-600
  Pacific: Honolulu Johnston Rarotonga Tahiti
-600/-540
  America: Adak Atka
-570/-570
  Pacific: Marquesas
-540/-540
  Pacific: Gambier
-540/-480
  America: Anchorage Juneau Metlakatla Nome Sitka Yakutat
-480/-480
  Pacific: Pitcairn
-480/-420
  America: Ensenada Los_Angeles Santa_Isabel Tijuana Vancouver
-420/-420
  America: Creston Dawson Dawson_Creek Fort_Nelson Hermosillo Mazatlan Phoenix Whitehorse
-420/-360
  America: Boise Cambridge_Bay Ciudad_Juarez Denver Edmonton Inuvik Shiprock Yellowknife
-360/-360
  America: Bahia_Banderas Belize Chihuahua Costa_Rica El_Salvador Guatemala Managua Merida Mexico_City Monterrey
    Regina Swift_Current Tegucigalpa
  Pacific: Galapagos
-360/-300
  America: Chicago Indiana/Knox Indiana/Tell_City Knox_IN Matamoros Menominee North_Dakota/Beulah North_Dakota/Center
    North_Dakota/New_Salem Ojinaga Rainy_River Rankin_Inlet Resolute Winnipeg
-300/-360
  Pacific: Easter
-300/-300
  America: Atikokan Bogota Cancun Cayman Coral_Harbour Eirunepe Guayaquil Jamaica Lima Panama Porto_Acre Rio_Branco
-300/-240
  America: Detroit Fort_Wayne Grand_Turk Havana Indiana/Indianapolis Indiana/Marengo Indiana/Petersburg Indiana/Vevay
    Indiana/Vincennes Indiana/Winamac Indianapolis Iqaluit Kentucky/Louisville Kentucky/Monticello Louisville Montreal
    Nassau New_York Nipigon Pangnirtung Port-au-Prince Thunder_Bay Toronto
-240/-240
  America: Anguilla Antigua Aruba Barbados Blanc-Sablon Boa_Vista Campo_Grande Caracas Cuiaba Curacao Dominica Grenada
    Guadeloupe Guyana Kralendijk La_Paz Lower_Princes Manaus Marigot Martinique Montserrat Port_of_Spain Porto_Velho
    Puerto_Rico Santo_Domingo St_Barthelemy St_Kitts St_Lucia St_Thomas St_Vincent Tortola Virgin
-240/-180
  America: Glace_Bay Goose_Bay Halifax Moncton Thule
  Atlantic: Bermuda
-210/-150
  America: St_Johns
-180/-240
  America: Santiago
-180/-180
  America: Araguaina Argentina/Buenos_Aires Argentina/Catamarca Argentina/ComodRivadavia Argentina/Cordoba
    Argentina/Jujuy Argentina/La_Rioja Argentina/Mendoza Argentina/Rio_Gallegos Argentina/Salta Argentina/San_Juan
    Argentina/San_Luis Argentina/Tucuman Argentina/Ushuaia Asuncion Bahia Belem Buenos_Aires Catamarca Cayenne Cordoba
    Coyhaique Fortaleza Jujuy Maceio Mendoza Montevideo Paramaribo Punta_Arenas Recife Rosario Santarem Sao_Paulo
  Antarctica: Palmer Rothera
  Atlantic: Stanley
-180/-120
  America: Miquelon
-120/-120
  America: Noronha
  Atlantic: South_Georgia
-120/-60
  America: Godthab Nuuk Scoresbysund
-60/-60
  Atlantic: Cape_Verde
-60/0
  Atlantic: Azores
0/0
  Africa: Abidjan Accra Bamako Banjul Bissau Conakry Dakar Freetown Lome Monrovia Nouakchott Ouagadougou Sao_Tome
    Timbuktu
  America: Danmarkshavn
  Atlantic: Reykjavik St_Helena
0/60
  Atlantic: Canary Faeroe Faroe Madeira
  Europe: Belfast Dublin Guernsey Isle_of_Man Jersey Lisbon London
0/120
  Antarctica: Troll
60/60
  Africa: Algiers Bangui Brazzaville Casablanca Douala El_Aaiun Kinshasa Lagos Libreville Luanda Malabo Ndjamena
    Niamey Porto-Novo Tunis
60/120
  Africa: Ceuta
  Arctic: Longyearbyen
  Atlantic: Jan_Mayen
  Europe: Amsterdam Andorra Belgrade Berlin Bratislava Brussels Budapest Busingen Copenhagen Gibraltar Ljubljana
    Luxembourg Madrid Malta Monaco Oslo Paris Podgorica Prague Rome San_Marino Sarajevo Skopje Stockholm Tirane Vaduz
    Vatican Vienna Warsaw Zagreb Zurich
120/120
  Africa: Blantyre Bujumbura Gaborone Harare Johannesburg Juba Khartoum Kigali Lubumbashi Lusaka Maputo Maseru Mbabane
    Tripoli Windhoek
  Europe: Kaliningrad
120/180
  Africa: Cairo
  Asia: Beirut Famagusta Gaza Hebron Jerusalem Nicosia Tel_Aviv
  Europe: Athens Bucharest Chisinau Helsinki Kiev Kyiv Mariehamn Nicosia Riga Sofia Tallinn Tiraspol Uzhgorod Vilnius
    Zaporozhye
180/180
  Africa: Addis_Ababa Asmara Asmera Dar_es_Salaam Djibouti Kampala Mogadishu Nairobi
  Antarctica: Syowa
  Asia: Aden Amman Baghdad Bahrain Damascus Istanbul Kuwait Qatar Riyadh
  Europe: Istanbul Kirov Minsk Moscow Simferopol Volgograd
  Indian: Antananarivo Comoro Mayotte
210/210
  Asia: Tehran
240/240
  Asia: Baku Dubai Muscat Tbilisi Yerevan
  Europe: Astrakhan Samara Saratov Ulyanovsk
  Indian: Mahe Mauritius Reunion
270/270
  Asia: Kabul
300/300
  Antarctica: Mawson Vostok
  Asia: Almaty Aqtau Aqtobe Ashgabat Ashkhabad Atyrau Dushanbe Karachi Oral Qostanay Qyzylorda Samarkand Tashkent
    Yekaterinburg
  Indian: Kerguelen Maldives
330/330
  Asia: Calcutta Colombo Kolkata
345/345
  Asia: Kathmandu Katmandu
360/360
  Asia: Bishkek Dacca Dhaka Kashgar Omsk Thimbu Thimphu Urumqi
  Indian: Chagos
390/390
  Asia: Rangoon Yangon
  Indian: Cocos
420/420
  Antarctica: Davis
  Asia: Bangkok Barnaul Ho_Chi_Minh Hovd Jakarta Krasnoyarsk Novokuznetsk Novosibirsk Phnom_Penh Pontianak Saigon
    Tomsk Vientiane
  Indian: Christmas
480/480
  Antarctica: Casey
  Asia: Brunei Choibalsan Chongqing Chungking Harbin Hong_Kong Irkutsk Kuala_Lumpur Kuching Macao Macau Makassar
    Manila Shanghai Singapore Taipei Ujung_Pandang Ulaanbaatar Ulan_Bator
  Australia: Perth West
525/525
  Australia: Eucla
540/540
  Asia: Chita Dili Jayapura Khandyga Pyongyang Seoul Tokyo Yakutsk
  Pacific: Palau
570/570
  Australia: Darwin North
600/600
  Antarctica: DumontDUrville
  Asia: Ust-Nera Vladivostok
  Australia: Brisbane Lindeman Queensland
  Pacific: Chuuk Guam Port_Moresby Saipan Truk Yap
630/570
  Australia: Adelaide Broken_Hill South Yancowinna
660/600
  Antarctica: Macquarie
  Australia: ACT Canberra Currie Hobart Melbourne NSW Sydney Tasmania Victoria
660/630
  Australia: LHI Lord_Howe
660/660
  Asia: Magadan Sakhalin Srednekolymsk
  Pacific: Bougainville Efate Guadalcanal Kosrae Noumea Pohnpei Ponape
720/660
  Pacific: Norfolk
720/720
  Asia: Anadyr Kamchatka
  Pacific: Fiji Funafuti Kwajalein Majuro Nauru Tarawa Wake Wallis
780/720
  Antarctica: McMurdo South_Pole
  Pacific: Auckland
780/780
  Pacific: Apia Enderbury Fakaofo Kanton Tongatapu
825/765
  Pacific: Chatham
840/840
  Pacific: Kiritimati
"""

_COUNTRIES = """
-660/-660 : AS NU
-660/-660 720/720 : UM
-600/-600 : CK
-600/-600 -600/-540 -540/-480 -480/-420 -420/-420 -420/-360 -360/-300 -300/-240 : US
-600/-600 -570/-570 -540/-540 : PF
-480/-480 : PN
-480/-420 -420/-420 -420/-360 -360/-360 -360/-300 -300/-300 : MX
-480/-420 -420/-420 -420/-360 -360/-360 -360/-300 -300/-300 -300/-240 -240/-240 -240/-180 -210/-150 : CA
-360/-360 : BZ CR GT HN NI SV
-360/-360 -300/-300 : EC
-300/-360 -180/-240 -180/-180 : CL
-300/-300 : CO JM KY PA PE
-300/-300 -240/-240 -180/-180 -120/-120 : BR
-300/-240 : BS CU HT TC
-240/-240 : AG AI AW BB BL BO BQ CW DM DO GD GP GY KN LC MF MQ MS PR SX TT VC VE VG VI
-240/-180 : BM
-240/-180 -120/-60 0/0 : GL
-180/-180 : AR FK GF PY SR UY
-180/-180 0/120 180/180 300/300 420/420 480/480 600/600 780/720 : AQ
-180/-120 : PM
-120/-120 : GS
-60/-60 : CV
-60/0 0/60 : PT
0/0 : BF CI GH GM GN GW IS LR ML MR SH SL SN ST TG
0/60 : FO GB GG IE IM JE
0/60 60/120 : ES
60/60 : AO BJ CF CG CM DZ EH GA GQ MA NE NG TD TN
60/60 120/120 : CD
60/120 : AD AL AT BA BE CH CZ DE DK FR GI HR HU IT LI LU MC ME MK MT NL NO PL RS SE SI SJ SK SM VA
120/120 : BI BW LS LY MW MZ NA RW SD SS SZ ZA ZM ZW
120/120 180/180 240/240 300/300 360/360 420/420 480/480 540/540 600/600 660/660 720/720 : RU
120/180 : AX BG CY EE EG FI GR IL LB LT LV MD PS RO
120/180 180/180 : UA
180/180 : BH BY DJ ER ET IQ JO KE KM KW MG QA SA SO SY TR TZ UG YE YT
210/210 : IR
240/240 : AE AM AZ GE MU OM RE SC
270/270 : AF
300/300 : KZ MV PK TF TJ TM UZ
330/330 : IN LK
345/345 : NP
360/360 : BD BT IO KG
360/360 480/480 : CN
390/390 : CC MM
420/420 : CX KH LA TH VN
420/420 480/480 : MN
420/420 480/480 540/540 : ID
480/480 : BN HK MO MY PH SG TW
480/480 525/525 570/570 600/600 630/570 660/600 660/630 : AU
540/540 : JP KP KR PW TL
600/600 : GU MP
600/600 660/660 : FM PG
660/660 : NC SB VU
720/660 : NF
720/720 : FJ MH NR TV WF
720/720 780/780 840/840 : KI
780/720 825/765 : NZ
780/780 : TK TO WS
"""


def _read_zones(table: str) -> dict[str, str]:
    """An unindented line names a clock; what is indented names areas (`Europe:`) and the places in them."""
    zones: dict[str, str] = {}
    clock = area = ""
    for line in table.split("\n"):
        if not line.startswith(" "):
            clock = line
            continue
        for word in line.split():
            if word.endswith(":"):
                area = word[:-1]
            else:
                zones[f"{area}/{word}"] = clock
    return zones


def _read_countries(table: str) -> dict[str, frozenset[str]]:
    """Clocks, a colon, and the countries that keep exactly these; an indented line continues the one above."""
    countries: dict[str, frozenset[str]] = {}
    for line in table.replace("\n    ", " ").strip().split("\n"):
        clocks, _, codes = line.partition(" : ")
        for code in codes.split():
            countries[code] = frozenset(clocks.split())
    return countries


_CLOCK_OF_ZONE = _read_zones(_ZONES)
_CLOCKS_OF_COUNTRY = _read_countries(_COUNTRIES)
