"""docs/privacy.md: its commands do what the page says, on both engines."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import trio

from svc.features.labels.outcomes import OUTCOME_MS
from svc.features.reviews.reviews import NOTE_MS, REVIEW_MS
from svc.kernel.access.audit import AUDIT_MS
from svc.kernel.config import Config
from svc.kernel.values.ids import DAY_MS
from tests.spec.commands import Run
from tests.spec.test_event_commands import OTHER_PLACE, populate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("engine")]

DOCS = Path(__file__).parents[2] / "docs"
PAGE, CONCEPTS = (DOCS / "privacy.md").read_text(), (DOCS / "concepts.md").read_text()


def test_the_recipe_finds_exports_and_erases_a_visitor_and_an_account(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    directory = tmp_path / "shop"
    shop = trio.run(populate, directory)
    monkeypatch.setenv("SVC_DATA", str(directory))
    monkeypatch.chdir(tmp_path)
    visitor = shop.answers[0]["visitor_id"]
    names = {
        "ORG": shop.organization,
        "VISITOR": visitor,
        "ACCOUNT": "user-7",
        "203.0.113.7": OTHER_PLACE["x-forwarded-for"],
    }
    (recipe,) = re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
    find, export, erase, export_account, erase_account = (
        [names.get(word, word) for word in shlex.split(line)[1:]] for line in recipe.splitlines()
    )
    assert visitor in run(*find).out
    assert run("label", "import", shop.organization, written(tmp_path, shop.answers[0]["request_id"])).status == 0
    assert run(*export).status == 0
    file = tmp_path / "visitor.json"
    assert file.stat().st_mode & 0o777 == 0o600
    text = file.read_text()
    for said in ("user-7", "log_in", "cart", "chargeback", visitor, shop.answers[1]["request_id"]):
        assert said in text
    assert shop.answers[2]["visitor_id"] not in text
    assert run(*export_account).status == 0
    account = (tmp_path / "account.json").read_text()
    for said in ("user-7", "log_in", visitor):
        assert said in account
    assert run(*erase_account).status == 0
    assert "user-7" not in run("visitor", "export", shop.organization, visitor).out
    assert run(*erase).status == 0
    run("visitor", "export", shop.organization, visitor).assert_refused(visitor)
    audited = [record["action"] for record in run("audit", "--json").json["records"]]
    assert audited[:2] == ["svc visitor erase", "svc account erase"]
    assert not any("export" in action for action in audited)


def written(folder: Path, request_id: str) -> Path:
    """A file of one label, as of docs/labels.md."""
    path = folder / "labels.csv"
    path.write_text(f"request_id,label,label_reason\n{request_id},fraud,chargeback\n")
    return path


def test_the_times_that_the_page_names_are_those_of_the_program():
    assert AUDIT_MS == OUTCOME_MS == REVIEW_MS == NOTE_MS == 400 * DAY_MS
    (kept,) = re.findall(r"^\| (.*) \| 400 days \|$", CONCEPTS, re.MULTILINE)
    assert [what for what in ("audit log", "outcomes", "reviews", "notes") if what not in kept] == []
    assert {"event_retention_days", "visitor_retention_days"} <= set(Config.__struct_fields__)
    assert "400 days for audit and labels" in PAGE
