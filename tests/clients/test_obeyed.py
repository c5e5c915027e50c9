"""Decisions 20: a rule is obeyed from the page to the shop. A sign-up page reports, a rule blocks the third account,
and a shop that acts on `decision` refuses it, by the library of each language, by an event and by a signed verdict. The
shop of `examples/django` does the same in `tests/web/test_examples.py`.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import trio
from svc_client import Client, Expected

from tests.clients.conftest import Library
from tests.clients.test_go import program
from tests.support.live import ORIGIN, Live, live_service, report
from tools import java_library
from tools.java_library import ARTIFACT, compile_to, missing
from tools.versions import version

pytestmark = pytest.mark.slow(10)
PROGRAMS = Path(__file__).parent / "programs"
THIRD = {
    "name": "Third account",
    "condition": 'action == "sign_up" && velocity.visitor.accounts["24h"] >= 3',
    "action": "block",
}
ELSEWHERE = "198.51.100.7"


class Form(NamedTuple):
    """What a shop gets with a form: a request id or a signed verdict, its own tag, and the address to compare."""

    sent: str
    tag: str
    ip: str = ""


class Told(NamedTuple):
    """What a shop is told about a form."""

    decision: str
    reasons: list[str]


Shop = Callable[[Live, str, list[Form]], Awaitable[list[Told]]]
"""Of a service, with a secret key."""


async def python_shop(live: Live, secret: str, forms: list[Form]) -> list[Told]:
    used: set[str] = set()

    def is_first_use(request_id: str) -> bool:
        is_new = request_id not in used
        used.add(request_id)
        return is_new

    def told() -> list[Told]:
        with Client(live.url, secret) as svc:
            found: list[Told] = []
            for sent, tag, ip in forms:
                if "." in sent:
                    expected = Expected(
                        live.organization.id, "development", ORIGIN, ip or None, tag, action="sign_up",
                        allow_unknown=True,
                    )  # fmt: skip
                    checked = svc.check_verdict(sent, expected, is_first_use=is_first_use)
                else:
                    checked = svc.check(
                        sent, origin=ORIGIN, tag=tag, ip=ip or None, action="sign_up", allow_unknown=True,
                        is_first_use=is_first_use,
                    )  # fmt: skip
                found.append(Told(checked.decision, checked.reasons))
            return found

    return await trio.to_thread.run_sync(told)


async def by_lines(command: list[str], live: Live, secret: str, forms: list[Form]) -> list[Told]:
    """What a program prints of forms, one in a line."""
    done = await trio.run_process(
        [*command, live.url, secret, ORIGIN, live.organization.id],
        stdin="\n".join("\t".join(form) for form in forms).encode(),
        capture_stdout=True,
        capture_stderr=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split("\t") for line in done.stdout.decode().splitlines()]
    return [Told(decision, [reason for reason in reasons if reason]) for decision, *reasons in lines]


@pytest.fixture(scope="module", params=["Python", "Node.js", "Go", "Java"])
def shop(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The shop of a language; skips where its tool is missing."""
    language, folder = request.param, tmp_path_factory.mktemp("shop")
    if language == "Python":
        return python_shop
    if language == "Node.js":
        library: Library = request.getfixturevalue("library")

        async def node_shop(live: Live, secret: str, forms: list[Form]) -> list[Told]:
            told = await library.run(
                """
                const svc = new Client({ baseUrl: URL, apiKey: KEY });
                const used = new Set(), told = [];
                const isFirstUse = (id) => !used.has(id) && Boolean(used.add(id));
                for (const [sent, tag, ip] of FORMS) {
                  const about = { origin: ORIGIN, tag, ip: ip || null, action: "sign_up", allowUnknown: true };
                  const action = { ...about, isFirstUse };
                  const { decision, reasons } = sent.includes(".")
                    ? await svc.checkVerdict(sent, { ...action, organizationId: ORG, environment: "development" })
                    : await svc.check(sent, action);
                  told.push([decision, reasons]);
                }
                return told;
                """,
                URL=live.url, KEY=secret, FORMS=[list(form) for form in forms], ORIGIN=ORIGIN,
                ORG=live.organization.id,
            )  # fmt: skip
            return [Told(*one) for one in told]

        return node_shop
    if language == "Go":
        command = [str(program(folder, (PROGRAMS / "go_shop" / "main.go").read_text()))]
    else:
        reason = missing()
        if reason is not None:
            pytest.skip(f"the library for Java can't be compiled: {reason}")
        assert java_library.main(str(folder / "dist")) == 0
        place = folder / "dist" / "maven" / "svc" / "visitor" / ARTIFACT / version()
        jar = place / f"{ARTIFACT}-{version()}.jar"
        compile_to(folder / "program", PROGRAMS / "java_shop" / "Shop.java", classes=jar)
        command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jar}:{folder / 'program'}", "Shop"]

    async def compiled_shop(live: Live, secret: str, forms: list[Form]) -> list[Told]:
        return await by_lines(command, live, secret, forms)

    return compiled_shop


async def save_rule(live: Live) -> None:
    path = f"/api/v1/management/organizations/{live.organization.id}/rules?environment=test"
    body = {"revision": 0, "rules": [THIRD]}
    saved = await live.client.put(path, json=body, headers={"x-api-key": live.issue("management")[1]})
    assert saved.status_code == 200, saved.text


async def test_the_third_account_is_refused_from_the_rule_to_the_shop(shop: Shop, tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        await save_rule(live)
        key, secret = live.issue()[1], live.issue("secret")[1]
        forms: list[Form] = []
        for number in range(1, 4):
            tag = f"t{number}"
            about: dict[str, Any] = {"tag": tag, "action": "sign_up", "account_id": f"a{number}", "verdict": True}
            by_event, by_verdict = [(await live.identify(key, **about)).json() for _ in range(2)]
            forms += [Form(by_event["request_id"], tag), Form(by_verdict["verdict"], tag)]
        told = await shop(live, secret, forms)
    assert told[0] == told[1] == Told("accept", [])
    assert "refuse" not in {decision for decision, _ in told[:4]}
    for decision, reasons in told[4:]:
        assert (decision, reasons[0]) == ("refuse", "rule:Third account")


async def test_a_sign_up_counts_before_its_account_is_known(shop: Shop, tmp_path: Path):
    """Decisions 11.2: the backend sets each account after the sign-up, and the third is refused while it is opened."""
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        await save_rule(live)
        key, secret = live.issue()[1], live.issue("secret")[1]
        forms: list[Form] = []
        for number in range(1, 4):
            for device, name in ((1, "request_id"), (2, "verdict")):
                tag = f"t{number}"
                signals = report(device) | {"client_token": f"the browser {device}"}
                response = await live.identify(key, signals, tag=tag, action="sign_up", verdict=True)
                forms.append(Form(response.json()[name], tag))
                path = f"/api/v1/events/{response.json()['request_id']}"
                body = {"account_id": f"account {device} {number}"}
                patched = await live.client.patch(path, json=body, headers={"x-api-key": secret})
                assert patched.status_code == 200, patched.text
        told = await shop(live, secret, forms)
    assert [one.decision for one in told] == ["accept"] * 4 + ["refuse"] * 2
    assert [one.reasons[0] for one in told[4:]] == ["rule:Third account"] * 2


def rule_of(told: Told) -> str | None:
    """The rule that speaks against the form."""
    return next((reason.removeprefix("rule:") for reason in told.reasons if reason.startswith("rule:")), None)


async def test_a_rule_is_tried_looked_at_enforced_and_undone(tmp_path: Path):
    """The walk of who makes the rule: shadow, what it matched, preview, active, a list, and back."""
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        key, secret, admin = live.issue()[1], live.issue("secret")[1], live.issue("management")[1]
        accounts = iter(range(100))

        async def manage(method: str, path: str, body: Any = None) -> Any:
            path = f"/api/v1/management/organizations/{live.organization.id}{path}"
            response = await live.client.request(method, path, json=body, headers={"x-api-key": admin})
            assert response.status_code in (200, 204), response.text
            return response.json() if response.content else None

        async def save(**changed: Any) -> dict[str, Any]:
            read = await manage("GET", "/rules?environment=test")
            kept = [rule for rule in read["rules"] if rule["name"] != THIRD["name"]]
            mine = [rule for rule in read["rules"] if rule["name"] == THIRD["name"]] or [THIRD]
            body = {"revision": read["revision"], "rules": [*kept, mine[0] | changed]}
            return await manage("PUT", "/rules?environment=test", body)

        async def sign_up() -> tuple[dict[str, Any], Told]:
            answer = (await live.identify(key, tag="t", action="sign_up", account_id=f"a{next(accounts)}")).json()
            (told,) = await python_shop(live, secret, [Form(answer["request_id"], "t")])
            return answer, told

        async def matched(**query: Any) -> list[str]:
            response = await live.client.get("/api/v1/events", params=query, headers={"x-api-key": secret})
            return [row["request_id"] for row in response.json()["rows"]]

        saved = await save(mode="shadow")
        assert "warnings" not in saved, "the two rules of the start are kept"
        rule_id = saved["rules"][-1]["id"]
        for _ in range(2):
            await sign_up()
        third, told = await sign_up()
        assert rule_of(told) is None
        assert await matched(rule=rule_id, shadow="true") == [third["request_id"]]
        rules = [rule | {"mode": "active"} for rule in saved["rules"]]
        preview = await manage("POST", "/rules/preview?environment=test", {"rules": rules})
        assert preview["rules"][-1]["matches"] == 1
        assert preview["rules"][-1]["examples"] == [third["request_id"]]
        await save(mode="active")
        fourth, told = await sign_up()
        assert (told.decision, rule_of(told)) == ("refuse", "Third account")
        assert await matched(rule=rule_id) == [fourth["request_id"]]
        await save(mode="off")
        assert rule_of((await sign_up())[1]) is None
        lists = (await manage("GET", "/lists"))["lists"]
        (blocked,) = (each["id"] for each in lists if each["name"] == "blocked_visitors")
        await manage("POST", f"/lists/{blocked}/entries", {"entries": [{"value": fourth["visitor_id"]}]})
        assert rule_of((await sign_up())[1]) == "Blocked"
        await manage("DELETE", f"/lists/{blocked}/entries", {"values": [fourth["visitor_id"]]})
        assert rule_of((await sign_up())[1]) is None


async def test_another_address_asks_for_a_second_factor_and_is_used(shop: Shop, tmp_path: Path):
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        key, secret = live.issue()[1], live.issue("secret")[1]
        forms: list[Form] = []
        for device in (1, 2):
            signals = report(device)
            answer = (await live.identify(key, signals, tag="t", action="sign_up", verdict=True)).json()
            one = answer["request_id" if device == 1 else "verdict"]
            forms += [Form(one, "t", ELSEWHERE), Form(one, "t", ELSEWHERE), Form(one, "t")]
        told = await shop(live, secret, forms)
    once = [Told("verify", ["other_address"]), *[Told("refuse", ["used_before"])] * 2]
    assert told == once * 2


async def test_verdicts_leave_out_what_visitors_must_not_see_and_events_do_not(tmp_path: Path):
    """Decisions 13: with `decision_in_response: false`. Who uses verdicts alone does not obey rules then."""
    async with live_service(tmp_path, now_ms=round(time.time() * 1000)) as live:
        await save_rule(live)
        path = f"/api/v1/management/organizations/{live.organization.id}/settings"
        body = {"decision_in_response": False}
        changed = await live.client.patch(path, json=body, headers={"x-api-key": live.issue("management")[1]})
        assert changed.status_code == 200, changed.text
        key, secret = live.issue()[1], live.issue("secret")[1]
        answers = [
            (await live.identify(key, tag="t", action="sign_up", account_id=f"a{number}", verdict=True)).json()
            for number in range(4)
        ]
        forms = [Form(answers[2]["request_id"], "t"), Form(answers[3]["verdict"], "t")]
        by_event, by_verdict = await python_shop(live, secret, forms)
    assert (by_event.decision, by_event.reasons[0]) == ("refuse", "rule:Third account")
    assert not any(reason.startswith("rule:") for reason in by_verdict.reasons)
