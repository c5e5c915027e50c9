"""The React Native bridge: its contract, its types, and what its pages claim."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from tools.web import WEB, Node, find_node

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
    made, here = (file.read_text().partition("*/")[2] for file in (tmp_path / path, kept))  # without the first comment
    assert made == here, "the module is compiled against another class"
    assert "interface" in made or "class" in made


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


NATIVE = """
export const calls = [];
const failed = { code: "timeout", message: "late", status: 0, retryable: true, retry_after_ms: 5, request_id: null };
const module = {
  configure(text) { calls.push(text); return text.includes("svc_pk_") ? "" : JSON.stringify({ svc_error: failed }); },
  async identify(text) {
    calls.push(text);
    return text.includes("late") ? JSON.stringify({ svc_error: failed }) : '{"request_id":"r","future":[1.50]}';
  },
  async forget() { calls.push("forget"); },
};
export const TurboModuleRegistry = { getEnforcing: (name) => (name === "SvcVisitor" ? module : null) };
"""
"""What stands in for React Native and the native module."""
CALLS = """
import { calls } from "react-native";
import { configure, forget, identify, SvcError } from "./index";
const shown = (error) => [error instanceof SvcError, error.code, error.retryAfterMs, error.requestId ?? null];
const caught = async (work) => { try { return await work(); } catch (error) { return shown(error); } };
const told = [
  await caught(() => configure({ apiKey: "wrong", endpoint: "https://a.example" })),
  configure({ apiKey: "svc_pk_us_x", endpoint: ["https://a.example"], attestation: "when_possible" }) ?? null,
  await identify({ tag: "t", accountId: "a", action: "log_in", timeoutMs: 3000 }),
  await caught(() => identify({ tag: "late" })),
  (await forget()) ?? null,
];
console.log(JSON.stringify({ calls: calls.slice(1), told }));
"""


@pytest.mark.slow(2)
def test_options_and_calls_pass_as_json_and_errors_are_those_of_the_web_sdk(tmp_path: Path):
    node = find_node()
    bundler = WEB / "node_modules" / "esbuild" / "bin" / "esbuild"
    if node is None or not bundler.exists():
        pytest.skip("web is not installed")
    native, calls, made = tmp_path / "native.js", tmp_path / "calls.ts", tmp_path / "made.mjs"
    native.write_text(NATIVE)
    calls.write_text(CALLS.replace("./index", (PACKAGE / "src" / "index").as_posix()))
    bundle = ["--bundle", "--format=esm", f"--alias:react-native={native}", f"--outfile={made}", "--log-level=error"]
    subprocess.run([str(bundler), str(calls), *bundle], check=True, env=node.environment)
    said = json.loads(run(node, str(made)))
    assert said["told"] == [
        [True, "timeout", 5, None],
        None,
        {"request_id": "r", "future": [1.5]},
        [True, "timeout", 5, None],
        None,
    ]
    assert [json.loads(text) if text != "forget" else text for text in said["calls"]] == [
        {"apiKey": "svc_pk_us_x", "endpoint": ["https://a.example"], "attestation": "when_possible"},
        {"tag": "t", "accountId": "a", "action": "log_in", "timeoutMs": 3000},
        {"tag": "late"},
        "forget",
    ]


def test_its_ios_side_claims_no_more_than_sources():
    for path in (PACKAGE / "ios").iterdir():
        assert path.read_text().startswith("// Not built yet: sources only.\n"), path.name
    assert "**iOS: sources only, not built or tested.**" in (PACKAGE / "README.md").read_text()
