"""What the pages say to type of `svc` alone is carried out, and prints what they show."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import trio

from tests.spec.commands import Run
from tests.spec.test_event_commands import Shop, populate
from tests.support.development import running
from tests.test_docs import ROOT, all_commands, block, written_commands

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("engine")]

OF_APPS = [
    ROOT / "clients/android/core/src/main/kotlin/svc/visitor/Api.kt",
    ROOT / "clients/ios/Sources/SvcVisitorCore/Api.swift",
]
"""Their messages have commands, too."""
CALL = r"(svc [a-z][^`\n]*)"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    """A store with events and an endpoint, in SVC_DATA."""
    made = trio.run(populate, tmp_path / "shop")
    monkeypatch.setenv("SVC_DATA", str(made.directory))
    return made


def lines(page: str, kind: str, containing: str, **names: Any) -> list[list[str]]:
    """The arguments of each `svc` of a block, with the words that stand for something replaced."""
    calls = re.findall(rf"^(?:\$ )?{CALL}$", block(page, kind, containing), re.MULTILINE)
    assert calls, page
    return [[str(names.get(word, word)) for word in shlex.split(call)[1:]] for call in calls]


def test_every_written_command_that_issues_a_key_issues_one(run: Run, tmp_path: Path):
    organization = run("org", "create", "Shop", "--json").json["organization_id"]
    of_pages = [call for _, call in written_commands()]
    of_apps = [call for path in OF_APPS for call in re.findall(rf"`{CALL}`", path.read_text())]
    issuing = [call for call in [*of_pages, *of_apps] if call.startswith("svc key issue ORG ")]
    assert len(issuing) >= 10, "they are looked for in vain"
    for call in issuing:
        words = re.sub(r" --data \S+", "", call).replace("ORG", organization).split()
        assert run(*words[1:], "--json").json["secret"].startswith("svc_"), call


READING = re.compile(
    r"svc (account (show|list)|audit|collection|data (check|sources|status)|events (list|count|get)|export|inspect|"
    r"key list|label import|list (list|export)|member list|openapi|org (list|show|statement)|rule|signals|"
    r"visitor (show|list)|webhook list)\b"
)
"""Commands whose examples run on any store with events: those that read, and some that are given a file."""
OF_THEIR_OWN = (
    *("--follow", "--hourly", "parquet", "--growth", "--revision", "label import ORG -", "rule set"),
    "inspect readers",
)
"""Examples that wait, or need what the store of this test has not; a database has no readers."""


def test_every_example_of_a_command_that_reads_is_carried_out(
    run: Run, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    request_id, visitor = shop.answers[1]["request_id"], shop.answers[1]["visitor_id"]
    (tmp_path / "chargebacks.csv").write_text(f"request_id,label,label_reason\n{request_id},fraud,chargeback\n")
    names = {
        "ORG": shop.organization,
        "VISITOR": visitor,
        "ACCOUNT": "user-7",
        "user-8271": "user-7",
        "staging": "production",
    }
    names |= {"019b76da-a800-7000-8000-000000000000": request_id, "/var/lib/svc": str(shop.directory)}
    given = [line.strip() for _, command in all_commands() for line in (command.epilog or "").splitlines()]
    shown = [line for line in given if READING.match(line) and not any(word in line for word in OF_THEIR_OWN)]
    assert len(shown) > 40, "they are looked for in vain"
    for line in shown:
        words = [names.get(word, word) for word in shlex.split(line.partition(" > ")[0])]
        done = run(*words[1:])
        assert done.status == 0, f"{line}\n{done.err}"


def test_the_rows_that_the_page_about_the_store_names_are_shown(run: Run, shop: Shop):
    request_id, occurred_at = (shop.rows[0][name] for name in ("request_id", "occurred_at"))
    names = {
        "019b76da-a800-71c5-b20c-69c144a737c2": request_id,
        "2026-01-05T10:00:00.000Z": f"{occurred_at[:13]}:00:00.000Z",
    }
    for words in lines("inspection.md", "sh", "svc inspect rows organizations", **names):
        shown = run(*words)
        assert (shown.status, bool(shown.out)) == (0, True), (words, shown.err)


def test_an_invitation_leads_to_the_address_that_the_page_names(run: Run, shop: Shop):
    (words,) = lines("members.md", "sh", "svc member invite ORG ada@shop.example", ORG=shop.organization)
    assert run(*words).out.startswith("https://svc.example.com/console#svc_ci_")


def test_the_key_of_signed_verdicts_is_rotated(run: Run, shop: Shop):
    (words,) = lines("signed-verdicts.md", "console", "svc org rotate-verdict-key", **{"org_...": shop.organization})
    assert len(run(*words, "--json").json["keys"]) == 3, "the current, the next and the previous one"


def test_dead_letters_are_recovered(run: Run, shop: Shop):
    names = {"whk_4Jm0Vn2rT8sKq1ZxYb3A": "whk_test", "/var/lib/svc": shop.directory}
    (words,) = lines("webhooks.md", "console", "svc webhook recover", **names)
    assert run(*words).status == 0


def test_a_receiver_says_what_the_page_shows(tmp_path: Path):
    text = block("webhooks.md", "console", "WEBHOOK_SECRET=svc_whsec_")
    command, _, shows = text.partition("\n")
    assert command == "$ WEBHOOK_SECRET=svc_whsec_... svc webhook listen"
    given, folder = {"WEBHOOK_SECRET": "svc_whsec_" + "a" * 43}, tmp_path / "webhook-listen"
    words = ("webhook", "listen", "--bind", "127.0.0.1:0", "--tls", folder)
    with running(*words, until="SVC_WEBHOOK_CA_FILE", **given) as (_, seen):
        shown = re.sub(r"localhost:\d+", "localhost:8443", seen).replace(str(folder), "/home/me/webhook-listen")
    assert shown == shows
