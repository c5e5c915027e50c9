"""The npm package of the React Native bridge as it is packed: JavaScript with types, and the Swift SDK in its sources.

What may live here: what is copied, compiled and rewritten. A pod is one module, so that what the Swift package has in
two is one there.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from tools.web import ROOT, WEB, Node

PACKAGE = ROOT / "clients" / "react-native"
SWIFT = ROOT / "clients" / "ios" / "Sources"
MODULES = ("SvcVisitorCore", "SvcVisitor")
COMPILERS = tuple(place / "node_modules" / "typescript" / "bin" / "tsc" for place in (WEB, PACKAGE))
_IMPORT = re.compile(rf"^[ \t]*import (?:{'|'.join(MODULES)})\n", re.MULTILINE)
_ALIAS = re.compile(r"^public typealias (\w+) = SvcVisitorCore\.\1\n", re.MULTILINE)
_PACKAGE = re.compile(r"^( *)package (?=\w)", re.MULTILINE)


def in_one_module(source: str) -> str:
    """A Swift source of the package as one of the pod's: no import of its own parts, no other names
    for what is in the same module, and no access within a package.
    """
    return _PACKAGE.sub(r"\1", _ALIAS.sub("", _IMPORT.sub("", source)))


def compiler() -> Path | None:
    """TypeScript's, where it is installed."""
    return next((path for path in COMPILERS if path.exists()), None)


def compile_to(node: Node, folder: Path) -> None:
    """Compile the bridge into a folder. Raises `subprocess.CalledProcessError` where the sources are at fault."""
    made = compiler()
    assert made is not None
    command = [str(node.node), str(made), "-p", str(PACKAGE / "tsconfig.build.json"), "--outDir", str(folder)]
    subprocess.run(command, env=node.environment, check=True, capture_output=True, text=True)


def stage(node: Node, folder: Path) -> None:
    """Write what is packed into a folder that does not exist yet. Raises as `compile_to`."""
    shutil.copytree(PACKAGE, folder, ignore=shutil.ignore_patterns("node_modules", "lib", "build", "test", "*.tgz"))
    compile_to(node, folder / "lib")
    sdk = folder / "ios" / "sdk"
    sdk.mkdir()
    for path in (path for module in MODULES for path in sorted((SWIFT / module).glob("*.swift"))):
        (sdk / path.name).write_text(in_one_module(path.read_text()))
    bridge = folder / "ios" / "SvcVisitorBridge.swift"
    bridge.write_text(in_one_module(bridge.read_text()))
    shutil.copy(SWIFT / "SvcVisitor" / "PrivacyInfo.xcprivacy", folder / "ios")
