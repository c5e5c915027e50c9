"""The program in locales other than UTF-8, and what it does with bytes that are no text."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from svc.command.output import cut, padded, show_table
from tests.support.process import ENVIRONMENT, PROGRAM, run_json

pytestmark = pytest.mark.slow(2)

NAME = "ショップ 🛒"
NOT_TEXT = os.fsdecode(b"caf\xe9")


def ran(*arguments: object, **variables: str) -> subprocess.CompletedProcess[bytes]:
    """A whole start: the streams of a process have an encoding from its first moment on."""
    words = [*PROGRAM, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, env={**ENVIRONMENT, **variables}, timeout=60, check=False)


def test_output_is_utf_8_also_where_the_locale_lacks_its_characters(tmp_path: Path):
    created = ran("org", "create", NAME, "--data", tmp_path, "--json", PYTHONIOENCODING="latin-1")
    assert (created.returncode, created.stderr) == (0, b"")
    assert json.loads(created.stdout.decode())["name"] == NAME
    assert NAME in ran("org", "list", "--data", tmp_path, PYTHONIOENCODING="latin-1").stdout.decode()


def test_the_names_of_crawlers_are_read_in_every_locale():
    code = "from svc.identify.useragent.crawlers import _known; assert len(_known()[0]) > 500"
    ascii_locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    subprocess.run([sys.executable, "-c", code], env={**ENVIRONMENT, **ascii_locale}, timeout=60, check=True)


def test_an_argument_that_is_no_text_is_refused_before_anything_is_done(tmp_path: Path):
    organization = run_json("org", "create", "shop", "--data", str(tmp_path))["organization_id"]
    for arguments in (
        ("org", "create", NOT_TEXT),
        ("org", "credit", organization, "--usd", "5", "--note", NOT_TEXT),
        ("key", "issue", organization, "--kind", "management", "--name", NOT_TEXT),
        ("account", "erase", organization, NOT_TEXT, "--yes"),
        ("events", "list", organization, "--tag", NOT_TEXT),
        ("backup", tmp_path / NOT_TEXT),
    ):
        refused = ran(*arguments, "--data", tmp_path)
        assert (refused.returncode, refused.stdout) == (2, b""), arguments
        assert b"caf\\xe9 is not UTF-8 text" in refused.stderr
    assert [each["balance_micros"] for each in run_json("org", "list", "--data", str(tmp_path))["organizations"]] == [0]


def test_a_variable_that_is_no_text_is_refused_by_its_name_alone():
    refused = ran("webhook", "verify", "--timestamp", "1", "--signature", "sha256=00", WEBHOOK_SECRET=NOT_TEXT)
    assert (refused.returncode, refused.stdout) == (2, b"")
    assert refused.stderr == b"Error: the variable WEBHOOK_SECRET is not UTF-8 text\n"


def test_columns_stand_below_each_other_on_a_terminal(capsys: pytest.CaptureFixture[str]):
    names = ["plain", "株式会社", "cafe\u0301", "\U0001f642", "a\u200bb", "a\u061cb"]
    show_table([{"name": name, "last": "|"} for name in names], ("name", "last"), "names", as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "name      last",
        "plain     |",
        "株式会社  |",
        "cafe\u0301      |",
        "\U0001f642        |",
        "a\u200bb        |",
        "a\\u061cb  |",
    ]
    assert [padded(cut(text, 5), 5) for text in ("株式会社", "会社", "cafe\u0301s", "account")] == [
        "株式…",
        "会社 ",
        "cafe\u0301s",
        "acco…",
    ]
