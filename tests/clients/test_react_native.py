"""The React Native bridge: its contract, its types, what is packed, and what its pages claim."""

from __future__ import annotations

import json
import plistlib
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import pytest

from tests.clients.vectors import cases
from tools import react_native
from tools.node_client import pack
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
    assert said["methods"] == ["configure/1", "identify/2", "cancel/1", "setLocationMocked/1", "forget/1"]
    path = Path("java/svc/visitor/reactnative/NativeSvcVisitorSpec.java")
    kept = ANDROID / "android/src/test/kotlin/svc/visitor/reactnative/NativeSvcVisitorSpec.java"
    made, here = (file.read_text().partition("*/")[2] for file in (tmp_path / path, kept))  # without the first comment
    assert made == here, "the module is compiled against another class"
    assert "interface" in made or "class" in made


@pytest.mark.slow(5)
def test_the_types_of_the_package_are_right():
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


def test_every_option_is_known_to_both_modules_and_others_are_refused():
    text = (PACKAGE / "src" / "index.ts").read_text()
    kotlin = (PACKAGE / "android/src/main/kotlin/svc/visitor/reactnative/SvcVisitorModule.kt").read_text()
    swift = (PACKAGE / "ios" / "SvcVisitorBridge.swift").read_text()
    for interface, name, more in (("SvcOptions", "known", []), ("IdentifyOptions", "call", ["id"])):
        options = re.findall(
            r"^  (\w+)\??:", text.partition(f"interface {interface} {{")[2].partition("\n}")[0], re.MULTILINE
        )
        wanted = sorted({*options, *more} - {"signal"})
        for module, start, end in ((kotlin, f"{name.upper()} = setOf(", ")"), (swift, f"{name}: Set<String> = [", "]")):
            found = re.findall(r'"(\w+)"', module.partition(start)[2].partition(end)[0])
            assert sorted(found) == wanted, start
        assert len(wanted) >= 5


NATIVE = """
export const calls = [];
const failed = { code: "timeout", message: "late", status: 0, retryable: true, retry_after_ms: 5, request_id: null };
const module = {
  configure(text) { calls.push(text); return text.includes("svc_pk_") ? "" : JSON.stringify({ svc_error: failed }); },
  async identify(text) {
    calls.push(text);
    return text.includes("late") ? JSON.stringify({ svc_error: failed }) : '{"request_id":"r","future":[1.50]}';
  },
  cancel(id) { calls.push(`cancel ${id}`); },
  setLocationMocked(isMocked) { calls.push(`mocked ${isMocked}`); },
  async forget() { calls.push("forget"); },
};
let looked = 0;
export const TurboModuleRegistry = {
  getEnforcing: (name) => { looked++; calls.push(`looked ${looked}`); return name === "SvcVisitor" ? module : null; },
};
"""
"""What stands in for React Native and the native module."""
CALLS = """
import { calls } from "react-native";
import { configure, forget, identify, setLocation, SvcError } from "./index";
calls.push("imported");
const shown = (error) => [error instanceof SvcError, error.code, error.retryAfterMs, error.requestId ?? null];
const caught = async (work) => { try { return await work(); } catch (error) { return shown(error); } };
const told = [
  await caught(() => configure({ apiKey: "wrong", endpoint: "https://a.example" })),
  configure({ apiKey: "svc_pk_us_x", endpoint: ["https://a.example"], attestation: "when_possible" }) ?? null,
  await identify({ tag: "t", accountId: "a", action: "log_in", timeoutMs: 3000 }),
  await caught(() => identify({ tag: "late" })),
  (await forget()) ?? null,
];
const held = new AbortController();
const running = identify({ tag: "held", signal: held.signal });
held.abort();
await running;
told.push(await caught(() => identify({ signal: held.signal })));
setLocation({ mocked: true });
setLocation({});
console.log(JSON.stringify({ calls, told }));
"""


def bundled(folder: Path, calls_of_app: str, native_module: str) -> Any:
    """What an app with the package prints, in JSON; `native_module` stands in for React Native."""
    node = find_node()
    bundler = WEB / "node_modules" / "esbuild" / "bin" / "esbuild"
    if node is None or not bundler.exists():
        pytest.skip("web is not installed")
    native, calls, made = folder / "native.js", folder / "calls.ts", folder / "made.mjs"
    native.write_text(native_module)
    calls.write_text(calls_of_app.replace("./index", (PACKAGE / "src" / "index").as_posix()))
    bundle = ["--bundle", "--format=esm", f"--alias:react-native={native}", f"--outfile={made}", "--log-level=error"]
    subprocess.run([str(bundler), str(calls), *bundle], check=True, env=node.environment)
    return json.loads(run(node, str(made)))


@pytest.mark.slow(2)
def test_options_and_calls_pass_as_json_and_errors_are_those_of_the_web_sdk(tmp_path: Path):
    said = bundled(tmp_path, CALLS, NATIVE)
    late = [True, "timeout", 5, None]
    assert said["told"] == [late, None, {"request_id": "r", "future": [1.5]}, late, None, [True, "aborted", 0, None]]
    texts = [json.loads(text) if text.startswith("{") else text for text in said["calls"]]
    assert texts == [
        "imported", "looked 1", {"apiKey": "wrong", "endpoint": "https://a.example"},
        {"apiKey": "svc_pk_us_x", "endpoint": ["https://a.example"], "attestation": "when_possible"},
        {"tag": "t", "accountId": "a", "action": "log_in", "timeoutMs": 3000, "id": "1"},
        {"tag": "late", "id": "2"}, "forget", {"tag": "held", "id": "3"}, "cancel 3", "mocked true", "mocked ",
    ]  # fmt: skip


TELLING = """
export const TurboModuleRegistry = { getEnforcing: () => ({ identify: async (text) => JSON.parse(text).tag }) };
"""
"""A native module that says what it is told to."""
TOLD = """
import { identify, SvcError } from "./index";
const shown = ({ code, message, status, retryable, retryAfterMs, requestId }) =>
  ({ code, message, status, retryable, retry_after_ms: retryAfterMs, request_id: requestId });
const told = [];
for (const one of TOLD) {
  try { await identify({ tag: JSON.stringify({ svc_error: one }) }); }
  catch (error) { told.push(error instanceof SvcError && shown(error)); }
}
console.log(JSON.stringify(told));
"""


@pytest.mark.slow(2)
def test_a_refusal_reaches_the_app_as_the_native_sdk_tells_it(tmp_path: Path):
    told = [case["expect"]["told"] for case in cases("apps") if case["kind"] == "app_refusal"]
    assert bundled(tmp_path, TOLD.replace("TOLD", json.dumps(told)), TELLING) == told


# What is packed


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Node, Path]:
    """The file that npm makes, unpacked where Node.js finds it, with something in place of React Native."""
    node = find_node()
    if node is None or react_native.compiler() is None:
        pytest.skip("there is no npm, or TypeScript is not installed")
    folder = tmp_path_factory.mktemp("packed")
    react_native.stage(node, folder / "staged")
    pack(node, folder / "staged", folder)
    (made,) = folder.glob("*.tgz")
    modules = folder / "app" / "node_modules"
    with tarfile.open(made) as archive:
        archive.extractall(modules / "@svc", filter="data")
    (modules / "@svc" / "package").rename(modules / "@svc" / "react-native")
    (modules / "react-native").mkdir()
    (modules / "react-native" / "index.js").write_text(
        "exports.TurboModuleRegistry = { getEnforcing() { throw new Error('no such module'); } };"
    )
    return node, modules / "@svc" / "react-native"


@pytest.mark.slow(8)
def test_the_packed_file_has_the_swift_sources_headers_and_the_privacy_manifest(packed: tuple[Node, Path]):
    folder = packed[1]
    swift = {path.name: path.read_text() for path in (folder / "ios").rglob("*.swift")}
    sources = [path for module in react_native.MODULES for path in (react_native.SWIFT / module).glob("*.swift")]
    assert set(swift) == {path.name for path in sources} | {"SvcVisitorBridge.swift"}
    for name, text in swift.items():
        assert not re.search(r"import SvcVisitor|^\s*package ", text, re.MULTILINE), name
    declared = plistlib.loads((folder / "ios" / "PrivacyInfo.xcprivacy").read_bytes())
    assert declared["NSPrivacyTracking"] is False
    podspec = (folder / "SvcReactNative.podspec").read_text()
    (bundled,) = re.findall(r'"SvcVisitor" => \["([^"]+)"\]', podspec)
    assert (folder / bundled).exists()
    assert '"ios/**/*.{h,mm,swift}"' in podspec
    assert {path.name for path in (folder / "ios").glob("*.*m*")} >= {"SvcVisitorModule.mm"}
    assert (folder / "ios" / "SvcVisitorModule.h").exists()
    for name in ("LICENSE", "app.plugin.js", "jest/mock.d.ts", "lib/index.d.ts", "android/build.gradle"):
        assert (folder / name).exists(), name


@pytest.mark.slow(2)
def test_the_packed_file_is_required_as_commonjs_without_a_native_module_and_its_mock_has_the_same_names(
    packed: tuple[Node, Path],
):
    script = """
        const real = require("@svc/react-native");
        const mock = require("@svc/react-native/jest/mock");
        const caught = (work) => { try { return work(); } catch (error) { return error.message; } };
        mock.identify({ tag: "t" }).then((found) => console.log(JSON.stringify({
          real: Object.keys(real).sort(), mock: Object.keys(mock).sort(),
          used: caught(() => real.configure({})), id: found.request_id.length,
        })));
    """
    node, folder = packed
    command = [str(node.node), "-e", script]
    done = subprocess.run(
        command, cwd=folder.parents[2], env=node.environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["real"] == said["mock"] == ["SvcError", "configure", "forget", "identify", "setLocation"]
    assert (said["used"], said["id"]) == ("no such module", 36)


GRADLE = "buildscript {\n}\n\nallprojects {\n  repositories {\n    google()\n  }\n}\n"
PLUGIN = """
const { withRepository } = require("./app.plugin.js");
const gradle = process.argv[1];
const once = withRepository(gradle, "../svc/dist/maven");
const caught = (work) => { try { return work(); } catch (error) { return error.message; } };
console.log(JSON.stringify([once, withRepository(once, "../svc/dist/maven") === once, withRepository(once) === gradle,
  withRepository(gradle, "https://maven.shop.example"), caught(() => withRepository("", "x"))]));
"""


def test_the_plugin_for_expo_adds_the_repository_once():
    """What the plugin does with the app's file; that Expo calls it was tried by hand (docs/react-native.md)."""
    node = find_node()
    if node is None:
        pytest.skip("there is no Node.js")
    once, is_same, is_gone, address, refused = json.loads(run(node, "-e", PLUGIN, GRADLE))
    assert 'repositories {\n        maven { url = uri(rootProject.file("../../svc/dist/maven")) }' in once
    assert (is_same, is_gone) == (True, True)
    assert 'uri("https://maven.shop.example")' in address
    assert "allprojects" in refused


def test_the_ios_side_is_said_to_be_sources_only():
    for path in (path for path in (PACKAGE / "ios").iterdir() if path.is_file()):
        assert path.read_text().startswith("// Not built yet: sources only.\n"), path.name
    assert "**iOS: sources only, not built or tested.**" in (PACKAGE / "README.md").read_text()
