"""Signed verdicts of a running service, checked by both libraries."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
from svc_client import AsyncClient, Client, Expected

from svc.features.organizations import jobs as organizations
from tests.clients.cases import ABOUT, forged, in_node, verdict_checks
from tests.clients.conftest import Library
from tests.spec.responses import BROWSER
from tests.support.live import ORIGIN, Live, live_service
from tests.test_docs import block

pytestmark = pytest.mark.slow(5)


async def signed(live: Live) -> str:
    response = await live.identify(live.issue()[1], **ABOUT, verdict=True)
    return response.json()["verdict"]


def expected(case: dict[str, Any]) -> Expected:
    return Expected(
        case["organization"],
        case["environment"],
        case["origin"],
        case["ip"],
        case["tag"],
        datetime.fromtimestamp(case["now"] / 1000, UTC),
        case.get("platform"),
        case.get("proven", False),
        case.get("account_id"),
        case.get("action"),
    )


class Uses:
    """A memory of request ids."""

    def __init__(self) -> None:
        self.known: set[str] = set()

    def __call__(self, request_id: str) -> bool:
        is_new = request_id not in self.known
        self.known.add(request_id)
        return is_new

    async def later(self, request_id: str) -> bool:
        await trio.lowlevel.checkpoint()
        return self(request_id)


async def test_python_accepts_a_verdict_once_for_its_own_action_and_no_forged_one(tmp_path: Path):
    async with live_service(tmp_path) as live:
        token = await signed(live)
        cases = verdict_checks(live.clock.now_ms, live.organization.id)
        problems = [problem for _, problem in cases]
        secret = live.issue("secret")[1]

        def blocking() -> list[str | None]:
            uses = Uses()
            with Client(live.url, secret) as client:
                for name, wrong in forged(token).items():
                    checked = client.check_verdict(wrong, expected(cases[-1][0]), is_first_use=uses)
                    assert (checked.problem, checked.verdict, checked.decision) == ("invalid", None, "refuse"), name
                assert uses.known == set()
                return [client.check_verdict(token, expected(case), is_first_use=uses).problem for case, _ in cases]

        assert await trio.to_thread.run_sync(blocking) == problems
        uses = Uses()
        async with AsyncClient(live.url, secret) as client:
            checked = [await client.check_verdict(token, expected(case), is_first_use=uses.later) for case, _ in cases]
        assert [one.problem for one in checked] == problems
        accepted = next(one for one in checked if one.problem is None)
        ((request_id, event),) = live.events()
        assert accepted.verdict is not None
        assert accepted.verdict["jti"] == request_id
        assert accepted.verdict["sub"] == event.verdict.visitor_id
        assert (accepted.verdict.get("account_id"), accepted.verdict.get("action")) == ("a", "log_in")
        assert accepted.decision == "verify"


async def test_node_accepts_a_verdict_once_for_its_own_action_and_no_forged_one(library: Library, tmp_path: Path):
    async with live_service(tmp_path) as live:
        token = await signed(live)
        cases = verdict_checks(live.clock.now_ms, live.organization.id)
        told = await library.run(
            """
            const client = new Client({ baseUrl: URL, apiKey: KEY });
            const used = new Set(), told = [], wrong = [];
            const isFirstUse = async (id) => !used.has(id) && Boolean(used.add(id));
            const given = ({ organization: organizationId, ...action }) => ({ organizationId, ...action, isFirstUse });
            for (const token of FORGED) wrong.push((await client.checkVerdict(token, given(CASES.at(-1)))).problem);
            for (const one of CASES) told.push(await client.checkVerdict(TOKEN, given(one)));
            return { wrong, told, used: [...used] };
            """,
            URL=live.url, KEY=live.issue("secret")[1], TOKEN=token,
            FORGED=list(forged(token).values()), CASES=in_node(cases),
        )  # fmt: skip
        ((request_id, _),) = live.events()
    assert set(told["wrong"]) == {"invalid"}
    assert [one["problem"] for one in told["told"]] == [problem for _, problem in cases]
    assert told["used"] == [request_id]
    assert [one["decision"] for one in told["told"] if one["problem"] is None] == ["verify"]


async def test_the_keys_are_read_once_and_a_rotation_is_known_in_advance(tmp_path: Path):
    async with live_service(tmp_path) as live:
        action = {"now": live.clock.now_ms, "organization": live.organization.id, "environment": "development"}
        accepted = expected({**action, "origin": ORIGIN, "ip": None, "tag": "signup"})
        counted = 0

        async def count(_: object) -> None:
            nonlocal counted
            counted += 1

        import httpx

        async with httpx.AsyncClient(verify=False, event_hooks={"request": [count]}) as http:
            client = AsyncClient(live.url, live.issue("secret")[1], http=http)

            async def problem(token: str) -> str | None:
                return (await client.check_verdict(token, accepted, is_first_use=lambda _: True)).problem

            before = await signed(live)
            assert await problem(before) is None
            rotate(live, 24)
            after = await signed(live)
            assert before.split(".")[0] != after.split(".")[0]
            assert [await problem(token) for token in (before, after)] == [None, None]
            rotate(live, 0)
            assert await problem(await signed(live)) == "invalid", "a second rotation within a minute"
        assert counted == 1


def rotate(live: Live, hours: int) -> None:
    job = partial(
        organizations.rotate_verdict_key,
        number=live.organization.number,
        overlap_hours=hours,
        now_ms=live.clock.now_ms,
    )
    (outcome,) = live.found.store.write_now([job])
    assert not isinstance(outcome, Exception)


async def test_the_code_example_of_the_page_decides_correctly(library: Library, tmp_path: Path):
    page = "signed-verdicts.md"
    async with live_service(tmp_path, now_ms=round(time.time() * 1000), trusted_proxies=("127.0.0.1/32",)) as live:
        key = live.issue(environment="production")[1]
        answers = [await live.identify(key, tag="t", headers=BROWSER, verdict=True) for _ in range(2)]
        tokens = [answer.json()["verdict"] for answer in answers]
        names: dict[str, Any] = {}
        exec(compile(block(page, "python", "def log_in_with_verdict"), page, "exec"), names)
        decide, uses = names["log_in_with_verdict"], Uses()
        async with AsyncClient(live.url, live.issue("secret")[1]) as client:
            given = (client, live.organization.id)
            said = [await decide(*given, token, "t", uses) for token in (*tokens, tokens[0])]
        assert said == ["verify", "accept", "refuse"]
        (library.folder / "verdict.mjs").write_text(block(page, "javascript", "logInWithVerdict"))
        told = await library.run(
            """
            const { logInWithVerdict } = await import(`file://${process.cwd()}/verdict.mjs`);
            const svc = new Client({ baseUrl: URL, apiKey: "none" }), said = [];
            for (const token of TOKENS) said.push(await logInWithVerdict(svc, ORG, token, "t", () => true));
            return said;
            """,
            URL=live.url, ORG=live.organization.id, TOKENS=[*tokens, "made up"],
        )  # fmt: skip
    assert told == ["verify", "accept", "refuse"]
