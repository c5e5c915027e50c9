"""Interface 2.6-2.8, 3, 4.4 and 5, decisions 2.3-2.6: keys as an organization's own automation manages them."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import trio
import trio.testing

from svc.command.output import CommandError
from svc.kernel.access.credentials import ApiKey
from svc.kernel.access.tables import KEYS
from svc.kernel.tenants import queries as lookups
from svc.kernel.work.slices import MAX_AT_ONCE
from tests.spec.automation import MANAGEMENT, Automation, stored_keys
from tests.spec.responses import BROWSER, assert_error, assert_invalid, nothing_stored, visit
from tests.support.live import ORIGIN, PUBLIC_ADDRESS, Live, succeeded
from tests.support.worlds import HeldThreads

SDK, PROXY = "/sdk-keys", "/proxy-credentials"
PATHS = pytest.mark.parametrize("path", [SDK, PROXY])
KIND_OF = {SDK: "sdk", PROXY: "proxy"}
LIST_OF = {SDK: "keys", PROXY: "credentials"}
CREATED = "2026-01-01T00:00:00.000Z"
"""When a service of a test starts."""
VISITOR = {"x-svc-visitor-ip": PUBLIC_ADDRESS}


async def listed(automation: Automation, path: str) -> list[dict[str, Any]]:
    answer = succeeded(await automation("GET", path))
    assert set(answer) == {LIST_OF[path]}
    return answer[LIST_OF[path]]


async def use(live: Live, path: str, secret: str) -> int:
    """The status of an identification with the key."""
    if path == PROXY:
        return (await live.identify(secret, origin=None, headers=VISITOR)).status_code
    return (await visit(live, secret)).status_code


@pytest.mark.parametrize("role", ["admin", "developer"])
async def test_a_management_key_describes_itself(live: Live, role: str):
    """Interface 2.6."""
    automation = Automation(live, role)
    answer = succeeded(await live.client.get(f"{MANAGEMENT}/key", headers={"x-api-key": automation.secret}))
    assert answer == {
        "key_id": automation.key.id,
        "organization_id": live.organization.id,
        "name": automation.key.name,
        "role": role,
        "region": "us",
    }


@pytest.mark.parametrize("environment", ["production", "staging", "development"])
async def test_an_issued_proxy_key_is_shown_with_its_secret_once(admin: Automation, environment: str):
    """Interface 2.7; the answer is not to be kept by anything between."""
    response = await admin("POST", PROXY, {"name": "edge", "environment": environment})
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    secret = response.json()["secret"]
    credential = response.json()["credential"]
    assert set(response.json()) == {"credential", "secret"}
    assert credential == {
        "id": credential["id"],
        "name": "edge",
        "environment": environment,
        "region": "us",
        "prefix": f"svc_px_us_{environment}",
        "last4": secret[-4:],
        "status": "active",
        "last_used_at": None,
        "expires_at": None,
        "created_at": CREATED,
        "revoked_at": None,
    }
    assert secret.startswith(credential["prefix"] + "_")
    assert await listed(admin, PROXY) == [credential]


async def test_an_issued_sdk_key_is_public_and_for_the_web_by_default(live: Live):
    """Interface 2.8, decisions 2.4 and 2.5; attributed to no member (interface 5, rule 8)."""
    automation = Automation(live, "developer")
    response = await automation("POST", SDK, {"name": "shop", "environment": "staging"})
    assert (response.status_code, response.headers["cache-control"]) == (201, "no-store")
    secret, key = response.json()["secret"], response.json()["key"]
    assert set(response.json()) == {"key", "secret"}
    assert key == {
        "id": key["id"],
        "name": "shop",
        "kind": "public",
        "environment": "staging",
        "region": "us",
        "platforms": ["web"],
        "allowed_origins": [],
        "prefix": "svc_pk_us_staging",
        "last4": secret[-4:],
        "status": "active",
        "last_used_at": None,
        "expires_at": None,
        "created_at": CREATED,
        "revoked_at": None,
    }
    assert await listed(automation, SDK) == [key]


async def test_a_secret_key_has_neither_platforms_nor_origins(live: Live, admin: Automation):
    """Decisions 2.4: those are public keys' only, and it is told to anybody who names them."""
    key, secret = await admin.issue(kind="secret")
    assert (key["kind"], key["prefix"]) == ("secret", "svc_sk_us_development")
    assert not {"platforms", "allowed_origins"} & set(key)
    assert (await live.identify(secret, origin=None)).status_code == 200
    body = {"name": "x", "environment": "development", "kind": "secret"}
    with nothing_stored(live):
        assert_invalid(await admin("POST", SDK, {**body, "platforms": ["web"]}), "platforms", "invalid_value")
        response = await admin("POST", SDK, {**body, "allowed_origins": [ORIGIN]})
        assert_invalid(response, "allowed_origins", "invalid_value")
    response = await admin("PUT", f"{SDK}/{key['id']}/allowed-origins", {"allowed_origins": [ORIGIN]})
    assert_invalid(response, "allowed_origins", "invalid_value")
    assert stored_keys(live)[key["id"]].allowed_origins == ()


async def test_platforms_and_origins_are_stored_in_canonical_form(admin: Automation):
    """Decisions 2.4 and 2.6."""
    origins = ["HTTPS://Shop.Example:443", "https://bücher.example", "https://shop.example", "https://*.shop.example"]
    key, _ = await admin.issue(platforms=["ios", "web", "ios"], allowed_origins=[*origins, "capacitor://localhost"])
    assert key["platforms"] == ["web", "ios"]
    assert key["allowed_origins"] == [
        "https://shop.example",
        "https://xn--bcher-kva.example",
        "https://*.shop.example",
        "capacitor://localhost",
    ]


async def test_a_native_key_admits_its_platform(live: Live):
    """Decisions 2.5, 2.7."""
    _, secret = await Automation(live).issue(environment="production", platforms=["android"])
    assert (await visit(live, secret, origin=None, sdk={"platform": "android"})).status_code == 200
    assert (await visit(live, secret, origin=None, sdk={"platform": "ios"})).status_code == 401


@PATHS
async def test_only_a_keyed_hash_of_an_issued_secret_is_stored(live: Live, admin: Automation, path: str):
    """Interface 5, rule 4."""
    key, secret = await admin.issue(path)
    hashed = hmac.digest(live.found.pepper, secret.encode(), "sha256")
    with live.found.store.read() as snapshot:
        found = snapshot.get(KEYS, hashed)
    assert found is not None
    assert found.id == key["id"]
    everything = live.stored_bytes()
    assert secret.rpartition("_")[2].encode() not in everything
    assert secret not in (await admin("GET", path)).text


@PATHS
async def test_keys_are_listed_oldest_first_including_revoked_ones(live: Live, path: str):
    """Interface 4.4, decisions 2.5: the organization's own, of the route's own kinds, no matter who issued them."""
    automation, stranger = Automation(live), Automation(live, organization=live.new_organization())
    await stranger.issue(path)
    ids: list[str] = []
    for _ in range(3):
        live.clock.advance(seconds=1)
        ids.append((await automation.issue(path))[0]["id"])
    live.clock.advance(seconds=1)
    by_operator, _ = live.issue("proxy" if path == PROXY else "secret")
    live.issue("public" if path == PROXY else "proxy")
    await automation("POST", f"{path}/{ids[1]}/revoke")
    keys = await listed(automation, path)
    assert [key["id"] for key in keys] == [*ids, by_operator.id]
    assert [key["status"] for key in keys] == ["active", "revoked", "active", "active"]
    assert len(await listed(stranger, path)) == 1


@PATHS
async def test_a_key_works_from_its_issue_to_its_revocation(live: Live, admin: Automation, path: str):
    """Interface 3: the very next request, both times; revoking is permanent and keeps the key in the list."""
    more = {"allowed_origins": [ORIGIN]} if path == SDK else {}
    key, secret = await admin.issue(path, **more)
    assert await use(live, path, secret) == 200
    live.clock.advance(seconds=7)
    response = await admin("POST", f"{path}/{key['id']}/revoke")
    assert await use(live, path, secret) == 401
    revoked = {**key, "status": "revoked", "last_used_at": CREATED, "revoked_at": "2026-01-01T00:00:07.000Z"}
    assert (response.status_code, response.json()) == (200, revoked)
    assert await listed(admin, path) == [revoked]


@PATHS
async def test_revoking_twice_is_a_conflict_that_changes_nothing(live: Live, admin: Automation, path: str):
    """Decisions 2.5: `sdk_key_revoked`, `proxy_key_revoked`; the operator's revocation counts too."""
    code = f"{KIND_OF[path]}_key_revoked"
    key, _ = await admin.issue(path)
    by_operator, _ = live.issue("proxy" if path == PROXY else "secret")
    await admin("POST", f"{path}/{key['id']}/revoke")
    live.revoke(by_operator)
    live.clock.advance(seconds=7)
    before = stored_keys(live)
    for key_id in (key["id"], by_operator.id):
        assert_error(await admin("POST", f"{path}/{key_id}/revoke"), 409, code)
    assert stored_keys(live) == before


async def test_concurrent_revocations_revoke_a_key_once(admin: Automation):
    """The one writer decides between them."""
    key, _ = await admin.issue()
    statuses: list[int] = []

    async def revoke() -> None:
        statuses.append((await admin("POST", f"{SDK}/{key['id']}/revoke")).status_code)

    async with trio.open_nursery() as nursery:
        for _ in range(12):
            nursery.start_soon(revoke)
    assert sorted(statuses) == [200] + [409] * 11


async def test_replaced_origins_apply_from_the_next_request(live: Live):
    """Decisions 2.5: the whole list is replaced, and an empty one lets nobody in (decisions 2.7)."""
    automation = Automation(live, "developer")
    key, secret = await automation.issue(environment="production", allowed_origins=[ORIGIN])
    other = "https://other.example"
    steps: list[tuple[list[str], list[int]]] = [([other], [401, 200]), ([], [401, 401]), ([other, ORIGIN], [200, 200])]
    for origins, expected in steps:
        response = await automation("PUT", f"{SDK}/{key['id']}/allowed-origins", {"allowed_origins": origins})
        assert (response.status_code, response.json()["allowed_origins"]) == (200, origins)
        assert [(await visit(live, secret, origin=origin)).status_code for origin in (ORIGIN, other)] == expected
    assert {**key, "allowed_origins": [other, ORIGIN], "last_used_at": CREATED} == (await listed(automation, SDK))[0]


async def test_the_origins_of_a_revoked_key_cannot_be_changed(live: Live, admin: Automation):
    """Interface 3: `409`; decisions 2.5."""
    key, _ = await admin.issue(allowed_origins=[ORIGIN])
    await admin("POST", f"{SDK}/{key['id']}/revoke")
    response = await admin("PUT", f"{SDK}/{key['id']}/allowed-origins", {"allowed_origins": []})
    assert_error(response, 409, "sdk_key_revoked")
    assert stored_keys(live)[key["id"]].allowed_origins == (ORIGIN,)


WRONG_ORIGINS = [
    "*",
    "shop.example",
    "https://shop.example/",
    "https://shop.example/a",
    "null",
    "",
    "https://*.example",
]


@pytest.mark.parametrize("route", ["issue", "replace"])
async def test_every_invalid_origin_is_named(live: Live, admin: Automation, route: str):
    """Decisions 2.6: `422` (`invalid_origin`); a path, a bare host and `*` are none."""
    key, _ = await admin.issue(allowed_origins=[ORIGIN])

    async def send(origins: list[Any]) -> httpx.Response:
        if route == "replace":
            return await admin("PUT", f"{SDK}/{key['id']}/allowed-origins", {"allowed_origins": origins})
        return await admin("POST", SDK, {"name": "x", "environment": "staging", "allowed_origins": origins})

    details = [(f"allowed_origins[{1 + index}]", "invalid_origin", "body") for index in range(len(WRONG_ORIGINS))]
    with nothing_stored(live):
        assert_error(await send([ORIGIN, *WRONG_ORIGINS]), 422, "validation_error", *details)
        assert_invalid(await send([ORIGIN, 3]), "allowed_origins[1]", "wrong_type")
        assert_invalid(await send([f"https://s{index}.example" for index in range(101)]), "allowed_origins", "too_long")
    response = await send([f"https://s{index}.example" for index in range(100)])
    assert response.status_code == (200 if route == "replace" else 201)


@PATHS
async def test_a_key_may_have_an_expiry_time(live: Live, admin: Automation, path: str):
    """Decisions 2.5: `expires_at`, with any offset (decisions 1.2), shown in UTC."""
    more = {"allowed_origins": [ORIGIN]} if path == SDK else {}
    key, secret = await admin.issue(path, expires_at="2026-01-01T02:00:05.25+02:00", **more)
    assert key["expires_at"] == "2026-01-01T00:00:05.250Z"
    live.clock.advance(seconds=5.249)
    assert await use(live, path, secret) == 200
    live.clock.advance(seconds=0.001)
    assert await use(live, path, secret) == 401
    assert [known["status"] for known in await listed(admin, path)] == ["active"]
    assert (await admin.issue(path, expires_at=None))[0]["expires_at"] is None


@PATHS
async def test_a_key_is_not_issued_for_an_invalid_body(live: Live, admin: Automation, path: str):
    """Interface 4.4, decisions 1.4; a key that has expired before its issue is a mistake."""
    for change, field, issue in (
        ({"name": ...}, "name", "required"),
        ({"environment": ...}, "environment", "required"),
        ({"name": ""}, "name", "invalid_value"),
        ({"name": " \t"}, "name", "invalid_value"),
        ({"name": "x" * 201}, "name", "too_long"),
        ({"name": 1}, "name", "wrong_type"),
        ({"name": None}, "name", "wrong_type"),
        ({"environment": "live"}, "environment", "invalid_value"),
        ({"environment": "Production"}, "environment", "invalid_value"),
        ({"region": "eu"}, "region", "unknown_field"),
        ({"role": "admin"}, "role", "unknown_field"),
        ({"expires_at": "tomorrow"}, "expires_at", "invalid_value"),
        ({"expires_at": "2027-01-01T00:00:00"}, "expires_at", "wrong_type"),
        ({"expires_at": 1_800_000_000}, "expires_at", "wrong_type"),
        ({"expires_at": "2026-01-01T00:00:00Z"}, "expires_at", "out_of_range"),
        ({"expires_at": "0001-01-01T00:00:00+14:00"}, "expires_at", "out_of_range"),
        ({"expires_at": "9999-12-31T23:59:59-14:00"}, "expires_at", "out_of_range"),
    ):
        body = {"name": "shop", "environment": "staging"} | change
        with nothing_stored(live):
            sent = {name: value for name, value in body.items() if value is not ...}
            assert_invalid(await admin("POST", path, sent), field, issue)


async def test_an_sdk_key_is_public_or_secret_and_for_known_platforms(live: Live, admin: Automation):
    """Decisions 2.4; there is no other way to a proxy key, and none to a management key (interface 5, rule 3)."""
    with nothing_stored(live):
        for change, field, issue in (
            ({"kind": "proxy"}, "kind", "invalid_value"),
            ({"kind": "management"}, "kind", "invalid_value"),
            ({"platforms": []}, "platforms", "invalid_value"),
            ({"platforms": ["web", "windows"]}, "platforms[1]", "invalid_value"),
            ({"platforms": "web"}, "platforms", "wrong_type"),
            ({"platforms": None}, "platforms", "wrong_type"),
            ({"allowed_origins": ORIGIN}, "allowed_origins", "wrong_type"),
        ):
            body = {"name": "shop", "environment": "staging"} | change
            assert_invalid(await admin("POST", SDK, body), field, issue)


async def test_a_proxy_key_takes_no_fields_of_an_sdk_key(live: Live, admin: Automation):
    """Interface 4.4: unknown fields are refused."""
    body = {"name": "edge", "environment": "staging"}
    with nothing_stored(live):
        for more in ({"kind": "public"}, {"platforms": ["web"]}, {"allowed_origins": []}):
            assert_invalid(await admin("POST", PROXY, {**body, **more}), next(iter(more)), "unknown_field")


@pytest.mark.slow(0.2)
async def test_a_key_is_found_only_by_routes_of_its_own_kind_and_organization(live: Live):
    """Interface 4.4 and 7: `404 not_found`, the same for a foreign key, one of another kind, and none at all."""
    automation, stranger = Automation(live), Automation(live, organization=live.new_organization())
    own_proxy, own_secret = live.issue("proxy")[0].id, live.issue("secret")[0].id
    foreign = {path: (await stranger.issue(path))[0]["id"] for path in (SDK, PROXY)}
    nobodys = ["key_00000000000000000000", "key_", "x", "%00", "key_" + "x" * 600, "%F0%9F%94%91" * 20, "..%2F"]
    heard: list[dict[str, Any]] = []
    before = stored_keys(live) | stored_keys(live, stranger.organization.number)
    for path, wrong_kind in ((SDK, own_proxy), (PROXY, own_secret)):
        for key_id in (wrong_kind, foreign[path], foreign[SDK], automation.key.id, *nobodys):
            response = await automation("POST", f"{path}/{key_id}/revoke")
            assert_error(response, 404, "not_found")
            heard.append(response.json()["error"])
    for key_id in (own_proxy, foreign[SDK], automation.key.id, *nobodys):
        response = await automation("PUT", f"{SDK}/{key_id}/allowed-origins", {"allowed_origins": []})
        assert_error(response, 404, "not_found")
        heard.append(response.json()["error"])
    assert all(error == heard[0] for error in heard)
    assert stored_keys(live) | stored_keys(live, stranger.organization.number) == before


@pytest.mark.served(region="eu")
async def test_keys_are_of_the_region_of_the_server(live: Live):
    """Interface 1: every key belongs to one region."""
    admin = Automation(live, region="eu")
    for path, mark in ((SDK, "pk"), (PROXY, "px")):
        key, _ = await admin.issue(path)
        assert (key["region"], key["prefix"]) == ("eu", f"svc_{mark}_eu_development")


async def test_the_last_use_of_a_key_is_shown(live: Live, admin: Automation):
    """Interface 2.7, decisions 2.4."""
    _, secret = await admin.issue(allowed_origins=[ORIGIN])
    live.clock.advance(seconds=3)
    await visit(live, secret)
    assert (await listed(admin, SDK))[0]["last_used_at"] == "2026-01-01T00:00:03.000Z"


@pytest.mark.parametrize("reading", [True, False])
async def test_the_last_use_of_a_management_key_is_written_at_most_once_a_minute(live: Live, reading: bool):
    """Decisions 2.3, whether the key reads or changes."""
    automation = Automation(live)

    async def last_use() -> int | None:
        await (listed(automation, SDK) if reading else automation.issue())
        with live.found.store.read() as snapshot:
            (found,) = [key for _, key in snapshot.scan(KEYS) if key.id == automation.key.id]
        return found.last_used_at_ms

    first = live.clock.now_ms
    assert await last_use() == first
    live.clock.advance(seconds=59.999)
    commits = live.found.store.statistics().commits
    assert await last_use() == first
    assert live.found.store.statistics().commits == commits + (0 if reading else 1)
    live.clock.advance(seconds=0.001)
    assert await last_use() == first + 60_000


@PATHS
async def test_a_key_is_shown_only_once_it_is_on_disk(live: Live, admin: Automation, threads: HeldThreads, path: str):
    """What was answered is durable: while the commit is held, there is no answer and no key."""
    answered: list[dict[str, Any]] = []

    async def issue() -> None:
        answered.append((await admin.issue(path))[0])

    threads.hold()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(issue)
        with trio.fail_after(60):
            while not threads.waiting:
                await trio.lowlevel.checkpoint()
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert (answered, stored_keys(live)) == ([], {})
        threads.release()
    assert [key["id"] for key in answered] == list(stored_keys(live))


@pytest.mark.served(map_bytes=512 << 10)
async def test_a_full_store_issues_nothing_and_still_reads(live: Live, admin: Automation):
    """Interface 7: `503 service_unavailable`."""
    label = "x" * 60
    origins = [f"https://{label}.{label}.{label}.s{index:03}.example" for index in range(100)]
    body = {"name": "shop", "environment": "staging", "allowed_origins": origins}
    issued = 0
    while (response := await admin("POST", SDK, body)).status_code == 201:
        issued += 1
    assert_error(response, 503, "service_unavailable")
    assert "secret" not in response.json()
    live.clock.advance(hours=1)
    assert len(await listed(admin, SDK)) == issued > 0


async def test_the_routes_of_keys_accept_only_their_methods_and_parameters(live: Live, admin: Automation):
    """Decisions 1.6, 1.7. A body where none is asked for is not looked at."""
    key, _ = await admin.issue()
    another, _ = await admin.issue()
    assert (await admin("POST", f"{SDK}/{another['id']}/revoke", {"name": "x"})).status_code == 200
    with nothing_stored(live):
        assert_invalid(await admin("GET", f"{SDK}?status=active"), "status", "unknown_field", "query")
        response = await admin("DELETE", f"{SDK}/{key['id']}/revoke")
        assert_error(response, 405, "method_not_allowed")
        assert response.headers["allow"] == "POST"
        assert_error(await admin("GET", f"{SDK}/{key['id']}"), 404, "not_found")
        assert_error(await admin("POST", "/management-keys", {"name": "x"}), 404, "not_found")


async def test_a_management_response_has_no_cors_headers(admin: Automation):
    """Decisions 3.11: no CORS here; a preflight is a method that the path does not take."""
    response = await admin("OPTIONS", SDK, origin=ORIGIN, **BROWSER)
    assert_error(response, 405, "method_not_allowed")
    for answered in (response, await admin("GET", SDK), await admin("GET", SDK, origin=ORIGIN)):
        assert not [name for name in answered.headers if name.startswith("access-control")]


@pytest.mark.slow
@PATHS
async def test_an_organization_has_at_most_200_active_keys(live: Live, admin: Automation, path: str):
    """Decisions 2.5: of all kinds together; revoked and expired ones don't count, another organization's neither."""
    live.issue(organization=live.new_organization().number)
    kinds = ("public", "secret", "proxy", "management")
    minute_ms = live.clock.now_ms + 60_000
    issued = [live.issue(kinds[n % 4], **({"expires_at_ms": minute_ms} if n % 99 == 0 else {})) for n in range(198)]
    body = {"name": "one more", "environment": "staging"}
    assert (await admin("POST", path, body)).status_code == 201
    with nothing_stored(live):
        assert_error(await admin("POST", path, body), 409, "key_limit")
        with pytest.raises(CommandError, match="svc key revoke"):
            live.issue()
    live.revoke(issued[1][0])
    assert (await admin("POST", path, body)).status_code == 201
    assert_error(await admin("POST", path, body), 409, "key_limit")
    live.clock.advance(seconds=60)
    statuses = [(await admin("POST", path, body)).status_code for _ in range(3)]
    assert statuses == [201, 201, 409], "two keys have expired"
    live.revoke(issued[0][0])
    assert_error(await admin("POST", path, body), 409, "key_limit")


@pytest.mark.served(keys_per_day=3)
@PATHS
async def test_keys_issued_per_day_are_limited_for_an_organization(live: Live, admin: Automation, path: str):
    """Decisions 2.5, 4: `429` until midnight (UTC), whatever was revoked; another organization is not concerned."""
    live.clock.advance(hours=1)
    body = {"name": "shop", "environment": "staging"}
    for _ in range(2):
        answer = await admin("POST", path, body)
        assert answer.status_code == 201
        key_id = answer.json()["key" if path == SDK else "credential"]["id"]
        assert (await admin("POST", f"{path}/{key_id}/revoke")).status_code == 200
    with nothing_stored(live):
        refused = await admin("POST", path, body)
    assert_error(refused, 429, "rate_limited")
    assert "has used up the 3 keys that it may issue today" in refused.json()["error"]["message"]
    assert int(refused.headers["retry-after"]) == 23 * 3600
    other = Automation(live, organization=live.new_organization())
    assert (await other("POST", path, body)).status_code == 201
    live.clock.advance(hours=23)
    assert (await admin("POST", path, body)).status_code == 201


async def test_keys_issued_per_day_by_the_command_line_are_limited(live: Live, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SVC_KEYS_PER_DAY", "2")
    live.issue()
    live.issue()
    with pytest.raises(CommandError, match=r"has used up the 2 keys.*keys_per_day"):
        live.issue()


@PATHS
@pytest.mark.slow(0.3)
async def test_a_list_is_read_in_bounded_steps_and_is_complete(live: Live, path: str, monkeypatch: pytest.MonkeyPatch):
    """Decisions 2.5: a page reads no key far beyond its last one."""
    automation = Automation(live)
    wanted, other = ("secret", "proxy") if path == SDK else ("proxy", "secret")
    for number in range(3 * MAX_AT_ONCE):
        live.clock.advance(seconds=0.001)
        live.issue(wanted if number % 3 else other, name=f"{number}")
    names = [f"{number}" for number in range(3 * MAX_AT_ONCE) if number % 3]
    assert [row["name"] for row in await listed(automation, path)] == names
    read: set[str] = set()  # on a database a query begins again when rows are missing
    scan_keys = lookups.scan_keys

    def heard(*given: Any) -> Iterator[ApiKey]:
        for key in scan_keys(*given):
            read.add(key.id)
            yield key

    monkeypatch.setattr(lookups, "scan_keys", heard)
    for limit in (1, 21, 22, len(names)):
        read.clear()
        page = (await automation("GET", f"{path}?limit={limit}")).json()
        assert [row["name"] for row in page[LIST_OF[path]]] == names[:limit]
        assert ("next_cursor" in page) == (limit < len(names))
        assert len(read) <= limit * 3 // 2 + 2 * MAX_AT_ONCE
