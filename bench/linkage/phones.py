"""A fleet of a thousand phones that send the reports of apps, and how often matching keeps each of them apart.

Forty models, some shared by hundreds of phones. Addresses are shared by households, by carriers and by twenty phones of
an office; some households have two phones of one model, and of half of these pairs the reports are equal but for token
and device id. Most apps send both, some one of the two, and one model of Android has one device id for all. For a month
each phone comes every few days, from home or over its carrier. Then something happens to it (`Event`), it comes from a
network where it never was, or as another device from home, and goes on as before.

Reports are read, extracted and matched as in the service, over an index in memory. Nothing here knows what matching
does with token and device id.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, NamedTuple

from svc.identify.matching import extract
from svc.identify.model import RequestFacts
from svc.identify.report import read_report
from svc.identify.useragent import read_agent
from tests.domain.matching_world import DAY_MS, START_MS, Organization, Seen

PHONES = 1_000
PAIRS = 200
"""Households with two phones of one model."""
OFFICES, OFFICE_PHONES = 5, 20
"""Addresses with twenty phones of one model each, and how many that are."""
CARRIERS, CARRIER_ADDRESSES = 4, 12
QUIET_DAYS, DAYS = 30, 60
"""Days before something happens to a phone, and days in all."""
VISITS_EVERY_DAYS = 4


class Event(Enum):
    """What happens to a phone, and what is expected of its next visit."""

    REINSTALLED = "reinstalled: keeps its id"
    UPDATED = "system updated: keeps its id"
    CHANGED = "three settings changed at once: keeps its id"
    BRIDGED = "the app is rebuilt on a bridge: keeps its id"
    RESET = "Android reset to its factory state: a new visitor"
    REPLACED = "another Android phone gets the token by a backup: a new visitor"


KEPT = (Event.REINSTALLED, Event.UPDATED, Event.CHANGED, Event.BRIDGED)
ON_ANDROID_ALONE = (Event.RESET, Event.REPLACED)
JOINED = "two phones of one model in a household: joined"
JOINED_OF_ONE = "the same where the app sends a token alone, or an iPhone its device id alone: joined"
"""A token that is another may be that of the same app after its storage was lost; so may the device id of iOS."""
JOINED_AT_LAST = "all of these pairs, on their last visits: joined"
"""Who is taken for the other phone parts from it when the other comes with its own token."""
OFFICE = "twenty phones of one model behind one address: visitors"
LATER = "every other visit: the phone's own id"
STRANGERS = "every visit: the id of another phone"
COPIED = "a phone's report and device id, without its token, from elsewhere: at 90 or more"
COPIED_UNDER_A_WEB_KEY = "the same under a key of a web page: the phone's id"
THEFTS = 200
"""Phones whose report is copied, when everything else is over."""

AIMS: dict[str, tuple[float, float]] = {
    **{event.value: (0.99, 1.0) for event in Event},
    # Whose copied token is not believed may still resemble a phone that sends no device id.
    Event.REPLACED.value: (0.97, 1.0),
    JOINED: (0.0, 0.005),
    JOINED_OF_ONE: (0.0, 0.02),
    JOINED_AT_LAST: (0.0, 0.005),
    OFFICE: (1.0, 1.0),
    LATER: (0.99, 1.0),
    STRANGERS: (0.0, 0.005),
    COPIED: (0.0, 0.0),
    COPIED_UNDER_A_WEB_KEY: (0.0, 0.0),
}
"""Row of the table -> the least and the largest share that is good enough."""


BOTH, DEVICE_ID, TOKEN = "both", "device id", "token"
"""What an app sends of the two."""
FAULTY_MODEL, FAULTY_ID = 3, "9774d56d682e549c"
"""A model of Android that has this device id on each phone."""


class Model(NamedTuple):
    platform: str
    manufacturer: str
    name: str
    architecture: str
    cores: int
    memory_mb: int
    width: int
    height: int
    scale: float
    disks_gb: tuple[int, ...]
    systems: tuple[str, ...]


def _models() -> tuple[Model, ...]:
    """24 of Android and 16 iPhones, the commonest first of each."""
    screens = ((1080, 2340, 2.8125), (1080, 2400, 2.625), (1440, 3120, 3.5), (720, 1600, 1.75))
    androids = [
        Model(
            "android",
            ("samsung", "Xiaomi", "Google", "OPPO")[number % 4],
            f"{('SM-A', '2312', 'Pixel ', 'CPH2')[number % 4]}{10 + number}",
            "arm64-v8a",
            8,
            (3_700, 5_600, 7_480, 11_400)[number // 4 % 4],
            *screens[number % 4],
            (113, 225),
            ("14", "15", "16"),
        )
        for number in range(24)
    ]
    panels = ((1179, 2556, 3.0), (1170, 2532, 3.0), (1290, 2796, 3.0), (750, 1334, 2.0))
    apples = [
        Model(
            "ios",
            "Apple",
            f"iPhone{17 - number // 4},{1 + number % 4}",
            "arm64e",
            6,
            (5_689, 7_680)[number < 8],
            *panels[number % 4],
            (128, 256),
            ("17.6.1", "18.5", "26.0.1"),
        )
        for number in range(16)
    ]
    return (*androids, *apples)


MODELS = _models()


@dataclass
class Phone:
    """One phone: what its app reads of it, where it is used, and who it was found to be."""

    model: Model
    disk_gb: int
    system: int
    languages: list[str]
    timezone: str
    font_scale: float
    settings: dict[str, Any]
    home: str
    carrier: int
    device_id: str
    token: str
    sends: str = BOTH
    bridge: str | None = None
    has_sibling_app: bool = False
    """Another app of the maker stays on the phone, so that its `identifier_for_vendor` outlives a reinstallation."""
    numbers: list[int] = field(default_factory=list[int])
    """Visitor numbers that it was given, since it is this device."""

    @property
    def tells_device_id(self) -> bool:
        """Whether its report has a device id that is its own."""
        return self.sends != TOKEN and self.device_id != FAULTY_ID

    @property
    def is_told_from_others(self) -> bool:
        """Whether its report tells it from a phone that is otherwise equal, as docs/mobile.md says."""
        return self.tells_device_id and (self.is_android or self.sends == BOTH)

    @property
    def is_android(self) -> bool:
        return self.model.platform == "android"

    def signals(self, at_ms: int) -> dict[str, Any]:
        """The report of its app, as docs/mobile.md tells to make it."""
        model = self.model
        said: dict[str, Any] = {
            "platform": model.platform,
            "model": model.name,
            "os_version": model.systems[self.system],
            "architecture": model.architecture,
            "cores": model.cores,
            # What the kernel keeps for itself changes with updates.
            "memory_mb": model.memory_mb - 6 * self.system * self.is_android,
            "screen": {"width": model.width, "height": model.height, "scale": model.scale},
            "languages": self.languages,
            "timezone": self.timezone,
            "font_scale": self.font_scale,
            "settings": self.settings,
            "app": {"package": "com.example.shop", "version": str(40 + at_ms // DAY_MS % 7)},
            "collected_at": at_ms,
        }
        if self.sends != DEVICE_ID:
            said["client_token"] = self.token
        if self.sends != TOKEN:
            said["android_id" if self.is_android else "identifier_for_vendor"] = self.device_id
        if self.bridge is not None:
            said["app"]["bridge"] = {"name": self.bridge, "version": "0.79"}
            said["flags"] = {"rooted": 0, "vpn_active": "false"}
        if self.is_android:
            said |= {"manufacturer": model.manufacturer, "disk_gb": self.disk_gb}
            said["os_build"] = f"AP{self.system}A.250105.002"
        return said

    def user_agent(self) -> str:
        if self.bridge == "flutter":
            return "Dart/3.4 (dart:io)"
        return "okhttp/4.12.0" if self.is_android else "Shop/42 CFNetwork/1494.0.7 Darwin/23.4.0"


@dataclass
class Figures:
    """Right, or counted, and of how many, by row of the table."""

    counted: Counter[str] = field(default_factory=Counter[str])
    of: Counter[str] = field(default_factory=Counter[str])

    def add(self, row: str, *, counts: bool | int, of: int = 1) -> None:
        self.counted[row] += int(counts)
        self.of[row] += of

    def share(self, row: str) -> float:
        return self.counted[row] / max(self.of[row], 1)

    def missed(self) -> dict[str, float]:
        """Rows that miss their aim, with the share that they have."""
        return {
            row: self.share(row)
            for row, (least, largest) in AIMS.items()
            if not (self.of[row] and least <= self.share(row) <= largest)
        }


class Fleet:
    """The phones of one seed, and their visits in the order of time."""

    def __init__(self, seed: int, visit: Callable[..., Seen]) -> None:
        self._dice = random.Random(seed)
        self._visit = visit
        self.figures = Figures()
        self.pairs: list[tuple[Phone, Phone]] = []
        self.offices: list[list[Phone]] = []
        self.phones = list(self._made())
        self._owners: dict[int, Phone] = {}
        self._events = self._happening()

    def run(self) -> Figures:
        """All days, and what came of them."""
        visits = sorted(self._visits(), key=lambda one: one[0])
        for at_ms, number, event in visits:
            if event is None:
                self._come(number, at_ms)
            else:
                self._happens(number, event, at_ms)
        for one, other in self.pairs:
            row = JOINED if one.is_told_from_others else JOINED_OF_ONE
            self.figures.add(row, counts=bool({*one.numbers} & {*other.numbers}))
            self.figures.add(JOINED_AT_LAST, counts=one.numbers[-1] == other.numbers[-1])
        for office in self.offices:
            visitors = {phone.numbers[0] for phone in office}
            self.figures.add(OFFICE, counts=len(visitors), of=len(office))
        for phone in self._dice.sample([one for one in self.phones if one.tells_device_id], THEFTS):
            self._steal(phone)
        return self.figures

    # What there is

    def _made(self) -> Iterator[Phone]:
        for place in range(OFFICES):
            model = MODELS[(5, 26, 17, 9, 30)[place % OFFICES]]
            first = replace(self._phone(model, self._address("95", place)), sends=BOTH)
            self.offices.append([first, *(self._twin(first) for _ in range(OFFICE_PHONES - 1))])
            yield from self.offices[-1]
        for place in range(PAIRS):
            one = self._phone(self._model(), self._address("86", place))
            other = self._twin(one) if place % 2 else replace(self._phone(one.model, one.home), sends=one.sends)
            self.pairs.append((one, other))
            yield from (one, other)
        left = PHONES - OFFICES * OFFICE_PHONES - 2 * PAIRS
        for place in range(left):
            yield self._phone(self._model(), self._address("87", place // 3))

    def _model(self) -> Model:
        """Few models are common."""
        apples = self._dice.random() < 0.4
        models = [model for model in MODELS if (model.platform == "ios") is apples]
        return models[min(int(self._dice.expovariate(0.25)), len(models) - 1)]

    def _phone(self, model: Model, home: str) -> Phone:
        dice = self._dice
        abroad = dice.random() < 0.2
        return Phone(
            model=model,
            disk_gb=dice.choice(model.disks_gb),
            system=dice.choice((0, 1, 1, 1)),
            languages=dice.choice((["de-DE"], ["fr-FR", "en-GB"], ["pl-PL"])) if abroad else ["en-GB"],
            timezone="Europe/Berlin" if abroad and dice.random() < 0.5 else "Europe/London",
            font_scale=dice.choice((1.0,) * 8 + (1.15, 1.3)),
            settings=self._settings(model),
            home=home,
            carrier=dice.randrange(CARRIERS),
            bridge=dice.choice((None, None, None, "react-native", "flutter")),
            has_sibling_app=dice.random() < 0.5,
            device_id=self._device_id(model),
            token=self._token(),
            sends=dice.choice((BOTH,) * 8 + ((DEVICE_ID, TOKEN) if model != MODELS[FAULTY_MODEL] else ())),
        )

    def _twin(self, phone: Phone) -> Phone:
        """A phone like this one whose report is equal but for its identifiers."""
        return replace(phone, device_id=self._device_id(phone.model), token=self._token(), numbers=[])

    def _settings(self, model: Model) -> dict[str, Any]:
        dice = self._dice
        settings = {"clock_24": dice.random() < 0.8, "night_mode": dice.choice(("auto", "auto", "yes", "no"))}
        if model.platform == "ios":
            return settings
        keyboards = ("com.example.keyboard", "com.example.keyboard", "org.example.swipe")
        return settings | {
            "input_method": dice.choice(keyboards),
            "screen_off_ms": dice.choice((30_000, 60_000, 15_000)),
        }

    def _device_id(self, model: Model) -> str:
        if model == MODELS[FAULTY_MODEL]:
            return FAULTY_ID
        if model.platform == "android":
            return f"{self._dice.getrandbits(64):016x}"
        digits = f"{self._dice.getrandbits(128):032X}"
        return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "A" + digits[17:20], digits[20:]))

    def _token(self) -> str:
        return f"{self._dice.getrandbits(128):032x}"

    def _address(self, first: str, place: int) -> str:
        """A household's or an office's, in a /24 of its own."""
        return f"{first}.{place // 250}.{place % 250}.{self._dice.randrange(1, 255)}"

    # What happens

    def _happening(self) -> dict[int, Event]:
        """Number of a phone -> its event; phones of offices and pairs have theirs as others do."""
        events: dict[int, Event] = {}
        for number, phone in enumerate(self.phones):
            possible = [event for event in Event if phone.is_android or event not in ON_ANDROID_ALONE]
            events[number] = self._dice.choice(possible)
        return events

    def _visits(self) -> Iterator[tuple[int, int, Event | None]]:
        """(time, number of the phone, event before it) of every visit, in no order."""
        dice = self._dice
        for number in range(len(self.phones)):
            event_day = dice.randrange(QUIET_DAYS, DAYS - VISITS_EVERY_DAYS)
            yield START_MS + int((event_day + dice.random()) * DAY_MS), number, self._events[number]
            # In an office all come within the first hours.
            day = 0.2 * dice.random() if number < OFFICES * OFFICE_PHONES else VISITS_EVERY_DAYS * dice.random()
            while day < DAYS:
                yield START_MS + int(day * DAY_MS), number, None
                day += VISITS_EVERY_DAYS * (0.5 + dice.random())

    def _come(self, number: int, at_ms: int) -> None:
        """A visit from home, or over the carrier, whose addresses many share; the first is from home."""
        phone = self.phones[number]
        over_carrier = bool(phone.numbers) and self._dice.random() < 0.4
        mobile = f"92.40.{phone.carrier}.{self._dice.randrange(CARRIER_ADDRESSES)}"
        known = list(phone.numbers)
        seen = self._identify(phone, mobile if over_carrier else phone.home, at_ms)
        if known:
            self.figures.add(LATER, counts=seen.number == known[-1])

    def _happens(self, number: int, event: Event, at_ms: int) -> None:
        phone = self.phones[number]
        before = list(phone.numbers)
        is_judged = self._is_judged(phone, event)
        self._change(phone, event)
        # Who must be known is somewhere new; who must not be known may be where the old phone was.
        at_home = event in ON_ANDROID_ALONE and self._dice.random() < 0.5
        elsewhere = f"{self._dice.randrange(100, 120)}.{self._dice.randrange(256)}.{self._dice.randrange(256)}.7"
        seen = self._identify(phone, phone.home if at_home else elsewhere, at_ms)
        if is_judged:
            self.figures.add(event.value, counts=seen.number == before[-1] if event in KEPT else seen.is_new)

    def _steal(self, phone: Phone) -> None:
        """A stranger sends what the phone's app sent, but for the token; nothing attests it."""
        at_ms = START_MS + (DAYS + 1) * DAY_MS
        copy = replace(phone, sends=DEVICE_ID, numbers=[])
        for app, row in ((True, COPIED), (False, COPIED_UNDER_A_WEB_KEY)):
            elsewhere = f"{self._dice.randrange(120, 125)}.{self._dice.randrange(256)}.{self._dice.randrange(256)}.7"
            seen = self._seen(copy, elsewhere, at_ms, app=app)
            is_phone = seen.number in phone.numbers
            self.figures.add(row, counts=is_phone and (seen.confidence >= 90 or not app))

    def _is_judged(self, phone: Phone, event: Event) -> bool:
        """Whether what the app sends of token and device id can tell what the table expects."""
        if event is Event.REINSTALLED:
            kept = phone.tells_device_id and (phone.is_android or phone.has_sibling_app)
            return kept or (not phone.is_android and phone.sends != DEVICE_ID)
        if event is Event.REPLACED:
            return phone.tells_device_id and phone.sends == BOTH
        return phone.tells_device_id or event in (Event.UPDATED, Event.BRIDGED)

    def _change(self, phone: Phone, event: Event) -> None:
        dice, android = self._dice, phone.is_android
        if event is Event.REINSTALLED:
            if android:
                phone.token = self._token()
            elif not phone.has_sibling_app:
                phone.device_id = self._device_id(phone.model)
        elif event is Event.UPDATED:
            phone.system += 1
        elif event is Event.CHANGED:
            phone.languages = ["es-ES", *phone.languages]
            phone.font_scale = round(phone.font_scale + 0.15, 2)
            night = "yes" if phone.settings["night_mode"] != "yes" else "no"
            phone.settings = phone.settings | {"night_mode": night, "clock_24": not phone.settings["clock_24"]}
        elif event is Event.BRIDGED:
            phone.bridge = "flutter" if phone.bridge is None else None
        else:
            phone.device_id, phone.numbers = self._device_id(phone.model), []
            if event is Event.RESET:
                phone.token = self._token()
            elif dice.random() < 0.5:
                phone.model = self._model_like(phone.model)

    def _model_like(self, model: Model) -> Model:
        """Another model of the same system."""
        return self._dice.choice([other for other in MODELS if other.platform == model.platform and other != model])

    def _identify(self, phone: Phone, address: str, at_ms: int) -> Seen:
        seen = self._seen(phone, address, at_ms)
        owner = self._owners.setdefault(seen.number, phone)
        self.figures.add(STRANGERS, counts=owner is not phone and seen.number not in phone.numbers)
        phone.numbers.append(seen.number)
        return seen

    def _seen(self, phone: Phone, address: str, at_ms: int, *, app: bool = True) -> Seen:
        """`app`: whether a key and an origin of an app send it (decisions 18.5)."""
        facts = RequestFacts(ip=address, user_agent=phone.user_agent())
        report = read_report(phone.signals(at_ms), facts)
        return self._visit(extract(report, read_agent(facts, report), facts, app=app), at_ms)


def figures(seed: int) -> Figures:
    """What matching makes of the fleet of this seed, in an organization of its own."""
    organization = Organization()
    return Fleet(seed, organization.visit).run()
