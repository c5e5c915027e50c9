"""Options of a program are those of its docstring."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from bench.usage import read_options

ROOT = Path(__file__).parents[2]
USAGE = """An example.

    python -m bench.example run DIRECTORY [--seed 1] [--share 0.5] [--sizes 1 10] [--kind small|large] [--quick]
        [--json FILE] [--names NAME...]      what is said of it: [--not-one 1]
    python -m bench.example check DIRECTORY [--rows N]
"""


def test_defaults_kinds_and_ways_are_read_from_the_usage():
    given = read_options(USAGE, ["run", "there"])
    assert (given.what, given.directory, given.seed, given.share, given.sizes) == (
        "run",
        Path("there"),
        1,
        0.5,
        [1, 10],
    )
    assert (given.kind, given.quick, given.json, given.names, given.rows) == ("small", False, None, [], None)
    given = read_options(
        USAGE,
        ["check", ".", "--rows", "3", "--sizes", "2", "--kind", "large", "--quick", "--json", "a", "--names", "b", "c"],
    )
    assert (given.what, given.rows, given.sizes, given.kind, given.quick) == ("check", 3, [2], "large", True)
    assert (given.json, given.names) == (Path("a"), ["b", "c"])


@pytest.mark.parametrize("wrong", ["walk .", "run", "run . --kind huge", "run . --seed x", "run . --not-one 1"])
def test_what_the_usage_does_not_name_is_refused(wrong: str):
    with pytest.raises(SystemExit):
        read_options(USAGE, wrong.split())


def programs() -> list[str]:
    found = [path for path in (ROOT / "bench").rglob("*.py") if "read_options(__doc__" in path.read_text()]
    return sorted(".".join(path.relative_to(ROOT).with_suffix("").parts) for path in found)


@pytest.mark.slow
@pytest.mark.parametrize("name", programs())
def test_every_program_can_be_imported_and_shows_its_usage(name: str, capsys: pytest.CaptureFixture[str]):
    module = importlib.import_module(name)
    with pytest.raises(SystemExit) as ended:
        read_options(module.__doc__, ["--help"])
    assert ended.value.code == 0
    _, _, options = capsys.readouterr().out.partition("\noptions:\n")
    assert all(f"\n  {name}" in options for name in re.findall(r"\[(--[\w-]+)", module.__doc__ or ""))
