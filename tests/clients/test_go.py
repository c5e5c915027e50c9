"""The client library for Go: its own tests over the shared vectors, and a program that takes it from the module proxy
of `make clients`, against a running service over loopback.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.clients.compiled import does_everything
from tests.test_docs import block
from tools.archives import write
from tools.go_library import MODULE, PATH, environment, find_go, published, tag

pytestmark = pytest.mark.slow(20)
PROGRAM = Path(__file__).parent / "programs" / "go" / "main.go"


def go(*arguments: str, folder: Path = MODULE, published_in: Path | None = None) -> str:
    """What Go prints; it must end with status 0. Modules come from nowhere, or from what was published in a folder: not
    from what Go has kept of this version, published by another run.
    """
    found = find_go()
    if found is None:
        pytest.skip("there is no Go")
    env = environment()
    if published_in is not None:
        env = environment(f"file://{published_in}") | {"GOMODCACHE": str(folder / "modules")}
    done = subprocess.run([found, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_own_tests_of_the_library_pass():
    assert "\nok " in "\n" + go("test", "-count=1", "./...")


def test_the_sources_are_formatted():
    found = find_go()
    if found is None:
        pytest.skip("there is no Go")
    command = [str(Path(found).parent / "gofmt"), "-l", MODULE, PROGRAM]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_the_module_needs_nothing_and_is_the_same_each_time():
    assert published() == published()
    assert "require" not in (MODULE / "go.mod").read_text()


def program(folder: Path, main: str, **others: str) -> Path:
    """A program whose module takes the library from the proxy in a folder, as the page says."""
    write(folder / "dist" / "go", published())
    source = folder / "program"
    source.mkdir()
    (source / "go.mod").write_text(f"module program\n\ngo 1.24\n\nrequire {PATH} {tag()}\n")
    for name, text in {"main": main, **others}.items():
        (source / f"{name}.go").write_text(text)
    go("build", "-o", str(folder / "built"), ".", folder=source, published_in=folder / "dist" / "go")
    return folder / "built"


def shown(page: str, containing: str) -> str:
    return f"package main\n\n{block(page, 'go', containing)}"


async def test_a_program_does_with_the_library_what_other_languages_do(tmp_path: Path):
    guide = {
        "log_in": shown("server-libraries.md", "func logIn("),
        "receive": shown("server-libraries.md", "func receive("),
    }
    built = program(tmp_path, PROGRAM.read_text(), **guide)
    await does_everything([str(built)], tmp_path, tmp_path)
