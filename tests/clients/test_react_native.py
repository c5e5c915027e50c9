"""The React Native bridge: its contract, its types, and what its pages claim."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tools.web import Node, find_node

PACKAGE = Path(__file__).parents[2] / "clients" / "react-native"
ANDROID = Path(__file__).parents[2] / "clients" / "android"
WEB_TYPES = Path(__file__).parents[2] / "web" / "sdk" / "src" / "api.ts"


def installed() -> Node:
    """The node with which the package's own tools run."""
    node = find_node()
    if node is None or not (PACKAGE / "node_modules" / "@react-native" / "codegen").exists():
        pytest.skip("React Native's generator is not installed: npm ci in clients/react-native")
    return node


def run(node: Node, *arguments: str) -> str:
    done = subprocess.run(
        [str(node.node), *arguments], cwd=PACKAGE, env=node.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow(3)
def test_react_natives_generator_takes_the_contract_and_the_android_module_implements_it(tmp_path: Path):
    said = json.loads(run(installed(), "codegen.mjs", str(tmp_path)))
    assert said["methods"] == ["configure/1", "identify/2", "forget/1"]
    path = Path("java/svc/visitor/reactnative/NativeSvcVisitorSpec.java")
    kept = ANDROID / "android/src/test/kotlin/svc/visitor/reactnative/NativeSvcVisitorSpec.java"
    assert (tmp_path / path).read_text() == kept.read_text(), "the module is compiled against another class"


@pytest.mark.slow(5)
def test_its_types_are_right():
    run(installed(), str(PACKAGE / "node_modules" / "typescript" / "bin" / "tsc"), "--noEmit", "-p", ".")


def declarations(text: str) -> dict[str, str]:
    """Exported types and classes by name, each to its end."""
    found = re.finditer(
        r"^export (?:interface|class|type) (\w+)[^\n]*(?:;$|\{\n.*?^\}$)", text, re.MULTILINE | re.DOTALL
    )
    return {one[1]: one[0] for one in found}


def test_the_types_of_a_response_are_those_of_the_web_sdk():
    own, web = declarations((PACKAGE / "src" / "api.ts").read_text()), declarations(WEB_TYPES.read_text())
    shared = ["SvcErrorDetails", "SvcError", "Level", "Trigger", "Decision", "Identification"]
    assert {name: own[name] for name in shared} == {name: web[name] for name in shared}


def test_one_version_stands_everywhere():
    version = json.loads((PACKAGE / "package.json").read_text())["version"]
    module = PACKAGE / "android" / "src" / "main" / "kotlin" / "svc" / "visitor" / "reactnative" / "SvcVisitorModule.kt"
    assert f'VERSION = "{version}"' in module.read_text()


def test_every_option_of_the_bridge_is_known_to_the_module():
    text = (PACKAGE / "src" / "index.ts").read_text()
    options = re.findall(r"^  (\w+)\??:", text.partition("interface SvcOptions {")[2].partition("\n}")[0], re.MULTILINE)
    module = (PACKAGE / "android/src/main/kotlin/svc/visitor/reactnative/SvcVisitorModule.kt").read_text()
    known = re.findall(r'"(\w+)"', module.partition("KNOWN = setOf(")[2].partition(")")[0])
    assert sorted(options) == sorted(known)
    assert len(options) > 10


def test_its_ios_side_claims_no_more_than_sources():
    for path in (PACKAGE / "ios").iterdir():
        assert path.read_text().startswith("// Not built yet: sources only.\n"), path.name
    assert "**iOS: sources only, not built or tested.**" in (PACKAGE / "README.md").read_text()
