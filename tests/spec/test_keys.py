"""Interface 5 and decisions 2: the form of keys, and whom they let in."""

from __future__ import annotations

import re
import zlib
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio

from svc.command.output import CommandError
from svc.features.keys.command import read_origins
from svc.kernel.access.credentials import KEY_KINDS
from svc.kernel.access.jobs import revoke_key, store_key
from svc.kernel.store.snapshot import Snapshot, Transaction
from svc.kernel.tenants.queries import KEYS_AT_ONCE, keys_of
from svc.kernel.tenants.tables import HOLDINGS
from svc.kernel.work.slices import MAX_AT_ONCE
from tests.spec.responses import BROWSER, IDENTIFY, assert_error, assert_invalid, forward, nothing_stored, post, visit
from tests.support.counted_store import CountedReads
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, mistyped, report
from tests.support.worlds import HeldThreads

BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
VISITOR = {"x-svc-visitor-ip": PUBLIC_ADDRESS}


def assert_unauthorized(response: httpx.Response) -> dict[str, Any]:
    """`401 unauthorized`; the body but for its request id."""
    assert_error(response, 401, "unauthorized")
    return response.json()["error"]


def stored(live: Live, key_id: str) -> Any:
    with live.found.store.read() as snapshot:
        return next(key for key in keys_of(snapshot, live.organization.number) if key.id == key_id)


@pytest.mark.parametrize("kind", KEY_KINDS)
async def test_a_key_is_its_prefix_and_256_random_bits_and_a_checksum(live: Live, kind: str):
    """Interface 5, decisions 2.1."""
    marks = {"public": "pk", "secret": "sk", "proxy": "px", "management": "mk"}
    for environment in ("production", "staging", "development"):
        key, secret = live.issue(kind, environment)
        prefix = f"svc_{marks[kind]}_us" + ("" if kind == "management" else f"_{environment}")
        assert re.fullmatch(re.escape(prefix) + "_[0-9A-Za-z]{49}", secret)
        number, check = zlib.crc32(secret[:-6].encode()), ""
        for _ in range(6):
            number, digit = divmod(number, 62)
            check = BASE62[digit] + check
        assert secret[-6:] == check
        assert (key.prefix, key.last4) == (prefix, secret[-4:])


async def test_the_console_shows_public_keys_whole_and_the_api_none_again(live: Live, management: str):
    """Everybody who opens a page reads its key, and snippets need it. It is derived from the pepper, not stored."""
    public, text = live.issue()
    secret, hidden = live.issue("secret")
    path = f"/api/v1/management/organizations/{live.organization.id}/sdk-keys"
    listed = (await live.client.get(path, headers={"x-api-key": management})).text
    shown = (await live.client.get("/console/api/public-keys", headers={"x-api-key": management})).json()["keys"]
    assert text not in listed
    assert hidden not in listed
    assert shown == {public.id: text}
    assert secret.id not in shown
    assert text.rpartition("_")[2].encode() not in live.stored_bytes()


async def test_public_keys_are_looked_for_in_slices_among_all_that_were_revoked(
    live: Live, management: str, monkeypatch: pytest.MonkeyPatch
):
    """A thousand a day may be issued, and revoked ones are listed for 400 days."""
    public, text = live.issue()

    def revoked(transaction: Transaction) -> None:
        for at in range(500):
            key = msgspec.structs.replace(public, id=f"key_{at:020}", created_at_ms=public.created_at_ms - 500 + at)
            store_key(transaction, key, at.to_bytes(32))
            revoke_key(transaction, key.id, public.created_at_ms)

    live.found.store.write_now([revoked])
    store, read_at_once = live.service.services.store, list[Counter[str]]()
    query = store.query

    def counting(read: Callable[[Snapshot], Any]) -> Callable[[Snapshot], Any]:
        rows = Counter[str]()
        read_at_once.append(rows)

        def counted(snapshot: Snapshot) -> Any:
            rows.clear()  # PostgreSQL's store repeats the read until it has all rows
            return read(CountedReads(snapshot, rows))

        return counted

    monkeypatch.setattr(store, "query", lambda read, **how: query(counting(read), **how))
    shown = (await live.client.get("/console/api/public-keys", headers={"x-api-key": management})).json()["keys"]
    assert shown == {public.id: text}
    assert sum(rows["keys"] for rows in read_at_once) > 500
    assert max(rows["keys"] for rows in read_at_once) <= MAX_AT_ONCE + KEYS_AT_ONCE


async def test_the_pepper_is_a_random_file_that_only_its_owner_reads(live: Live, tmp_path: Path):
    """Decisions 2.2."""
    pepper = tmp_path / "pepper"
    assert pepper.stat().st_mode & 0o777 == 0o600
    assert len(pepper.read_bytes()) >= 32
    assert pepper.read_bytes() == live.found.pepper


@pytest.mark.parametrize(
    ("kind", "fields", "sent", "says"),
    [
        ("public", {}, {"origin": "http://192.168.1.20:3000"}, "not in the key's list: 'http://192.168.1.20:3000'"),
        ("public", {}, {"origin": "null"}, "no origin that a key can allow: 'null'"),
        ("public", {}, {"origin": "http://\xe9\x9b."}, r"'http://\\xe9\\x9b.'"),
        ("public", {}, {"origin": None}, "no Origin header, and the key is for the web only"),
        ("public", {"platforms": ("ios",)}, {"origin": None}, "the platform web is not one of the key's native ones"),
        ("secret", {}, {"origin": ORIGIN}, f"a secret key was sent with an Origin header: '{ORIGIN}'"),
    ],
)
async def test_only_a_development_key_gets_the_reason_why_its_origin_or_platform_is_refused(
    live: Live, kind: str, fields: dict[str, Any], sent: dict[str, Any], says: str
):
    """Decisions 2.7: with the origin that was sent; another key hears what every refused one does."""
    usual = assert_error(await visit(live, never_issued(live.issue()[1])), 401, "unauthorized")
    for environment in ("development", "staging", "production"):
        key, secret = live.issue(kind, environment, **fields)
        headers = [*BROWSER.items(), ("x-api-key", secret), ("content-type", "application/json")]
        if sent["origin"] is not None:
            headers.append(("origin", sent["origin"].encode("latin-1")))
        content = {"sdk": {}, "signals": report()}
        ask = partial(live.client.post, IDENTIFY, json=content, headers=headers)
        message = assert_error(await ask(), 401, "unauthorized")
        assert says in message if environment == "development" else message == usual
        live.revoke(key)
        assert assert_error(await ask(), 401, "unauthorized") == usual, "it is not valid any more"


async def test_a_refused_key_gets_the_same_response_whatever_the_store_knows_of_it(live: Live, public: str, key: str):
    """Interface 7, decisions 2.7: unknown, revoked, expired, from elsewhere, ..."""
    now = live.clock.now_ms
    revoked, revoked_secret = live.issue()
    live.revoke(revoked)
    _, expired = live.issue(expires_at_ms=now)
    _, elsewhere = live.issue(environment="production", allowed_origins=("https://other.example",))
    _, native = live.issue(environment="staging", platforms=("ios",))
    _, server = live.issue("secret", "production")
    with nothing_stored(live):
        heard = [
            assert_unauthorized(await visit(live, secret))
            for secret in (never_issued(key), revoked_secret, expired, elsewhere, server)
        ]
        heard.append(assert_unauthorized(await visit(live, native, origin=None)))
        heard.append(assert_unauthorized(await visit(live, public, origin=None)))
        heard.append(assert_unauthorized(await visit(live, public, origin="null")))
    assert all(error == heard[0] for error in heard)


def never_issued(secret: str) -> str:
    """A key of correct form that nobody has, of the kind, region and environment of another one."""
    unknown = secret[: -len("x" * 49)] + "A" * 43
    number, check = zlib.crc32(unknown.encode()), ""
    for _ in range(6):
        number, digit = divmod(number, 62)
        check = BASE62[digit] + check
    return unknown + check


async def test_the_message_says_what_a_key_itself_shows_whether_or_not_it_was_issued(live: Live, server_key: str):
    """Docs/adr/0076: no key, a mistyped one, one of another kind or region is said before any look-up."""
    _, valid = live.issue()
    _, management = live.issue("management")
    _, abroad = live.issue(region="eu")
    _, proxy = live.issue("proxy")
    taken = "takes a public (svc_pk_...), secret (svc_sk_...) or proxy key (svc_px_...)"
    with nothing_stored(live):
        for sent in ("x", "svc_pk_us_development_", mistyped(valid), valid.lower(), valid + "A", valid[:-1],
                     f"Bearer {valid}", valid.replace("_us_", "_eu_"), valid.replace("_pk_", "_sk_"),
                     valid.replace("develop", "product")):  # fmt: skip
            assert "not a whole key" in assert_unauthorized(await visit(live, sent))["message"]
        for nothing in (await visit(live, ""), await post(live, None, b"{}")):
            assert f"{taken}, and none was sent" in assert_unauthorized(nothing)["message"]
        for key, says in (
            (management, f"This route {taken}, and the one sent is a management key (svc_mk_...)."),
            (abroad, "The key is of the region eu, and this is the API of another one."),
        ):
            known, unknown = [assert_unauthorized(await visit(live, one)) for one in (key, never_issued(key))]
            assert known == unknown
            assert says in known["message"]
        for path, key, says in (
            ("/events", valid, "takes a secret key (svc_sk_...), and the one sent is a public key (svc_pk_...)."),
            ("/management/key", server_key, "takes a management key (svc_mk_...), and the one sent is a secret key"),
        ):
            refused = await live.client.get(f"/api/v1{path}", headers={"x-api-key": key})
            assert says in assert_unauthorized(refused)["message"]
        forwarded = await forward(live, proxy, {**VISITOR, "x-svc-public-key": server_key})
        assert "The header x-svc-public-key takes a public key" in assert_unauthorized(forwarded)["message"]


async def test_a_key_is_read_from_x_api_key_only(live: Live, key: str):
    """Interface 5: all keys go in `x-api-key`; two of them are none."""
    with nothing_stored(live):
        assert_unauthorized(await post(live, None, b"{}", authorization=f"Bearer {key}"))
        assert_unauthorized(await visit(live, f"{key}, {key}"))
        headers = [("x-api-key", key), ("x-api-key", key), ("origin", ORIGIN)]
        response = await live.client.post("/api/v1/identify", json={"sdk": {}, "signals": {}}, headers=headers)
        assert_unauthorized(response)


async def test_a_mistyped_key_is_refused_before_any_lookup(live: Live, key: str):
    """Decisions 2.1: the same key is found when it is spelled right, so its checksum is what refuses it."""
    with nothing_stored(live):
        for position in (25, len(key) - 7, len(key) - 1):
            other = "0" if key[position] != "0" else "1"
            assert_unauthorized(await visit(live, key[:position] + other + key[position + 1 :]))
    assert (await visit(live, key)).status_code == 200


@pytest.mark.parametrize("kind", ["public", "secret", "proxy"])
async def test_a_revoked_key_is_refused_from_the_next_request(live: Live, kind: str):
    """Decisions 2.3."""
    key, secret = live.issue(kind)
    origin, headers = (ORIGIN, BROWSER) if kind == "public" else (None, VISITOR)
    assert (await live.identify(secret, origin=origin, headers=headers)).status_code == 200
    live.revoke(key)
    with nothing_stored(live):
        assert_unauthorized(await live.identify(secret, origin=origin, headers=headers))
        live.clock.advance(hours=1000)
        assert_unauthorized(await live.identify(secret, origin=origin, headers=headers))


@pytest.mark.parametrize("kind", ["management", "secret", "public"])
async def test_a_key_that_is_revoked_while_its_request_arrives_changes_nothing(live: Live, kind: str):
    """Decisions 2.3: a revoked key finishes no request that began before, and issues no key with it."""
    key, secret = live.issue(kind)
    _, public = live.issue()
    known = (await visit(live, secret if kind == "public" else public)).json()
    token, event = known["deferred_token"], f"/api/v1/events/{known['request_id']}"
    deferred = {"token": token, "sdk": {"platform": "web", "version": "1"}, "signals": {"tier": "deferred"}}
    issued = {"name": "mine", "environment": "development"}
    requests: dict[str, tuple[str, str, Any]] = {
        "management": ("POST", f"/api/v1/management/organizations/{live.organization.id}/sdk-keys", issued),
        "secret": ("PATCH", event, {"label": "legitimate"}),
        "public": ("POST", f"{event}/supplement", deferred),
    }
    headers = {"x-api-key": secret, **({"origin": ORIGIN} if kind == "public" else {})}
    before = live.contents()
    assert_unauthorized(await live.slowly(*requests[kind], headers, partial(live.revoke, key)))
    assert {**live.contents(), HOLDINGS.name: before[HOLDINGS.name]} == before, "only the count of active keys is less"


async def test_the_last_use_is_written_at_most_once_a_minute(live: Live):
    """Decisions 2.3."""
    key, secret = live.issue()
    assert stored(live, key.id).last_used_at_ms is None
    await visit(live, secret)
    first = live.clock.now_ms
    assert stored(live, key.id).last_used_at_ms == first
    live.clock.advance(seconds=59.999)
    await visit(live, secret)
    assert stored(live, key.id).last_used_at_ms == first
    live.clock.advance(seconds=0.001)
    await visit(live, secret)
    assert stored(live, key.id).last_used_at_ms == first + 60_000


async def test_the_last_use_is_written_once_by_overlapping_requests(live: Live, threads: HeldThreads):
    """Decisions 2.3, with a commit that takes half a minute."""
    key, secret = live.issue()
    first = live.clock.now_ms
    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(visit, live, secret)
        with trio.fail_after(60):
            while not threads.waiting:
                await trio.lowlevel.checkpoint()
            live.clock.advance(seconds=30)
            nursery.start_soon(visit, live, secret)
            while live.service.pipeline.statistics()["visitor_index"].accepted < 2:
                await trio.lowlevel.checkpoint()
        threads.release()
    assert len(live.events()) == 2
    assert stored(live, key.id).last_used_at_ms == first


async def test_an_origin_is_matched_in_its_canonical_form(live: Live):
    """Decisions 2.6, 2.7; in production, where nothing else is let in."""
    for pattern, origin in (
        ("https://shop.example", "https://shop.example"),
        ("https://shop.example", "https://shop.example:443"),
        ("https://shop.example:443", "https://shop.example"),
        ("http://shop.example:80", "http://shop.example"),
        ("HTTPS://Shop.Example", "https://shop.example"),
        ("https://shop.example", "HTTPS://SHOP.EXAMPLE"),
        ("https://shop.example:8443", "https://shop.example:8443"),
        ("https://bücher.example", "https://xn--bcher-kva.example"),
        ("https://*.shop.example", "https://a.shop.example"),
        ("https://*.shop.example", "https://a.b.c.shop.example"),
        ("https://*.shop.example:8443", "https://a.shop.example:8443"),
        ("capacitor://localhost", "capacitor://localhost"),
        ("app://-", "app://-"),
        ("app://.", "app://."),
        ("https://[2001:db8::1]", "https://[2001:DB8:0::1]"),
    ):
        _, secret = live.issue(environment="production", allowed_origins=read_origins((pattern,)))
        assert (await visit(live, secret, origin=origin)).status_code == 200


async def test_another_origin_is_refused(live: Live):
    """Decisions 2.6, 2.7; `Origin: null` too."""
    for pattern, origin in (
        ("https://shop.example", "http://shop.example"),
        ("https://shop.example", "https://shop.example:8443"),
        ("https://shop.example", "https://a.shop.example"),
        ("https://shop.example", "https://shop.example.evil.example"),
        ("https://shop.example", "https://evilshop.example"),
        ("https://shop.example", "https://shop.example/"),
        ("https://shop.example", "https://shop.example/path"),
        ("https://shop.example", "https://user@shop.example"),
        ("https://shop.example", "shop.example"),
        ("https://shop.example", "null"),
        ("https://shop.example", "*"),
        ("https://shop.example", ""),
        ("https://shop.example", "https://shop.example, https://shop.example"),
        ("https://*.shop.example", "https://shop.example"),
        ("https://*.shop.example", "https://.shop.example"),
        ("https://*.shop.example", "https://*.shop.example"),
        ("https://*.shop.example", "https://evilshop.example"),
        ("https://*.shop.example", "http://a.shop.example"),
        ("https://*.shop.example", "https://a.shop.example:8443"),
        ("https://*.shop.example", "https://a.shop.example.evil.example"),
        ("capacitor://localhost", "ionic://localhost"),
        ("app://-", "app://."),
        ("app://-", "app://-a"),
    ):
        _, secret = live.issue(environment="production", allowed_origins=read_origins((pattern,)))
        with nothing_stored(live):
            assert_unauthorized(await visit(live, secret, origin=origin))


@pytest.mark.parametrize(
    "text",
    ["https://shop.example/", "https://shop.example/a", "shop.example", "*", "null", "", "https://*", "https://"],
)
async def test_an_invalid_origin_is_rejected_for_a_key(text: str):
    """Decisions 2.6: a path, a bare host or `*`."""
    with pytest.raises(CommandError):
        read_origins((text,))


async def test_a_key_takes_at_most_a_hundred_origins():
    """Decisions 2.6."""
    origins = tuple(f"https://{number}.example" for number in range(101))
    assert len(read_origins(origins[:100])) == 100
    with pytest.raises(CommandError):
        read_origins(origins)


@pytest.mark.slow(0.4)
async def test_only_development_keys_accept_loopback_origins_by_default(live: Live):
    """Decisions 2.7: `http(s)://localhost`, `127.0.0.1` and `[::1]` on any port; an empty list accepts nothing else."""
    _, development = live.issue(allowed_origins=())
    strict = [live.issue(environment=name, allowed_origins=())[1] for name in ("production", "staging")]
    for host in ("localhost", "127.0.0.1", "[::1]"):
        for origin in (f"http://{host}", f"https://{host}", f"http://{host}:3000", f"https://{host}:65535"):
            assert (await visit(live, development, origin=origin)).status_code == 200
            with nothing_stored(live):
                for secret in strict:
                    assert_unauthorized(await visit(live, secret, origin=origin))
    with nothing_stored(live):
        for origin in (ORIGIN, "http://localhost.example", "http://a.localhost", "ftp://localhost", "http://127.0.0.2"):
            for secret in (development, *strict):
                assert_unauthorized(await visit(live, secret, origin=origin))


@pytest.mark.parametrize("platform", ["ios", "react-native-ios", "flutter-ios"])
async def test_a_request_without_origin_is_accepted_with_a_native_platform_of_the_key(live: Live, platform: str):
    """Decisions 2.7: `sdk.platform`, else the header `x-svc-sdk-platform`."""
    _, secret = live.issue(environment="production", platforms=("web", "ios"), allowed_origins=())
    assert (await visit(live, secret, origin=None, sdk={"platform": platform})).status_code == 200
    by_header = {"x-svc-sdk-platform": platform}
    assert (await visit(live, secret, origin=None, sdk={"version": "1"}, headers=by_header)).status_code == 200
    assert [event.platform for _, event in live.events()] == ["ios", "ios"]
    assert [event.origin for _, event in live.events()] == [None, None]


async def test_a_request_without_origin_is_refused_for_the_web_and_other_platforms(live: Live):
    """Decisions 2.7; the body's platform goes before the header's."""
    for platforms, sdk, header in (
        (("web", "ios"), {}, None),
        (("web", "ios"), {"platform": "web"}, None),
        (("web", "ios"), {"platform": "android"}, None),
        (("web", "ios"), {"platform": "react-native-android"}, None),
        (("web", "ios"), {"platform": "iOS"}, None),
        (("web", "ios"), {}, "web"),
        (("web", "ios"), {}, "android"),
        (("web", "ios"), {"platform": "web"}, "ios"),
        (("ios",), {"platform": "android"}, "ios"),
        (("web",), {"platform": "ios"}, None),
        (("web",), {"platform": "web"}, None),
        (("web",), {}, "ios"),
    ):
        _, secret = live.issue(platforms=platforms)
        headers = {} if header is None else {"x-svc-sdk-platform": header}
        with nothing_stored(live):
            assert_unauthorized(await visit(live, secret, origin=None, sdk=sdk, headers=headers))


async def test_a_native_platform_does_not_bypass_a_foreign_origin(live: Live):
    """Decisions 2.7: with an `Origin` the origin decides."""
    _, secret = live.issue(platforms=("web", "ios"))
    with nothing_stored(live):
        for origin in ("https://other.example", "null", ""):
            assert_unauthorized(await visit(live, secret, origin=origin, sdk={"platform": "ios"}))


async def test_a_native_key_gets_body_errors_once_its_platform_is_known(live: Live):
    """Decisions 1.8, 2.7: the effective platform authenticates; only then are the fields looked at."""
    _, secret = live.issue(platforms=("ios",))
    headers = {"x-svc-sdk-platform": "ios"}
    with nothing_stored(live):
        response = await visit(live, secret, origin=None, sdk={"more": 1}, headers=headers)
        assert_invalid(response, "sdk.more", "unknown_field")


async def test_an_invalid_body_still_provides_its_platform(live: Live):
    """Decisions 1.8, 2.7: as above, where only `sdk.platform` says it, which goes before the header."""
    _, secret = live.issue(platforms=("ios",))
    with nothing_stored(live):
        assert_invalid(await visit(live, secret, origin=None, sdk={"platform": "ios"}, more=1), "more", "unknown_field")


@pytest.mark.slow(0.2)
async def test_a_secret_key_with_an_origin_is_refused(live: Live):
    """Interface 5, decisions 2.8. The documentation page, whose development keys are excepted, does not exist yet."""
    for environment in ("production", "staging", "development"):
        _, secret = live.issue("secret", environment)
        assert (await visit(live, secret, origin=None)).status_code == 200
        with nothing_stored(live):
            for origin in (ORIGIN, "http://localhost", "null", ""):
                assert_unauthorized(await visit(live, secret, origin=origin))
                assert_unauthorized(await live.identify(secret, origin=origin, headers=VISITOR))


async def test_management_keys_cannot_identify(live: Live):
    """Interface 5: they are for the management routes."""
    for role in ("admin", "developer"):
        _, secret = live.issue("management", role=role)
        with nothing_stored(live):
            for origin in (None, ORIGIN):
                assert_unauthorized(await visit(live, secret, origin=origin, headers=VISITOR))


@pytest.mark.served(region="eu")
async def test_a_key_of_another_region_is_refused(live: Live):
    """Interface 5 rule 1, decisions 2.11."""
    for kind, origin, headers in (("public", ORIGIN, BROWSER), ("secret", None, {}), ("proxy", None, VISITOR)):
        _, at_home = live.issue(kind, region="eu")
        _, abroad = live.issue(kind, region="us")
        assert (await live.identify(at_home, report(), origin=origin, headers=headers)).status_code == 200
        with nothing_stored(live):
            assert_unauthorized(await live.identify(abroad, report(), origin=origin, headers=headers))


async def test_a_key_works_only_for_its_own_organization(live: Live, key: str):
    """Interface 5: what one organization's key identifies is nobody else's."""
    other = live.new_organization()
    _, theirs = live.issue(organization=other.number)
    first = (await visit(live, key)).json()
    second = (await visit(live, theirs)).json()
    assert first["visitor_id"] != second["visitor_id"]
    assert second["visitor_is_new"] is True
    assert len(live.events()) == 1


async def test_a_proxy_key_forwards_visitors_of_any_platform(live: Live):
    """Interface 5, decisions 2.9: alone in `x-api-key`."""
    _, secret = live.issue("proxy", "production")
    for platform in ("web", "ios", "flutter-android"):
        response = await forward(live, secret, VISITOR, sdk={"platform": platform})
        assert response.status_code == 200
    assert [event.ip_address for _, event in live.events()] == [PUBLIC_ADDRESS] * 3
