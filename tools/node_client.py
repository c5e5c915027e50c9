"""Builds the client library for Node.js with the compiler of `web/`: `python -m tools.node_client [FOLDER]`.

It also puts the npm packages into FOLDER: that one, the one for code that was written for Fingerprint, those of the web
SDK, which `tools.web` builds, and the React Native bridge, as `tools.react_native` stages it. Says so, and does
nothing, where there is no npm.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from tools import fingerprint_compat, react_native
from tools.npm_forms import compile_forms
from tools.web import INSTALLED, ROOT, WEB, Node, find_node, install

PACKAGE = ROOT / "clients" / "node"
WEB_PACKAGES = ("sdk", "react", "vue", "svelte")
"""Of the web SDK: folders of `web`."""
PACKAGES = (PACKAGE, fingerprint_compat.PACKAGE, *(WEB / name for name in WEB_PACKAGES), react_native.PACKAGE)
"""What a developer installs."""


def compiler() -> Node | str:
    """The node that can compile, or why there is none."""
    node = find_node()
    if node is None:
        return "there is no node with npm"
    return install(node, WEB, INSTALLED) or node


def compile_to(node: Node, folder: Path) -> None:
    """Compile the library into a folder. Raises `subprocess.CalledProcessError` where the sources are at fault."""
    compile_forms(node, PACKAGE, folder)


def pack(node: Node, package: Path, folder: Path) -> None:
    """Put a built package into a folder. Raises `subprocess.CalledProcessError` where npm refuses it."""
    command = [*node.npm, "pack", "--silent", "--pack-destination", folder.resolve()]
    subprocess.run(command, cwd=package, env=node.environment, check=True, stdout=subprocess.DEVNULL)


def main(folder: str | None = None) -> int:
    """Build; 0 also where that is impossible here."""
    node = compiler()
    if isinstance(node, str):
        print(f"The client library for Node.js is left out: {node}.")
        return 0
    compile_to(node, PACKAGE / "dist")
    fingerprint_compat.compile_to(node, fingerprint_compat.PACKAGE / "dist")
    if folder is not None:
        with tempfile.TemporaryDirectory() as made:
            staged = Path(made, "react-native")
            react_native.stage(node, staged)
            for package in PACKAGES:
                pack(node, staged if package == react_native.PACKAGE else package, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
