"""The man page: complete, the same at each build of a commit, and clean for the programs that show it."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from svc.kernel.config import Config
from svc.kernel.config_loading import NOT_SETTINGS
from tests.test_docs import all_commands
from tools import man_page

AT_S = 1_767_225_600
PAGE = man_page.page(AT_S)
SHOWN = {
    "man": ["--warnings=w", "--encoding=UTF-8", "-l"],
    "mandoc": ["-T", "lint", "-W", "all"],
}
"""Programs that show pages, and how they say what is wrong with one."""


def commands() -> Iterator[tuple[str, click.Command]]:
    yield from list(all_commands())[1:]


def test_the_page_has_every_command_and_each_of_its_options():
    sections = dict(re.findall(r"^\.SS (svc .*)\n((?:(?!\.S[HS]).*\n)*)", PAGE, re.MULTILINE))
    assert set(sections) == {path.replace("-", "\\-") for path, _ in commands()}
    for path, command in commands():
        text = sections[path.replace("-", "\\-")].replace("\\-", "-")
        for param in command.params:
            if isinstance(param, click.Option) and not param.hidden:
                assert param.opts[0] in text, f"{path} {param.opts[0]}"


def test_the_page_has_every_variable():
    wanted = {f"SVC_{name.upper()}" for name in Config.__struct_fields__} | NOT_SETTINGS
    assert set(re.findall(r"^\\fB(SVC_[A-Z_0-9]+)\\fR$", PAGE, re.MULTILINE)) == wanted


def test_the_page_has_the_date_that_it_is_given():
    assert PAGE.startswith('.TH SVC 1 "2026-01-01" "svc ')
    assert man_page.page(AT_S) == PAGE
    assert man_page.page(AT_S + 86_400) == PAGE.replace("2026-01-01", "2026-01-02", 1)


@pytest.mark.slow
@pytest.mark.parametrize("viewer", SHOWN)
@pytest.mark.parametrize("name", man_page.PAGES)
def test_a_program_that_shows_pages_has_nothing_to_say_of_it(viewer: str, name: str, tmp_path: Path):
    found = shutil.which(viewer)
    if found is None:
        pytest.skip(f"{viewer} is not installed")
    file = tmp_path / name
    file.write_text(man_page.PAGES[name](AT_S))
    done = subprocess.run([found, *SHOWN[viewer], str(file)], capture_output=True, text=True, check=False)
    assert done.stderr == ""
    if viewer == "mandoc":
        assert done.stdout == ""
    else:
        assert "svc" in done.stdout


def test_what_roff_would_take_for_its_own_is_escaped():
    assert man_page.marked(".a\n--b 'c' \\d ^e ~f `g\nh`") == (
        "\\&.a\n\\-\\-b \\(aqc\\(aq \\ed \\(hae \\(tif \\fBg\\fR\n\\fBh\\fR"
    )
