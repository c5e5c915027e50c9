"""A simulated sign-up farm among honest households: what each recipe of docs/rules.md finds, and whom it bothers.

One operator opens 200 accounts in private windows behind residential proxies, redeems a coupon, starts a trial and buys
with each; of ten private windows eight are seen as such, everybody's. Another one clears the storage instead. Beside
them are other attackers that recipes are made against, and 10,000 households with shared computers,
several accounts, carrier addresses, journeys, VPNs and private windows of their own. Conditions are read from the page.
Everything is made from the seed; reports are those of the stream `dev`, or made-up ones without the shared data.

After 30 days in which accounts become known, 30 days are judged. All visits run through `svc replay`, in this process,
with every recipe in shadow mode: once with the account of a sign-up known when it is identified, once with one that the
backend sets afterwards, and once more with sign-ups that failed renamed by the backend. Every fifth attempt of an
honest person to sign up fails and is made again. A page names the account of any other visit, and the backend confirms
it unless the visit failed.

    python -m bench.farm [--households 10000] [--seed 1] [--form FORM...] [--data ../shared/data] [--json FILE]
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, get_args

from bench.linkage.streams import ORIGIN, read_stream
from bench.reports import device_report
from bench.usage import read_options
from svc.features.rules.ruleset import Rule
from svc.identify.network.facts import read_network
from svc.identify.network_data.lookup import BuiltInRanges, NetworkData
from svc_replay.command import Into, Replayed, replay_into
from svc_replay.report import Summary
from svc_replay.store import Tried
from tests.support.mmdb_writer import Tree

PAGE = Path(__file__).parents[1] / "docs" / "rules.md"
MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86_400
START_S = 1_767_225_600
"""The first of January 2026, 0:00 UTC."""
KNOWN_S, END_S = START_S + 30 * DAY_S, START_S + 60 * DAY_S
"""From when on visits are judged, and until when there are any."""
COUNTRIES = {"GB": 81, "DE": 91, "FR": 86}
"""Country -> first byte of its addresses here."""
VPN = "102.129"
"""The network that the list of VPNs names."""
ZONES = {"GB": "Europe/London", "DE": "Europe/Berlin", "FR": "Europe/Paris"}
HONEST = "honest"
FAILS = 0.2
"""Share of the attempts of honest people to sign up that the form refuses: a name that is taken, a word too short."""
MAX_FAILED = 5
"""Attempts of one sign-up that fail."""
RETRY_S = 40

Form = Literal["known", "set later", "failed ones renamed"]
FORMS: tuple[Form, ...] = get_args(Form)
"""How the account of a sign-up gets to the service: with the identification; by `updateEvent`, which leaves attempts
that failed as they are; or by `updateEvent`, which also makes the action of those another one.
"""


class Device(NamedTuple):
    """A browser."""

    report: int
    token: str
    country: str
    """Whose time it shows."""


class Visit(NamedTuple):
    at_s: int
    who: str
    """`HONEST`, or the name of the attack. The service does not see it."""
    household: int
    """-1 = none."""
    device: Device
    ip: str
    token_is_new: bool
    account: str
    action: str
    private: bool = False
    driven: bool = False
    failed: bool = False
    """The form, or the password, was wrong: no backend confirms the account."""
    replayed: bool = False
    """Whether it sends the attack's one report, byte for byte, again."""


class Case(NamedTuple):
    """A recipe beside an attack that it is made against."""

    recipe: str
    attack: str
    action: str


CASES = (
    Case("Sign-up abuse", "farm", "sign_up"),
    Case("Sign-up abuse", "farm, storage cleared", "sign_up"),
    Case("Sign-up farm", "farm", "sign_up"),
    Case("Sign-up farm", "farm at one address", "sign_up"),
    Case("Scripted sign-up", "farm", "sign_up"),
    Case("Scripted sign-up", "script", "sign_up"),
    Case("Scripted sign-up", "script, one report", "sign_up"),
    Case("Account sharing", "sharing", "log_in"),
    Case("Credential stuffing", "stuffing, one browser", "log_in"),
    Case("Credential stuffing", "stuffing, one report", "log_in"),
    Case("Stuffing from one address", "stuffing, one address", "log_in"),
    Case("Account takeover", "takeover", "log_in"),
    Case("Promo abuse", "farm", "redeem"),
    Case("Promo abuse", "farm, storage cleared", "redeem"),
    Case("Trial again", "farm", "start_trial"),
    Case("Trial again", "farm, storage cleared", "start_trial"),
    Case("Risky checkout", "farm", "checkout"),
    Case("Risky checkout", "farm, storage cleared", "checkout"),
)


class Result(NamedTuple):
    """What a recipe found of an attack."""

    case: Case
    visits: int
    found: int
    accounts: int
    accounts_found: int
    honest: int
    """Honest visits with the action of the case; of account sharing with any."""
    false_positives: int
    households: int
    """With at least one false positive."""
    people: Counter[int]
    """Honest accounts that were opened, by how many attempts failed before."""
    people_bothered: Counter[int]
    """Of them those with a false positive at one attempt at least."""


class Addresses:
    """Made-up addresses of access networks: none that the built-in ranges know."""

    def __init__(self, chance: Random) -> None:
        self._chance = chance
        self._ranges = NetworkData(BuiltInRanges(), {})

    def home(self, country: str) -> str:
        while True:
            parts = (self._chance.randrange(1, 255) for _ in range(3))
            ip = ".".join(map(str, (COUNTRIES[country], *parts)))
            network = read_network(ip, self._ranges)
            if network.anonymity_network is None and not network.hosting:
                return ip

    def vpn(self) -> str:
        return f"{VPN}.{self._chance.randrange(255)}.{self._chance.randrange(1, 255)}"


class Made:
    """The visits of a run. `households` counts those that there are."""

    def __init__(self, seed: int, households: int, reports: int, *, attackers: float = 1.0) -> None:
        """`attackers`: the share of the attackers' accounts that there are; less for tests."""
        self.visits: list[Visit] = []
        self.households = households
        self._chance = Random(f"farm {seed}")
        self._addresses = Addresses(self._chance)
        self._reports = reports
        self._share = attackers
        self._known: list[str] = []
        """Accounts that were there before the judged time."""
        carriers = [self._addresses.home("GB") for _ in range(max(1, households // 200))]
        for household in range(households):
            self._live(household, carriers)
        self._farm("farm", private=True)
        self._farm("farm, storage cleared", private=False)
        for attack in (self._office, self._script, self._share_accounts, self._stuff, self._take_over, self._replay):
            attack()
        self.visits.sort()

    def _token(self) -> str:
        return f"{self._chance.getrandbits(128):032x}"

    def _device(self, country: str = "GB") -> Device:
        return Device(self._chance.randrange(self._reports), self._token(), country)

    def _emptied(self, device: Device) -> Device:
        """The same browser with another token: of a private window, or because the storage was cleared."""
        return device._replace(token=self._token())

    def _is_seen(self) -> bool:
        """Whether the collector sees that a window is private."""
        return self._chance.random() < 0.8

    # ---- honest people

    def _live(self, household: int, carriers: Sequence[str]) -> None:
        chance = self._chance
        country = chance.choice(("GB", "GB", "DE"))
        home = chance.choice(carriers) if chance.random() < 0.2 else self._addresses.home(country)
        persons = chance.choices((1, 2, 3, 4), (30, 35, 15, 20))[0]
        shared = [self._device(country) for _ in range(1 + persons // 3)]
        for person in range(persons):
            own = [self._device(country)] if chance.random() < 0.5 else []
            accounts = 1 + (chance.random() < 0.1) + (chance.random() < 0.02)
            for number in range(accounts):
                account = f"household {household} person {person} account {number}"
                self._use(household, account, home, country, own or shared)
        if persons > 1 and chance.random() < 0.15:  # a subscription that everybody uses
            devices = [*shared, *(self._device(country) for _ in range(persons))]
            self._use(household, f"household {household} family", home, country, devices, often=2)

    def _use(
        self, household: int, account: str, home: str, country: str, devices: list[Device], often: int = 1
    ) -> None:
        chance = self._chance
        plan: list[tuple[int, str]] = []
        if chance.random() < 0.25:
            opened_s = self._at(KNOWN_S, END_S)
            plan.append((opened_s, "sign_up"))
            if chance.random() < 0.3:
                plan.append((opened_s + 5 * MINUTE_S, "redeem"))
            if chance.random() < 0.2:
                plan.append((opened_s + 9 * MINUTE_S, "start_trial"))
        else:
            opened_s = START_S
            self._known.append(account)
            plan.append((self._at(START_S, KNOWN_S), "log_in"))
        since_s = max(opened_s + HOUR_S, KNOWN_S)
        plan += [(self._at(since_s, END_S), "log_in") for _ in range(often * chance.randrange(3))]
        for action, share in (("checkout", 0.4), ("redeem", 0.1), ("start_trial", 0.03)):
            if chance.random() < share:
                plan.append((self._at(since_s, END_S), action))
        for at_s, action in sorted(plan):
            if at_s < END_S:
                self._honest(at_s, household, account, action, home, country, devices)
                if action == "sign_up":
                    self._fail_before()

    def _honest(
        self, at_s: int, household: int, account: str, action: str, home: str, country: str,
        devices: list[Device],
    ) -> None:  # fmt: skip
        """One visit: from home, from elsewhere, from abroad, by a VPN; now and then by a new device."""
        chance = self._chance
        drawn = chance.random()
        ip = home
        if drawn < 0.04:
            ip = self._addresses.vpn()
        elif drawn < 0.06:
            ip = self._addresses.home(chance.choice([other for other in COUNTRIES if other != country]))
        elif drawn < 0.2:
            ip = self._addresses.home(country)
        if chance.random() < 0.02:
            devices.append(self._device(country))
        at = chance.randrange(len(devices))
        device, is_new, private = devices[at], False, chance.random() < 0.03
        if private:
            device, is_new = self._emptied(device), True
        elif chance.random() < 0.01:
            device = devices[at] = self._emptied(device)
            is_new = True
        seen = private and self._is_seen()
        self.visits.append(Visit(at_s, HONEST, household, device, ip, is_new, account, action, seen))

    def _fail_before(self) -> None:
        """Attempts that failed before the sign-up that was just made, in the same window."""
        last = self.visits.pop()
        failed = 0
        while failed < MAX_FAILED and self._chance.random() < FAILS:
            failed += 1
        for number in range(failed + 1):
            at_s, is_new = last.at_s + number * RETRY_S, last.token_is_new and not number
            self.visits.append(last._replace(at_s=at_s, token_is_new=is_new, failed=number < failed))

    def _at(self, since_s: int, until_s: int) -> int:
        """A time between these, rather in the evening than at night."""
        day = since_s + int(self._chance.random() * max(until_s - since_s, 1)) // DAY_S * DAY_S
        hour = self._chance.choices(range(24), (1,) * 7 + (4,) * 10 + (8,) * 6 + (2,))[0]
        return min(max(since_s, day // DAY_S * DAY_S + hour * HOUR_S + self._chance.randrange(HOUR_S)), until_s)

    # ---- attackers

    def _count(self, whole: int) -> int:
        return max(3, round(whole * self._share))

    def _attack(self, at_s: int, who: str, device: Device, ip: str, account: str, action: str, **how: Any) -> None:
        is_new = how.pop("is_new", False)
        self.visits.append(Visit(at_s, who, -1, device, ip, is_new, account, action, **how))

    def _farm(self, who: str, *, private: bool) -> None:
        """One person at two computers: twenty accounts an evening, each in a private window of its own, or with storage
        that was cleared, behind the next proxy; days later each buys, in the same way.
        """
        chance = self._chance
        computers = [self._device() for _ in range(2)]
        proxies = [self._addresses.home("GB") for _ in range(self._count(150))]
        at_s = 0
        for number in range(self._count(200)):
            if number % 20 == 0:
                at_s = KNOWN_S + (5 + number // 20) * DAY_S + 19 * HOUR_S
            at_s += 4 * MINUTE_S + chance.randrange(3 * MINUTE_S)
            device, ip = self._emptied(chance.choice(computers)), chance.choice(proxies)
            account, seen = f"{who} {number}", {"private": private and self._is_seen()}
            self._attack(at_s, who, device, ip, account, "sign_up", is_new=True, **seen)
            self._attack(at_s + 60, who, device, ip, account, "redeem", **seen)
            self._attack(at_s + 120, who, device, ip, account, "start_trial", **seen)
            device, ip = self._emptied(chance.choice(computers)), chance.choice(proxies)
            later_s = at_s + chance.randrange(1, 6) * DAY_S
            self._attack(
                later_s, who, device, ip, account, "checkout", is_new=True, private=private and self._is_seen()
            )

    def _office(self) -> None:
        """Ten people in one room, without proxies: 60 accounts in three hours."""
        computers, ip = [self._device() for _ in range(10)], self._addresses.home("GB")
        for number in range(max(12, self._count(60))):
            at_s = KNOWN_S + 8 * DAY_S + 10 * HOUR_S + number * 3 * MINUTE_S
            device = computers[number % 10]
            self._attack(at_s, "farm at one address", device, ip, f"office {number}", "sign_up", is_new=number < 10)

    def _script(self) -> None:
        """A driven browser with fresh storage behind the next proxy, every three minutes."""
        computer = self._device("DE")
        for number in range(self._count(100)):
            at_s = KNOWN_S + 12 * DAY_S + number * 3 * MINUTE_S
            device, ip = self._emptied(computer), self._addresses.home("DE")
            self._attack(at_s, "script", device, ip, f"script {number}", "sign_up", is_new=True, driven=True)

    def _share_accounts(self) -> None:
        """Accounts that were sold to eight people each, in three countries."""
        chance = self._chance
        for number in range(self._count(30)):
            for _ in range(8):
                country = chance.choice(list(COUNTRIES))
                device, ip = self._device(country), self._addresses.home(country)
                for _ in range(3):
                    at_s = self._at(KNOWN_S + DAY_S, END_S - DAY_S)
                    self._attack(at_s, "sharing", device, ip, f"sold {number}", "log_in")

    def _stuff(self) -> None:
        """Passwords that leaked elsewhere: tried from one browser, and from one address with cleared storage and the
        reports of 25 devices. Every account is a customer's.
        """
        chance = self._chance
        browser, proxies = self._device("FR"), [self._addresses.home("FR") for _ in range(10)]
        devices, ip = [self._device("FR") for _ in range(25)], self._addresses.home("FR")
        for number, account in enumerate(chance.sample(self._known, min(self._count(200), len(self._known)))):
            at_s = KNOWN_S + 15 * DAY_S + 3 * HOUR_S + number * 12
            self._attack(at_s, "stuffing, one browser", browser, proxies[number % 10], account, "log_in", failed=True)
            device = self._emptied(chance.choice(devices))
            at_s += DAY_S
            self._attack(at_s, "stuffing, one address", device, ip, account, "log_in", is_new=True, failed=True)

    def _take_over(self) -> None:
        """Accounts with a password that is known, from a computer that they never had; half behind a VPN, half behind a
        residential proxy.
        """
        chance = self._chance
        computers = [self._device() for _ in range(6)]
        for number, account in enumerate(chance.sample(self._known, min(self._count(60), len(self._known)))):
            ip = self._addresses.vpn() if number % 2 else self._addresses.home("GB")
            at_s = self._at(KNOWN_S + 20 * DAY_S, END_S - DAY_S)
            device = self._emptied(chance.choice(computers))
            self._attack(at_s, "takeover", device, ip, account, "log_in", is_new=True)

    def _replay(self) -> None:
        """A report that was captured once, sent again for one account after another: it moves no count."""
        chance = self._chance
        device = self._device("DE")
        accounts = chance.sample(self._known, min(self._count(100), len(self._known)))
        for number in range(self._count(100)):
            at_s = KNOWN_S + 22 * DAY_S + number * MINUTE_S
            ip = self._addresses.home("DE")
            account = f"replayed {number}"
            self._attack(at_s, "script, one report", device, ip, account, "sign_up", replayed=True)
        for number, account in enumerate(accounts):
            at_s, ip = KNOWN_S + 23 * DAY_S + number * MINUTE_S, self._addresses.home("DE")
            who = "stuffing, one report"
            self._attack(at_s, who, device, ip, account, "log_in", failed=True, replayed=True)


def read_recipes(page: str) -> tuple[Rule, ...]:
    """The recipes of the page, each a rule in shadow mode."""
    found = re.findall(r"^### ([^:\n]+): `(\w+)`\n+```\n(.+?)\n```$", page, re.MULTILINE | re.DOTALL)
    return tuple(
        Rule(id=f"rul_{at:020}", name=name, condition=condition, action=action, mode="shadow")
        for at, (name, action, condition) in enumerate(found)
    )


class Judged:
    """Stands for the run of `svc replay`: it hears of each visit what rules made of it."""

    window = range(1 << 47)

    def __init__(self, visits: Sequence[Visit], recipes: Iterable[Rule]) -> None:
        self.summary = Summary()
        self._visits = visits
        self._names = {rule.id: rule.name for rule in recipes}
        self._matched: defaultdict[str, list[Visit]] = defaultdict(list)

    def note(self, number: int, done: Replayed) -> None:
        """What came of the visit on this line, from 1."""
        if done.event is None:
            raise SystemExit(f"visit {number} was refused: {done.response}")
        if number % 10_000 == 0:
            print(f"{number} of {len(self._visits)}", file=sys.stderr)
        for match in done.event.shadow:
            self._matched[self._names[match.rule_id]].append(self._visits[number - 1])

    def results(self) -> list[Result]:
        judged = [visit for visit in self._visits if visit.at_s >= KNOWN_S]
        return [self._result(case, judged) for case in CASES]

    def _result(self, case: Case, judged: Sequence[Visit]) -> Result:
        any_action = case.recipe == "Account sharing"
        alarms = [visit for visit in self._matched[case.recipe] if visit.who == HONEST and visit.at_s >= KNOWN_S]
        attacks = [visit for visit in judged if (visit.who, visit.action) == (case.attack, case.action)]
        found = [
            visit for visit in self._matched[case.recipe] if (visit.who, visit.action) == (case.attack, case.action)
        ]
        failed = Counter(visit.account for visit in judged if _is_try(visit) and visit.failed)
        opened = {visit.account for visit in judged if _is_try(visit) and not visit.failed}
        bothered = {visit.account for visit in alarms if _is_try(visit)}
        return Result(
            case,
            visits=len(attacks),
            found=len(found),
            accounts=len({visit.account for visit in attacks}),
            accounts_found=len({visit.account for visit in found}),
            honest=sum(visit.who == HONEST and (any_action or visit.action == case.action) for visit in judged),
            false_positives=len(alarms),
            households=len({visit.household for visit in alarms}),
            people=Counter(failed[account] for account in opened),
            people_bothered=Counter(failed[account] for account in opened & bothered),
        )


def _is_try(visit: Visit) -> bool:
    return (visit.who, visit.action) == (HONEST, "sign_up")


def account_of(visit: Visit, form: Form) -> dict[str, Any]:
    """Which account a visit names, and what the backend sets afterwards."""
    if visit.action != "sign_up" or form == "known":
        set_later = {} if visit.failed else {"afterwards": {"account_id": visit.account}}
        return {"account_id": visit.account, "account_verified": False, **set_later}
    if not visit.failed:
        return {"afterwards": {"account_id": visit.account}}
    return {"afterwards": {"action": "sign_up_failed"}} if form == "failed ones renamed" else {}


def lines_of(visits: Iterable[Visit], reports: Sequence[dict[str, Any]], form: Form) -> Iterator[bytes]:
    """The visits as `svc replay` reads them."""
    for visit in visits:
        signals = {
            **reports[visit.device.report],
            "timezone": ZONES[visit.device.country],
            "client_token": visit.device.token,
            "client_token_is_new": visit.token_is_new,
        }
        if visit.private:
            signals["incognito"] = True
        if visit.driven:
            signals["webdriver"] = True
        if visit.replayed:
            signals["nonce"] = f"{visit.who:032}"
        line = {
            "at": visit.at_s * 1000, "ip": visit.ip, "user_agent": signals.get("userAgent") or "", "origin": ORIGIN,
            "platform": "web", "signals": signals, "action": visit.action, **account_of(visit, form),
        }  # fmt: skip
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"


def write_network(folder: Path) -> None:
    """Countries of the addresses here, and the network of a VPN."""
    tree = Tree()
    for country, first in COUNTRIES.items():
        tree.add(first << 24, (first + 1 << 24) - 1, {"country": {"iso_code": country}})
    (folder / "countries.mmdb").write_bytes(tree.content("Made-Up-Country", START_S))
    (folder / "vpn-made-up.txt").write_text(f"{VPN}.0.0/16\n")


def measured(
    made: Made, reports: Sequence[dict[str, Any]], recipes: tuple[Rule, ...], form: Form = "known"
) -> list[Result]:
    run = Judged(made.visits, recipes)
    with TemporaryDirectory() as folder:
        write_network(Path(folder))
        source = lines_of(made.visits, reports, form)
        replay_into(Into(None, None, Path(folder)), run, source, {}, Tried(PAGE, recipes, ()))
    return run.results()


def made_up_reports(count: int) -> list[dict[str, Any]]:
    return [device_report(number) for number in range(count)]


def stream_reports(folder: Path) -> list[dict[str, Any]]:
    """Each different report of a stream once."""
    return list({visit.report: request.signals for request, visit in _pairs(folder)}.values())


def _pairs(folder: Path) -> Iterator[tuple[Any, Any]]:
    stream = read_stream(folder)
    return zip(stream.requests, stream.visits, strict=True)


def table(results: Iterable[Result], households: int) -> str:
    head = "| recipe | attack | visits | found | accounts found | honest visits | false positives | households |"
    rows = [head, "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for one in results:
        honest = f"{one.false_positives:,} ({one.false_positives / max(one.honest, 1):.2%})"
        rows.append(
            f"| {one.case.recipe} | {one.case.attack}: `{one.case.action}` | {one.visits:,} | "
            f"{one.found / max(one.visits, 1):.1%} | {one.accounts_found} of {one.accounts} | {one.honest:,} | "
            f"{honest} | {one.households:,} ({one.households / households:.2%}) |"
        )
    return "\n".join(rows)


def retries(results: Iterable[Result]) -> str:
    """What a sign-up costs an honest person, by how many attempts failed before it."""
    rows = ["| recipe | none failed | one | two | three or more |", "| --- | ---: | ---: | ---: | ---: |"]
    of_sign_ups = {one.case.recipe: one for one in results if one.case.action == "sign_up"}
    for recipe, one in of_sign_ups.items():
        shares: list[str] = []
        for failed in (range(1), range(1, 2), range(2, 3), range(3, MAX_FAILED + 1)):
            people = sum(one.people[number] for number in failed)
            bothered = sum(one.people_bothered[number] for number in failed)
            shares.append(f"{bothered:,} of {people:,} ({bothered / max(people, 1):.1%})")
        rows.append(f"| {recipe} | {' | '.join(shares)} |")
    return "\n".join(rows)


def main() -> None:
    arguments = read_options(__doc__)
    folder = arguments.data / "linkage" / "dev"
    reports = stream_reports(folder) if folder.exists() else made_up_reports(3 * arguments.households)
    made = Made(arguments.seed, arguments.households, len(reports))
    counted = Counter(visit.who for visit in made.visits)
    print(f"{len(made.visits):,} visits: " + ", ".join(f"{who} {count:,}" for who, count in counted.items()))
    found: dict[Form, list[Result]] = {}
    for form in arguments.form or FORMS:
        found[form] = measured(made, reports, read_recipes(PAGE.read_text()), form)
        print(f"\nThe account of a sign-up: {form}\n\n{table(found[form], arguments.households)}\n")
        print(f"{retries(found[form])}\n", flush=True)
    if arguments.json:
        shown = {form: [one._asdict() for one in results] for form, results in found.items()}
        arguments.json.write_text(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
