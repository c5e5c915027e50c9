"""Decisions 18.6: renewed storage, shared keys, proofs that fail, bursts of new visitors, invented renderings."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from ipaddress import IPv4Address
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from svc.identify.tables import ADDRESSES
from svc.kernel.values.fields import Platform
from tests.spec.responses import BROWSER
from tests.spec.test_apps import App
from tests.spec.test_proven_visits import Browser, fired
from tests.support.live import PUBLIC_ADDRESS, USER_AGENT, Live, live_service, report, succeeded
from tests.support.mmdb_writer import Tree
from tests.support.proofs import BrowserKey, compact, send

ELSEWHERE = "185.5.6.7"
LONDON, BERLIN, VPN = "81.2.69.142", "91.3.4.5", "91.3.9.5"


@pytest.fixture
async def abroad(tmp_path: Path, engine: str) -> AsyncGenerator[Live]:
    """A service that knows the countries of three addresses, of which the last is a VPN's."""
    tree = Tree()
    for ip, country in ((LONDON, "GB"), (BERLIN, "DE"), (VPN, "DE")):
        tree.add(int(IPv4Address(ip)), int(IPv4Address(ip)), {"country_code": country})
    folder = tmp_path / "network"
    folder.mkdir()
    (folder / "country.mmdb").write_bytes(tree.content("a test", 1_767_225_600))
    (folder / "vpn.txt").write_text(f"{VPN}\n")
    async with live_service(tmp_path / "data", network_directory=str(folder)) as live:
        yield live


class Site:
    """A site with its keys, to which anybody comes."""

    def __init__(self, live: Live, **issued: Any) -> None:
        self.live = live
        self._public = live.issue(**issued)[1]
        self._secret = live.issue("secret", **issued)[1]
        self._nonces: Iterator[int] = count(1)

    def tokens(self, first: int = 1) -> Iterator[str]:
        return (f"{number * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128:032x}" for number in count(first))

    async def visit(
        self,
        signals: dict[str, Any],
        ip: str = PUBLIC_ADDRESS,
        key: BrowserKey | None = None,
        *,
        broken: bool = False,
    ) -> dict[str, Any]:
        said = signals | {"nonce": f"nonce-{id(self)}-{next(self._nonces)}", "collected_at": self.live.clock.now_ms}
        body = compact(said) if key is None else key.signed(said)
        if broken:
            body = body.replace(b'"platform":"Win32"', b'"platform":"Win64"')
        return succeeded(
            await send(
                self.live, self._public, body, {**BROWSER, "user-agent": str(said["userAgent"]), "x-forwarded-for": ip}
            )
        )

    async def evidence(self, answer: dict[str, Any]) -> dict[str, Any]:
        path = f"/api/v1/events/{answer['request_id']}"
        event = await self.live.client.get(path, headers={"x-api-key": self._secret})
        return event.json()["document"]["evidence"]


@pytest.fixture
def site(live: Live) -> Site:
    return Site(live)


def weight(answer: dict[str, Any], signal: str) -> int:
    return next((one["weight"] for one in answer.get("triggers", ()) if one["signal"] == signal), 0)


# storage_renewed


async def test_the_third_new_token_of_one_report_at_one_address_within_a_day_fires(live: Live, site: Site):
    tokens = site.tokens()
    answers: list[dict[str, Any]] = []
    for _ in range(4):
        answers.append(await site.visit(report(client_token=next(tokens))))
        live.clock.advance(hours=3)
    assert [weight(answer, "storage_renewed") for answer in answers] == [0, 0, 10, 10]
    assert (await site.evidence(answers[-1]))["storage_renewed"] == ["new_tokens_of_one_report"]


@pytest.mark.parametrize("changed", ["address", "report", "organization", "nothing new", "a day later"])
async def test_what_is_no_third_new_token_is_silent(live: Live, site: Site, changed: str):
    tokens = site.tokens()
    first = [next(tokens) for _ in range(2)]
    for token in first:
        await site.visit(report(client_token=token))
    ip, signals = PUBLIC_ADDRESS, report(client_token=next(tokens))
    match changed:
        case "address":
            ip = ELSEWHERE
        case "report":
            signals |= {"timezone": "Europe/Paris"}
        case "organization":
            site = Site(live, organization=live.new_organization().number)
        case "nothing new":
            signals["client_token"] = first[-1]
        case _:
            live.clock.advance(hours=25)
    assert "storage_renewed" not in fired(await site.visit(signals, ip))


@pytest.mark.slow(0.2)
async def test_equal_devices_of_which_one_came_back_are_no_storage_that_is_cleared(live: Live, site: Site):
    """An office of equal laptops: an older token returned after a newer one, so that they are several."""
    tokens = site.tokens()
    laptops = [next(tokens) for _ in range(6)]
    for token in laptops[:2]:
        await site.visit(report(client_token=token))
    await site.visit(report(client_token=laptops[0]))
    for token in laptops[2:]:
        assert "storage_renewed" not in fired(await site.visit(report(client_token=token)))
    for _ in range(2):  # the second morning shows it, and it stays known
        live.clock.advance(hours=30)
        for token in laptops:
            live.clock.advance(seconds=60)
            await site.visit(report(client_token=token))
    live.clock.advance(hours=30)
    for token in (next(tokens) for _ in range(5)):
        assert "storage_renewed" not in fired(await site.visit(report(client_token=token)))


@pytest.mark.parametrize("platform", ["android", "ios"])
async def test_phones_of_one_model_are_told_by_their_device_ids(live: Live, platform: Platform):
    app, tokens = App(live, platform), Site(live).tokens()
    name = "android_id" if platform == "android" else "identifier_for_vendor"
    for _ in range(6):
        assert "storage_renewed" not in fired(
            await app.identify(client_token=next(tokens), **{name: next(tokens)[:16]})
        )
    cleared = [await app.identify(client_token=next(tokens), **{name: "a1b2c3d4e5f60718"}) for _ in range(3)]
    assert [weight(answer, "storage_renewed") for answer in cleared] == [0, 0, 10]


async def test_a_report_that_is_sent_again_renews_no_storage(live: Live, site: Site):
    token = next(site.tokens())
    signals = report(client_token=token) | {"nonce": "once-alone"}
    key = live.issue()[1]
    for _ in range(5):
        answer = await live.identify(key, signals, headers={"x-forwarded-for": PUBLIC_ADDRESS})
        assert "storage_renewed" not in fired(answer.json())
    assert "storage_renewed" not in fired(await site.visit(report(client_token=token)))


# new_visitor_burst


async def burst(
    site: Site, number: int, seconds: float, ip: str = PUBLIC_ADDRESS, first: int = 1
) -> list[dict[str, Any]]:
    """So many new visitors at one address, evenly over the time."""
    answers: list[dict[str, Any]] = []
    for device in range(first, first + number):
        answers.append(await site.visit(report(device), ip))
        site.live.clock.advance(seconds=seconds / number)
    return answers


@pytest.mark.parametrize(("number", "seconds"), [(18, 90 * 60), (18, 1), (30, 12 * 3600), (30, 600)])
@pytest.mark.slow(0.2)
async def test_what_an_office_or_a_class_brings_is_no_burst(live: Live, number: int, seconds: float):
    assert all(not weight(answer, "new_visitor_burst") for answer in await burst(Site(live), number, seconds))


@pytest.mark.slow(0.5)
async def test_eighty_new_visitors_in_eighty_seconds_are_a_burst_and_weigh_twice(site: Site):
    answers = await burst(site, 80, 80)
    weights = [weight(answer, "new_visitor_burst") for answer in answers]
    assert weights == [0] * 18 + [30] * 62
    assert (await site.evidence(answers[-1]))["new_visitor_burst"] == [
        "new_visitors_of_address",
        "twice_as_many_new_visitors_of_address",
    ]


@pytest.mark.slow(0.4)
async def test_a_slow_burst_weighs_once_and_beyond_twice_as_many_twice(live: Live):
    weights = [weight(answer, "new_visitor_burst") for answer in await burst(Site(live), 64, 80 * 60)]
    assert weights == [0] * 30 + [15] * 30 + [30] * 4


@pytest.mark.slow(0.3)
async def test_a_burst_is_of_new_visitors_of_one_address_class_and_organization(live: Live, site: Site):
    await burst(site, 40, 10)
    linux = USER_AGENT.replace("Windows NT 10.0; Win64; x64", "X11; Linux x86_64")
    others = [
        await site.visit(report(1)),
        await site.visit(report(90), ELSEWHERE),
        await site.visit(report(91, userAgent=linux)),
        await Site(live, organization=live.new_organization().number).visit(report(92)),
        await Site(live, environment="production").visit(report(93)),
    ]
    assert not any("new_visitor_burst" in fired(answer) for answer in others)
    assert "new_visitor_burst" in fired(await site.visit(report(94)))


@pytest.mark.slow(0.4)
async def test_where_known_visitors_come_many_new_ones_are_usual(live: Live, site: Site):
    """A carrier's address: as many known visitors as new ones."""
    await burst(site, 18, 10)
    live.clock.advance(hours=48)
    for device in range(1, 19):
        await site.visit(report(device))
        live.clock.advance(seconds=1)
    assert not any(weight(answer, "new_visitor_burst") for answer in await burst(site, 25, 25, first=40))


@pytest.mark.slow(0.3)
async def test_made_up_phones_of_one_address_are_a_burst(live: Live):
    app = App(live, "android")
    answers = [
        await app.identify(android_id=f"{number:x}a1b2c3d4e5f60718"[:16], client_token=None) for number in range(1, 41)
    ]
    assert [weight(answer, "new_visitor_burst") for answer in answers[18:]] == [30] * 22


async def test_an_erased_visitor_is_in_no_row_of_its_address(live: Live, site: Site, management: str):
    answer = await site.visit(report(1))
    path = f"/api/v1/management/organizations/{live.organization.id}/visitors/{answer['visitor_id']}"
    assert (await live.client.delete(path, headers={"x-api-key": management})).status_code == 204
    with live.found.store.read() as snapshot:
        assert list(snapshot.scan(ADDRESSES, live.organization.number)) == []


# key_shared


async def test_one_key_behind_three_tokens_is_shared_and_no_proof_any_more(live: Live, site: Site):
    tokens, key = site.tokens(), BrowserKey(1)
    used = [next(tokens) for _ in range(3)]
    answers = [await site.visit(report(at, client_token=token), key=key) for at, token in enumerate(used)]
    assert [weight(answer, "key_shared") for answer in answers] == [0, 0, 30]
    assert (await site.evidence(answers[-1]))["key_shared"] == ["key_behind_tokens"]
    live.clock.advance(hours=24)
    again = await site.visit(report(0, client_token=used[0]), key=key)
    assert (again["visitor_id"], again["proven"]) == (answers[0]["visitor_id"], False)
    assert again["visitor_confidence"] <= 89
    assert fired(again) == {"key_shared"}


@pytest.mark.parametrize("other", ["two tokens", "three keys", "organization", "unsigned"])
async def test_what_is_no_third_token_of_a_key_is_silent(live: Live, site: Site, other: str):
    tokens = site.tokens()
    for at in range(3):
        key: BrowserKey | None = BrowserKey(1)
        if at == 2:
            match other:
                case "two tokens":
                    break
                case "three keys":
                    key = BrowserKey(2)
                case "organization":
                    site = Site(live, organization=live.new_organization().number)
                case _:
                    key = None
        answer = await site.visit(report(at, client_token=next(tokens)), key=key)
        assert "key_shared" not in fired(answer)
        live.clock.advance(hours=1)


async def test_a_key_that_is_elsewhere_and_back_within_an_hour_is_shared(abroad: Live):
    live = abroad
    browser = Browser(live)
    await browser.visit(ip=LONDON)
    live.clock.advance(hours=24)
    assert (await browser.visit(ip=LONDON))["proven"]
    thief = await browser.visit(ip=BERLIN)
    assert (thief["proven"], "key_shared" in fired(thief)) == (True, False)
    live.clock.advance(seconds=3000)
    owner = await browser.visit(ip=LONDON)
    assert (owner["visitor_id"], owner["proven"]) == (thief["visitor_id"], False)
    assert (weight(owner, "key_shared"), owner["visitor_confidence"] <= 89) == (30, True)
    live.clock.advance(hours=100)
    later = await browser.visit(ip=LONDON)
    assert (later["proven"], "key_shared" in fired(later)) == (False, False), (
        "it is no proof any more, and nobody is accused for ever"
    )


@pytest.mark.parametrize("journey", ["slow", "one way", "vpn"])
async def test_who_travels_shares_no_key(abroad: Live, journey: str):
    live = abroad
    browser = Browser(live)
    away = VPN if journey == "vpn" else BERLIN
    for ip in (LONDON, away, away if journey == "one way" else LONDON):
        assert "key_shared" not in fired(await browser.visit(ip=ip))
        live.clock.advance(seconds=3660 if journey == "slow" else 600)


# proof_failed


async def signed_visits(site: Site, outcomes: str) -> list[dict[str, Any]]:
    """Visits of browsers of their own: `+` with a proof that verifies, `-` with one that does not."""
    tokens = site.tokens()
    return [
        await site.visit(
            report(at % 40, client_token=next(tokens)), f"81.2.{at}.9", BrowserKey(at), broken=outcome == "-"
        )
        for at, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("before", "fires"),
    [("+" * 20, True), ("-" + "+" * 18 + "-", True), ("---" + "+" * 17, False), ("+" * 19, False), ("-" * 20, False),
     ("-" * 20 + "+" * 20, True)],
)  # fmt: skip
@pytest.mark.slow(0.2)
async def test_a_failed_proof_counts_where_18_of_the_last_20_were_verified(site: Site, before: str, fires: bool):
    await signed_visits(site, before)
    failed = await site.visit(report(1, client_token="a" * 32), ELSEWHERE, BrowserKey(99), broken=True)
    assert weight(failed, "proof_failed") == 20 * fires
    assert fires == ((await site.evidence(failed)).get("proof_failed") == ["proof_does_not_verify"])
    unsigned = await site.visit(report(2, client_token="b" * 32), ELSEWHERE)
    assert "proof_failed" not in fired(unsigned)


@pytest.mark.slow(0.2)
async def test_proofs_of_another_organization_say_nothing(live: Live):
    await signed_visits(Site(live), "+" * 20)
    other = Site(live, organization=live.new_organization().number)
    failed = await other.visit(report(1, client_token="a" * 32), ELSEWHERE, BrowserKey(99), broken=True)
    assert "proof_failed" not in fired(failed)


@pytest.mark.slow(0.2)
async def test_a_report_that_is_sent_again_changes_nothing_of_its_origin(live: Live, site: Site):
    await signed_visits(site, "+" * 20)
    key = live.issue()[1]
    body = BrowserKey(7).signed(
        report(1, client_token="a" * 32) | {"nonce": "n" * 32, "collected_at": live.clock.now_ms}
    )
    bad = body.replace(b'"platform":"Win32"', b'"platform":"Win64"')
    for _ in range(10):
        again = succeeded(await send(live, key, bad, {**BROWSER, "x-forwarded-for": ELSEWHERE}))
        assert "proof_failed" in fired(again)
    failed = await site.visit(report(3, client_token="b" * 32), ELSEWHERE, BrowserKey(99), broken=True)
    assert weight(failed, "proof_failed") == 20


# unseen_rendering


GPU = {"vendor": "Google Inc. (Intel)", "renderer": "ANGLE (Intel, Intel(R) UHD Graphics 620 Direct3D11 vs_5_0 ps_5_0)"}


def rendering(device: int, **changes: Any) -> dict[str, Any]:
    """One of the devices of a release, which differ in all but what they compute."""
    return report(device, webgl=GPU, canvas="c" * 32) | changes


async def release(site: Site, devices: int, single: int = 0) -> None:
    """So many devices, of which some, with a value of their own, come back on the next day."""
    for device in range(1, devices + 1):
        own = {"canvas": f"{device:032x}"} if device <= single else {}
        await site.visit(rendering(device, client_token=f"{device:032}", **own), f"81.2.{device}.9")
    site.live.clock.advance(hours=24)
    for device in range(1, single + 1):
        signals = rendering(device, client_token=f"{device:032}", canvas=f"{device:032x}")
        await site.visit(signals, f"81.2.{device}.9")


@pytest.mark.slow(0.3)
async def test_a_value_that_no_other_of_fifty_devices_of_a_release_has_fires(live: Live, site: Site):
    await release(site, 50)
    for field, value in (("canvas", "d" * 32), ("audio", "124.0434752751607499")):
        invented = await site.visit(rendering(99, **{field: value}), ELSEWHERE)
        assert weight(invented, "unseen_rendering") == 5
        assert (await site.evidence(invented))["unseen_rendering"] == [f"{field}_never_seen"]
    assert "unseen_rendering" not in fired(await site.visit(rendering(100), "81.3.1.1"))
    signals = rendering(101, canvas="e" * 32)
    elsewhere = Site(live, organization=live.new_organization().number)
    others = [
        await site.visit(signals | {"userAgent": USER_AGENT.replace("Chrome/1", "Chrome/9")}),
        await site.visit(signals | {"userAgent": USER_AGENT.replace("Windows NT 10.0; Win64; x64", "X11; Linux")}),
        await site.visit(signals | {"webgl": GPU | {"renderer": "ANGLE (AMD, AMD Radeon Direct3D11 vs_5_0 ps_5_0)"}}),
        await elsewhere.visit(signals),
    ]
    assert not any("unseen_rendering" in fired(answer) for answer in others)
    assert "unseen_rendering" in fired(await site.visit(signals))


@pytest.mark.slow(0.6)
async def test_invented_values_do_not_become_known(site: Site):
    await release(site, 50)
    for device in range(100, 120):
        answer = await site.visit(rendering(device, canvas=f"{device:032x}"), f"81.3.{device}.9")
        assert weight(answer, "unseen_rendering") == 5


@pytest.mark.slow(0.5)
async def test_a_program_that_invents_every_device_is_seen_in_a_young_store(site: Site):
    """What does not come back does not make a release look as if its devices varied."""
    answers = [await site.visit(rendering(at, canvas=f"{at:032x}"), f"81.4.{at}.9") for at in range(1, 81)]
    assert [weight(answer, "unseen_rendering") for answer in answers] == [0] * 50 + [5] * 30


@pytest.mark.slow(0.3)
async def test_a_device_that_comes_back_on_another_day_is_real(live: Live, site: Site):
    await release(site, 50)
    odd = rendering(99, canvas="d" * 32, client_token="t" * 32)
    assert "unseen_rendering" in fired(await site.visit(odd, ELSEWHERE))
    live.clock.advance(hours=24)
    assert "unseen_rendering" not in fired(await site.visit(odd, ELSEWHERE))
    assert "unseen_rendering" not in fired(await site.visit(rendering(98, canvas="d" * 32), "81.3.1.1"))


@pytest.mark.parametrize(("devices", "single"), [(49, 0), (52, 2)])
@pytest.mark.slow(0.3)
async def test_where_a_release_is_not_known_or_varies_it_is_silent(site: Site, devices: int, single: int):
    await release(site, devices, single)
    assert "unseen_rendering" not in fired(await site.visit(rendering(99, canvas="d" * 32), ELSEWHERE))
