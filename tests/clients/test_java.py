"""The client library for Java: its own tests over the shared vectors and over loopback, and a program that runs from
the repository of `make clients`, against a running service.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from tests.clients import connections
from tests.clients.compiled import does_everything, in_lines
from tests.clients.connections import Servers
from tests.clients.hostility import CASES, DEADLINE_MS, TIMEOUT_MS, agrees
from tests.clients.hostility import in_lines as told_in_lines
from tests.clients.vectors import FOLDER, cases
from tests.test_docs import block
from tools import java_library
from tools.java_library import ARTIFACT, PACKAGE, compile_to, missing, published, sources
from tools.versions import version

pytestmark = pytest.mark.slow(20)
PROGRAM = Path(__file__).parent / "programs" / "java" / "Main.java"


@pytest.fixture(scope="module")
def classes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library and its tests, compiled."""
    reason = missing()
    if reason is not None:
        pytest.skip(f"the library for Java can't be compiled: {reason}")
    folder = tmp_path_factory.mktemp("java")
    compile_to(folder, *sources("main"), *sources("test"))
    return folder


def java(classes: Path, *arguments: str) -> str:
    """What a program prints; it must end with status 0."""
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", str(classes), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_java_passes_every_case(classes: Path):
    count = sum(len(cases(name)) for name in ("webhook", "verdict", "check", "responses"))
    assert java(classes, "svc.visitor.client.Vectors", str(FOLDER)) == f"{count} cases, 0 faults\n"


def test_java_sends_over_loopback_what_it_should(classes: Path):
    assert java(classes, "svc.visitor.client.Sending") == "0 faults\n"


def test_the_java_client_survives_each_behavior(classes: Path, hostile_service: str):
    given = (f"{hostile_service}/java", str(TIMEOUT_MS), str(DEADLINE_MS), *CASES)
    agrees(hostile_service, "java", told_in_lines(java(classes, "svc.visitor.client.Hostile", *given)))


def test_the_java_client_says_whether_a_request_was_sent(classes: Path, tmp_path: Path):
    servers = Servers(tmp_path)
    with servers.serving() as places:
        given = (str(connections.TIMEOUT_MS), *(part for one in places.items() for part in one))
        told = java(classes, *servers.java_trust(), "svc.visitor.client.Connections", *given)
        connections.agrees(places, connections.in_lines(told))


async def test_a_program_does_with_the_library_what_other_languages_do(tmp_path: Path):
    reason = missing()
    if reason is not None:
        pytest.skip(f"the library for Java can't be compiled: {reason}")
    assert java_library.main(str(tmp_path / "dist")) == 0
    place = tmp_path / "dist" / "maven" / "svc" / "visitor" / ARTIFACT / version()
    jar = place / f"{ARTIFACT}-{version()}.jar"
    (tmp_path / "LogIn.java").write_text(block("server-libraries.md", "java", "final class LogIn"))
    compile_to(tmp_path / "program", PROGRAM, tmp_path / "LogIn.java", classes=jar)
    command = ["java", "-XX:TieredStopAtLevel=1", "-cp", f"{jar}:{tmp_path / 'program'}", "Main"]
    await does_everything(command, tmp_path, tmp_path, written=in_lines)
    names = {path.name.removeprefix(f"{ARTIFACT}-{version()}") for path in place.iterdir()}
    ends = {".jar", "-sources.jar", "-javadoc.jar", ".pom"}
    assert names == ends | {f"{end}.{name}" for end in ends for name in ("sha1", "sha256")}
    assert hashlib.sha1(jar.read_bytes()).hexdigest() == (place / f"{jar.name}.sha1").read_text()


@pytest.mark.long
def test_two_builds_are_equal():
    if missing():
        pytest.skip(f"the library for Java can't be compiled: {missing()}")
    assert published() == published()


def test_the_version_is_the_same_everywhere():
    pom = (PACKAGE / "pom.xml").read_text()
    assert re.findall("<version>(.*)</version>", pom) == [version()]
    assert "<dependency>" not in pom
