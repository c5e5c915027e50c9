"""What is kept of a version of the store, so that every later program can be tried on it.

    python -m tests.store.release

writes, in `tests/store/released`, `schema-N.json` with the tables of store version N, and `RELEASE.tar.xz` with a data
directory that this program has made and with what is known of it; in the package, which versions of the store the
program serves; and N into the newest notes of `CHANGELOG.md`. Files of a release that is out are never made again:
later programs are for what lies in them. Until the release in `CHANGELOG.md` has its date they may be.
"""

from __future__ import annotations

import base64
import json
import re
import tarfile
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import trio
import trio.testing

import svc
from svc.features.lists.lists import first_list_id
from svc.features.retention.sweeper import sweep
from svc.features.reviews.jobs import add_note
from svc.features.schema import SCHEMA
from svc.features.tables import TABLES
from svc.features.upgrade import release as downloaded
from svc.features.upgrade.release import own_versions
from svc.kernel.store.reading import read_only
from svc.kernel.tenants.jobs import close_day
from svc.kernel.values.ids import DAY_MS
from tests.domain import apple_world
from tests.domain.test_report_native import iphone
from tests.features.house import House
from tests.spec.automation import Automation
from tests.spec.console_browser import link, signed_in
from tests.spec.responses import BROWSER
from tests.spec.subscriber import Subscriber, subscribing
from tests.store.schema import schema
from tests.support.live import ORIGIN, Live, report
from tests.support.mmdb_writer import Tree
from tests.support.proofs import BrowserKey, send

RELEASED = Path(__file__).parent / "released"
VERSIONS = Path(downloaded.__file__).with_name(downloaded.VERSIONS_FILE)
TOKEN = "token-of-the-first-device-0123456789"
MADE = ("key_id", "proxy_credential_id", "webhook_id", "list_id", "review_id", "member_id")
"""Variables of paths that name what a populated service has anyway."""
SAFELY: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
"""Python before 3.11.4 has no filters."""


class Released(NamedTuple):
    """A data directory of a release, unpacked, and what is known of it."""

    directory: Path
    known: dict[str, Any]


def unpack(file: Path, folder: Path) -> Released:
    with tarfile.open(file) as archive:
        archive.extractall(folder, **SAFELY)
    return Released(folder / "data", json.loads((folder / "known.json").read_text()))


def schema_file(version: int) -> Path:
    return RELEASED / f"schema-{version}.json"


def written(described: dict[str, Any]) -> str:
    return json.dumps(described, indent=1) + "\n"


def versions() -> bytes:
    """What a wheel says of the stores that its program serves."""
    return msgspec.json.encode(own_versions()) + b"\n"


async def populate(directory: Path) -> dict[str, Any]:
    """Have a service do something of everything in an empty directory; what is known of it then."""
    with tempfile.TemporaryDirectory() as temporary:
        roots = apple_world.write_roots(Path(temporary) / "roots.pem")
        network = Path(temporary) / "network"
        network.mkdir()
        countries = Tree()
        countries.add(81 << 24, (82 << 24) - 1, {"country_code": "GB"})
        (network / "country.mmdb").write_bytes(countries.content("countries", 1_767_225_600))
        return await _populate(
            directory,
            attestation_apple_roots_file=roots,
            attestation_apple_apps=(apple_world.APP,),
            network_directory=str(network),
        )


HINTS = {"sec-ch-ua": '"Chromium";v="137", "Google Chrome";v="137", "Not/A)Brand";v="24"'}


def _hinted(**more: Any) -> dict[str, Any]:
    """A report of a browser that sends client hints: once it has come back, its origin is remembered."""
    brands = [{"brand": "Google Chrome", "version": "137"}]
    return report(5, client_token=TOKEN[5:] + "hints", uaData={"brands": brands}, **more)


async def _populate(directory: Path, **settings: Any) -> dict[str, Any]:
    async with subscribing(directory, **settings) as subscriber:
        live = subscriber.live
        _, secret = live.issue("secret", environment="production")
        await live.identify(subscriber.production, _hinted(client_token_is_new=True), headers=BROWSER | HINTS)
        live.clock.now_ms += DAY_MS
        first = report(1, client_token=TOKEN, client_token_is_new=True)
        answers = [await live.identify(subscriber.production, first, headers={**BROWSER, "idempotency-key": "first"})]
        endpoint, _ = await subscriber.create()
        answers.append(
            await live.identify(subscriber.production, report(1, client_token=TOKEN), headers=BROWSER, tag="cart")
        )
        answers.append(await live.identify(subscriber.production, report(2, nonce="n" * 20), headers=BROWSER))
        gone = (await live.identify(subscriber.production, report(3))).json()
        await trio.testing.wait_all_tasks_blocked()
        await _manage(subscriber, gone["visitor_id"])
        await _label(subscriber, secret)
        attested = await _attest(live)
        live.set_billing_status("active")
        live.set_billing_status("past_due")
        close = partial(close_day, number=live.organization.number, day=live.clock.now_ms // DAY_MS)
        live.found.store.write_now([close])  # as the settler of a clock that ran ahead
        await _read_feed(live, secret)
        await live.identify(subscriber.production, report(2, nonce="o" * 20), headers=BROWSER)
        signed = report(4, client_token=TOKEN[::-1], nonce="p" * 20, collected_at=live.clock.now_ms)
        await send(live, subscriber.production, BrowserKey().signed(signed), BROWSER)
        bodies = [answer.json() for answer in answers]
        await _supplement(subscriber, bodies[1])
        events = [await _event(subscriber, secret, body["request_id"]) for body in bodies]
        await live.identify(subscriber.production, _hinted(), headers=BROWSER | HINTS)
        await sweep(live.found.store, live.clock.now_ms, 365)
        await _make_the_rest(live, bodies[0]["visitor_id"])
        return {
            "organization": live.organization.id,
            "public_key": subscriber.production,
            "secret_key": secret,
            "endpoint": endpoint,
            "events": events,
            "erased": gone["visitor_id"],
            "attested": attested["visitor_id"],
            "balance": live.balance(),
        }


async def _manage(subscriber: Subscriber, erased: str) -> None:
    admin = Automation(subscriber.live)
    listed = first_list_id(subscriber.live.organization.number, "blocked_addresses")
    entries = [{"value": "203.0.113.0/24", "note": "a farm", "expires_at": "2099-01-01T00:00:00Z"}]
    for response in (
        await admin("PUT", "/risk-weights/web", {"suspect_threshold": 30}),
        await admin("POST", f"/lists/{listed}/entries", {"entries": entries}),
        await admin("PUT", "/rules", {"revision": 0, "rules": [{"name": "a", "condition": "true", "action": "allow"}]}),
        await admin("POST", "/members", {"email": "ada@shop.example", "name": "Ada", "role": "analyst"}),
        await admin("DELETE", f"/visitors/{erased}"),
        await subscriber.live.client.post(
            "/api/v1/attestation/challenge", headers={"x-api-key": subscriber.production, "origin": ORIGIN}
        ),
    ):
        assert response.is_success, response.text
    await signed_in(subscriber.live)
    link(subscriber.live)


async def _label(subscriber: Subscriber, secret: str) -> None:
    """An event that a rule has reviewed, with a label, and a note about its account."""
    live, admin = subscriber.live, Automation(subscriber.live)
    rules = [{"name": "b", "condition": 'present("account.id")', "action": "review"}]
    assert (await admin("PUT", "/rules", {"revision": 1, "rules": rules})).is_success
    answer = await live.identify(subscriber.production, report(5), account_id="user-8271")
    label = await live.client.patch(
        f"/api/v1/events/{answer.json()['request_id']}",
        json={"label": "fraud", "label_reason": "chargeback"},
        headers={"x-api-key": secret},
    )
    assert label.is_success, label.text
    note = partial(
        add_note,
        number=live.organization.number,
        subject="account",
        subject_id="user-8271",
        text="Asked for a refund.",
        now_ms=live.clock.now_ms,
        entropy=b"note",
    )
    live.found.store.write_now([note])


async def _make_the_rest(live: Live, visitor_id: str) -> None:
    """Make whatever else a route makes, so that the tables of every feature have rows."""
    house = House(live, live.organization, "release")
    house.names |= dict.fromkeys(MADE, "") | dict.fromkeys(("account_id", "account_1", "account_2"), "user-8271")
    house.names |= dict.fromkeys(("visitor_id", "visitor_id_1", "visitor_id_2"), visitor_id)
    await house.make_the_rest()


async def _attest(live: Live) -> dict[str, Any]:
    """What an Apple device gets that attests its key."""
    _, key = live.issue(platforms=("ios",), allowed_origins=())
    headers = {"x-api-key": key, "x-svc-sdk-platform": "ios"}
    issued = await live.client.post("/api/v1/attestation/challenge", headers=headers)
    attestation = apple_world.Device().attested(base64.b64decode(issued.json()["challenge"]))
    response = await live.identify(key, iphone(attestation=attestation), origin=None, sdk={"platform": "ios"})
    assert response.is_success, response.text
    return response.json()


async def _read_feed(live: Live, secret: str) -> None:
    """By a clock that is ahead, so that what arrives next is late in the feed."""
    live.clock.now_ms += 3_000
    response = await live.client.get("/api/v1/events?order=oldest", headers={"x-api-key": secret})
    assert response.json()["rows"], response.text
    live.clock.now_ms -= 3_000


async def _supplement(subscriber: Subscriber, answer: dict[str, Any]) -> None:
    signals = {"tier": "deferred", "fonts": ["Arial", "Calibri"]}
    response = await subscriber.live.client.post(
        f"/api/v1/events/{answer['request_id']}/supplement",
        json={"token": answer["deferred_token"], "sdk": {"platform": "web"}, "signals": signals},
        headers={"x-api-key": subscriber.production, "origin": ORIGIN},
    )
    assert response.is_success, response.text


async def _event(subscriber: Subscriber, secret: str, request_id: str) -> dict[str, Any]:
    """As the API shows it."""
    response = await subscriber.live.client.get(f"/api/v1/events/{request_id}", headers={"x-api-key": secret})
    assert response.is_success, response.text
    return response.json()


def release() -> None:
    """Make the files again, and name the version in the notes."""
    notes = Path("CHANGELOG.md")
    notes.write_text(re.sub(r"(?<=tore version )\d+(?=\.)", str(SCHEMA.version), notes.read_text(), count=1))
    schema_file(SCHEMA.version).write_text(written(schema()))
    VERSIONS.write_bytes(versions())
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        known = trio.run(populate, folder / "made")
        (folder / "data" / "store").mkdir(parents=True)
        with read_only(folder / "made" / "store", live=True) as store:
            store.copy(folder / "data" / "store", lambda: 0)
            with store.read() as snapshot:
                known["rows"] = {table.name: snapshot.count(table) for table in TABLES}
        (folder / "data" / "pepper").write_bytes((folder / "made" / "pepper").read_bytes())
        (folder / "known.json").write_text(json.dumps(known))
        with tarfile.open(RELEASED / f"{svc.__version__}.tar.xz", "w:xz", preset=9) as archive:
            for name in ("data", "known.json"):
                archive.add(folder / name, name, filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Without who made it and when."""
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    return member


if __name__ == "__main__":
    release()
