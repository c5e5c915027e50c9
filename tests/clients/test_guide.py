"""The code of docs/server-libraries.md runs as it stands, against a running service."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import trio
from svc_client import ApiError, Checked, Client, Problem

from svc.features.webhooks.content.envelope import seal, signed_headers
from tests.clients.conftest import Library
from tests.spec.subscriber import URL, subscribing
from tests.spec.test_proven_visits import Browser
from tests.support.live import ORIGIN, live_service, report
from tests.test_docs import DOCS, block

PAGE = "server-libraries.md"
EVENT = UUID("01993f0e-52a1-7c3d-9b52-6f1f3c0a9d11")
SECRET = "svc_whsec_" + "aB3" * 14 + "x"

pytestmark = pytest.mark.slow(5)


def names(containing: str, **changed: str) -> dict[str, Any]:
    """What a block of Python defines, with some of its text changed to what this test runs."""
    source = block(PAGE, "python", containing)
    for old, new in changed.items():
        assert old in source
        source = source.replace(old, new)
    found: dict[str, Any] = {}
    exec(compile(source, PAGE, "exec"), found)
    return found


def delivery() -> tuple[bytes, dict[str, str]]:
    now_s = int(time.time())
    organization = "org_4Jm0Vn2rT8sKq1ZxYb3A"
    event = seal(EVENT, "webhook.test", "live", organization, {}, now_s * 1000)
    return event.body, signed_headers(EVENT, event, (SECRET,), now_s)


async def test_the_login_examples_in_python_decide_correctly(tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        ids = [(await live.identify(key, tag="t")).json()["request_id"] for _ in range(2)]
        text = {"https://id.shop.example": live.url, "svc_sk_us_production_...": secret}
        blocking = names("def log_in(", **text)

        def first(_: str) -> bool:
            return True

        def decided() -> list[str]:
            with blocking["svc"]:
                return [blocking["log_in"](one, tag, first) for one in ids for tag in ("t", "other")]

        said = await trio.to_thread.run_sync(decided)
        assert said == ["verify", "refuse", "accept", "refuse"]


async def test_the_sign_up_example_accepts_a_new_visitor_where_a_log_in_asks_for_a_second_factor(tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        ids = [(await live.identify(key, report(n), tag="t", action="sign_up")).json()["request_id"] for n in (1, 2)]
        sign_up = names("def sign_up(", **{"https://shop.example": ORIGIN})["sign_up"]

        def said() -> list[str]:
            with Client(live.url, secret) as svc:
                asked = svc.check(ids[1], origin=ORIGIN, tag="t", is_first_use=lambda _: True)
                assert asked.reasons == ["not_known"]
                return [sign_up(svc, ids[0], tag, lambda _: True) for tag in ("t", "other")] + [asked.decision]

        assert await trio.to_thread.run_sync(said) == ["accept", "refuse", "verify"]


async def test_the_example_for_a_change_of_the_password_asks_for_a_proven_visit(tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        browser, secret = Browser(live), live.issue("secret")[1]
        answers = [await browser.visit(tag="t") for _ in range(2)]
        change_password = names("def change_password", **{"https://shop.example": ORIGIN})["change_password"]

        def said() -> list[bool]:
            with Client(live.url, secret) as svc:
                return [
                    change_password(svc, one["request_id"], tag, lambda _: True)
                    for one in answers
                    for tag in ("t", "other")
                ]

        assert await trio.to_thread.run_sync(said) == [False, False, True, False]


async def test_the_login_example_in_node_decides_correctly(library: Library, tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        request_id = (await live.identify(key, tag="t")).json()["request_id"]
        source = block(PAGE, "javascript", "logIn")
        assert "https://id.shop.example" in source
        source = source.replace("https://id.shop.example", live.url).replace("svc_sk_us_production_...", secret)
        (library.folder / "log-in.mjs").write_text(source)
        said = await library.run(
            """
            const { logIn } = await import(`file://${process.cwd()}/log-in.mjs`);
            const said = [];
            for (const tag of ["t", "other"]) said.push(await logIn(ID, tag, () => true));
            return said;
            """,
            ID=request_id,
        )
    assert said == ["verify", "refuse"]


def test_the_python_receiver_accepts_only_authentic_deliveries():
    receive = names("def receive")["receive"]
    body, headers = delivery()
    assert (receive(body, headers, SECRET), receive(body + b" ", headers, SECRET)) == (204, 401)


async def test_the_node_receiver_accepts_only_authentic_deliveries(library: Library):
    (library.folder / "receive.mjs").write_text(block(PAGE, "javascript", "function receive"))
    body, headers = delivery()
    said = await library.run(
        """
        const { receive } = await import(`file://${process.cwd()}/receive.mjs`);
        return [BODY, BODY + " "].map((body) => receive(Buffer.from(body), HEADERS, SECRET));
        """,
        BODY=body.decode(), HEADERS=headers, SECRET=SECRET,
    )  # fmt: skip
    assert said == [204, 401]


async def test_the_operations_of_the_page_run(tmp_path: Path):
    async with subscribing(tmp_path, now_ms=round(time.time() * 1000)) as subscriber:
        live = subscriber.live
        answer = (await live.identify(live.issue()[1])).json()
        shown, secret, management = names("def seen_as"), live.issue("secret")[1], live.issue("management")[1]
        origins = await trio.to_thread.run_sync(shown["seen_as"], live.url, secret, answer["visitor_id"])
        made = await trio.to_thread.run_sync(shown["add_endpoint"], live.url, management, URL)
        with pytest.raises(ApiError, match="401 unauthorized"):
            await trio.to_thread.run_sync(shown["add_endpoint"], live.url, secret, URL)
    assert origins == {ORIGIN}
    assert made.startswith("svc_whsec_")


async def test_the_examples_of_the_backend_guide_set_the_account_of_a_sign_up(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        secret = live.issue("secret")[1]
        ids = [(await live.identify(live.issue()[1], action="sign_up")).json()["request_id"] for _ in range(2)]
        found: dict[str, Any] = {}
        exec(compile(block("backend.md", "python", "def signed_up("), "backend.md", "exec"), found)

        def by_python() -> Any:
            with Client(live.url, secret) as svc:
                return found["signed_up"](svc, ids[0], "a")

        (library.folder / "signed-up.mjs").write_text(block("backend.md", "javascript", "signedUp"))
        by_node = await library.run(
            """
            const { signedUp } = await import(`file://${process.cwd()}/signed-up.mjs`);
            return signedUp(new Client({ baseUrl: URL, apiKey: KEY }), ID, "b");
            """,
            URL=live.url, KEY=secret, ID=ids[1],
        )  # fmt: skip
        said = [await trio.to_thread.run_sync(by_python), by_node]
    assert [(event["account_id"], event["action"], event["account_verified"]) for event in said] == [
        ("a", "sign_up", True),
        ("b", "sign_up", True),
    ]


def test_the_page_names_every_problem():
    page = (DOCS / PAGE).read_text()
    assert set(re.findall(r"^\| `(\w+)` \| ", page, re.MULTILINE)) >= set(Problem.__args__)
    assert Checked("too_old", None).decision == "refuse"
